# SPDX-License-Identifier: BSD-3-Clause
"""VNFs in a process of their own, that can be killed: a second planed has the ports of the VNFs, the tester the wires.

Both are asked as if they were one (:meth:`Split.call`), so what sends and counts need not know.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from planebench.conformance.bed import Bed
from planebench.conformance.counting import FRAMES, RATE_PPS, Tally, settled
from planebench.host.patience import patient
from planebench.measure.counts import arrived
from planebench.measure.live import CONNECT_DEADLINE_S
from planebench.measure.sending import next_epoch, send
from planebench.model.errors import PlanebenchError, StartError
from planebench.planed.document import NAME_MAX, Document
from planebench.planed.process import PlanedProcess
from planebench.planed.requests import Load, start_traffic
from planebench.planed.statistics import Statistics
from planebench.scenarios import Flow

FLOOD_MAX_S = 10.0


def halves(bed: Bed) -> tuple[Document, Document]:
    """Return the tester's document without what the VNFs have, and one with only that."""
    document, vnf_ports = bed.live.document(), set(bed.topology.vnf_ports)
    theirs = replace(document.part(vnf_ports.__contains__), name=f"{document.name[: NAME_MAX - 4]}-vnf")
    return document.part(lambda port: port not in vnf_ports), theirs


@dataclass
class Split:
    """A VNF process beside the tester. Made by :meth:`start`."""

    bed: Bed
    planed: PlanedProcess
    tasks: frozenset[str]
    epoch: int = 0

    @classmethod
    def start(cls, bed: Bed, epoch: int = 0) -> Split:
        """Start the process, alone on its core until it is up; its ports connect to the switch. Raises StartError.

        ``epoch`` is the last one that frames were sent with: a switch may still have some of them.
        """
        live = bed.live
        wires, document = halves(bed)
        live.apply(wires.idle())
        planed = PlanedProcess.start(
            document,
            bed.supervisor,
            planed=bed.settings.planed,
            name="vnf",
            title="the VNF",
            file=f"vnf{len(bed.supervisor.processes)}",
            workdir=live.links.workdir,
            cpus=frozenset({*bed.placement.control_cpus, *bed.placement.tester_cpus, *bed.placement.vnf_cpus}),
            netns_pid=live.netns_pid,
        )
        live.apply(wires)
        return cls(bed, planed, frozenset(task.name for task in document.tasks), epoch)

    def kill(self) -> None:
        """SIGKILL: it has no time to say goodbye to anybody."""
        self.planed.kill()

    def stop(self) -> None:
        """End it in order. Never raises; safe to call twice."""
        self.planed.stop()

    def call(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        """Ask both. Who only receives is told first that a trial begins: counters are cleared then."""
        if method != "traffic.start":
            ours, theirs = self.bed.live.call(method, params), self.planed.call(method, params)
            return _merged(ours, theirs)
        assert params is not None
        mine = [it for it in params["generators"] if it["task"] in self.tasks]
        others = [it for it in params["generators"] if it["task"] not in self.tasks]
        sides = [(self.planed.call, mine), (self.bed.live.call, others)]
        for call, generators in sorted(sides, key=lambda side: len(side[1])):
            call(method, {**params, "generators": generators})
        return {}

    def flood(self, seconds: float) -> None:
        """Begin to send flat out from every end, and wait so long."""
        self.epoch = next_epoch(self.epoch)
        loads = [Load(f"gen-{flow.sender_port}", None, frame_size_bytes=64) for flow in self.bed.ways]
        start_traffic(self.call, self.epoch, FLOOD_MAX_S, loads)
        time.sleep(seconds)

    def count(self, flow: Flow) -> Tally:
        """Send a few frames of one flow, and wait for all of them."""
        tally = Tally()
        tally.add(settled(self.call, self._send(flow), [flow], self.bed.lossless))
        return tally

    def _send(self, flow: Flow) -> Statistics:
        self.epoch = next_epoch(self.epoch)
        queues = self.bed.live.links.queues
        return send(self.call, self.epoch, [flow], 64, FRAMES / RATE_PPS, RATE_PPS, queues=queues)

    def wait_until_forwarding(self) -> None:
        """Until frames of every flow come through. Raises StartError, DiedError."""
        within_s = patient(CONNECT_DEADLINE_S)
        deadline = time.monotonic() + within_s
        missing: Sequence[Flow] = self.bed.ways
        while missing:
            self.bed.live.check()
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


def end_quietly(split: Split) -> None:
    """No more frames from the tester; it may have none to stop."""
    with contextlib.suppress(PlanebenchError):
        split.bed.live.call("traffic.stop")
