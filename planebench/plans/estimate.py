# SPDX-License-Identifier: BSD-3-Clause
"""How long a plan takes, before anything runs."""

from __future__ import annotations

from collections.abc import Sequence

from planebench.model.records import Point
from planebench.plans.order import group_points
from planebench.plans.plan import Plan
from planebench.traffic import latency_labels

TRIAL_OVERHEAD_S = 0.08
"""What a trial takes beside its sending: two core-distance probes, clearing, waiting for stragglers, reading."""

START_S = 2.5
"""Tester and switch up and connected, and down again: once for each switch and topology."""


def estimate(plan: Plan, points: Sequence[Point]) -> float:
    """Seconds that measuring ``points`` by ``plan`` takes if no trial has to be repeated."""
    starts = sum(len(group.switches) for group in group_points(points))
    return starts * START_S + sum(_point_s(plan, point) for point in points)


def _point_s(plan: Plan, point: Point) -> float:
    throughput, latency = plan.throughput, plan.latency
    saturating_s = throughput.repetitions * (throughput.warmup_s + throughput.duration_s + TRIAL_OVERHEAD_S)
    loads = len(latency_labels(point.scenario, latency.loads, latency.v2v_pps))
    return saturating_s + loads * latency.repetitions * (latency.duration_s + TRIAL_OVERHEAD_S)
