# SPDX-License-Identifier: BSD-3-Clause
"""Plans: what a run measures, as data. Suites in YAML, options of the command line, expansion, order, time."""

from planebench.plans.estimate import estimate
from planebench.plans.expand import SwitchLabel, expand, max_frame_bytes, plain_frame_sizes, skipped, switch_labels
from planebench.plans.load import list_suites, load_plan
from planebench.plans.order import Group, Rounds, Step, group_points, interleave
from planebench.plans.override import override
from planebench.plans.plan import LatencyPlan, Plan, SearchPlan, ThroughputPlan

__all__ = [
    "Group",
    "LatencyPlan",
    "Plan",
    "Rounds",
    "SearchPlan",
    "Step",
    "SwitchLabel",
    "ThroughputPlan",
    "estimate",
    "expand",
    "group_points",
    "interleave",
    "list_suites",
    "load_plan",
    "max_frame_bytes",
    "override",
    "plain_frame_sizes",
    "skipped",
    "switch_labels",
]
