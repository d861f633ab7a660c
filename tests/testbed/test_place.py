# SPDX-License-Identifier: BSD-3-Clause
from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planebench.model.cpus import Cpus
from planebench.testbed.placement import Placement, place


def plain(count: int) -> Cpus:
    return Cpus(tuple(range(count)))


def smt(cores: int) -> Cpus:
    """As Linux numbers them: CPU n and CPU n + cores are one core."""
    pairs = [frozenset({n, n + cores}) for n in range(cores)]
    return Cpus(tuple(range(2 * cores)), siblings={cpu: pair for pair in pairs for cpu in pair})


@pytest.mark.parametrize(
    ("cpus", "vnfs", "switch", "tester", "vnf_cpus", "control"),
    [
        (plain(2), 0, 1, (0,), (), {0}),
        (plain(2), 3, 1, (0,), (0, 0, 0), {0}),
        (plain(3), 0, 2, (1,), (), {0}),
        (plain(3), 1, 2, (0,), (1,), {0}),
        (plain(3), 2, 2, (0,), (1, 1), {0}),
        (plain(4), 0, 3, (1, 2), (), {0}),
        (plain(4), 1, 3, (1,), (2,), {0}),
        (plain(4), 2, 3, (0,), (1, 2), {0}),
        (plain(4), 5, 3, (0,), (1, 1, 1, 2, 2), {0}),
        (plain(8), 0, 7, (1, 2), (), {0, 3, 4, 5, 6}),
        (plain(8), 5, 7, (1,), (2, 3, 4, 5, 6), {0}),
        (plain(16), 5, 15, (1, 7), (2, 3, 4, 5, 6), {0, 8, 9, 10, 11, 12, 13, 14}),
        (Cpus((3, 9)), 1, 9, (3,), (3,), {3}),
        (Cpus((9, 3, 5)), 0, 9, (3,), (), {5}),
        # two cores with two threads each: the switch's sibling (3) stays idle
        (smt(2), 0, 1, (0,), (), {2}),
        (smt(2), 1, 1, (0,), (2,), {0}),
        # four cores: whole cores first, then siblings, never the switch's (7)
        (smt(4), 0, 3, (1, 2), (), {0, 4}),
        (smt(4), 2, 3, (0,), (1, 2), {4, 5, 6}),
        (smt(4), 5, 3, (0,), (1, 2, 5, 6, 4), {0}),
    ],
)
def test_table(
    cpus: Cpus, vnfs: int, switch: int, tester: tuple[int, ...], vnf_cpus: tuple[int, ...], control: set[int]
) -> None:
    assert place(cpus, vnfs) == Placement(switch, tester, vnf_cpus, frozenset(control))


@pytest.mark.parametrize(
    ("count", "isolated", "vnfs", "switch", "tester", "vnf_cpus", "control"),
    [
        (2, (1,), 0, 1, (0,), (), {0}),
        (2, (1,), 3, 1, (0,), (0, 0, 0), {0}),
        (4, (2, 3), 1, 3, (2,), (1,), {0}),
        (4, (1, 2, 3), 0, 3, (1, 2), (), {0}),
        (8, (2, 3, 4, 5, 6, 7), 1, 7, (2, 4), (3,), {0, 1}),
        # an isolated CPU that is not the last one is the switch's all the same
        (4, (1,), 0, 1, (2, 3), (), {0}),
    ],
)
def test_pollers_take_the_isolated_cpus_and_control_threads_the_others(
    count: int,
    isolated: tuple[int, ...],
    vnfs: int,
    switch: int,
    tester: tuple[int, ...],
    vnf_cpus: tuple[int, ...],
    control: set[int],
) -> None:
    cpus = replace(plain(count), isolated=frozenset(isolated))
    assert place(cpus, vnfs) == Placement(switch, tester, vnf_cpus, frozenset(control))


@pytest.mark.parametrize("count", [4, 8, 16])
@pytest.mark.parametrize("vnfs", [0, 1])
def test_no_poller_runs_on_cpu_0_where_there_are_cores_enough(count: int, vnfs: int) -> None:
    placement = place(plain(count), vnfs)
    assert 0 not in {placement.switch_cpu, *placement.tester_cpus, *placement.vnf_cpus}
    assert 0 in placement.control_cpus


