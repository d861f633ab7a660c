# SPDX-License-Identifier: BSD-3-Clause
"""VNFs in a process of their own, that can be killed: a second planed has the ports of the VNFs, the tester the wires.

Both are asked as if they were one (:meth:`VnfProcess.call`), so what sends and counts need not know.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from planebench.conformance.counting import FRAMES, RATE_PPS, Counts, settled
from planebench.conformance.rig import Rig
from planebench.host.deadlines import stretched
from planebench.measure.counts import arrived
from planebench.measure.live import CONNECT_DEADLINE_S
from planebench.measure.sending import next_epoch, send
from planebench.model.errors import PlanebenchError, StartError
from planebench.planed.document import NAME_MAX, Document
from planebench.planed.process import PlanedProcess
from planebench.planed.requests import Load, start_traffic
from planebench.planed.statistics import Statistics
from planebench.scenarios.flows import Flow

FLOOD_MAX_S = 10.0


def halves(rig: Rig) -> tuple[Document, Document]:
    """Return the tester's document without what the VNFs have, and one with only that."""
    document, vnf_ports = rig.live.document(), set(rig.topology.vnf_ports)
    theirs = replace(document.part(vnf_ports.__contains__), name=f"{document.name[: NAME_MAX - 4]}-vnf")
    return document.part(lambda port: port not in vnf_ports), theirs


@dataclass
class VnfProcess:
    """A VNF process beside the tester. Made by :meth:`start`."""

    rig: Rig
    planed: PlanedProcess
    tasks: frozenset[str]
    epoch: int = 0

    @classmethod
    def start(cls, rig: Rig, epoch: int = 0) -> VnfProcess:
        """Start the process, alone on its core until it is up; its ports connect to the switch. Raises StartError.

        ``epoch`` is the last one that frames were sent with: a switch may still have some of them.
        """
        live = rig.live
        wires, document = halves(rig)
        live.apply(wires.idle())
        planed = PlanedProcess.start(
            document,
            rig.supervisor,
            planed=rig.settings.planed,
            name="vnf",
            title="the VNF",
            file=f"vnf{len(rig.supervisor.processes)}",
            workdir=live.links.workdir,
            cpus=frozenset({*rig.placement.control_cpus, *rig.placement.tester_cpus, *rig.placement.vnf_cpus}),
            netns_pid=live.netns_pid,
        )
        live.apply(wires)
        return cls(rig, planed, frozenset(task.name for task in document.tasks), epoch)

    def kill(self) -> None:
        """SIGKILL: it has no time to say goodbye to anybody."""
        self.planed.kill()

    def stop(self) -> None:
        """End it in order. Never raises; safe to call twice."""
        self.planed.stop()

    def call(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        """Ask both. Who only receives is told first that a trial begins: counters are cleared then."""
        if method != "traffic.start":
            ours, theirs = self.rig.live.call(method, params), self.planed.call(method, params)
            return _merged(ours, theirs)
        assert params is not None
        mine = [it for it in params["generators"] if it["task"] in self.tasks]
        others = [it for it in params["generators"] if it["task"] not in self.tasks]
        sides = [(self.planed.call, mine), (self.rig.live.call, others)]
        for call, generators in sorted(sides, key=lambda side: len(side[1])):
            call(method, {**params, "generators": generators})
        return {}

    def flood(self, seconds: float) -> None:
        """Begin to send flat out from every end, and wait so long."""
        self.epoch = next_epoch(self.epoch)
        loads = [Load(f"gen-{flow.sender_port}", None, frame_size_bytes=64) for flow in self.rig.ways]
        start_traffic(self.call, self.epoch, FLOOD_MAX_S, loads)
        time.sleep(seconds)

    def count(self, flow: Flow) -> Counts:
        """Send a few frames of one flow, and wait for all of them."""
        counts = Counts()
        counts.add(settled(self.call, self._send(flow), [flow], self.rig.lossless))
        return counts

    def _send(self, flow: Flow) -> Statistics:
        self.epoch = next_epoch(self.epoch)
        queues = self.rig.live.links.queues
        return send(self.call, self.epoch, [flow], 64, FRAMES / RATE_PPS, RATE_PPS, queues=queues)

    def wait_until_forwarding(self) -> None:
        """Until frames of every flow come through. Raises StartError, DiedError."""
        within_s = stretched(CONNECT_DEADLINE_S)
        deadline = time.monotonic() + within_s
        missing: Sequence[Flow] = self.rig.ways
        while missing:
            self.rig.live.check()
            missing = [flow for flow in missing if not arrived(self._send(flow), flow)]
            if missing and time.monotonic() > deadline:
                names = ", ".join(flow.name for flow in missing)
                raise StartError(f"no frame came through {names} within {within_s:g} s")


def _merged(ours: dict[str, Any], theirs: dict[str, Any]) -> dict[str, Any]:
    """Two answers as one: lists together, flags if one of them says so."""
    found = dict(ours)
    for key, value in theirs.items():
        mine = found.get(key)
        if isinstance(value, list) and isinstance(mine, list):
            found[key] = [*mine, *value]
        elif isinstance(value, bool):
            found[key] = bool(mine) or value
    return found


def end_quietly(vnf: VnfProcess) -> None:
    """No more frames from the tester; it may have none to stop."""
    with contextlib.suppress(PlanebenchError):
        vnf.rig.live.call("traffic.stop")
