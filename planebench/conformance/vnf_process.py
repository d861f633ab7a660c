# SPDX-License-Identifier: BSD-3-Clause
"""VNFs in a process of their own, which can be killed: a second planed has their ports, the tester has the wires."""

from __future__ import annotations

import contextlib
import time
from dataclasses import InitVar, dataclass, replace
from typing import cast

from planebench.conformance.counting import FRAMES, RATE_PPS, Counts, settled
from planebench.conformance.rig import Rig
from planebench.measure.sending import Sender, Sending
from planebench.model.errors import PlanebenchError
from planebench.planed.document import NAME_MAX, Document, Json
from planebench.planed.process import PlanedProcess
from planebench.scenarios.flows import Flow

FLOOD_MAX_S = 10.0


def halves(rig: Rig) -> tuple[Document, Document]:
    """Return the tester's document without the ports of the VNFs, and one with only these."""
    document, vnf_ports = rig.live.document(), set(rig.topology.vnf_ports)
    theirs = replace(document.part(vnf_ports.__contains__), name=f"{document.name[: NAME_MAX - 4]}-vnf")
    return document.part(lambda port: port not in vnf_ports), theirs


@dataclass
class VnfProcess:
    """A VNF process beside the tester. Made by :meth:`start`."""

    rig: Rig
    planed: PlanedProcess
    tasks: frozenset[str]
    epoch: InitVar[int] = 0

    def __post_init__(self, epoch: int) -> None:
        live = self.rig.live
        self.sender = Sender(self.call, queues=live.links.queues, epoch=epoch, check=live.check)

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
        """End it by SIGKILL."""
        self.planed.kill()

    def stop(self) -> None:
        """End it in order. Never raises; safe to call twice."""
        self.planed.stop()

    def call(self, method: str, params: Json | None = None) -> Json:
        """Ask both processes, and return their answers as one: lists joined, a flag set if either has set it."""
        if method == "traffic.start" and params is not None:
            return self._start_traffic(params)
        ours, theirs = self.rig.live.call(method, params), self.planed.call(method, params)
        found = dict(ours)
        for key, value in theirs.items():
            mine = found.get(key)
            if isinstance(value, list) and isinstance(mine, list):
                found[key] = [*mine, *value]
            elif isinstance(value, bool):
                found[key] = bool(mine) or value
        return found

    def _start_traffic(self, params: Json) -> Json:
        """Start the generators of both; the process that only receives first, because its counters are cleared."""
        loads = cast("list[Json]", params["generators"])
        mine = [load for load in loads if load["task"] in self.tasks]
        others = [load for load in loads if load["task"] not in self.tasks]
        sides = [(self.planed.call, mine), (self.rig.live.call, others)]
        for call, generators in sorted(sides, key=lambda side: len(side[1])):
            call("traffic.start", {**params, "generators": generators})
        return {}

    def flood(self, seconds: float) -> None:
        """Begin to send at maximum offered load from every end, and wait for ``seconds``."""
        self.sender.start(Sending(self.rig.ways, 64, FLOOD_MAX_S, None))
        time.sleep(seconds)

    def count(self, flow: Flow) -> Counts:
        """Send a few frames of one flow, and wait for all of them."""
        counts = Counts()
        stats = self.sender.send(Sending((flow,), 64, FRAMES / RATE_PPS, RATE_PPS))
        counts.add(settled(self.call, stats, [flow], self.rig.lossless))
        return counts


def end_quietly(vnf: VnfProcess) -> None:
    """Stop the generators of the tester, if there are any."""
    with contextlib.suppress(PlanebenchError):
        vnf.rig.live.call("traffic.stop")
