# SPDX-License-Identifier: BSD-3-Clause
"""The order of a run: pass after pass over all topologies, each with new starts of the switches. Pure.

The repetitions of a cell are then as far apart in time as they can be: a capacity that wanders is seen as noise of the
cell and not as a difference of two switches, and what a start decides is in it, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import ceil
from random import Random
from typing import Any, TypeVar

from planebench.analysis.search.methods import load_name
from planebench.model.dimensions import HostingName
from planebench.model.errors import UsageError
from planebench.model.grouped import grouped
from planebench.model.plan import R_PLUS, LatencyPlan, Plan
from planebench.model.records import Point
from planebench.model.scenario import scenario_named
from planebench.model.server import NEAR
from planebench.model.switch import USUAL_COST, SwitchCost
from planebench.model.traffic import TrafficProfile
from planebench.plan.expand import points_of
from planebench.testbed.rates import bit_loads, latency_loads
from planebench.testbed.traffic_files import synthetic_routes_of

# The order of trials: repetitions of all switches interleaved, seeded, so that drift of the machine hits all alike.


@dataclass(frozen=True, slots=True)
class TopologyGroup:
    """Points that run on the same topology: one live topology for each switch serves them all."""

    points: tuple[Point, ...]

    @property
    def first(self) -> Point:
        """Return one of its points, which have all but switch, direction and frames in common."""
        return self.points[0]

    @property
    def switches(self) -> tuple[str, ...]:
        """Return the labels of the switches in the group, in plan order."""
        return tuple(dict.fromkeys(point.switch for point in self.points))


@dataclass(frozen=True, slots=True)
class TrialStep:
    """One trial to run: a point, the label of its load, and the number of the repetition, from 0."""

    point: Point
    load: str
    repetition: int


def group_points(points: Sequence[Point]) -> tuple[TopologyGroup, ...]:
    """Return the points by topology, in the order in which the topologies first appear."""
    return tuple(TopologyGroup(tuple(them)) for them in grouped((it.topology, it) for it in points).values())


def interleave(
    group: TopologyGroup, repetitions: int, seed: int, loads: Sequence[str] = ("saturating",)
) -> tuple[TrialStep, ...]:
    """Return every repetition of every point of the group at every load, exactly once.

    Within a repetition the cells (direction, frame size, load) come in a random order, and within a cell the switches
    do; so a switch never runs a cell twice in a row if there are two switches or more. The order follows from the
    seed and the group alone: other groups of a run do not change it.
    """
    rounds = Rounds(group, seed, loads)
    return tuple(step for _ in range(repetitions) for step in rounds.next(group.points))


class Rounds:
    """The rounds of :func:`interleave`, one after the other, as many as a search needs."""

    def __init__(self, group: TopologyGroup, seed: int, loads: Sequence[str] = ("saturating",)) -> None:
        self._loads = loads
        it = group.first
        chain = f"/{it.chain}" if it.chain else ""
        hosting = f"/{it.hosting}" if it.hosting != "process" else ""
        placed = f"/{it.placement}" if it.placement != NEAR else ""
        clock = f"/{it.cpu_clock}" if it.cpu_clock else ""
        where = f"{it.scenario}/{it.chain_length}{chain}{hosting}{placed}{clock}/{it.wire}"
        self._rng = Random(f"{seed}/{where}/{','.join(loads)}")
        self._last: TrialStep | None = None
        self._number = 0

    def next(self, points: Sequence[Point]) -> tuple[TrialStep, ...]:
        """Return a step for each load and each of ``points``, those still wanted; the repetition is the round."""
        found = ((p.direction, p.frame_size_bytes, p.traffic, load) for p in points for load in self._loads)
        cells = [*dict.fromkeys(found)]
        self._rng.shuffle(cells)
        steps: list[TrialStep] = []
        for *kind, load in cells:
            there = [p for p in points if [p.direction, p.frame_size_bytes, p.traffic] == kind]
            self._rng.shuffle(there)
            # The last cell of a round may be the first of the next; the switch that ran it last must not go first.
            last = steps[-1] if steps else self._last
            if last is not None and (last.point, last.load) == (there[0], load):
                there.append(there.pop(0))
            steps += (TrialStep(point, load, self._number) for point in there)
        self._number += 1
        self._last = steps[-1] if steps else None
        return tuple(steps)


# Estimate what starts and trials cost in time, before anything runs.

Costs = Mapping[str, SwitchCost]
"""What each switch costs, by label; one that is not there costs the usual."""

SOCKET_S = 0.9
"""So much sooner are switches up where there are no VNFs: DPDK's vhost looks for their sockets once a second."""

