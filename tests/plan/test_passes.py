# SPDX-License-Identifier: BSD-3-Clause
"""Which topology is visited when, and what is measured in a visit."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from planebench.model.errors import UsageError
from planebench.model.plan import Plan, ThroughputPlan
from planebench.model.switch import SwitchCost
from planebench.plan.expand import expand
from planebench.plan.override import override
from planebench.plan.passes import further_pass, latency_of, passes, searches_of
from planebench.plan.schema import load_plan, plan_from_document

QUICK = replace(load_plan("quick"), throughput=ThroughputPlan(0.2, 3, 0.05, repetitions_max=8))
SLOW = {"planed": SwitchCost(start_s=23.0)}


def held(plan: Plan, costs: dict[str, SwitchCost]) -> list[list[list[int]]]:
    """Return the repetitions of each visit of each pass."""
    return [[list(visit.repetitions) for visit in visits] for visits in passes(plan, expand(plan), costs)]


def plan_of(**throughput: Any) -> Plan:
    plan = override(QUICK, switch="planed", scenario="p2p", loads="none")
    return replace(plan, throughput=replace(plan.throughput, **throughput))


def test_every_pass_has_all_topologies_in_its_own_order() -> None:
    points = expand(QUICK)
    orders = [tuple(visit.group.first.scenario for visit in visits) for visits in passes(QUICK, points, {})]
    assert len(orders) == 3 and all(sorted(order) == sorted(orders[0]) for order in orders)
    assert len(set(orders)) > 1 and all(a[-1] != b[0] for a, b in pairwise(orders))
    assert [tuple(v.group.first.scenario for v in visits) for visits in passes(QUICK, points, {})] == orders
    other = replace(QUICK, seed=2)
    assert [tuple(v.group.first.scenario for v in visits) for visits in passes(other, points, {})] != orders


def test_a_cheap_switch_is_started_before_each_repetition_and_a_slow_one_is_kept() -> None:
    assert held(plan_of(), {}) == [[[0]], [[1]], [[2]]]
    assert held(plan_of(), SLOW) == [[[0, 1]], [[2]]], "never one start alone: it says nothing of the noise"
    assert held(plan_of(repetitions=9, repetitions_max=None), SLOW) == [[[0, 1, 2, 3]], [[4, 5, 6, 7, 8]]]
    assert held(plan_of(restarts=0), {}) == [[[0, 1, 2]]], "as the plan says"


def test_further_passes_keep_a_slow_switch_as_long() -> None:
    plan = plan_of(repetitions_max=8)
    points = expand(plan)
    found = [[list(visit.repetitions) for visit in further_pass(plan, points, SLOW, n)] for n in range(3, 8)]
    assert found == [[[3, 4]], [], [[5, 6]], [], [[7]]]
    assert [list(visit.repetitions) for visit in further_pass(plan, points, {}, 4)] == [[4]]
    assert not any(latency_of(plan, visit) for visit in further_pass(QUICK, expand(QUICK), {}, 3))


def test_a_part_searches_its_own_points_in_as_many_starts_as_the_plan_says(document: dict[str, Any]) -> None:
    document |= {"scenarios": ["p2p", "v2v"], "directions": ["unidirectional"], "frame_sizes_bytes": [64, 1024]}
    document |= {"search": {"duration_s": 0.5, "starts": 2}, "throughput": {"duration_s": 0.5, "repetitions": 3}}
    narrow = {"name": "narrow", "scenarios": ["p2p"], "frame_sizes_bytes": [64], "search": {"methods": ["rfc2544"]}}
    plan = plan_from_document({**document, "parts": [{"name": "all"}, narrow]}, "it")
    found = [
        (visit.repetitions.start, method, {(point.scenario, point.frame_size_bytes) for point in points})
        for visits in passes(plan, expand(plan), {})
        for visit in visits
        for method, points in searches_of(plan, visit).items()
    ]
    assert found == [(0, "rfc2544", {("p2p", 64)}), (1, "rfc2544", {("p2p", 64)})]
    assert plan.search.methods == ("rfc2544",) and plan.search.duration_s == 0.5
    everywhere = override(plan, search="ndr")
    assert {m for visits in passes(plan, expand(plan), {}) for v in visits for m in searches_of(everywhere, v)} == {
        "ndr"
    }
    with pytest.raises(UsageError, match=r"part all: unknown key \"search\.starts\""):
        plan_from_document({**document, "parts": [{"name": "all", "search": {"starts": 3}}]}, "it")


def test_as_many_starts_are_searched_as_the_plan_says_also_where_they_have_several_repetitions() -> None:
    plan = replace(override(plan_of(repetitions=6, restarts=2), search="ndr"), seed=1)
    plan = replace(plan, search=replace(plan.search, starts=3))
    visits = [visit for each in passes(plan, expand(plan), {}) for visit in each]
    begun = sorted({visit.repetitions.start for visit in visits if searches_of(plan, visit)})
    assert begun == [0, 2, 4]


@pytest.mark.parametrize(
    ("least", "most", "looks"), [(3, 8, (3, 5, 8)), (3, None, (3,)), (3, 3, (3,)), (3, 4, (3, 4)), (1, 3, (1, 2, 3))]
)
def test_looks(least: int, most: int | None, looks: tuple[int, ...]) -> None:
    assert ThroughputPlan(1.0, least, repetitions_max=most).looks == looks
