# SPDX-License-Identifier: BSD-3-Clause
"""Checks of what a switch has to survive, and of what is left when it has ended."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from planebench.conformance.frames import bad_frames
from planebench.conformance.leftovers import Leftovers
from planebench.conformance.model import Check, Failure, NotSupported, Remarks
from planebench.conformance.rig import (
    FRAMES,
    SENDING_S,
    FrameCounts,
    Rig,
    frames_into_ports,
    pass_through,
    send_exact,
    sent,
    settled,
)
from planebench.host import procfs
from planebench.host.process import stretched
from planebench.measure.counts import Sender, Sending
from planebench.measure.live import CONNECT_DEADLINE_S
from planebench.model.errors import DiedError, PlanebenchError
from planebench.model.scenarios import Flow
from planebench.planed.document import NAME_MAX
from planebench.planed.group import Member, PlanedGroup
from planebench.planed.process import PlanedProcess
from planebench.testbed.tester_config import wire_stage

BAD_S = 0.2
PAUSE_S = 0.3
FLOOD_S, FLOOD_MAX_S = 0.05, 10.0
SENDINGS_MAX = 20
"""A software queue of a thousand frames is through in that many sendings."""
OTHERS_S = 2.0
SHOWN = 6
DEATH_S = 5.0
LAST_LINES = "last log lines:\n"


def still_forwards(rig: Rig, after: str) -> None:
    """Raise Failure unless frames come through again, and every one of them where the switch loses none."""
    rig.live.check()
    rig.live.wait_until_forwarding()
    for _ in range(2):
        counts = send_exact(rig, rig.ways, rounds=2)
        if not (counts.lost if rig.lossless else not counts.arrived):
            return
    raise Failure(f"all {counts.offered} frames to come through after {after}", counts.words())


def survives_bad_frames(rig: Rig) -> Remarks:
    pass_through(rig, frames_into_ports(rig, bad_frames), lambda came: False, BAD_S)
    still_forwards(rig, "runts, giants and headers that lie")
    return ()


def survives_pause(rig: Rig) -> Remarks:
    rig.live.pause()
    try:
        time.sleep(PAUSE_S)
        states = {pid: procfs.stat_fields(pid) for pid in rig.live.switch.pids()}
        awake = [pid for pid, fields in states.items() if fields is not None and fields[0] not in "Tt"]
    finally:
        rig.live.resume()
    if awake:
        raise Failure("every process of pids() to be stopped by SIGSTOP", f"still running: {_words(awake)}")
    still_forwards(rig, "a pause")
    return ()


def survives_vnf_restart(rig: Rig) -> Remarks:
    rig.live.apply(wire_stage(rig.topology, rig.live.links))
    rig.live.check()
    rig.live.apply(rig.live.document())
    still_forwards(rig, "a restart of the VNFs")
    return ()


class VnfProcess:
    """A VNF process beside the tester, which can be killed: a second planed has the VNFs' ports, the tester the wires.

    Alone on its core until it is up; its ports connect to the switch. Raises StartError.
    """

    def __init__(self, rig: Rig) -> None:
        live, self.rig = rig.live, rig
        whole, vnf_ports = live.document(), set(rig.topology.vnf_ports)
        wires = whole.part(lambda port: port not in vnf_ports)
        document = replace(whole.part(vnf_ports.__contains__), name=f"{whole.name[: NAME_MAX - 4]}-vnf")
        live.apply(wires.idle())
        self.planed = PlanedProcess.start(
            document,
            rig.supervisor,
            planed=rig.settings.planed,
            name=f"vnf{len(rig.supervisor.processes)}",
            title="the VNF",
            workdir=live.links.workdir,
            cpus=frozenset({*rig.placement.control_cpus, *rig.placement.tester_cpus, *rig.placement.vnf_cpus}),
            netns_pid=live.netns_pid,
        )
        live.apply(wires)
        tasks = frozenset(task.name for task in document.tasks)
        self.call = PlanedGroup((Member(live.call), Member(self.planed.call, tasks)))
        self.sender = Sender(self.call, queues=live.links.queues, check=live.check)

    def count(self, flow: Flow) -> FrameCounts:
        counts = FrameCounts()
        sent(self.rig, [flow], SENDING_S, lambda it: self.sender.send(Sending((flow,), 64, it, FRAMES / it)))
        counts.add(settled(self.call, [flow], self.rig.lossless))
        return counts


def survives_vnf_death(rig: Rig) -> Remarks:
    sendings = 0
    for number in range(2):
        vnf = VnfProcess(rig)
        try:
            vnf.sender.wait_until_forwarding(rig.ways, CONNECT_DEADLINE_S)
            sendings = _count_through(vnf, f"start {number + 1} of the VNF process")
            if number == 0:
                vnf.sender.start(Sending(rig.ways, 64, FLOOD_MAX_S, None))
                time.sleep(FLOOD_S)
                vnf.planed.kill()
                with contextlib.suppress(PlanebenchError):  # the tester may have no generators
                    rig.live.call("traffic.stop")
                rig.live.check()
        finally:
            vnf.planed.stop()
    rig.live.apply(rig.live.document())
    still_forwards(rig, "a VNF that was killed")
    return (f"it keeps frames for a port that is down: {sendings} sendings until all came",) if sendings > 2 else ()


def _count_through(vnf: VnfProcess, after: str) -> int:
    """Send a few frames each way until all of them arrive; return how many sendings that took at most.

    A switch may hold frames for a port that was full or gone, and deliver them first: they are no loss of later ones.
    """
    most = 0
    for flow in vnf.rig.ways:
        for sending in range(1, SENDINGS_MAX + 1):
            counts = vnf.count(flow)
            most = max(most, sending)
            if not (counts.lost if vnf.rig.lossless else not counts.arrived):
                break
        else:
            raise Failure(f"{flow.name}: all {counts.offered} frames to come through after {after}", counts.words())
    return most


def starts_again(rig: Rig) -> Remarks:
    pids = rig.live.switch.pids()
    switch = rig.live.switch
    known = len(rig.supervisor.processes)
    rig.live.restart_switch(rig.adapter, rig.supervisor)
    rig.live.resume()
    rig.note_logs(known)
    if left := [pid for pid in pids if procfs.is_running(pid)]:
        raise Failure("stop() to end every process", f"still running: {_words(left)}")
    if pids:
        _expect_died(switch.check, "check() of a switch that was stopped")
    switch.stop()
    still_forwards(rig, "a start in the same folder")
    return ()


def tells_its_death(rig: Rig) -> Remarks:
    pids = rig.live.switch.pids()
    if not pids:
        raise NotSupported("it has no process that could die")
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    for call, name in ((rig.live.switch.check, "check()"), (rig.live.switch.counters, "counters()")):
        error = _expect_died(call, f"{name} of a switch that was killed")
        if LAST_LINES not in error or not error.partition(LAST_LINES)[2].strip():
            raise Failure(f"{name} to give its last log lines", error)
    rig.live.switch.stop()
    rig.live.switch.stop()
    return ()


def _expect_died(call: Callable[[], object], what: str) -> str:
    """Return the message of the DiedError that ``call`` raises, at the latest after DEATH_S seconds."""
    deadline = time.monotonic() + stretched(DEATH_S)
    while time.monotonic() < deadline:
        try:
            call()
        except DiedError as error:
            return str(error)
        time.sleep(0.02)
    raise Failure(f"DiedError from {what}", "no error")


def _words(pids: Iterable[int]) -> str:
    return ", ".join(f"{pid} ({procfs.read_text(f'/proc/{pid}/comm') or 'gone'})" for pid in pids)


def leaves_nothing(rig: Rig) -> Remarks:
    """Fail if stop() leaves a process, file, socket, interface or namespace that was not there before.

    Other programs run on the machine, too: what a second start and stop does not touch is theirs, and so is what
    appears where things appear without us.
    """
    rig.stop()
    left = rig.before.left(rig.supervisor.root)
    suspects = [text for text in left if text.startswith("/")]
    if len(suspects) < len(left):
        raise Failure("nothing to be left", _some([text for text in left if text not in suspects]))
    if not suspects:
        return ()
    again = Leftovers.take()
    rig.start()
    rig.stop()
    found = dict.fromkeys((*again.left(rig.supervisor.root), *again.touched(suspects)))
    quiet = Leftovers.take()
    time.sleep(OTHERS_S)
    now = Leftovers.take()
    # Folders in which things appear, or change, while nothing of ours runs.
    busy = {str(Path(path).parent) for path in now.paths if now.paths[path] != quiet.paths.get(path)}
    if guilty := [path for path in found if str(Path(path).parent) not in busy]:
        raise Failure("nothing to be left", _some(guilty))
    return (f"somebody left, while others were at work here: {_some(suspects)}",)


def _some(paths: Sequence[str]) -> str:
    more = f" and {len(paths) - SHOWN} more" if len(paths) > SHOWN else ""
    return "; ".join(paths[:SHOWN]) + more


CHECKS = (
    Check("bad-frames", "Runts, giants and headers that lie do it no harm.", survives_bad_frames),
    Check("pause", "After SIGSTOP and SIGCONT, as between trials, it forwards.", survives_pause),
    Check("vnf-restart", "VNFs close their ports and open them again: frames flow again.", survives_vnf_restart, True),
    Check("vnf-killed", "A VNF process is killed and started again: frames flow again.", survives_vnf_death, True),
    Check("restart", "Stopped, it is gone; started again in the same folder, it forwards.", starts_again),
    Check("death", "Killed with SIGKILL, it is told as died, with its last log lines.", tells_its_death),
    Check("leftovers", "After stop no process, file, socket, interface or namespace is left.", leaves_nothing),
)
"""In the order in which they run; the last two leave no switch up."""
