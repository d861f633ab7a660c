# SPDX-License-Identifier: BSD-3-Clause
"""The tester of a live topology as a process: its name, its kernel interfaces, its start."""

from __future__ import annotations

import json
from pathlib import Path

from planebench.host.netns import VethWire
from planebench.host.process import Process, Supervisor
from planebench.model.errors import PlanebenchError, StartError
from planebench.placement import LinkSettings, Placement, wire_stage
from planebench.planed import PlanedClient
from planebench.scenarios import Topology


def eal_prefix(supervisor: Supervisor, label: str) -> str:
    """An EAL file prefix that no other tester of this run has."""
    number = len(supervisor.processes)
    text = f"{supervisor.root.name}-t{number}-{label}".lower()
    return "".join(c if c.isalnum() or c in "-_" else "-" for c in text)[:31]


def make_veth(topology: Topology, links: LinkSettings, placement: Placement, supervisor: Supervisor) -> VethWire | None:
    """The ports of a topology that are kernel interfaces; None where none is."""
    names = [port.name for port in topology.ports if links.is_veth(port)]
    return VethWire.create(supervisor, names, cpus=placement.control_cpus) if names else None


def start_tester(
    topology: Topology,
    placement: Placement,
    links: LinkSettings,
    planed: Path,
    supervisor: Supervisor,
    netns_pid: int | None,
) -> tuple[Process, PlanedClient]:
    """The tester with its wire ports, and a connection to it. Raises StartError."""
    config, socket = links.workdir / "tester.json", links.workdir / "tester.rpc"
    for name in topology.wire_ports:
        links.socket(name).unlink(missing_ok=True)  # of an earlier tester: DPDK's memif leaves it, and refuses it
    config.write_text(json.dumps(wire_stage(topology, links), indent=1), encoding="utf-8")
    process = supervisor.spawn(
        "tester",
        [str(planed), "--config", str(config), "--rpc", str(socket)],
        cpus=placement.control_cpus | placement.polled_by_tester,
        workdir=links.workdir,
        netns_pid=netns_pid,
    )

    def give_up() -> None:
        if not process.alive():
            raise StartError(f"the tester did not come up: {process.obituary()}")

    try:
        return process, PlanedClient(socket, give_up=give_up)
    except PlanebenchError:
        process.terminate()
        raise
