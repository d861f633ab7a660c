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


SEARCH_TRIALS = {"ndr": 60, "pdr": 60, "rfc2544": 15, "bswlv": 15, "curve": 6, "b2b": 15}
"""About how many trials a search takes; where it repeats itself (max(r), bursts) for one of those."""

STANDARD_S = {"ndr": 1.0, "pdr": 1.0, "rfc2544": 60.0, "bswlv": 1.0, "curve": 60.0, "b2b": 0.5}
"""Seconds of a trial by the method's standard; of back-to-back the mean over its bursts."""


def expected_trials(plan: Plan, method: str) -> int:
    """How many trials a method takes on a point: exact for R+, a guess for a search."""
    if method == "r_plus":
        return plan.throughput.repetitions
    factor = {"bswlv": plan.search.max_r, "b2b": plan.search.burst_repetitions}.get(method, 1)
    return SEARCH_TRIALS[method] * factor


def estimate(plan: Plan, points: Sequence[Point]) -> float:
    """Seconds that measuring ``points`` by ``plan`` takes if no trial has to be repeated. Searches are guessed."""
    starts = sum(len(group.switches) for group in group_points(points)) * (1 + plan.throughput.restarts)
    return starts * START_S + sum(_point_s(plan, point) for point in points)


def _point_s(plan: Plan, point: Point) -> float:
    throughput, latency = plan.throughput, plan.latency
    saturating_s = throughput.repetitions * (throughput.warmup_s + throughput.duration_s + TRIAL_OVERHEAD_S)
    searches_s = sum(
        expected_trials(plan, method) * ((plan.search.duration_s or STANDARD_S[method]) + TRIAL_OVERHEAD_S)
        for method in plan.search.methods
    )
    loads = len(latency_labels(point.scenario, latency.loads, latency.v2v_pps, latency.rates_pps))
    return saturating_s + searches_s + loads * latency.repetitions * (latency.duration_s + TRIAL_OVERHEAD_S)
