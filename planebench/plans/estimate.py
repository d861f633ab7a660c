# SPDX-License-Identifier: BSD-3-Clause
"""How long a plan takes, before anything runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from planebench.model.plan import Plan
from planebench.model.records import Point
from planebench.plans.costs import Costs, overhead_s, saturating_s, starts_s
from planebench.plans.order import group_points
from planebench.plans.passes import Visit, latency_of, searches_of, visits_of
from planebench.search import METHODS, search_settings


def expected_trials(plan: Plan, method: str) -> int:
    """Return how many trials a search takes on a point: a guess."""
    return METHODS[method].expected_trials(search_settings(plan, senders=1))


def planned_trials(plan: Plan, points: Sequence[Point], costs: Costs | None = None) -> int:
    """Return the number of steps of a run without further passes.

    A search takes as many trials as it takes; what it is expected to take is counted.
    """
    visits = [visit for group in group_points(points) for visit in visits_of(plan, group, costs or {})]
    more = sum(len(latency_of(plan, visit)) for visit in visits)
    for visit in visits:
        more += sum(expected_trials(plan, m) * len(members) for m, members in searches_of(plan, visit).items())
    return plan.throughput.repetitions * len(points) + more


def estimate(plan: Plan, points: Sequence[Point], costs: Costs | None = None) -> float:
    """Return the seconds that measuring ``points`` takes. Searches are guessed.

    Passes beyond those that every point gets are not in it: whether there are any, the comparisons tell.
    """
    visits = (visit for group in group_points(points) for visit in visits_of(plan, group, costs or {}))
    return sum(visit_s(plan, visit, costs or {}) for visit in visits)


def estimate_longest(plan: Plan, points: Sequence[Point], costs: Costs | None = None) -> float:
    """Return the seconds that measuring ``points`` takes with all further passes over comparisons that are open."""
    shortest_s = estimate(plan, points, costs)
    most, budget_s = plan.throughput.repetitions_max, plan.time_budget_s
    if most is None:
        return shortest_s
    longest_s = estimate(replace(plan, throughput=replace(plan.throughput, repetitions=most)), points, costs)
    return longest_s if budget_s is None else max(shortest_s, min(longest_s, budget_s))


def visit_s(plan: Plan, visit: Visit, costs: Costs) -> float:
    """Return the seconds of one visit, with the starts of its switches."""
    seconds = starts_s(costs, visit.group)
    seconds += len(visit.repetitions) * sum(saturating_s(plan, costs, point) for point in visit.group.points)
    for method, points in searches_of(plan, visit).items():
        trials, sending_s = expected_trials(plan, method), plan.search.duration_s or METHODS[method].standard_s
        seconds += sum(trials * (sending_s + overhead_s(plan, costs, point)) for point in points)
    latencies = latency_of(plan, visit)
    return seconds + sum(it.how.duration_s + overhead_s(plan, costs, it.step.point) for it in latencies)
