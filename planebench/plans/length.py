# SPDX-License-Identifier: BSD-3-Clause
"""The length of saturating trials on a host that interrupts them. Pure."""

from __future__ import annotations

from dataclasses import replace

from planebench.model.plan import Plan, ThroughputPlan
from planebench.plans.parts import each_part

INTERRUPTED_SHARE = 0.1
"""Trials become so short that about this share of them is interrupted."""


def with_trial_length(plan: Plan, interruptions_per_s: float | None) -> Plan:
    """Return the plan with saturating trials that are short enough for a host with so many interruptions."""
    throughput = _shortened(plan.throughput, interruptions_per_s or 0.0)
    if throughput == plan.throughput:
        return plan
    shorter = replace(plan, throughput=throughput)
    return each_part(shorter, lambda part: replace(part, throughput=throughput)) if plan.parts else shorter


def _shortened(throughput: ThroughputPlan, interruptions_per_s: float) -> ThroughputPlan:
    least_s, own_s = throughput.duration_min_s, throughput.duration_s
    if least_s is None or interruptions_per_s * own_s <= INTERRUPTED_SHARE:
        return throughput
    wanted_s = round(INTERRUPTED_SHARE / interruptions_per_s, 3)
    return replace(throughput, duration_s=min(own_s, max(least_s, wanted_s)))
