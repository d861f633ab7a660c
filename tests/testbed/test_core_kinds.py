# SPDX-License-Identifier: BSD-3-Clause
"""Pollers are on cores of one kind, the fastest that has enough; where they are not, a warning says so."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planebench.model.cpus import CoreKind, Cpus, range_text
from planebench.testbed.placement import Placement, place


def machine(*kinds: Iterable[int], threads: int = 0, **more: object) -> Cpus:
    """Return a machine with these kinds of cores, the fastest first; CPUs below ``threads`` are two to a core."""
    found = tuple(CoreKind(f"kind{number}", frozenset(cpus)) for number, cpus in enumerate(kinds))
    cpus = sorted(frozenset[int]().union(*(kind.cpus for kind in found)))
    siblings = {cpu: frozenset((cpu - cpu % 2, cpu - cpu % 2 + 1)) for cpu in range(threads)}
    return replace(Cpus(tuple(cpus), siblings, kinds=found), **more)  # type: ignore[arg-type]


def told(it: Placement) -> str:
    """Return a placement in one line: switch / tester / VNFs / control."""
    vnfs = f"~{range_text(it.roaming)}" if it.roaming else ",".join(map(str, it.vnf_cpus))
    switch, tester = (",".join(map(str, cpus)) for cpus in (it.switch_cpus, it.tester_cpus))
    return f"{switch} / {tester} / {vnfs} / {range_text(it.control_cpus)}"


LAPTOP = machine(range(12), range(12, 20), threads=12)
"""6 P-cores with two threads, 8 E-cores."""
TWO_FAST = machine(range(4), range(4, 12), threads=4)
LAKEFIELD = machine([4], range(4))
"""One fast core."""
GB10 = machine(
    (*range(5, 10), *range(15, 20)),
    (*range(5), *range(10, 15)),
    l3_group={cpu: frozenset(range(cpu // 10 * 10, cpu // 10 * 10 + 10)) for cpu in range(20)},
)


@pytest.mark.parametrize(
    ("cpus", "vnfs", "expected"),
    [
        (LAPTOP, 0, "10 / 2,4 /  / 0-1,6-9,12-19"),
        (LAPTOP, 2, "10 / 2,8 / 4,6 / 0-1,12-19"),
        # the core of CPU 0 is the fourth VNF's
        (LAPTOP, 4, "10 / 0 / 2,4,6,8 / 12-19"),
        (replace(LAPTOP, switch_cores=3), 1, "10,8,6 / 2 / 4 / 0-1,12-19"),
        (replace(LAPTOP, isolated=frozenset((8, 9, 10, 11))), 1, "10 / 8,4 / 2 / 0-1,6-7,12-19"),
        (TWO_FAST, 0, "2 / 0 /  / 4-11"),
        (GB10, 2, "19 / 15,18 / 16,17 / 0-14"),
    ],
)
def test_pollers_are_on_the_fastest_kind(cpus: Cpus, vnfs: int, expected: str) -> None:
    placement = place(cpus, vnfs, hosted=range(vnfs))
    assert told(placement) == expected
    assert placement.warnings == ()


@pytest.mark.parametrize(
    ("cpus", "vnfs", "expected", "words"),
    [
        (LAPTOP, 6, "10 / 0 / 2,4,6,8,12,13 / 14-19", "CPUs 12-13 have slower cores (kind1) than CPUs 0-11 (kind0)"),
        (TWO_FAST, 1, "2 / 0 / 4 / 5-11", "they limit what the others do; measure with fewer VNFs"),
        (LAKEFIELD, 0, "3 / 1,2 /  / 0,4", "CPUs 1-3 have slower cores (kind1) than CPUs 4 (kind0): all rates are"),
        # what the user allows or isolates counts
        (replace(LAPTOP, allowed=tuple(range(12, 16))), 0, "15 / 12,13 /  / 14", "; allow CPUs 0-11"),
        (
            replace(LAPTOP, isolated=frozenset(range(16, 20))),
            1,
            "19 / 16,18 / 17 / 0-15",
            "CPUs 16-19 have slower cores",
        ),
        (replace(TWO_FAST, switch_cores=2), 0, "11,10 / 4,5 /  / 0-3,6-9", "CPUs 4-5,10-11 have slower cores"),
        (replace(LAPTOP, allowed=(12,)), 0, "12 / 12 /  / 12", "CPUs 12 have slower cores"),
    ],
)
def test_pollers_on_slower_cores_are_a_warning(cpus: Cpus, vnfs: int, expected: str, words: str) -> None:
    placement = place(cpus, vnfs, hosted=range(vnfs))
    assert told(placement) == expected
    assert words in placement.warnings[-1]


def test_vnfs_that_roam_stay_on_the_kind_of_the_switch() -> None:
    assert told(place(LAPTOP, 2, hosted=range(2), placing="random")) == "10 / 2,4 / ~6-9 / 0-1,12-19"
    few = place(TWO_FAST, 2, hosted=range(2), placing="random")
    assert few.roaming == set(range(4, 12)) and "CPUs 4-11 have slower cores" in few.warnings[-1]


def test_far_vnfs_on_slower_cores_are_a_warning() -> None:
    cpus = replace(LAPTOP, numa_node={cpu: int(cpu >= 12) for cpu in range(20)})
    far = place(cpus, 1, hosted=range(1), placing="far")
    assert far.vnf_cpus == (12,) and "CPUs 12 have slower cores" in far.warnings[-1]


def test_a_tester_alone_is_on_the_fastest_kind() -> None:
    alone = place(replace(LAPTOP, switch_elsewhere=(15,)))
    assert (alone.tester_cpus, alone.warnings) == ((10, 2), ())


def test_too_few_cores_of_a_kind_are_said() -> None:
    placement = place(replace(TWO_FAST, switch_cores=9))
    assert placement.switch_cpus == (11, 10, 9, 8, 7, 6, 5)  # the larger kind, as none has enough
    first, second = placement.warnings
    assert "give more CPUs of one node and one kind of core" in first and "slower cores" in second


def test_a_poller_without_a_node_is_told() -> None:
    nodes = {0: 0, 1: 0, 2: 1, 3: 1}
    placement = place(Cpus((0, 4, 5), numa_node=nodes))
    assert placement.nodes == {0: 0} and placement.memory_node(placement.switch_cpu) is None
    (warning,) = placement.warnings
    assert "pollers on CPUs 4-5 are on no NUMA node that the machine tells of" in warning
    assert "allow CPUs 0-3" in warning
    assert place(Cpus((0, 1, 4), numa_node=nodes)).warnings == ()
    assert place(Cpus((0, 1, 2))).warnings == ()


@given(st.integers(0, 6), st.integers(0, 6), st.booleans(), st.integers(1, 3), st.integers(0, 4))
def test_where_the_fastest_kind_has_enough_cores_all_pollers_have_it(
    fast: int, slow: int, fast_first: bool, cores: int, vnfs: int
) -> None:
    total = fast + slow
    if not total:
        return
    own = range(fast) if fast_first else range(slow, total)
    cpus = machine(own, set(range(total)) - set(own), switch_cores=min(cores, total))
    placement = place(cpus, vnfs, hosted=range(vnfs))
    if fast >= cpus.switch_cores + 1 + vnfs:
        assert {cpus.kind(cpu) for cpu in placement.pollers} == {0} and placement.warnings == ()
    slower = [cpu for cpu in placement.pollers if cpus.kind(cpu)]
    assert bool(slower) == any("slower cores" in text for text in placement.warnings)
