# SPDX-License-Identifier: BSD-3-Clause
"""Searches for a highest load: goals for MLRsearch (RFC 9971), whose controller does the work.

Its loads are those of one port while its counts are aggregates: it is given aggregates of both.
"""

from __future__ import annotations

from MLRsearch import AbstractMeasurer, Config, MeasurementResult, MultipleLossRatioSearch, SearchGoal

from planebench.search.ask import Measure
from planebench.search.goals import (
    BSWLV_TRIAL_S,
    CSIT_EXCEED_RATIO,
    CSIT_TRIAL_S,
    CSIT_TRIALS,
    CSIT_WIDTH,
    RFC2544_TRIAL_S,
)
from planebench.search.task import Finding, Task

EXCEED_MARGIN = 1e-6
"""On top of an exceed ratio of (N-1)/N: sums of floats must not decide a tie."""
FOREVER_S = 1e9
"""MLRsearch raises after this time and forgets. Replay takes none."""


def ndr(measure: Measure, task: Task, found: Finding) -> None:
    """Highest load of which most trials lose nothing."""
    _search(measure, task, found, csit_goal(task, 0.0))


def pdr(measure: Measure, task: Task, found: Finding) -> None:
    """Highest load of which most trials lose no more than ``pdr_loss_ratio``."""
    _search(measure, task, found, csit_goal(task, task.settings.pdr_loss_ratio))


def rfc2544(measure: Measure, task: Task, found: Finding) -> None:
    """RFC 2544 section 26.1: highest load of which one long trial loses nothing.

    One loss decides there, so no trial is passed over; whether gaps of the pollers explain it, the verdict says.
    """
    trial_s = task.settings.trial_duration_s or RFC2544_TRIAL_S
    _search(measure, task, found, _goal(task, 0.0, 0.0, trial_s, trial_s), excuses=False)


def bswlv(measure: Measure, task: Task, found: Finding) -> None:
    """ETSI GS NFV-TST 009 section 12.3.3: a load fails only when max(r) trials in a row have lost."""
    n = task.settings.max_r
    trial_s = task.settings.trial_duration_s or BSWLV_TRIAL_S
    exceed = (n - 1) / n + EXCEED_MARGIN if n > 1 else 0.0
    _search(measure, task, found, _goal(task, 0.0, exceed, trial_s, n * trial_s))


def csit_goal(task: Task, loss_ratio: float) -> SearchGoal:
    """The goal of FD.io CSIT: 21 trials of 1 s a load, half of which may exceed the loss ratio.

    Shorter trials: as many of them. Longer ones: as many seconds.
    """
    trial_s = task.settings.trial_duration_s or CSIT_TRIAL_S
    sum_s = task.settings.duration_sum_s or CSIT_TRIALS * min(trial_s, CSIT_TRIAL_S)
    return _goal(task, loss_ratio, CSIT_EXCEED_RATIO, trial_s, max(sum_s, trial_s))


def _goal(task: Task, loss_ratio: float, exceed_ratio: float, trial_s: float, sum_s: float) -> SearchGoal:
    return SearchGoal(
        loss_ratio=loss_ratio,
        exceed_ratio=exceed_ratio,
        relative_width=task.settings.relative_width or CSIT_WIDTH,
        initial_trial_duration=trial_s,
        final_trial_duration=trial_s,
        duration_sum=sum_s,
        fail_fast=False,
    )


class _Measurer(AbstractMeasurer):  # type: ignore[misc] # MLRsearch comes without types
    """Answers MLRsearch from the log. ``forgiven`` is the goal of its asks."""

    def __init__(self, measure: Measure, task: Task, forgiven: float | None) -> None:
        self._measure = measure
        self._task = task
        self._forgiven = forgiven

    def measure(self, intended_duration: float, intended_load: float) -> MeasurementResult:
        trial = self._measure(self._task.ask(intended_load, intended_duration, self._forgiven))
        offered = sum(d.offered_packets for d in trial.directions)
        # Durations stay the intended ones: what a trial took longer must not count as more trials.
        return MeasurementResult(
            intended_duration=intended_duration,
            intended_load=intended_load,
            offered_count=offered,
            forwarding_count=trial.forwarded_packets,
            intended_count=max(offered, sum(d.intended_packets for d in trial.directions)),
        )


def _search(measure: Measure, task: Task, found: Finding, goal: SearchGoal, excuses: bool = True) -> None:
    found.loss_ratio = goal.loss_ratio
    high = found.max_load_pps = task.max_load_pps(measure)
    low = task.whole(min(task.settings.min_load_pps, high / 10))
    if low >= high:  # a load of a packet or two a second
        high = found.max_load_pps = 2 * low
    config = Config(goals=(goal,), min_load=low, max_load=high, search_duration_max=FOREVER_S, warmup_duration=None)
    search = MultipleLossRatioSearch(config)
    try:
        search.search(_Measurer(measure, task, goal.loss_ratio if excuses else None), debug=_say_nothing)
    finally:
        _note_bounds(search, task, found, goal)
    if found.lower_pps is None:
        found.remarks += (f"no load met the goal: not even {low:g} pps, the lowest",)


def _note_bounds(search: MultipleLossRatioSearch, task: Task, found: Finding, goal: SearchGoal) -> None:
    """What is decided by whole sums of trials; loads that were only tried do not bound anything."""
    bounds = search.database.get_relevant_bounds(search.scaling.goal_to_final_target[goal])
    if bounds.clo is not None:
        found.lower_pps = task.whole(float(bounds.clo))
        loss_ratio = next(iter(bounds.clo.target_to_stat.values())).pessimistic_loss_ratio
        found.conditional_pps = found.lower_pps * (1 - loss_ratio)
    if bounds.chi is not None:
        found.upper_pps = task.whole(float(bounds.chi))


def _say_nothing(text: str) -> None:
    """MLRsearch tells every step; it is all in the log."""
