# SPDX-License-Identifier: BSD-3-Clause
"""The carried load: the highest of a few loads that loses next to nothing. Latencies are taken below it."""

from __future__ import annotations

from dataclasses import replace

from planebench.model.reasons import Reason, ReasonCode
from planebench.search.ask import Measure
from planebench.search.facts import explained_by_gaps
from planebench.search.method import Method
from planebench.search.task import Finding, Task

SHARES = (0.9, 0.7, 0.5, 0.3, 0.1)
"""Loads tried, as shares of the forwarding rate at maximum offered load."""
LOSS_RATIO = 0.001
"""A load is carried if a trial at it loses no more than this, or no more than came while the host kept pollers from
their CPUs: on a host that always does, no load would be carried."""
TRIAL_S = 0.2


def carried(measure: Measure, task: Task, found: Finding) -> None:
    """Lower the load from just below the highest forwarding rate until a trial loses next to nothing.

    One trial a load, also where the tester does not keep up: the latency trials that follow say what they carried.
    """
    found.loss_ratio = LOSS_RATIO
    top = measure(task.flat_out()).throughput_pps
    for share in SHARES:
        load = task.whole(share * top)
        found.max_load_pps = found.max_load_pps or load
        trial = measure(replace(task.ask(load, task.settings.duration_s or TRIAL_S), rough=True))
        if trial.loss_ratio <= LOSS_RATIO or explained_by_gaps(trial, LOSS_RATIO):
            found.lower_pps, found.conditional_pps = load, load * (1 - trial.loss_ratio)
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