VNF_START_S = 0.1
"""Start time per VNF process: all start at the same time, on one core."""

HOSTING_START_S = {"separate": 0.1, "container": 0.2, "exec": 1.0, "vm": 4.0, "image": 30.0}
"""Start time per VNF of a chain by hosting: a VM as it boots under emulation, one of the user's own as guessed."""

VNF_TRIAL_S = 0.035
"""Time per VNF process and trial: counters are read before and after, late frames waited for."""

ROUTES_PER_S = 3_000_000
"""How fast FIBs are filled, a billion routes in 4 KiB pages: those of all VNFs one after the other where the switch has
them."""


def start_s(costs: Costs, label: str, group: TopologyGroup) -> float:
    """Return the start time of tester, switch, and VNFs that are processes, with their FIBs."""
    switch = costs.get(label, USUAL_COST)
    point = group.first
    hosted_s = sum(HOSTING_START_S.get(hosting, 0.0) for hosting in point.hostings)
    if not _waits(group):
        return switch.start_s - _socket_s(switch)
    if not point.side_by_side:
        return switch.start_s + hosted_s
    routes_s = point.chain_length * synthetic_routes_of(point.chain) / ROUTES_PER_S
    return switch.start_s + routes_s + (hosted_s or VNF_START_S) * _processes(switch, point)


def starts_s(costs: Costs, group: TopologyGroup) -> float:
    """Return the start time of all switches of a topology: one after the other, but they wait for sockets together."""
    waits_s = [_socket_s(costs.get(label, USUAL_COST)) for label in group.switches] if _waits(group) else [0.0]
    return sum(start_s(costs, label, group) for label in group.switches) - (sum(waits_s) - max(waits_s))


def _waits(group: TopologyGroup) -> bool:
    """Return whether switches of a topology connect to VNFs."""
    scenario = scenario_named(group.first.scenario)
    return bool(scenario.has_vnfs or scenario.ends_in_vnfs)


def _socket_s(switch: SwitchCost) -> float:
    """Return how much of the start time of a switch it waits for the sockets of VNFs."""
    return switch.start_s - max(switch.start_s - SOCKET_S, min(switch.start_s, USUAL_COST.start_s - SOCKET_S))


def overhead_s(plan: Plan, costs: Costs, point: Point) -> float:
    """Return the time that a trial takes beside its sending; every trial is warmed up."""
    switch = costs.get(point.switch, USUAL_COST)
    return plan.throughput.warmup_s + switch.trial_overhead_s + VNF_TRIAL_S * _processes(switch, point)


def saturating_s(plan: Plan, costs: Costs, point: Point) -> float:
    """Return the time of a saturating trial."""
    return plan.throughput.duration_s + overhead_s(plan, costs, point)


def _processes(switch: SwitchCost, point: Point) -> int:
    """Return the number of VNFs that are processes or more."""
    if point.side_by_side:
        return 0 if switch.offloads or scenario_named(point.scenario).bare else point.chain_length
    return len(point.hosted)


# The latency trials of a topology: those of every part of a plan, each once.


@dataclass(frozen=True, slots=True)
class LatencyStep:
    """A latency trial to run, and how the part that wants it takes latency."""

    step: TrialStep
    how: LatencyPlan


