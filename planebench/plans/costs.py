# SPDX-License-Identifier: BSD-3-Clause
"""Estimate what starts and trials cost in time, before anything runs."""

from __future__ import annotations

from collections.abc import Mapping

from planebench.model.plan import Plan
from planebench.model.records import Point
from planebench.model.scenario import scenario_named
from planebench.model.spec import USUAL_COST, SwitchCost
from planebench.plans.order import Group
from planebench.traffic.routes import synthetic_routes_of

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


def start_s(costs: Costs, label: str, group: Group) -> float:
    """Return the start time of tester, switch, and VNFs that are processes, with their FIBs."""
    switch = costs.get(label, USUAL_COST)
    hosted_s = sum(HOSTING_START_S.get(hosting, 0.0) for hosting in group.points[0].hostings)
    scenario = scenario_named(group.scenario)
    if not (scenario.has_vnfs or scenario.ends_in_vnfs):
        return max(switch.start_s - SOCKET_S, min(switch.start_s, USUAL_COST.start_s - SOCKET_S))
    if not group.points[0].side_by_side:
        return switch.start_s + hosted_s
    routes_s = group.chain_length * synthetic_routes_of(group.chain) / ROUTES_PER_S
    each_s = hosted_s or VNF_START_S
    return switch.start_s + routes_s + each_s * _processes(switch, group.points[0])


def starts_s(costs: Costs, group: Group) -> float:
    """Return the start time of all switches of a topology, one after the other."""
    return sum(start_s(costs, label, group) for label in group.switches)


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
