# SPDX-License-Identifier: BSD-3-Clause
"""Loss-rate curve, RFC 2544 section 26.3."""

from __future__ import annotations

from planebench.model.reasons import Reason, ReasonCode
from planebench.model.records import Trial
from planebench.model.results import CurvePoint
from planebench.search.ask import Measure, SearchSettings
from planebench.search.method import RFC2544_TRIAL_S, Method, highest_load, short_trials
from planebench.search.task import Finding, Task

STEPS = 10
"""Steps of 10 % of the highest load."""
LOSSLESS_IN_A_ROW = 2


def curve(measure: Measure, task: Task, found: Finding) -> None:
    """Measure loss from the highest load down, until two successive trials lose nothing."""
    top = found.max_load_pps = task.max_load_pps(measure)
    duration_s = task.settings.duration_s or RFC2544_TRIAL_S
    for step in range(STEPS):
        load = task.whole(top * (STEPS - step) / STEPS)
        _note(measure(task.ask(load, duration_s)), load, found)
        if found.lower_pps is not None:
            return
    what = "no two successive loads were without loss" if found.curve[-1].loss_ratio == 0 else "no load met the goal"
    found.remarks += (Reason(ReasonCode.NO_LOAD_MET, f"{what}, down to the lowest of the curve, {load:g} pps"),)


def _note(trial: Trial, load: float, found: Finding) -> None:
    """Note the bounds; loads come in falling order.

    The lower bound is the higher of two successive loads without loss, so lossy loads before are above it; one load
    without loss among lossy ones is luck.
    """
    found.curve += (CurvePoint(load, trial.throughput_pps, trial.loss_ratio),)
    if trial.loss_ratio > 0:
        found.upper_pps = load
        return
    row = found.curve[-LOSSLESS_IN_A_ROW:]
    if len(row) == LOSSLESS_IN_A_ROW and all(p.loss_ratio == 0 for p in row):
        found.lower_pps = found.conditional_pps = row[0].intended_pps


def _curve_deviations(settings: SearchSettings) -> tuple[str, ...]:
    """Return the departures from RFC 2544 sections 24 and 26.3."""
    return (*short_trials(settings, RFC2544_TRIAL_S), *highest_load(settings))


CURVE = Method(
    name="curve",
    title="Loss-rate curve",
    short_name="first loss",
    help="loss at falling loads (frame loss rate test)",
    standard="RFC 2544 section 26.3",
    search=curve,
    deviations=_curve_deviations,
    expected_trials=lambda settings: 5,
    standard_s=RFC2544_TRIAL_S,
)