@pytest.mark.parametrize(
    ("cpus", "cores", "vnfs", "switch", "tester", "vnf_cpus", "control"),
    [
        (plain(3), 2, 0, (2, 1), (0,), (), {0}),
        (plain(4), 2, 0, (3, 2), (1,), (), {0}),
        (plain(4), 2, 1, (3, 2), (0,), (1,), {0}),
        (plain(4), 3, 0, (3, 2, 1), (0,), (), {0}),
        (plain(8), 2, 0, (7, 6), (1, 2), (), {0, 3, 4, 5}),
        # whole cores only, and nobody else on their second threads
        (smt(4), 2, 0, (3, 2), (1,), (), {0, 4}),
    ],
)
def test_a_switch_with_several_cores(
    cpus: Cpus,
    cores: int,
    vnfs: int,
    switch: tuple[int, ...],
    tester: tuple[int, ...],
    vnf_cpus: tuple[int, ...],
    control: set[int],
) -> None:
    placement = place(replace(cpus, switch_cores=cores), vnfs)
    assert placement == Placement(switch[0], tester, vnf_cpus, frozenset(control), more_switch_cpus=switch[1:])
    assert placement.switch_cpus == switch


@pytest.mark.parametrize(("count", "cores", "found"), [(2, 2, "is 1 whole core"), (4, 4, "are 3 whole cores")])
def test_too_few_cores_for_the_switch_is_said(count: int, cores: int, found: str) -> None:
    (warning,) = place(replace(plain(count), switch_cores=cores)).warnings
    assert f"switch_cores is {cores}" in warning and found in warning


@given(st.integers(2, 16), st.integers(1, 4), st.integers(0, 5))
def test_nobody_shares_the_cores_of_the_switch(count: int, cores: int, vnfs: int) -> None:
    for cpus in (plain(count), smt(count)):
        placement = place(replace(cpus, switch_cores=cores), vnfs)
        taken = set().union(*(cpus.core(cpu) for cpu in placement.switch_cpus))
        others = {*placement.tester_cpus, *placement.vnf_cpus, *placement.control_cpus}
        assert not taken & others and others
        assert len(placement.switch_cpus) == min(cores, count - 1)


def test_one_cpu_is_shared_and_says_so() -> None:
    placement = place(Cpus((4,)), 2)
    assert (placement.switch_cpu, placement.tester_cpus, placement.vnf_cpus) == (4, (4,), (4, 4))
    assert placement.shared
    (warning,) = placement.warnings
    assert "CPU 4" in warning and "not valid" in warning and "two CPUs" in warning


def test_one_core_with_two_threads_is_a_warning() -> None:
    placement = place(smt(1))
    assert (placement.switch_cpu, placement.tester_cpus) == (1, (0,))
    assert not placement.shared
    (warning,) = placement.warnings
    assert "CPU 1" in warning and "CPU 0" in warning and "one physical core" in warning


def test_near_cores_before_far_ones() -> None:
    two_sockets = Cpus(tuple(range(8)), numa_node={cpu: cpu % 2 for cpu in range(8)})
    placement = place(two_sockets, 2)
    assert (placement.switch_cpu, placement.tester_cpus, placement.vnf_cpus) == (7, (1,), (3, 5))
    assert placement.warnings == ()


def test_the_node_with_more_cores_is_used() -> None:
    placement = place(Cpus((0, 1, 2, 3), numa_node={0: 0, 1: 0, 2: 0, 3: 1}))
    assert placement.switch_cpu == 2
    assert placement.warnings == ()


def test_crossing_the_socket_is_a_warning() -> None:
    placement = place(Cpus((0, 1), numa_node={0: 0, 1: 1}))
    (warning,) = placement.warnings
    assert "NUMA node 1" in warning and "CPU 0 on node 0" in warning


@st.composite
def machines(draw: st.DrawFn) -> Cpus:
    cores, threads, nodes = draw(st.integers(1, 12)), draw(st.integers(1, 2)), draw(st.integers(1, 2))
    everything = range(cores * threads)
    allowed = draw(st.sets(st.sampled_from(everything), min_size=1))
    groups = {cpu: frozenset(range(cpu % cores, cores * threads, cores)) for cpu in everything}
    return Cpus(tuple(allowed), groups, {cpu: (cpu % cores) % nodes for cpu in everything})


@given(machines(), st.integers(0, 5))
def test_nobody_polls_or_works_on_the_core_of_the_switch_if_there_is_another(cpus: Cpus, vnfs: int) -> None:
    placement = place(cpus, vnfs)
    others = {*placement.tester_cpus, *placement.vnf_cpus, *placement.control_cpus}
    assert {placement.switch_cpu} | others <= set(cpus.allowed)
    assert len(placement.vnf_cpus) == vnfs
    assert len(set(placement.tester_cpus)) == len(placement.tester_cpus) > 0
    assert placement.control_cpus
    assert placement.shared == (len(cpus.allowed) == 1)
    if not placement.shared:
        assert placement.switch_cpu not in others
    if any(cpus.core(cpu) != cpus.core(placement.switch_cpu) for cpu in cpus.allowed):
        assert not cpus.core(placement.switch_cpu) & others
