# SPDX-License-Identifier: BSD-3-Clause
"""Who is fastest, and whether the figures allow saying so."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from planebench.model.records import Point, VerdictKind
from planebench.model.results import Result

COUNTING = (VerdictKind.VALID, VerdictKind.TESTER_LIMITED, VerdictKind.UNSTABLE)


@dataclass(frozen=True, slots=True)
class Ranking:
    """The switches of one cell of the matrix, fastest first.

    ``level`` are the labels that cannot be told from the first: their trials overlap with its trials, or are only known
    to be *at least* what was measured (the tester was the limit). ``lead`` is first / second - 1, None with one switch
    or a second that is a lower bound.
    """

    point: Point
    results: tuple[Result, ...]
    level: tuple[str, ...]
    lead: float | None

    @property
    def first(self) -> Result:
        """The highest throughput."""
        return self.results[0]


def counts(result: Result) -> bool:
    """Whether the result has a throughput that may be shown as one."""
    return result.throughput_pps is not None and result.verdict.kind in COUNTING


def same_cell(results: Iterable[Result]) -> dict[Point, list[Result]]:
    """Results by what was measured, whatever the switch: the key is the point with an empty switch label."""
    cells: dict[Point, list[Result]] = {}
    for result in results:
        cells.setdefault(replace(result.point, switch=""), []).append(result)
    return cells


def rank(results: Sequence[Result]) -> tuple[Ranking, ...]:
    """One ranking for each cell that has a counting result; only results of the cell's main band are compared."""
    rankings = []
    for cell, members in same_cell(results).items():
        usable = [r for r in members if counts(r)]
        band = _main_band(usable)
        ordered = sorted((r for r in usable if r.band == band), key=_pps, reverse=True)
        if ordered:
            rankings.append(Ranking(cell, tuple(ordered), _level(ordered), _lead(ordered)))
    return tuple(rankings)


def _main_band(results: Sequence[Result]) -> str | None:
    bands = [r.band for r in results]
    return max(bands, key=lambda band: (bands.count(band), band == "near"), default=None)


def _level(ordered: Sequence[Result]) -> tuple[str, ...]:
    first = ordered[0]
    floor = min(first.throughput_trials_pps, default=_pps(first))
    limited = VerdictKind.TESTER_LIMITED

    def may_match(other: Result) -> bool:
        return other.verdict.kind is limited or max(other.throughput_trials_pps, default=_pps(other)) >= floor

    return tuple(r.point.switch for r in ordered[1:] if may_match(r))


def _lead(ordered: Sequence[Result]) -> float | None:
    if len(ordered) < 2 or ordered[1].verdict.kind is VerdictKind.TESTER_LIMITED or not _pps(ordered[1]):
        return None
    return _pps(ordered[0]) / _pps(ordered[1]) - 1


def _pps(result: Result) -> float:
    return result.throughput_pps or 0.0
