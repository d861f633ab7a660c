# SPDX-License-Identifier: BSD-3-Clause
"""The order of a run: pass after pass over all topologies, each with new starts of the switches. Pure.

The repetitions of a cell are then as far apart in time as they can be: a capacity that wanders is seen as noise of the
cell and not as a difference of two switches, and what a start decides is in it, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil
from random import Random

from planebench.model.plan import R_PLUS, Plan
from planebench.model.records import Point
from planebench.model.scenario import scenario_named
from planebench.plans.costs import Costs, saturating_s, start_s
from planebench.plans.expand import points_of
from planebench.plans.latency_steps import LatencyStep, latency_steps
from planebench.plans.order import Group, group_points
from planebench.plans.parts import union

CHEAP_START_S = 5.0
"""Switches that start faster than this are started before every repetition."""
START_SHARE = 2.0
"""Slower ones are kept for as many repetitions as make their starts take at most this many times their trials."""


@dataclass(frozen=True, slots=True)
class Visit:
    """A stay on one topology: its switches are started, measured and stopped.

    ``group`` has the points that are measured; ``repetitions`` of them are measured in the same start.
    """

    group: Group
    repetitions: range


def passes(plan: Plan, points: Sequence[Point], costs: Costs) -> Iterator[tuple[Visit, ...]]:
    """Yield the passes that every point gets, each in its seeded order; none begins where the last one ended."""
    every = [visit for group in group_points(points) for visit in visits_of(plan, group, costs)]
    last: Group | None = None
    for number in range(plan.throughput.repetitions):
        visits = [visit for visit in every if visit.repetitions.start == number]
        if visits:
            found = _shuffled(visits, plan.seed, number, last)
            last = found[-1].group
            yield found


def visits_of(plan: Plan, group: Group, costs: Costs) -> tuple[Visit, ...]:
    """Return the visits of a topology in the passes that every point gets."""
    count = plan.throughput.repetitions
    bounds = sorted({0, count, *_restarts_before(count, restarts_of(plan, group, costs))})
    return tuple(Visit(group, range(a, b)) for a, b in pairwise(bounds))


def further_pass(plan: Plan, points: Sequence[Point], costs: Costs, number: int) -> tuple[Visit, ...]:
    """Return a pass beyond those of :func:`passes` over the points that are still wanted. Slow topologies skip some."""
    count, end = plan.throughput.repetitions, plan.throughput.looks[-1]
    visits = []
    for group in group_points(points):
        kept = ceil(count / (1 + restarts_of(plan, group, costs)))
        if (number - count) % kept == 0:
            visits.append(Visit(group, range(number, min(number + kept, end))))
    return _shuffled(visits, plan.seed, number, None)


def searches_of(plan: Plan, visit: Visit) -> dict[str, tuple[Point, ...]]:
    """Return the points of each search of a visit: all in the first one of a topology, as latency may rest on them.

    Those of the plan are repeated in as many visits as it has starts for them.
    """
    if 0 in visit.repetitions:
        return searched(plan, visit.group)
    return _with_asked({}, plan, visit.group) if visit.repetitions.start < plan.search.starts else {}


def searched(plan: Plan, group: Group) -> dict[str, tuple[Point, ...]]:
    """Return the points of each search on a topology: first those that loads of latency are shares of."""
    found: dict[str, tuple[Point, ...]] = {}
    for section in () if scenario_named(group.scenario).latency_by_echo else plan.sections:
        if section.latency.of != R_PLUS and section.latency.loads:
            _add(found, section.latency.of, section, group)
    return _with_asked(found, plan, group)


def _with_asked(found: dict[str, tuple[Point, ...]], plan: Plan, group: Group) -> dict[str, tuple[Point, ...]]:
    """Return ``found`` with the points of the searches that the plan, or a part of it, asks for."""
    for section in plan.sections:
        for method in section.search.methods:
            _add(found, method, section, group)
    return found


def _add(found: dict[str, tuple[Point, ...]], method: str, section: Plan, group: Group) -> None:
    """Add the points of a topology that are in a section, if there are any."""
    wanted = frozenset(points_of(section))
    if mine := tuple(point for point in group.points if point in wanted):
        found[method] = union((found.get(method, ()), mine))


def latency_of(plan: Plan, visit: Visit) -> tuple[LatencyStep, ...]:
    """Return the latency trials of a visit: repetition k is in the visit of repetition k of the saturating trials.

    Where latency has more repetitions, those are in the last visit that every point gets.
    """
    count, here = plan.throughput.repetitions, visit.repetitions
    last = here.stop == count
    return tuple(
        wanted
        for wanted in latency_steps(plan, visit.group)
        if here.start < count and (wanted.step.repetition in here or (last and wanted.step.repetition >= count))
    )


def restarts_of(plan: Plan, group: Group, costs: Costs) -> int:
    """Return how often the switches of a topology are started again over the repetitions that every point gets."""
    count, restarts = plan.throughput.repetitions, plan.throughput.restarts
    if restarts is not None:
        return restarts
    starts = [start_s(costs, label, group) for label in group.switches]
    if max(starts) <= CHEAP_START_S:
        return count - 1
    trials_s = sum(saturating_s(plan, costs, point) for point in group.points)
    kept = min(ceil(sum(starts) / (START_SHARE * trials_s)), ceil(count / 2))
    return ceil(count / kept) - 1


def _restarts_before(repetitions: int, restarts: int) -> frozenset[int]:
    """Return the repetitions before which the switches are started anew, spread evenly: (4, 1) -> {2}."""
    return frozenset(round((k + 1) * repetitions / (restarts + 1)) for k in range(restarts))


def _shuffled(visits: list[Visit], seed: int, number: int, last: Group | None) -> tuple[Visit, ...]:
    Random(f"{seed}/pass/{number}").shuffle(visits)
    if len(visits) > 1 and visits[0].group == last:
        visits.append(visits.pop(0))
    return tuple(visits)
