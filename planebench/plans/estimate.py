# SPDX-License-Identifier: BSD-3-Clause
"""How long a plan takes, before anything runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from math import inf

from planebench.model.plan import Plan
from planebench.model.records import Point
from planebench.plans.costs import Costs, Tries, overhead_s, repeated_s, saturating_s, starts_s
from planebench.plans.latency_steps import LatencyStep
from planebench.plans.order import group_points
from planebench.plans.passes import Visit, latency_of, searches_of, visits_of
from planebench.search import METHODS, search_settings


def expected_trials(plan: Plan, method: str) -> int:
    """Return how many trials a search takes on a point: a guess."""
    return METHODS[method].expected_trials(search_settings(plan, senders=1))


def planned_trials(plan: Plan, points: Sequence[Point], costs: Costs | None = None) -> int:
    """Return the number of steps of a run without repetitions of disturbed trials and without further passes.

    A search takes as many trials as it takes; what it is expected to take is counted.
    """
    visits = [visit for group in group_points(points) for visit in visits_of(plan, group, costs or {})]
    more = sum(len(latency_of(plan, visit)) for visit in visits)
    for visit in visits:
        more += sum(expected_trials(plan, m) * len(members) for m, members in searches_of(plan, visit).items())
    return plan.throughput.repetitions * len(points) + more


def estimate(plan: Plan, points: Sequence[Point], costs: Costs | None = None, tries: Tries | None = None) -> float:
    """Return the seconds that measuring ``points`` takes with so many ``tries``; None: no trial is repeated.

    Searches are guessed. Passes beyond those that every point gets are not in it: whether there are any, the
    comparisons tell. Trials are repeated while the time budget of the plan allows it.
    """
    once_s = _passes_s(plan, points, costs or {}, {})
    if not tries:
        return once_s
    return min(_passes_s(plan, points, costs or {}, tries), max(once_s, plan.time_budget_s or inf))


def estimate_longest(
    plan: Plan, points: Sequence[Point], costs: Costs | None = None, tries: Tries | None = None
) -> float:
    """Return the seconds that measuring ``points`` takes with all further passes over comparisons that are open."""
    shortest_s = estimate(plan, points, costs, tries)
    most, budget_s = plan.throughput.repetitions_max, plan.time_budget_s
    if most is None:
        return shortest_s
    longest = replace(plan, throughput=replace(plan.throughput, repetitions=most))
    longest_s = _passes_s(longest, points, costs or {}, tries or {})
    return longest_s if budget_s is None else max(shortest_s, min(longest_s, budget_s))


def _passes_s(plan: Plan, points: Sequence[Point], costs: Costs, tries: Tries) -> float:
    """Return the seconds of the passes that every point gets."""
    visits = (visit for group in group_points(points) for visit in visits_of(plan, group, costs))
    return sum(visit_s(plan, visit, costs, tries) for visit in visits)


def visit_s(plan: Plan, visit: Visit, costs: Costs, tries: Tries | None = None) -> float:
    """Return the seconds of one visit, with the starts of its switches."""
    tries, points, steps = tries or {}, visit.group.points, latency_of(plan, visit)
    saturating = len(visit.repetitions) * sum(saturating_s(plan, costs, point) for point in points)
    searches, searching_s = _searches_s(plan, costs, searches_of(plan, visit))
    return (
        starts_s(costs, visit.group)
        + repeated_s(tries, "r_plus", saturating, len(visit.repetitions) * len(points))
        + repeated_s(tries, "search", searching_s, searches)
        + repeated_s(tries, "latency", latency_s(plan, costs, steps), len(steps))
    )


def _searches_s(plan: Plan, costs: Costs, searches: Mapping[str, Sequence[Point]]) -> tuple[int, float]:
    """Return the number of trials of searches, and their seconds."""
    trials, seconds = 0, 0.0
    for method, points in searches.items():
        count, sending_s = expected_trials(plan, method), plan.search.duration_s or METHODS[method].standard_s
        trials += count * len(points)
        seconds += sum(count * (sending_s + overhead_s(plan, costs, point)) for point in points)
    return trials, seconds


def latency_s(plan: Plan, costs: Costs, steps: Iterable[LatencyStep]) -> float:
    """Return the seconds of latency trials."""
    return sum(wanted.how.duration_s + overhead_s(plan, costs, wanted.step.point) for wanted in steps)
