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
    for step in range(STEPS):
        load = task.whole(top * (STEPS - step) / STEPS)
        _note(measure(task.ask(load, duration_s)), load, found)
        if found.lower_pps is not None:
            return
    what = "no two loads in a row lost nothing" if found.curve[-1].loss_ratio == 0 else "no load met the goal"
    found.remarks += (f"{what}: not even {load:g} pps, the lowest of the curve",)


def _note(trial: Trial, load: float, found: Finding) -> None:
    """Loads come in falling order. The lower bound is the higher of two in a row without loss, so what was lossy before

    is above it; one load without loss, among lossy ones, is luck.
    """
    found.curve += (CurvePoint(load, trial.throughput_pps, trial.loss_ratio),)
    if trial.loss_ratio > 0:
        found.upper_pps = load
        return
    row = found.curve[-LOSSLESS_IN_A_ROW:]
    if len(row) == LOSSLESS_IN_A_ROW and all(p.loss_ratio == 0 for p in row):
        found.lower_pps, found.conditional_pps = row[0].intended_pps, row[0].forwarded_pps
