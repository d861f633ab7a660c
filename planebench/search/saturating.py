# SPDX-License-Identifier: BSD-3-Clause
"""R+: repetitions of a trial at maximum offered load, over several starts of the switch."""

from __future__ import annotations

from planebench.model.records import Trial, Verdict, VerdictKind
from planebench.search.ask import Ask, Measure, restarts_before
from planebench.search.method import Method
from planebench.search.task import Finding, Task


def r_plus(measure: Measure, task: Task, found: Finding) -> None:
    """Ask for every repetition; which of them count is for the statistics to say (docs/design/results.md)."""
    settings, trials = task.settings, list[Trial]()
    restarts = restarts_before(settings.repetitions, settings.restarts)
    for i in range(settings.repetitions):
        trials.append(measure(Ask(None, settings.r_plus_duration_s, restart=i in restarts, repetition=i)))
        _note(trials, found)


def _note(trials: list[Trial], found: Finding) -> None:
    for kind in (VerdictKind.VALID, VerdictKind.TESTER_LIMITED):
        rates = [t.throughput_pps for t in trials if t.verdict.kind is kind]
        if rates:
            found.conditional_pps = sum(rates) / len(rates)
            reasons = next(t.verdict.reasons for t in trials if t.verdict.kind is kind)
            found.verdict = Verdict(kind, () if kind is VerdictKind.VALID else reasons)
            return
    found.verdict = trials[-1].verdict


R_PLUS = Method(
    name="r_plus",
    title="R+",
    short_name="R+",
    help="mean forwarding rate at the maximum offered load (always measured)",
    standard="Zhang et al., CoNEXT 2019",
    search=r_plus,
    deviations=lambda settings: (),  # it is of a paper, and has no standard to depart from
    expected_trials=lambda settings: settings.repetitions,
    standard_s=1.0,
    every_trial=True,
)
