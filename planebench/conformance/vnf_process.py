# SPDX-License-Identifier: BSD-3-Clause
"""VNFs in a process of their own, which can be killed: a second planed has their ports, the tester has the wires."""

from __future__ import annotations

import contextlib
import time
from dataclasses import InitVar, dataclass, replace

from planebench.conformance.rig import FRAMES, SENDING_S, FrameCounts, Rig, sent, settled
from planebench.measure.counts import Sender, Sending
from planebench.model.errors import PlanebenchError
from planebench.model.scenarios import Flow
from planebench.planed.document import NAME_MAX, Document
from planebench.planed.group import Member, PlanedGroup
from planebench.planed.process import PlanedProcess

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
        self.call = PlanedGroup((Member(live.call), Member(self.planed.call, self.tasks)))
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

    def flood(self, seconds: float) -> None:
        """Begin to send at maximum offered load from every end, and wait for ``seconds``."""
        self.sender.start(Sending(self.rig.ways, 64, FLOOD_MAX_S, None))
        time.sleep(seconds)

    def count(self, flow: Flow) -> FrameCounts:
        """Send a few frames of one flow, and wait for all of them."""
        counts = FrameCounts()
        stats = sent(self.rig, [flow], SENDING_S, lambda it: self.sender.send(Sending((flow,), 64, it, FRAMES / it)))
        counts.add(settled(self.call, stats, [flow], self.rig.lossless))
        return counts


def end_quietly(vnf: VnfProcess) -> None:
    """Stop the generators of the tester, if there are any."""
    with contextlib.suppress(PlanebenchError):
        vnf.rig.live.call("traffic.stop")