def latency_steps(plan: Plan, group: TopologyGroup) -> tuple[LatencyStep, ...]:
    """Return every latency trial of a topology, in order. One that several parts want comes once."""
    steps: dict[TrialStep, LatencyStep] = {}
    for section in plan.sections:
        wanted = frozenset(points_of(section))
        mine = replace(group, points=tuple(point for point in group.points if point in wanted))
        labels = _labels(section, group.first)
        if labels and mine.points:
            for step in interleave(mine, section.latency.repetitions, plan.seed, labels):
                steps.setdefault(step, LatencyStep(step, section.latency))
    return tuple(steps.values())


def check_latency(plan: Plan) -> None:
    """Raise UsageError for parts that measure latency of one point at one load in different ways."""
    seen: dict[tuple[Point, str], Plan] = {}
    for section in plan.sections if plan.parts else ():
        how = section.latency
        for point, label in ((it, label) for it in points_of(section) for label in _labels(section, it)):
            other = seen.setdefault((point, label), section)
            keys = [(it.duration_s, it.probe_rate_pps, it.anatomy, it.stamp) for it in (other.latency, how)]
            if keys[0] != keys[1]:
                raise UsageError(
                    f"parts {other.name} and {section.name} both take latency of {point.point_id} at {label}, with "
                    "other latency keys: give both the same duration_s, probe_rate_pps, anatomy and stamp, or other "
                    "loads"
                )


def _labels(section: Plan, point: Point) -> tuple[str, ...]:
    latency = section.latency
    if point.two_clocks:
        return ()
    of = load_name(latency.of)
    bits = bit_loads(latency.total_bps, latency.per_vnf_bps)
    return tuple(load.label for load in (*latency_loads(point.scenario, latency, of=of), *bits))


# Plans of several parts: what they have between them, and what options make of them.

T = TypeVar("T")
MATRIX = (
    *("scenarios", "directions", "frame_sizes_bytes", "chain_lengths", "vnf_counts", "chains"),
    *("placements", "cpu_clocks"),
)
"""The fields of a plan that list what its points are of, but for traffic and hostings."""


def with_parts(plan: Plan, parts: Sequence[Plan]) -> Plan:
    """Return the plan with these parts; its own matrix becomes what they have between them.

    UsageError where names clash, or ways to take latency.
    """
    names = [part.name for part in parts]
    if twice := [name for name in names if names.count(name) > 1]:
        raise UsageError(f'two parts have the name "{twice[0]}"; rename one')
    found: dict[str, TrafficProfile] = {}
    for profile in (profile for part in parts for profile in part.traffic):
        if found.setdefault(profile.name, profile) != profile:
            raise UsageError(f'two traffic profiles have the name "{profile.name}"; rename one')
    plans = [part.latency for part in parts]
    first = next((plan for plan in plans if plan.wanted), plans[0])
    whole = replace(
        plan,
        parts=tuple(parts),
        **_unions(parts, MATRIX),
        **of_hostings(union(part.hostings for part in parts)),
        traffic=tuple(found.values()),
        latency=replace(
            first,
            **_unions(plans, ("loads", "rates_pps", "total_bps", "per_vnf_bps")),
            anatomy=any(plan.anatomy for plan in plans),
        ),
        search=replace(plan.search, methods=union(part.search.methods for part in parts)),
    )
    check_latency(whole)
    return whole


def each_part(plan: Plan, change: Callable[[Plan], Plan]) -> Plan:
    """Return the plan with ``change`` made to each of its parts."""
    return with_parts(plan, [change(part) for part in plan.parts])


def of_hostings(hostings: tuple[HostingName, ...]) -> dict[str, Any]:
    """Return the fields of a plan for these hostings."""
    return {"hosting": hostings[0], "more_hostings": hostings[1:]}


