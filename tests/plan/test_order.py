# SPDX-License-Identifier: BSD-3-Clause
from __future__ import annotations

from collections import Counter
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from planebench.model.records import Point
from planebench.model.scenario import Direction
from planebench.plan.expand import expand
from planebench.plan.passes import TopologyGroup, TrialStep, group_points, interleave
from planebench.plan.schema import load_plan

DIRECTIONS: tuple[Direction, ...] = ("unidirectional", "bidirectional")


def cell(step: TrialStep) -> tuple[str, int, str]:
    return step.point.direction, step.point.frame_size_bytes, step.load


@st.composite
def p2p_groups(draw: st.DrawFn) -> TopologyGroup:
    switches = [f"s{n}" for n in range(draw(st.integers(1, 4)))]
    sizes = [64, 256, 1024][: draw(st.integers(1, 3))]
    directions = DIRECTIONS[: draw(st.integers(1, 2))]
    points = tuple(Point(sw, "p2p", d, 0, size) for sw in switches for d in directions for size in sizes)
    return TopologyGroup(points)


loads = st.sampled_from([("saturating",), ("0.10", "0.50", "0.99")])


def test_groups_are_topologies() -> None:
    points = expand(load_plan("quick"))
    groups = group_points(points)
    places = [(g.first.scenario, g.first.chain_length) for g in groups]
    assert places == [("p2p", 0), ("p2v", 0), ("v2v", 0), ("loopback", 1)]
    assert sorted(p.point_id for g in groups for p in g.points) == sorted(p.point_id for p in points)
    assert all(g.switches == ("planed", "ovs-dpdk", "testpmd") for g in groups)


@given(p2p_groups(), st.integers(1, 5), st.integers(0, 2**32), loads)
def test_every_repetition_of_every_point_exactly_once(
    group: TopologyGroup, reps: int, seed: int, at: tuple[str, ...]
) -> None:
    steps = Counter(interleave(group, reps, seed, at))
    assert steps == Counter(TrialStep(p, load, rep) for p in group.points for load in at for rep in range(reps))


@given(p2p_groups(), st.integers(1, 5), st.integers(0, 2**32), loads)
def test_a_cell_is_run_by_all_switches_before_it_comes_again(
    group: TopologyGroup, reps: int, seed: int, at: tuple[str, ...]
) -> None:
    steps = interleave(group, reps, seed, at)
    count = len(group.switches)
    for start in range(0, len(steps), count):
        turn = steps[start : start + count]
        assert {step.point.switch for step in turn} == set(group.switches)
        assert len({(cell(step), step.repetition) for step in turn}) == 1
    assert [step.repetition for step in steps] == sorted(step.repetition for step in steps)


@given(p2p_groups(), st.integers(2, 5), st.integers(0, 2**32), loads)
def test_no_switch_runs_a_cell_twice_in_a_row(group: TopologyGroup, reps: int, seed: int, at: tuple[str, ...]) -> None:
    if len(group.switches) > 1:
        for one, two in pairwise(interleave(group, reps, seed, at)):
            assert (one.point, one.load) != (two.point, two.load)


@given(p2p_groups(), st.integers(0, 2**32))
def test_same_seed_same_order(group: TopologyGroup, seed: int) -> None:
    assert interleave(group, 3, seed) == interleave(group, 3, seed)


def test_the_order_is_known_forever() -> None:
    """A stored seed must give the same order in every later version."""
    points = tuple(Point(switch, "p2p", "unidirectional", 0, size) for switch in "abc" for size in (64, 1024))
    steps = interleave(TopologyGroup(points), 2, seed=1)
    order = " ".join(f"{step.point.switch}{step.point.frame_size_bytes}" for step in steps)
    assert order == "a1024 c1024 b1024 c64 b64 a64 c64 b64 a64 b1024 c1024 a1024"


def test_other_seeds_and_groups_have_other_orders() -> None:
    groups = group_points(expand(load_plan("quick")))
    p2p, p2v = groups[0], groups[1]
    assert interleave(p2p, 3, 1) != interleave(p2p, 3, 2)
    only_p2v = group_points([point for point in expand(load_plan("quick")) if point.scenario == "p2v"])
    assert interleave(only_p2v[0], 3, 1) == interleave(p2v, 3, 1)


def test_all_switches_come_first_at_some_time() -> None:
    group = group_points(expand(load_plan("quick")))[0]
    firsts = Counter(interleave(group, 30, 1)[start].point.switch for start in range(0, 360, 3))
    assert set(firsts) == set(group.switches)
    assert min(firsts.values()) > 20
