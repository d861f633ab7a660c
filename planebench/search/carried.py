# SPDX-License-Identifier: BSD-3-Clause
"""The carried load: the highest of a few loads that loses next to nothing. Latencies are taken below it."""

from __future__ import annotations

from math import inf

from planebench.model.reasons import Reason, ReasonCode
from planebench.search.ask import Measure
from planebench.search.method import Method
from planebench.search.task import Finding, Task

SHARES = (0.95, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.05)
"""Loads tried, as shares of the forwarding rate at maximum offered load."""
LOSS_RATIO = 0.001
"""A load is carried if a trial at it loses no more than this."""
TRIAL_S = 0.2


def carried(measure: Measure, task: Task, found: Finding) -> None:
    """Lower the load from just below the highest forwarding rate until a trial loses next to nothing."""
    found.loss_ratio = LOSS_RATIO
    top = min(measure(task.flat_out()).throughput_pps, task.cap_pps or inf)
    for share in SHARES:
        load = task.whole(share * top)
        found.max_load_pps = found.max_load_pps or load
        trial = measure(task.ask(load, task.settings.duration_s or TRIAL_S, goal=LOSS_RATIO))
        if trial.loss_ratio <= LOSS_RATIO:
            found.lower_pps, found.conditional_pps = load, trial.throughput_pps
            return
        found.upper_pps = load
    text = f"no load lost at most {LOSS_RATIO:.1%}, down to {load:g} pps"
    found.remarks += (Reason(ReasonCode.NO_LOAD_MET, text),)


CARRIED = Method(
    name="carried",
    title="Carried load",
    short_name="carried",
    help="highest of a few loads that loses at most 0.1 %; latency can be taken at shares of it",
    standard="docs/terminology.md",
    search=carried,
    deviations=lambda settings: (),  # it has no standard to depart from
    expected_trials=lambda settings: 2,
    standard_s=TRIAL_S,
)
