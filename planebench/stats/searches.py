# SPDX-License-Identifier: BSD-3-Clause
"""The searches of a run, replayed from its trials and its plan."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import replace

from planebench.model.header import RunHeader
from planebench.model.records import Point, Trial, Verdict, VerdictKind
from planebench.model.results import SearchResult
from planebench.search import METHODS, repetitions, search_settings, so_far
from planebench.stats.ceiling import near_ceiling, tester_ceiling_pps
from planebench.stats.counting import search_counts
from planebench.stats.starts import Block, Blocks


def run_searches(header: RunHeader, point: Point, trials: Sequence[Trial]) -> tuple[SearchResult, ...]:
    """Return the results so far of each search on a point, its repetitions in their order.

    A bound near the ceiling of the tester's calibration is tester-limited.
    """
    methods = header.plan.search.methods
    how = search_settings(header.plan, 2 if point.direction == "bidirectional" else 1)
    asked = dict.fromkeys(trial.search for trial in trials if trial.search in METHODS)
    if header.plan.parts:  # those of a part are of its points only
        methods = tuple(method for method in methods if method in asked)
    others = [method for method in asked if method not in methods]  # loads of latency rest on them
    ceiling_pps = tester_ceiling_pps(header.calibration, point)
    found = (
        so_far(method, how, point, trials, repetition)
        for method in (*methods, *others)
        for repetition in (repetitions(trials) if method in methods else (0,))
    )
    return tuple(_below_ceiling(search, ceiling_pps) for search in found)


def _below_ceiling(search: SearchResult, ceiling_pps: float | None) -> SearchResult:
    if not search.complete or search.verdict.kind is not VerdictKind.VALID or search.lower_pps is None:
        return search
    reason = near_ceiling(search.lower_pps, ceiling_pps)
    if reason is None:
        return search
    return replace(search, verdict=Verdict(VerdictKind.TESTER_LIMITED, (*search.verdict.reasons, reason)))


def with_a_rate(searches: Iterable[SearchResult], method: str) -> list[SearchResult]:
    """Return those of one method that came to a rate, in the order of their starts."""
    return [s for s in searches if s.method == method and search_counts(s) and s.lower_pps]


def lower_bounds(searches: Iterable[SearchResult]) -> Blocks:
    """Return the lower bounds as the figures of their starts; where the start is a whole run, it may have several."""
    logs: dict[int, list[float]] = {}
    for s in searches:
        if s.lower_pps:
            logs.setdefault(s.repetition, []).append(math.log(s.lower_pps))
    return tuple(Block(start, start, statistics.fmean(mine)) for start, mine in logs.items())


def widths(searches: Iterable[SearchResult]) -> list[float]:
    """Return how far the bounds are apart, as logarithms, where both are known."""
    return [math.log(s.upper_pps / s.lower_pps) for s in searches if s.lower_pps and s.upper_pps]
