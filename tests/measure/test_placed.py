# SPDX-License-Identifier: BSD-3-Clause
"""Threads and memory that are not where they were planned are found, and whose shared memory is."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping

import pytest
from builders import verdict_of

from planebench.host.evidence import ThreadRef
from planebench.host.memory import MemoryMap
from planebench.measure import conditions
from planebench.measure.conditions import PlacedOwner, misplaced, read_memory
from planebench.model.reasons import ReasonCode
from planebench.model.records import DirectionCounts, Evidence, MemoryEvidence, SwitchCycles, ThreadEvidence

TESTER, SWITCH, VNF = 1, 2, 3
PARTS = (
    PlacedOwner("tester", "the tester", (TESTER,), 0),
    PlacedOwner("switch", "the switch", (SWITCH,), 0),
    PlacedOwner("vnf", "vnf0", (VNF,), 1),
)
MB = 1 << 20


def memory(monkeypatch: pytest.MonkeyPatch, maps: Mapping[int, tuple[MemoryMap, ...]], **wire: bool) -> dict[str, dict]:
    monkeypatch.setattr(conditions, "memory_of", lambda pid: maps[pid])
    found = read_memory(PARTS, switch_memory=wire.get("switch_memory", False))
    return {it.name: dict(it.bytes_by_node) for it in found}


def test_shared_memory_belongs_to_the_end_that_made_it(monkeypatch: pytest.MonkeyPatch) -> None:
    of_tester, of_vnf = MemoryMap("a", {0: 8 * MB}), MemoryMap("b", {1: 4 * MB})
    own = MemoryMap("", {0: MB})
    maps = {TESTER: (own, of_tester), SWITCH: (own, of_tester, of_vnf), VNF: (of_vnf,)}
    assert memory(monkeypatch, maps) == {"the tester": {0: 9 * MB}, "the switch": {0: MB}, "vnf0": {1: 4 * MB}}
    # memif: the regions are the client's, the switch's
    assert memory(monkeypatch, maps, switch_memory=True) == {
        "the tester": {0: MB},
        "the switch": {0: 9 * MB},
        "vnf0": {1: 4 * MB},
    }


def test_a_file_that_is_mapped_twice_counts_once(monkeypatch: pytest.MonkeyPatch) -> None:
    twice = MemoryMap("a", {0: MB})
    maps = {TESTER: (twice, twice), SWITCH: (), VNF: ()}
    assert memory(monkeypatch, maps)["the tester"] == {0: MB}


@pytest.mark.parametrize(("elsewhere", "found"), [(0, False), (MB, False), (2 * MB, True)])
def test_memory_on_another_node_than_planned_is_a_reason(elsewhere: int, found: bool) -> None:
    it = MemoryEvidence("vnf", "vnf0", 1, ((0, elsewhere), (1, 100 * MB - elsewhere)))
    reasons = misplaced((), (it,))
    assert bool(reasons) is found
    if found:
        assert reasons[0].code is ReasonCode.MISPLACED
        assert str(reasons[0]) == "2% of the memory of vnf0 is on NUMA node 0, not on node 1 as planned"


def test_memory_without_a_plan_is_nowhere_wrong() -> None:
    assert MemoryEvidence("vnf", "vnf0", None, ((0, MB), (1, MB))).misplaced_share == 0
    assert MemoryEvidence("vnf", "vnf0", 0, ()).misplaced_share == 0


def test_threads_that_may_run_elsewhere_are_a_reason() -> None:
    here = frozenset(os.sched_getaffinity(0))
    done = threading.Event()
    thread = threading.Thread(target=done.wait)
    thread.start()
    try:
        assert thread.native_id is not None
        watched = (ThreadRef(os.getpid(), thread.native_id, "worker", "vnf"),)
        one = frozenset({min(here)})
        os.sched_setaffinity(thread.native_id, one)
        assert misplaced((PlacedOwner("vnf", "vnf0", (), None, watched, one),), ()) == ()
        (reason,) = misplaced((PlacedOwner("vnf", "vnf0", (), None, watched, frozenset({99})),), ())
        assert str(reason) == f"thread worker of vnf0 may run on CPU {min(here)}, not on CPU 99 as planned"
        more = one | {99}
        assert misplaced((PlacedOwner("vnf", "vnf0", (), None, watched, more),), ()) == ()
        assert len(misplaced((PlacedOwner("vnf", "vnf0", (), None, watched, more, roams=True),), ())) == 1
    finally:
        done.set()
        thread.join()


def test_waits_of_vnfs_that_the_scheduler_moves_are_no_remark() -> None:
    waiting = ThreadEvidence("vnf", "w-vnf0", 3, 500_000_000, 400_000_000, 40)
    evidence = Evidence(threads=(ThreadEvidence("switch", "worker", 1, 900_000_000, 0, 0), waiting))
    directions = (DirectionCounts("n0->n1", 1000, 1000, 900),)
    given = ("r_plus", True, 1_000_000_000, directions, evidence, SwitchCycles())
    assert verdict_of(*given).codes == ("cpu-wait",)
    assert verdict_of(*given, roaming=True).codes == ()
