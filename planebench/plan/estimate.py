# SPDX-License-Identifier: BSD-3-Clause
"""How long a plan takes, before anything runs."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from planebench.analysis.search import METHODS, search_settings
from planebench.model.plan import Plan, Skipped
from planebench.model.records import Point
from planebench.model.scenario import scenario_named, scenarios_with
from planebench.plan.passes import (
    Costs,
    Visit,
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
    while routes > LEAST_ROUTES and _bytes(processes, max(plan.vnf_counts), routes) > SHARE * memory_bytes:
        routes //= 10
    return routes


def _bytes(processes: Sequence[int], vnfs: int, routes: int) -> int:
    """Return all switches at once; who offloads has the routes of all VNFs, else each is a process that has its own."""
    return sum(vnfs * (process + routes * ROUTE_BYTES) for process in processes)


def _replaced(plan: Plan, changed: dict[str, str]) -> Plan:
    new = replace(plan, chains=tuple(changed.get(chain, chain) for chain in plan.chains))
    return with_parts(new, [_replaced(part, changed) for part in plan.parts]) if plan.parts else new
