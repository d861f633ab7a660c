# SPDX-License-Identifier: BSD-3-Clause
"""How long a plan takes, before anything runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from planebench.model.plan import Plan
from planebench.model.records import Point
from planebench.model.spec import USUAL_COST, SwitchCost
from planebench.plans.expand import switch_labels
from planebench.plans.latency_steps import latency_steps
from planebench.plans.order import Group, group_points
from planebench.search import METHODS, search_settings
from planebench.traffic.routes import synthetic_routes_of

VNF_START_S = 0.1
"""Start time per VNF process: all start at the same time, on one core."""

HOSTING_START_S = {"separate": 0.1, "container": 0.2, "exec": 1.0, "vm": 4.0, "image": 30.0}
"""Start time per VNF of a chain by hosting: a VM as it boots under emulation, one of the user's own as guessed."""

VNF_TRIAL_S = 0.035
"""Time per VNF process and trial: counters are read before and after, late frames waited for."""

ROUTES_PER_S = 5_000_000
"""How fast FIBs are filled: those of all VNFs one after the other where the switch has them."""


def expected_trials(plan: Plan, method: str) -> int:
    """Return how many trials a method takes on a point: exact for R+, a guess for a search."""
    return METHODS[method].expected_trials(search_settings(plan, senders=1))


def estimate(plan: Plan, points: Sequence[Point], costs: Mapping[str, SwitchCost] | None = None) -> float:
    """Return the seconds that measuring ``points`` takes if no trial has to be repeated. Searches are guessed.

    ``costs`` are those of the switches, by label; one that is not there costs the usual.
    """
    switches = {label.label: USUAL_COST for label in switch_labels(plan.switches)} | dict(costs or {})
    groups = group_points(points)
    starts_s = sum(_start_s(switches[switch], group) for group in groups for switch in group.switches)
    return (
        starts_s * (1 + plan.throughput.restarts)
        + sum(_rates_s(plan, point, switches[point.switch]) for point in points)
        + sum(
            wanted.how.duration_s + _overhead_s(plan, switches[wanted.step.point.switch], wanted.step.point)
            for group in groups
            for wanted in latency_steps(plan, group)
        )
    )


def _start_s(switch: SwitchCost, group: Group) -> float:
    """Return the start time of tester, switch, and VNFs that are processes, with their FIBs."""
    hosted_s = sum(HOSTING_START_S.get(hosting, 0.0) for hosting in group.points[0].hostings)
    if not group.points[0].side_by_side:
        return switch.start_s + hosted_s
    routes_s = group.chain_length * synthetic_routes_of(group.chain) / ROUTES_PER_S
    each_s = hosted_s or VNF_START_S
    return switch.start_s + routes_s + each_s * _processes(switch, group.points[0])


def _processes(switch: SwitchCost, point: Point) -> int:
    """Return the number of VNFs that are processes or more."""
    if point.side_by_side:
        return 0 if switch.offloads else point.chain_length
    return len(point.hosted)


def _rates_s(plan: Plan, point: Point, switch: SwitchCost) -> float:
    """Return the time for R+ and the searches of a point."""
    overhead_s = _overhead_s(plan, switch, point)
    saturating_s = plan.throughput.repetitions * (plan.throughput.duration_s + overhead_s)
    searches_s = sum(
        expected_trials(plan, method) * ((plan.search.duration_s or METHODS[method].standard_s) + overhead_s)
        for method in plan.search.methods
    )
    return saturating_s + searches_s


def _overhead_s(plan: Plan, switch: SwitchCost, point: Point) -> float:
    """Return the time that a trial takes beside its sending; every trial is warmed up."""
    return plan.throughput.warmup_s + switch.trial_overhead_s + VNF_TRIAL_S * _processes(switch, point)
