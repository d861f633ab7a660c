# SPDX-License-Identifier: BSD-3-Clause
"""The check of a live topology against its placement: threads and memory, as the kernel reports them."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from planebench.host.evidence import Owner, WatchedThread
from planebench.host.memory import MemoryMap, bytes_by_node, memory_of
from planebench.model.cpus import range_text
from planebench.model.reasons import Reason, ReasonCode
from planebench.model.records import MemoryEvidence
from planebench.model.words import listed

MISPLACED_SHARE = 0.01
"""More of the memory of a process than this on other nodes is a reason not to accept a trial."""


@dataclass(frozen=True, slots=True)
class Placed:
    """One owner of memory and threads, and where they should be: a node, None for any, and CPUs, empty for any."""

    owner: Owner
    name: str
    pids: Sequence[int]
    node: int | None = None
    threads: Sequence[WatchedThread] = ()
    cpus: frozenset[int] = field(default_factory=frozenset)
    roams: bool = False
    """The scheduler may move each thread over all of the CPUs; else each has one or some of them."""


def read_memory(parts: Sequence[Placed], *, switch_memory: bool) -> tuple[MemoryEvidence, ...]:
    """Return the memory of each part by node; memory that two of them map belongs to one.

    It belongs to the driver's end, tester or VNF, not to the switch; with ``switch_memory``, which is that of the wire,
    what switch and tester share belongs to the switch.
    """
    found = {part.name: [it for pid in part.pids for it in memory_of(pid)] for part in parts}
    mapped: defaultdict[str, set[Owner]] = defaultdict(set)
    for part in parts:
        for it in found[part.name]:
            mapped[it.shared].add(part.owner)
    return tuple(
        MemoryEvidence(
            part.owner,
            part.name,
            part.node,
            tuple(bytes_by_node(_own(part.owner, found[part.name], mapped, switch_memory)).items()),
        )
        for part in parts
        if found[part.name]
    )


def _own(
    owner: Owner, mappings: Iterable[MemoryMap], mapped: Mapping[str, set[Owner]], switch_memory: bool
) -> Iterator[MemoryMap]:
    """Yield the memory that belongs to an owner, each file once."""
    seen: set[str] = set()
    for it in mappings:
        others = mapped[it.shared] - {owner} if it.shared else set()
        theirs = (owner == "switch" and "vnf" in others) or (
            (owner, switch_memory) in (("switch", False), ("tester", True)) and bool(others & {"switch", "tester"})
        )
        if not theirs and it.shared not in seen - {""}:
            seen.add(it.shared)
            yield it


def misplaced(parts: Sequence[Placed], memory: Iterable[MemoryEvidence]) -> tuple[Reason, ...]:
    """Return a reason for each part whose memory or threads are elsewhere than planned; empty if none is."""
    return (*map(_memory_reason, _elsewhere(memory)), *_threads_elsewhere(parts))


def _elsewhere(memory: Iterable[MemoryEvidence]) -> Iterator[MemoryEvidence]:
    return (it for it in memory if it.misplaced_share > MISPLACED_SHARE)


def _memory_reason(it: MemoryEvidence) -> Reason:
    nodes = [str(node) for node, _ in it.bytes_by_node if node != it.node]
    where = f"node{'s' if len(nodes) > 1 else ''} {listed(tuple(nodes))}"
    text = f"{it.misplaced_share:.0%} of the memory of {it.name} is on NUMA {where}, not on node {it.node} as planned"
    return Reason(ReasonCode.MISPLACED, text, {"share": it.misplaced_share})


def _threads_elsewhere(parts: Iterable[Placed]) -> Iterator[Reason]:
    for part in parts:
        for thread in part.threads if part.cpus else ():
            allowed = allowed_cpus(thread.tid)
            if not allowed <= part.cpus or (part.roams and allowed and allowed != part.cpus):
                text = (
                    f"thread {thread.name} of {part.name} may run on CPU {range_text(allowed)}, not on CPU "
                    f"{range_text(part.cpus)} as planned"
                )
                yield Reason(ReasonCode.MISPLACED, text)


def allowed_cpus(tid: int) -> frozenset[int]:
    """Return the CPUs on which a thread may run; none if it is gone."""
    try:
        return frozenset(os.sched_getaffinity(tid))
    except OSError:
        return frozenset()


def let_roam(threads: Iterable[WatchedThread], cpus: frozenset[int]) -> None:
    """Let the scheduler move threads over CPUs. What the kernel refuses, :func:`misplaced` finds."""
    for thread in threads:
        try:
            os.sched_setaffinity(thread.tid, cpus)
        except OSError:
            continue
