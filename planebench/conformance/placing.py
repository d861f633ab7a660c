# SPDX-License-Identifier: BSD-3-Clause
"""Checks of where a switch runs: its forwarding threads on their cores, everything else of it elsewhere."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

from planebench.conformance.model import Check, Failure, NotSupported, Remarks
from planebench.conformance.rig import Rig, send_exact
from planebench.host import procfs
from planebench.host.evidence import read_counts
from planebench.switches.adapter import ThreadRef


def runs_on_its_core(rig: Rig) -> Remarks:
    """Fail unless forwarding threads are pinned to the requested cores, and no other thread may run there."""
    polling = rig.switch.polling_threads()
    if not polling:
        if "interrupt" in rig.adapter.traits.models:
            raise NotSupported("it has no thread of its own: the kernel forwards in softirqs")
        raise Failure("threads that forward", "none")
    send_exact(rig, rig.ways)
    wrong = [text for thread in polling for text in _misplaced(thread, set(rig.live.request.cpus))]
    strangers = {thread.pid for thread in polling if not procfs.is_kernel_thread(thread.pid)} - {*rig.switch.pids()}
    wrong += [f"thread {t.name} is of process {t.pid}, which pids() leaves out" for t in polling if t.pid in strangers]
    if wrong:
        raise Failure(f"every forwarding thread pinned to one of CPUs {_list(rig.live.request.cpus)}", "; ".join(wrong))
    others = list(_intruders(rig, {thread.tid for thread in polling}))
    if others:
        raise Failure(f"nothing else of the switch on CPUs {_list(rig.live.request.cpus)}", "; ".join(others))
    return ()


def _misplaced(thread: ThreadRef, cpus: set[int]) -> Iterator[str]:
    try:
        allowed = os.sched_getaffinity(thread.tid)
    except OSError:
        yield f"thread {thread.name} ({thread.tid}) is not there"
        return
    if len(allowed) != 1 or not allowed <= cpus:
        yield f"thread {thread.name} may run on CPUs {_list(allowed)}"
    counts = read_counts(thread.pid, thread.tid)
    if counts is not None and counts.cpu not in cpus:
        yield f"thread {thread.name} ran on CPU {counts.cpu}"


def _intruders(rig: Rig, polling: set[int]) -> Iterator[str]:
    """Yield other threads of the switch that may run on its forwarding cores; none where it shares its only CPU."""
    if rig.placement.shared:
        return
    cpus = set(rig.live.request.cpus)
    for pid in rig.switch.pids():
        for tid, name in procfs.threads(pid).items():
            with contextlib.suppress(OSError):
                if tid not in polling and os.sched_getaffinity(tid) & cpus:
                    yield f"thread {name} ({tid}) of process {pid} may run on CPUs {_list(os.sched_getaffinity(tid))}"


def _list(cpus: object) -> str:
    return ", ".join(str(cpu) for cpu in sorted(cpus))  # type: ignore[call-overload]


CHECKS = (
    Check(
        "cores",
        "Forwarding threads are pinned to the cores asked for, and nothing else of it is there.",
        runs_on_its_core,
    ),
)
