# SPDX-License-Identifier: BSD-3-Clause
"""The tester of a live topology as a process: its name, its kernel interfaces, its start."""

from __future__ import annotations

from pathlib import Path

from planebench.host.netns import VethWire
from planebench.host.process import Supervisor
from planebench.model.topology import Topology
from planebench.placement import Placement
from planebench.planed.process import PlanedProcess
from planebench.wiring.tester_config import LinkSettings, wire_stage


def eal_prefix(supervisor: Supervisor, label: str) -> str:
    """Return an EAL file prefix that no other tester of this run has."""
    number = len(supervisor.processes)
    text = f"{supervisor.root.name}-t{number}-{label}".lower()
    return "".join(c if c.isalnum() or c in "-_" else "-" for c in text)[:31]


def make_veth(topology: Topology, links: LinkSettings, placement: Placement, supervisor: Supervisor) -> VethWire | None:
    """Make the ports of a topology that are kernel interfaces; return None if there are none."""
    names = [port.name for port in topology.ports if links.is_veth(port)]
    return VethWire.create(supervisor, names, cpus=placement.control_cpus) if names else None


def start_tester(
    topology: Topology,
    placement: Placement,
    links: LinkSettings,
    planed: Path,
    supervisor: Supervisor,
    netns_pid: int | None,
) -> PlanedProcess:
    """Start the tester with its wire ports and connect to it. Raise StartError."""
    for name in topology.wire_ports:
        links.socket(name).unlink(missing_ok=True)  # of an earlier tester: DPDK's memif leaves it, and refuses it
    return PlanedProcess.start(
        wire_stage(topology, links),
        supervisor,
        planed=planed,
        name="tester",
        title="the tester",
        file="tester",
        workdir=links.workdir,
        cpus=placement.control_cpus | placement.polled_by_tester,
        netns_pid=netns_pid,
    )