def _unions(records: Sequence[Any], names: Iterable[str]) -> dict[str, Any]:
    """Return the fields of records as the fields of one that has the values of all."""
    return {name: union(getattr(record, name) for record in records) for name in names}


def union(values: Iterable[tuple[T, ...]]) -> tuple[T, ...]:
    """Return every value once, in order."""
    return tuple(dict.fromkeys(value for some in values for value in some))


CHEAP_START_S = 5.0
"""Switches that start faster than this are started before every repetition."""
START_SHARE = 2.0
"""Slower ones are kept for as many repetitions as make their starts take at most this many times their trials."""


@dataclass(frozen=True, slots=True)
class Visit:
    """A stay on one topology: its switches are started, measured and stopped.

    ``group`` has the points that are measured; ``repetitions`` of them are measured in the same start, which is number
    ``start`` of the topology.
    """

    group: TopologyGroup
    repetitions: range
    start: int


def passes(plan: Plan, points: Sequence[Point], costs: Costs) -> Iterator[tuple[Visit, ...]]:
    """Yield the passes that every point gets, each in its seeded order; none begins where the last one ended."""
    every = [visit for group in group_points(points) for visit in visits_of(plan, group, costs)]
    last: TopologyGroup | None = None
    for number in range(plan.throughput.repetitions):
        visits = [visit for visit in every if visit.repetitions.start == number]
        if visits:
            found = _shuffled(visits, plan.seed, number, last)
            last = found[-1].group
            yield found


def visits_of(plan: Plan, group: TopologyGroup, costs: Costs) -> tuple[Visit, ...]:
    """Return the visits of a topology in the passes that every point gets."""
    count, restarts = plan.throughput.repetitions, restarts_of(plan, group, costs)
    # The switches are started anew before repetitions that are spread evenly: one restart in four is before number 2.
    bounds = sorted({0, count, *(round((k + 1) * count / (restarts + 1)) for k in range(restarts))})
    return tuple(Visit(group, range(a, b), start) for start, (a, b) in enumerate(pairwise(bounds)))


def further_pass(plan: Plan, points: Sequence[Point], costs: Costs, number: int) -> tuple[Visit, ...]:
    """Return a pass beyond those of :func:`passes` over the points that are still wanted. Slow topologies skip some."""
    count, end = plan.throughput.repetitions, plan.throughput.looks[-1]
    visits = []
    for group in group_points(points):
        starts = 1 + restarts_of(plan, group, costs)
        kept = ceil(count / starts)
        if (number - count) % kept == 0:
            start = starts + (number - count) // kept
            visits.append(Visit(group, range(number, min(number + kept, end)), start))
    return _shuffled(visits, plan.seed, number, None)


def searches_of(plan: Plan, visit: Visit) -> dict[str, tuple[Point, ...]]:
    """Return the points of each search of a visit: all in the first one of a topology, as latency may rest on them.

    Those of the plan are repeated in as many visits as it has starts for them.
    """
    wanted: list[tuple[str, Plan]] = []
    if 0 in visit.repetitions and not visit.group.first.echoes("latency"):
        # First those that loads of latency are shares of.
        wanted += ((it.latency.of, it) for it in plan.sections if it.latency.of != R_PLUS and it.latency.loads)
    if visit.start < plan.search.starts:
        wanted += ((method, it) for it in plan.sections for method in it.search.methods)
    found: dict[str, tuple[Point, ...]] = {}
    for method, section in wanted:
        there = frozenset(points_of(section))
        if mine := tuple(point for point in visit.group.points if point in there):
            found[method] = union((found.get(method, ()), mine))
    return found


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


def restarts_of(plan: Plan, group: TopologyGroup, costs: Costs) -> int:
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


def _shuffled(visits: list[Visit], seed: int, number: int, last: TopologyGroup | None) -> tuple[Visit, ...]:
    Random(f"{seed}/pass/{number}").shuffle(visits)
    if len(visits) > 1 and visits[0].group == last:
        visits.append(visits.pop(0))
    return tuple(visits)
