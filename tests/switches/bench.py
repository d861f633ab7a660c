# SPDX-License-Identifier: BSD-3-Clause
"""A planed tester around a switch, for tests: two wires, two VNF ports joined by an l2fwd."""

from __future__ import annotations

import json
import os
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from planebench.host.netns import VethWire
from planebench.host.planed_program import find_planed
from planebench.host.process import Process, Supervisor, stretched
from planebench.model.errors import StartError
from planebench.planed.client import PlanedClient
from planebench.switches.adapter import Adapter, RunningSwitch
from planebench.testbed.request import SwitchPort, SwitchRequest, af_packet_devargs

CPUS = sorted(os.sched_getaffinity(0))
TESTER_CPU, SWITCH_CPU = CPUS[0], CPUS[-1]
RING = 256
PACKETS = 100
"""Intended in each direction: fewer than any ring has entries, so that no stall of the machine can lose one."""


def request(
    workdir: Path, *, wires: dict[str, str] | None = None, netns: int | None = None, **more: Any
) -> SwitchRequest:
    """n0-v0 and v1-n1; ``wires`` names the switch's kernel interfaces on the veth wire."""

    def wire(name: str) -> SwitchPort:
        if wires is not None:
            return SwitchPort(name, "af_packet", interface=wires[name], ring_size=RING)
        return SwitchPort(name, "virtio-user", path=workdir / f"{name}.sock", ring_size=RING)

    vnf = tuple(SwitchPort(name, "vhost-user", path=workdir / f"{name}.sock", ring_size=RING) for name in ("v0", "v1"))
    return SwitchRequest(
        ports=(wire("n0"), wire("n1"), *vnf),
        cross_connects=(("n0", "v0"), ("v1", "n1")),
        cpu=SWITCH_CPU,
        control_cpus=frozenset({TESTER_CPU}),
        workdir=workdir,
        hugepages=False,
        netns_pid=netns,
        **more,
    )


@dataclass(frozen=True)
class Direction:
    """What became of the frames of one direction."""

    offered: int
    forwarded: int
    corrupt: int

    @property
    def complete(self) -> bool:
        return self.offered == self.forwarded > 0 and self.corrupt == 0


@dataclass
class Tester:
    """A planed process. Stage one: the wires; stage two, once the switch is up: everything."""

    supervisor: Supervisor
    workdir: Path
    max_frame_bytes: int = 1518
    wire: VethWire | None = None
    document: dict[str, Any] = field(default_factory=dict)

    def start(self) -> Tester:
        data_bytes = 2176 if self.max_frame_bytes <= 1518 else 9856
        self.document = {
            "version": 1,
            "name": "tester",
            "memory": {"hugepages": False, "size_mb": 256, "mbuf_count": 4095, "mbuf_data_bytes": data_bytes},
            "ports": [self._wire_port(name) for name in ("n0", "n1")],
            "tasks": [],
            "workers": [],
        }
        config, rpc = self.workdir / "tester.json", self.workdir / "tester.rpc"
        config.write_text(json.dumps(self.document))
        self.process: Process = self.supervisor.spawn(
            "tester",
            [str(find_planed()), "--config", str(config), "--rpc", str(rpc)],
            cpus=frozenset({TESTER_CPU}),
            workdir=self.workdir,
            netns_pid=self.wire.netns_pid if self.wire else None,
        )
        self.client = PlanedClient(rpc, give_up=self._give_up)
        return self

    def _give_up(self) -> None:
        if not self.process.alive():
            raise StartError(self.process.exit_report())

    def _wire_port(self, name: str) -> dict[str, Any]:
        port: dict[str, Any] = {"name": name, "ring_size": RING}
        if self.wire is None:
            return {**port, "kind": "vhost-user", "path": str(self.workdir / f"{name}.sock")}
        arguments = af_packet_devargs(self.wire.pairs[name][0], RING, self.max_frame_bytes)
        return {**port, "kind": "ethdev", "device": f"net_af_packet_{name},{arguments}"}

    def join(self) -> None:
        """Connect the VNF ports, start every task, wait until frames get through both ways.

        Links are up before a switch forwards: Open vSwitch still has to reconfigure a port whose VNF has connected.
        """
        for name in ("v0", "v1"):
            path = str(self.workdir / f"{name}.sock")
            self.document["ports"].append({"name": name, "kind": "virtio-user", "path": path, "ring_size": RING})
        self.document["tasks"] = [
            {"name": "g0", "kind": "generator", "ports": ["n0"], "stream": 0},
            {"name": "g1", "kind": "generator", "ports": ["n1"], "stream": 1},
            {"name": "m0", "kind": "monitor", "ports": ["n0"]},
            {"name": "m1", "kind": "monitor", "ports": ["n1"]},
            {"name": "vnf", "kind": "l2fwd", "ports": ["v0", "v1"]},
        ]
        names = [task["name"] for task in self.document["tasks"]]
        self.document["workers"] = [{"name": "w0", "cpu": TESTER_CPU, "tasks": names}]
        self.client.call("config.apply", self.document)
        end = time.monotonic() + stretched(20)
        while not all(port["link_up"] for port in self.client.call("ports.get")["ports"]):
            assert time.monotonic() < end, "links stay down"
            time.sleep(0.01)
        while not all(way.complete for way in self.send(64, epoch=0, wait_s=0.1)):
            assert time.monotonic() < end, "links are up, but no frame gets through"

    def send(self, frame_bytes: int, epoch: int, wait_s: float = 3.0) -> tuple[Direction, Direction]:
        """Send up to ``PACKETS`` frames each way (late slots are skipped) and wait for them to arrive."""
        generators = [
            {"task": task, "frame_size_bytes": frame_bytes, "rate_pps": PACKETS * 100} for task in ("g0", "g1")
        ]
        self.client.call("traffic.start", {"epoch": epoch, "duration_ns": 10_000_000, "generators": generators})
        end = time.monotonic() + stretched(wait_s)
        while self.client.call("traffic.get")["running"] and time.monotonic() < end:
            time.sleep(0.005)
        ways = self._directions()
        while not all(way.complete for way in ways) and time.monotonic() < end:
            time.sleep(0.02)
            ways = self._directions()
        return ways

    def _directions(self) -> tuple[Direction, Direction]:
        tasks = {task["name"]: task for task in self.client.call("stats.get")["tasks"]}

        def direction(generator: str, monitor: str, stream: int) -> Direction:
            seen = [it for it in tasks[monitor]["monitor"]["streams"] if it["stream"] == stream]
            offered = tasks[generator]["generator"]["offered_packets"]
            return Direction(
                offered, sum(it["forwarded_packets"] for it in seen), sum(it["corrupt_packets"] for it in seen)
            )

        return direction("g0", "m1", 0), direction("g1", "m0", 1)


def bring_up(
    adapter: Adapter, supervisor: Supervisor, *, max_frame_bytes: int = 1518, wire: VethWire | None = None
) -> tuple[RunningSwitch, Tester]:
    """Tester, switch, links up."""
    workdir = supervisor.workdir("t")
    tester = Tester(supervisor, workdir, max_frame_bytes, wire).start()
    wires = {name: pair[1] for name, pair in wire.pairs.items()} if wire else None
    wanted = request(workdir, wires=wires, netns=wire.netns_pid if wire else None, max_frame_bytes=max_frame_bytes)
    switch = adapter.start(wanted, supervisor)
    tester.join()
    return switch, tester
