# SPDX-License-Identifier: BSD-3-Clause
"""Plans of several parts: what they have between them, and what options make of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from planebench.model.errors import UsageError
from planebench.model.hosting import HostingName
from planebench.model.plan import LatencyPlan, Plan
from planebench.model.traffic import TrafficProfile
from planebench.plans.latency_steps import check_latency

T = TypeVar("T")


def with_parts(plan: Plan, parts: Sequence[Plan]) -> Plan:
    """Return the plan with these parts; its own matrix becomes what they have between them.

    UsageError where names clash, or ways to take latency.
    """
    names = [part.name for part in parts]
    if twice := [name for name in names if names.count(name) > 1]:
        raise UsageError(f'two parts have the name "{twice[0]}"; rename one')
    whole = replace(
        plan,
        parts=tuple(parts),
        scenarios=union(part.scenarios for part in parts),
        directions=union(part.directions for part in parts),
        frame_sizes_bytes=union(part.frame_sizes_bytes for part in parts),
        chain_lengths=union(part.chain_lengths for part in parts),
        vnf_counts=union(part.vnf_counts for part in parts),
        chains=union(part.chains for part in parts),
        **of_hostings(union(part.hostings for part in parts)),
        placements=union(part.placements for part in parts),
        cpu_clocks=union(part.cpu_clocks for part in parts),
        traffic=_profiles(parts),
        latency=_latency([part.latency for part in parts]),
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


def union(values: Iterable[tuple[T, ...]]) -> tuple[T, ...]:
    """Return every value once, in order."""
    return tuple(dict.fromkeys(value for some in values for value in some))


def _profiles(parts: Sequence[Plan]) -> tuple[TrafficProfile, ...]:
    found: dict[str, TrafficProfile] = {}
    for profile in (profile for part in parts for profile in part.traffic):
        if found.setdefault(profile.name, profile) != profile:
            raise UsageError(f'two traffic profiles have the name "{profile.name}"; rename one')
    return tuple(found.values())


def _latency(plans: Sequence[LatencyPlan]) -> LatencyPlan:
    """Return all loads of the parts; of the rest what the first part that takes latency has."""
    first = next((plan for plan in plans if plan.wanted), plans[0])
    return replace(
        first,
        loads=union(plan.loads for plan in plans),
        rates_pps=union(plan.rates_pps for plan in plans),
        total_bps=union(plan.total_bps for plan in plans),
        per_vnf_bps=union(plan.per_vnf_bps for plan in plans),
        anatomy=any(plan.anatomy for plan in plans),
    )
