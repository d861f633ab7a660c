# SPDX-License-Identifier: BSD-3-Clause
"""Searches, replayed: each runs from its beginning over the log; the first ask the log cannot answer is the next trial.

So switches are interleaved, searches share trials, runs resume, and stored trials give the same result again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean

from planebench.analysis.search.methods import METHODS
from planebench.analysis.search.task import (
    HYSTERESIS_SHARE,
    Ask,
    GaveUp,
    SearchFinding,
    SearchSettings,
    SearchTask,
    TrialLog,
    Unanswered,
    decided,
    hysteresis,
    interrupted,
    loss_at_bound,
    offered_share,
    started_again,
    tester_cap_pps,
    trials_at_bound,
)
from planebench.model.errors import unknown
from planebench.model.reasons import ReasonCode
from planebench.model.records import Point, Trial, Verdict
from planebench.model.results import SearchResult


def step(
    method: str, settings: SearchSettings, point: Point, trials: Sequence[Trial], repetition: int = 0
) -> Ask | SearchResult:
    """Return the next trial that the search wants, or its result. ``trials``: all of the point, in order.

    ``repetition``: each has paced trials of its own. UsageError for an unknown method.
    """
    result, ask = _replay(method, settings, point, trials, repetition)
    return ask or result


def so_far(
    method: str, settings: SearchSettings, point: Point, trials: Sequence[Trial], repetition: int = 0
) -> SearchResult:
    """Return the result; where the log ends before the search does, its bounds so far, with complete = False."""
    return _replay(method, settings, point, trials, repetition)[0]


def repetitions(trials: Sequence[Trial]) -> list[int]:
    """Return the repetitions of searches that the trials of a point are of; the first one in any case.

    They are those that a start of the switch begins with, so not all numbers are there where it has several.
    """
    return sorted({0, *(t.repetition for t in trials if t.role == "search")})


def _replay(
    name: str, settings: SearchSettings, point: Point, trials: Sequence[Trial], repetition: int
) -> tuple[SearchResult, Ask | None]:
    """Return the result so far, and the trial that the search wants next; None for a search that has ended."""
    if name not in METHODS:
        raise unknown("search", name, METHODS)
    method = METHODS[name]
    mine = [t for t in trials if t.role != "search" or t.repetition == repetition]
    rates = [t.line_rate_pps * len(t.directions) for t in trials if t.line_rate_pps is not None]
    settings = replace(settings, line_rate_pps=min(rates, default=None))
    log, found = TrialLog(mine), SearchFinding()
    unloaded: Trial | None = None
    ask: Ask | None = None
    complete = False
    try:
        task = SearchTask(settings, point, tester_cap_pps(mine))
        if repetition > 0 and method.figure == "rate":
            # A load above the upper bound of the first repetition, before the switch is overloaded.
            upper_pps = so_far(name, settings, point, trials).upper_pps
            if upper_pps is not None:
                above_pps = (1 + HYSTERESIS_SHARE) * upper_pps
                unloaded = log.measure(task.ask(above_pps, settings.duration_s or method.standard_s))
        method.search(log.measure, task, found)
        complete, verdict = True, decided(task, found, log.used)
    except GaveUp as end:
        verdict = end.verdict
    except Unanswered as end:
        ask, verdict = replace(end.ask, repetition=repetition), interrupted(found, log.trials)
    slowed = () if verdict.has(ReasonCode.GAPS_AT_BOUND) else hysteresis(found, unloaded)
    verdict = Verdict(verdict.kind, (*verdict.reasons, *loss_at_bound(found, log), *slowed))
    deviations = (*method.deviations(settings), *started_again(log.used))
    at_bound = trials_at_bound(found, log)
    kept = fmean(map(offered_share, at_bound)) if at_bound else 1.0
    result = SearchResult(
        point=point,
        method=name,
        verdict=verdict,
        complete=complete,
        repetition=repetition,
        lower_pps=None if found.lower_pps is None else found.lower_pps * kept,
        upper_pps=found.upper_pps,
        conditional_pps=None if found.conditional_pps is None else found.conditional_pps * kept,
        trials=tuple(sorted(t.index for t in log.used)),
        deviations=deviations,
        burst=found.burst,
    )
    return result, ask
