# SPDX-License-Identifier: BSD-3-Clause
"""How long a plan takes, before anything runs; and a plan made to fit a memory, or a time. Pure."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from math import floor
from typing import Any

from planebench.analysis.search.methods import METHODS
from planebench.analysis.search.task import search_settings
from planebench.model.errors import UsageError
from planebench.model.plan import LatencyPlan, Plan, Skipped
from planebench.model.records import Point
from planebench.model.scenario import scenario_named, scenarios_with
from planebench.model.text import SECONDS, parse_number
from planebench.plan.expand import STAMPS_MAX
from planebench.plan.passes import (
    Costs,
    Visit,
    each_part,
    group_points,
    latency_of,
    overhead_s,
    saturating_s,
    searches_of,
    starts_s,
    visits_of,
    with_parts,
)
from planebench.testbed.traffic_files import synthetic_routes_of


def expected_trials(plan: Plan, method: str) -> int:
    """Return how many trials a search takes on a point: a guess."""
    return METHODS[method].expected_trials(search_settings(plan, senders=1))


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
    if latencies and visit.group.first.echoes("latency"):
        seconds += starts_s(costs, visit.group)  # of another topology
    return seconds + sum(it.how.duration_s + overhead_s(plan, costs, it.step.point) for it in latencies)


# FIBs of many VNFs, made smaller where the memory of the machine does not hold those that a plan asks for. Pure.

ROUTE_BYTES = 10
"""Bytes of a host route in a cuckoo table: 8.6 measured at a million and at a billion."""
PROCESS_BYTES = 36 << 20
"""Memory of a VNF process without its routes."""
SHARE = 0.7
"""Usable share of the memory of the host: all switches of a comparison run at the same time, with their VNFs."""
LEAST_ROUTES = 1000


def fit_memory(
    plan: Plan, memory_bytes: int, offloads: Callable[[str], bool] = lambda _: False
) -> tuple[Plan, tuple[Skipped, ...]]:
    """Return the plan with FIBs that fit, a power of ten smaller each, and what was made smaller.

    ``offloads`` says of a switch whether it forwards in the place of its VNFs.
    """
    changed: dict[str, str] = {}
    for section in plan.sections:
        if scenarios_with("side-by-side", section.scenarios) and section.vnf_counts:
            for chain in section.chains:
                routes = synthetic_routes_of(chain)
                fitting = _fitting(section, routes, memory_bytes, offloads) if routes else routes
                if fitting != routes:
                    changed[chain] = re.sub(r"synthetic=[^:]*", f"synthetic={fitting}", chain)
    if not changed:
        return plan, ()
    told = tuple(
        Skipped(chain, f"{memory_bytes >> 20} MiB of memory do not hold so many routes of each VNF: {smaller}")
        for chain, smaller in changed.items()
    )
    return _replaced(plan, changed), told


def _fitting(plan: Plan, routes: int, memory_bytes: int, offloads: Callable[[str], bool]) -> int:
    beside = scenarios_with("side-by-side", plan.scenarios)
    if all(scenario_named(scenario).bare for scenario in beside):  # only one process has a function, and all routes
        processes = [0]
    else:
        processes = [0 if offloads(text) else PROCESS_BYTES for text in plan.switches]
    while (
        routes > LEAST_ROUTES
        and sum(max(plan.vnf_counts) * (process + routes * ROUTE_BYTES) for process in processes) > SHARE * memory_bytes
    ):
        routes //= 10
    return routes


def _replaced(plan: Plan, changed: dict[str, str]) -> Plan:
    new = replace(plan, chains=tuple(changed.get(chain, chain) for chain in plan.chains))
    return with_parts(new, [_replaced(part, changed) for part in plan.parts]) if plan.parts else new


# ``--time-budget 20m``: a plan made to fit a time, by the lengths of its trials first.

TRIAL_FLOOR_S = 0.1
"""Of a saturating or search trial: over a hundred scheduler ticks (1 kHz), and more frames (10^5 at 1 Mpps) than any
ring or burst holds, so that what is in flight at its ends does not tell."""
WARMUP_FLOOR_S = 0.05
REPETITIONS_FLOOR = 3
"""Saturating trials: fewer have no interval, and compare does not test them (docs/design/results.md)."""
REPETITIONS_WANTED = 5
"""Of a plan with further passes, before its trials become longer: its intervals are half as wide as with three."""
PROBES_FLOOR = 100
"""Of a latency trial: with fewer there is no 99th percentile. At a load below the probe rate every frame is one."""
SLOW_PROBES_FLOOR = 20
"""At such a load, as 100 pps: 20 frames make a median."""
LONG_S = 2.0
"""Durations grow to this at most, or to that of the plan: beyond it, more repetitions give more information."""
REPETITIONS_MAX = 10
LEAST_MAX = 5.0
"""A plan whose least time is more than so many times its budget is refused: it is another one than was meant."""
RESERVE_S = 15.0
"""Time for the calibration of the tester and for the report."""
_STEPS = 20
"""Halvings of the search for a length: below a tenth of a millisecond."""


def parse_budget(text: str) -> float:
    """Return seconds of ``20m``, ``90s``, ``1h``, ``1.5h``; a number alone is seconds. UsageError for anything else."""
    seconds = parse_number(text, SECONDS)
    if seconds is None or not 0 < seconds <= 7 * 24 * 3600:
        raise UsageError(f'--time-budget: "{text}" is not valid. Valid: e.g. 90s, 20m, 1h; at most one week')
    return seconds


def fit(plan: Plan, points: Sequence[Point], budget_s: float, costs: Costs | None = None) -> Plan:
    """Return the plan with the longest trials with which measuring ``points`` fits into ``budget_s``.

    Lengths are scaled together, those of saturating, search and latency trials. Where the shortest do not fit,
    repetitions go down, then restarts (:func:`_fewer`); where the longest leave time over, repetitions go up. A plan
    that takes longer in any case is measured as short as it can be. The budget becomes that of the plan. ``costs`` as
    in :func:`estimate`. UsageError where the least time is more than LEAST_MAX times the budget.
    """
    room_s = max(budget_s - RESERVE_S, 1.0)

    def takes_s(tried: Plan) -> float:
        return estimate(tried, points, costs)

    smaller = [*_fewer(plan)]
    first = bisect_left(smaller, True, key=lambda fewer: takes_s(_scaled(fewer, 0)) <= room_s)
    if first < len(smaller):
        longest = _longest(smaller[first], takes_s, room_s)
        return replace(_more(longest, takes_s, room_s), time_budget_s=room_s)
    shortest = replace(_scaled(smaller[-1], 0), time_budget_s=room_s)
    least_s = takes_s(shortest) + RESERVE_S
    if least_s > LEAST_MAX * budget_s:
        raise UsageError(
            f"plan {plan.name} does not fit into {duration_words(budget_s)}: with its shortest trials and fewest "
            f"repetitions it takes {duration_words(least_s)}. Give a longer --time-budget, or fewer switches, "
            "scenarios or frame sizes"
        )
    return shortest


def describe(plan: Plan) -> str:
    """Return the lengths of the trials of a plan, in one line."""
    throughput = plan.throughput
    most, restarts = throughput.repetitions_max, throughput.restarts
    parts = [
        f"{throughput.repetitions}{f' to {most}' if most else ''} saturating trials of {throughput.duration_s:g} s "
        f"after {throughput.warmup_s:g} s of warm-up, "
        + ("each after a start" if restarts is None else f"over {1 + restarts} {'starts' if restarts else 'start'}")
        + " of the switch"
    ]
    if plan.search.methods:
        length = f"{plan.search.duration_s:g} s" if plan.search.duration_s else "the duration of their standard"
        parts.append(f"search trials of {length}")
    counts: dict[float, dict[int, None]] = {}
    for how in (part.latency for part in plan.sections if part.latency.wanted):
        counts.setdefault(how.duration_s, {})[how.repetitions] = None
    for duration_s, repetitions in counts.items():
        trials = "trial" if list(repetitions) == [1] else "trials"
        number = " or ".join(map(str, sorted(repetitions)))
        parts.append(f"{number} latency {trials} of {duration_s:g} s per load")
    return "; ".join(parts)


def duration_words(seconds: float) -> str:
    """Return ``45 s``, ``4.2 minutes``, ``1.5 hours``."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.1f} minutes" if seconds < 6000 else f"{seconds / 3600:.1f} hours"


