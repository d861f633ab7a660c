# SPDX-License-Identifier: BSD-3-Clause
"""A search as another developer adds it: the highest of ten equal steps of load that loses nothing."""

from __future__ import annotations

from planebench.analysis.search.method import Method, highest_load
from planebench.analysis.search.task import Measure, SearchFinding, SearchTask

TRIAL_S = 0.2


def steps(measure: Measure, task: SearchTask, found: SearchFinding) -> None:
    """Raise the load by a tenth of the highest load until a trial loses frames."""
    top = found.max_load_pps = task.max_load_pps(measure)
    for step in range(1, 11):
        load = task.whole(top * step / 10)
        trial = measure(task.ask(load, task.settings.duration_s or TRIAL_S))
        if trial.loss_ratio > 0:
            found.upper_pps = load
            return
        found.lower_pps = found.conditional_pps = load


STEPS = Method(
    name="steps",
    short_name="steps",
    help="highest of ten steps of load that loses nothing",
    search=steps,
    deviations=highest_load,
    expected_trials=lambda settings: 9,
    standard_s=TRIAL_S,
)
