# SPDX-License-Identifier: BSD-3-Clause
"""FIBs of many VNFs, made smaller where the memory of the machine does not hold those that a plan asks for. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from planebench.model.header import Skipped
from planebench.model.plan import Plan
from planebench.model.scenario import scenario_named, scenarios_with
from planebench.plans.parts import with_parts
from planebench.traffic.routes import synthetic_routes_of

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
