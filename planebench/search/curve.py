# SPDX-License-Identifier: BSD-3-Clause
"""Loss-rate curve, RFC 2544 section 26.3."""

from __future__ import annotations

from planebench.model.records import Trial
from planebench.model.results import CurvePoint
from planebench.search.ask import Measure
from planebench.search.task import Finding, Task

CURVE_TRIAL_S = 60.0
STEPS = 10
"""Steps of 10 % of the highest load."""
LOSSLESS_IN_A_ROW = 2


def curve(measure: Measure, task: Task, found: Finding) -> None:
    """From the highest load down, until two successive trials lose nothing."""
    top = found.max_load_pps = task.max_load_pps(measure)
    duration_s = task.settings.trial_duration_s or CURVE_TRIAL_S
    lossless = 0
    for step in range(STEPS):
        load = task.whole(top * (STEPS - step) / STEPS)
        trial = measure(task.ask(load, duration_s))
        _note(trial, load, found)
        lossless = lossless + 1 if trial.loss_ratio == 0 else 0
        if lossless == LOSSLESS_IN_A_ROW:
            return
    if found.lower_pps is None:
        found.remarks += (f"no load met the goal: not even {load:g} pps, the lowest of the curve",)


def _note(trial: Trial, load: float, found: Finding) -> None:
    """Loads come in falling order: the first lossless one is the highest, the last lossy one the lowest."""
    found.curve += (CurvePoint(load, trial.throughput_pps, trial.loss_ratio),)
    if trial.loss_ratio > 0:
        found.upper_pps = load
    elif found.lower_pps is None:
        found.lower_pps, found.conditional_pps = load, trial.throughput_pps
