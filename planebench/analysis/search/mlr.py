# SPDX-License-Identifier: BSD-3-Clause
"""Searches for a highest load: goals for MLRsearch (RFC 9971), whose controller does the work.

Its loads are those of one port while its counts are aggregates: it is given aggregates of both.
"""

from __future__ import annotations

from MLRsearch import AbstractMeasurer, Config, MeasurementResult, MultipleLossRatioSearch, SearchGoal

from planebench.analysis.search.task import Goal, Measure, SearchFinding, SearchTask
from planebench.model.reasons import Reason, ReasonCode

FOREVER_S = 1e9
"""MLRsearch raises after this time and forgets. Replay takes none."""


class _Measurer(AbstractMeasurer):  # type: ignore[misc] # MLRsearch comes without types
    """Answers MLRsearch from the log."""

    def __init__(self, measure: Measure, task: SearchTask) -> None:
        self._measure = measure
        self._task = task

    def measure(self, intended_duration: float, intended_load: float) -> MeasurementResult:
        trial = self._measure(self._task.ask(intended_load, intended_duration))
        # Durations stay the intended ones: what a trial took longer must not count as more trials.
        return MeasurementResult(
            intended_duration=intended_duration,
            intended_load=intended_load,
            offered_count=sum(d.tried_packets for d in trial.directions),
            forwarding_count=trial.forwarded_packets,
        )


def search_goal(measure: Measure, task: SearchTask, found: SearchFinding, wanted: Goal) -> None:
    """Search the highest load that meets ``wanted``, and note its bounds in ``found``."""
    goal = SearchGoal(
        loss_ratio=wanted.loss_ratio,
        exceed_ratio=wanted.exceed_ratio,
        relative_width=wanted.relative_width,
        initial_trial_duration=wanted.trial_s,
        final_trial_duration=wanted.trial_s,
        duration_sum=wanted.sum_s,
        fail_fast=False,
    )
    found.loss_ratio = goal.loss_ratio
    high = found.max_load_pps = task.max_load_pps(measure)
    low = task.whole(min(task.settings.min_load_pps, high / 10))
    if low >= high:  # a load of a packet or two a second
        high = found.max_load_pps = 2 * low
    config = Config(goals=(goal,), min_load=low, max_load=high, search_duration_max=FOREVER_S, warmup_duration=None)
    search = MultipleLossRatioSearch(config)
    try:
        search.search(_Measurer(measure, task), debug=lambda text: None)  # every step is in the log
    finally:
        # Bounds are from complete sums of trials; a load that was only tried is none.
        bounds = search.database.get_relevant_bounds(search.scaling.goal_to_final_target[goal])
        if bounds.clo is not None:
            found.lower_pps = task.whole(float(bounds.clo))
            loss_ratio = next(iter(bounds.clo.target_to_stat.values())).pessimistic_loss_ratio
            found.conditional_pps = found.lower_pps * (1 - loss_ratio)
        if bounds.chi is not None:
            found.upper_pps = task.whole(float(bounds.chi))
    if found.lower_pps is None:
        found.remarks += (Reason(ReasonCode.NO_LOAD_MET, f"no load met the goal, down to the lowest, {low:g} pps"),)
