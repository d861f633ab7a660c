# SPDX-License-Identifier: BSD-3-Clause
"""Searches, replayed: each runs from its beginning over the log; the first ask the log cannot answer is the next trial.

So switches are interleaved, searches share trials, runs resume, and stored trials give the same result again.
"""

from __future__ import annotations

from collections.abc import Sequence

from planebench.model.choices import unknown
from planebench.model.records import Point, Trial
from planebench.model.results import SearchResult
from planebench.search.ask import Ask, SearchSettings
from planebench.search.judge import decided, interrupted, started_again, with_doubts
from planebench.search.log import GaveUp, TrialLog, Unanswered
from planebench.search.method import METHODS, Method
from planebench.search.task import Finding, Task, tester_cap_pps


def step(
    method: str, settings: SearchSettings, point: Point, trials: Sequence[Trial], band: str | None
) -> Ask | SearchResult:
    """Return the next trial that the search wants, or its result. ``trials``: all of the point, in order.

    ``band``: only trials of this core-distance band count; None: all do. UsageError for an unknown method.
    """
    return _replay(_method(method), settings, point, trials, band)


def so_far(
    method: str, settings: SearchSettings, point: Point, trials: Sequence[Trial], band: str | None
) -> SearchResult:
    """Return the result; where the log ends before the search does, its bounds so far, with complete = False."""
    answer = _replay(_method(method), settings, point, trials, band, stop_at_end=True)
    assert isinstance(answer, SearchResult)
    return answer


def _method(name: str) -> Method:
    if name not in METHODS:
        raise unknown("search", name, METHODS)
    return METHODS[name]


def _replay(
    method: Method,
    settings: SearchSettings,
    point: Point,
    trials: Sequence[Trial],
    band: str | None,
    stop_at_end: bool = False,
) -> Ask | SearchResult:
    log, found, task = TrialLog(trials, band), Finding(), Task(settings, point)
    complete = False
    try:
        if method.every_trial:
            method.search(log.repetition, task, found)
        else:
            task = Task(settings, point, tester_cap_pps(trials, band))
            method.search(log.measure, task, found)
        complete, verdict = True, decided(task, found, log.used)
    except GaveUp as end:
        verdict = end.verdict
    except Unanswered as end:
        if not stop_at_end:
            return end.ask
        verdict = interrupted(found, log.trials)
    deviations = method.deviations(settings)
    if not method.every_trial:  # its trials are of several starts on purpose
        verdict, deviations = with_doubts(verdict, found, log), (*deviations, *started_again(log.used))
    return SearchResult(
        point=point,
        method=method.name,
        band=band,
        verdict=verdict,
        complete=complete,
        lower_pps=found.lower_pps,
        upper_pps=found.upper_pps,
        conditional_pps=found.conditional_pps,
        trials=tuple(sorted(t.index for t in log.used)),
        deviations=deviations,
        curve=found.curve,
        burst=found.burst,
    )
