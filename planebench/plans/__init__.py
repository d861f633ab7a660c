# SPDX-License-Identifier: BSD-3-Clause
"""Plans: what a run measures, as data. Suites in YAML, options of the command line, expansion, order, time."""

from planebench.model.plan import LatencyPlan, Plan, SearchPlan, ThroughputPlan
from planebench.plans.budget import describe, duration_words, fit, parse_budget
from planebench.plans.estimate import estimate
from planebench.plans.expand import (
    SwitchLabel,
    expand,
    max_frame_bytes,
    plain_frame_sizes,
    points_of,
    skipped,
    switch_labels,
)
from planebench.plans.fit_memory import fit_memory
from planebench.plans.latency_steps import LatencyStep, latency_steps
from planebench.plans.load import list_suites, load_plan
from planebench.plans.order import Group, Rounds, Step, group_points, interleave
from planebench.plans.override import override

__all__ = [
    "Group",
    "LatencyPlan",
    "LatencyStep",
    "Plan",
    "Rounds",
    "SearchPlan",
    "Step",
    "SwitchLabel",
    "ThroughputPlan",
    "describe",
    "duration_words",
    "estimate",
    "expand",
    "fit",
    "fit_memory",
    "group_points",
    "interleave",
    "latency_steps",
    "list_suites",
    "load_plan",
    "max_frame_bytes",
    "override",
    "parse_budget",
    "plain_frame_sizes",
    "points_of",
    "skipped",
    "switch_labels",
]
