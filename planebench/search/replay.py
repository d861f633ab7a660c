# SPDX-License-Identifier: BSD-3-Clause
"""Searches, replayed: each runs from its beginning over the log; the first ask the log cannot answer is the next trial.

So switches can be interleaved, searches share trials, an interrupted run goes on, and a result is found again from
stored trials years later. The same log gives the same answer, always.
"""

from __future__ import annotations

from collections.abc import Sequence

from planebench.model.choices import unknown
from planebench.model.records import Point, Trial, Verdict, VerdictKind
from planebench.model.results import SearchResult
from planebench.search.ask import Ask, SearchSettings
from planebench.search.facts import aggregate_pps
from planebench.search.gaps import bound_by_others
from planebench.search.log import GaveUp, TrialLog, Unanswered
from planebench.search.methods import METHODS, Method
from planebench.search.task import Finding, Task, tester_cap_pps


def step(
    method: str, settings: SearchSettings, point: Point, trials: Sequence[Trial], band: str | None
) -> Ask | SearchResult:
    """The next trial that the search wants, or its result. ``trials``: all of the point, in order.

    ``band``: only trials of this core-distance band count; None: all do. UsageError for an unknown method.
    """
    return _replay(_method(method), settings, point, trials, band)


def so_far(
    method: str, settings: SearchSettings, point: Point, trials: Sequence[Trial], band: str | None
) -> SearchResult:
    """The result; where the log ends before the search does, its bounds so far, with complete = False."""
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
        if method.name == "r_plus":
            method.search(log.repetition, task, found)
        else:
            task = Task(settings, point, tester_cap_pps(trials, band))
            method.search(log.measure, task, found)
        complete, verdict = True, _verdict(task, found, log.used)
    except GaveUp as end:
        verdict = end.verdict
    except Unanswered as end:
        if not stop_at_end:
            return end.ask
        verdict = _interrupted(found)
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
        deviations=method.deviations(settings),
        curve=found.curve,
        burst=found.burst,
    )


def _interrupted(found: Finding) -> Verdict:
    """A search that has bounds has something to say, but not what it was asked."""
    if found.lower_pps is None and found.upper_pps is None and found.burst is None:
        return Verdict(VerdictKind.INVALID, ("interrupted before anything was found",))
    return Verdict(VerdictKind.DISTURBED, ("interrupted; bounds so far",))


def _verdict(task: Task, found: Finding, used: Sequence[Trial]) -> Verdict:
    if found.verdict is not None:
        return found.verdict
    if found.upper_pps is not None:
        failed = [t for t in used if aggregate_pps(t) == found.upper_pps and t.loss_ratio > found.loss_ratio]
        others = bound_by_others(failed, found.loss_ratio)
        if others is not None:
            return others
    if found.upper_pps is None and found.lower_pps is not None and found.lower_pps == found.max_load_pps:
        return _met_at_max(found.lower_pps, task)
    return Verdict(VerdictKind.VALID, found.remarks)


def _met_at_max(load_pps: float, task: Task) -> Verdict:
    """Nothing failed: the bound is where the search had to stop."""
    mpps = f"{load_pps / 1e6:.6g} Mpps"
    limit = task.settings.max_load_pps
    if task.cap_pps is not None and task.whole(task.cap_pps) == load_pps:
        reason = f"the goal was met at {mpps}, the most the tester keeps up: a lower bound"
        return Verdict(VerdictKind.TESTER_LIMITED, (reason,))
    what = "the highest load that was allowed" if limit is not None else "the highest load that was tried"
    return Verdict(VerdictKind.VALID, (f"the goal was met at {mpps}, {what}: the switch may do more",))