def _fewer(plan: Plan) -> Iterator[Plan]:
    """Yield the plan with less and less: repetitions, those of latency down to one, then restarts.

    One with further passes begins with REPETITIONS_WANTED, and gives one load of latency in the place of several for
    them: more starts narrow every interval. Parts keep their loads, of which each is one of a paper's figure.
    """
    if plan.throughput.repetitions_max is not None and not plan.parts:
        wanted = max(plan.throughput.repetitions, min(REPETITIONS_WANTED, plan.throughput.repetitions_max))
        yield _with_passes(plan, wanted)
        loads = plan.latency.loads
        plan = replace(plan, latency=replace(plan.latency, loads=loads[len(loads) // 2 :][:1]))
        for count in range(wanted, REPETITIONS_FLOOR, -1):
            yield _with_passes(plan, count)
        plan = _with_passes(plan, min(REPETITIONS_FLOOR, plan.throughput.repetitions))
    yield plan
    repetitions = [plan.throughput.repetitions, *(part.latency.repetitions for part in plan.sections)]
    for count in range(max(repetitions) - 1, 0, -1):
        if REPETITIONS_FLOOR <= count < plan.throughput.repetitions:
            plan = _with_passes(plan, count)

        def at_most(part: Plan, most: int = count) -> Plan:
            repetitions = min(part.latency.repetitions, most)
            return replace(part, latency=replace(part.latency, repetitions=repetitions))

        plan = _everywhere(plan, at_most)
        yield plan
    most, least = plan.throughput.restarts, 0
    if most is None:  # each comparison needs two starts
        most, least = plan.throughput.repetitions - 1, 1
    for restarts in range(most - 1, least - 1, -1):
        plan = _with_throughput(plan, restarts=restarts)
        yield plan


def _with_passes(plan: Plan, count: int) -> Plan:
    """Return the plan with so many repetitions; there is at most one restart between two of them."""
    restarts = plan.throughput.restarts
    return _with_throughput(plan, repetitions=count, restarts=None if restarts is None else min(restarts, count - 1))


def _more(plan: Plan, takes_s: Callable[[Plan], float], room_s: float) -> Plan:
    """Add saturating trials while there is time for them; further passes of a plan that has such need no room."""
    if plan.throughput.repetitions_max is not None:
        return plan
    for count in range(plan.throughput.repetitions + 1, REPETITIONS_MAX + 1):
        more = _with_throughput(plan, repetitions=count)
        if takes_s(more) > room_s:
            break
        plan = more
    return plan


def _longest(plan: Plan, takes_s: Callable[[Plan], float], room_s: float) -> Plan:
    """Lengthen the trials to the time available, by halving: the time grows with the factor.

    A plan with further passes leaves it to them: more starts tell more than longer trials.
    """
    low, high = 0.0, 1.0
    if plan.throughput.repetitions_max is None:
        search_s = (plan.search.duration_s,) if plan.search.duration_s is not None else ()
        lengths = plan.throughput.duration_s, *(part.latency.duration_s for part in plan.sections), *search_s
        high = max(1.0, LONG_S / min(lengths))
    if takes_s(_scaled(plan, high)) <= room_s:
        return _scaled(plan, high)
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if takes_s(_scaled(plan, middle)) <= room_s else (low, middle)
    return _scaled(plan, low)


def _scaled(plan: Plan, factor: float) -> Plan:
    """Return the plan with its lengths times ``factor``, within floors and ceilings; 0 for the shortest."""
    throughput, search = plan.throughput, plan.search
    plan = _with_throughput(
        plan,
        duration_s=_length(throughput.duration_s, factor, TRIAL_FLOOR_S, LONG_S),
        warmup_s=_length(throughput.warmup_s, factor, WARMUP_FLOOR_S, throughput.warmup_s),
    )
    if search.methods and (search.duration_s is not None or factor < 1):
        length = _length(search.duration_s or 1.0, factor, TRIAL_FLOOR_S, LONG_S)
        plan = _everywhere(plan, lambda part: replace(part, search=replace(part.search, duration_s=length)))
    return _everywhere(plan, lambda part: replace(part, latency=_scaled_latency(part.latency, factor)))


def _scaled_latency(latency: LatencyPlan, factor: float) -> LatencyPlan:
    slow = [rate for rate in latency.rates_pps if rate < latency.probe_rate_pps]
    floor_s = max([TRIAL_FLOOR_S, PROBES_FLOOR / latency.probe_rate_pps, *(SLOW_PROBES_FLOOR / rate for rate in slow)])
    most_s = STAMPS_MAX / (2 * latency.probe_rate_pps) if latency.anatomy else LONG_S
    return replace(latency, duration_s=_length(latency.duration_s, factor, floor_s, min(most_s, LONG_S)))


def _length(own_s: float, factor: float, least_s: float, most_s: float) -> float:
    """Return whole milliseconds; a duration of the plan below the minimum or above the maximum may stay."""
    length_s = min(max(own_s * factor, min(least_s, own_s)), max(most_s, own_s))
    return max(floor(length_s * 1000 + 1e-6) / 1000, 0.0) if factor != 1 else own_s


def _with_throughput(plan: Plan, **changes: Any) -> Plan:
    return _everywhere(plan, lambda part: replace(part, throughput=replace(part.throughput, **changes)))


def _everywhere(plan: Plan, change: Callable[[Plan], Plan]) -> Plan:
    """Return the plan changed, and its parts alike."""
    return each_part(change(plan), change) if plan.parts else change(plan)
