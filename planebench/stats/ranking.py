# SPDX-License-Identifier: BSD-3-Clause
"""The ranking of the switches at each test point, and whether their differences are significant."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from planebench.model.records import Point, VerdictKind
from planebench.model.results import Comparison, Result
from planebench.stats.counting import counts
from planebench.stats.effect import MIN_TRIALS
from planebench.stats.intervals import relative_spread

MIN_CYCLES_LEAD = 0.01
"""Placement and page coloring alone change cycles per packet by this share (METHODOLOGY: differences below 1 %)."""


@dataclass(frozen=True, slots=True)
class Ranking:
    """The switches of one test point, best first.

    ``by``: highest throughput; or fewest cycles per packet, if the tester limits the throughput of a switch.
    ``unordered``: labels without cycles in a ranking by cycles; they are last.
    ``level``: labels that do not differ clearly from the first: their trials overlap, or they are lower bounds, or they
    have no cycles. ``lead``: of the first over the second as a share of 1 (throughput: first / second - 1, cycles:
    second / first - 1); None without a second, or if that is a lower bound.
    """

    point: Point
    results: tuple[Result, ...]
    level: tuple[str, ...]
    lead: float | None
    by: Literal["throughput", "cycles"] = "throughput"
    unordered: tuple[str, ...] = ()

    @property
    def metric(self) -> Literal["throughput", "cycles_per_packet"]:
        """Return the metric of comparisons that decides."""
        return "throughput" if self.by == "throughput" else "cycles_per_packet"

    @property
    def first(self) -> Result:
        """Return the result with the highest throughput, or the fewest cycles per packet."""
        return self.results[0]


def same_cell(results: Iterable[Result], **alike: Any) -> dict[Point, list[Result]]:
    """Return the results by test point: the key is the point with an empty switch label.

    Points that differ only in the fields ``alike`` are one, e.g. ``chain_length=1``; the key has these values.
    """
    cells: dict[Point, list[Result]] = {}
    for result in results:
        cells.setdefault(replace(result.point, switch="", **alike), []).append(result)
    return cells


def rank(results: Sequence[Result]) -> tuple[Ranking, ...]:
    """Return one ranking per test point with an accepted result; only results of its main band are compared."""
    rankings = []
    for cell, members in same_cell(results).items():
        usable = [r for r in members if counts(r)]
        band = _main_band(usable)
        comparable = [r for r in usable if r.band == band]
        if comparable:
            rankings.append((_by_cycles if _cycles_decide(comparable) else _by_throughput)(cell, comparable))
    return tuple(rankings)


def _main_band(results: Sequence[Result]) -> str | None:
    bands = [r.band for r in results]
    return max(bands, key=lambda band: (bands.count(band), band == "near"), default=None)


def _cycles_decide(results: Sequence[Result]) -> bool:
    """Return whether cycles decide: every tester-limited switch must report its cycles, and at least two must be
    limited."""
    limited = [r for r in results if _is_limited(r)]
    return bool(limited) and all(_cycles(r) for r in limited) and sum(bool(_cycles(r)) for r in results) > 1


def _by_throughput(cell: Point, results: Sequence[Result]) -> Ranking:
    ordered = sorted(results, key=_pps, reverse=True)
    first = ordered[0]
    level = tuple(r.point.switch for r in ordered[1:] if _may_be_as_fast(r, first))
    second = ordered[1] if len(ordered) > 1 else None
    told = second is not None and not _is_limited(second) and _pps(second) > 0
    lead = _pps(first) / _pps(second) - 1 if told and second is not None else None
    return Ranking(cell, tuple(ordered), level, lead)


def _by_cycles(cell: Point, results: Sequence[Result]) -> Ranking:
    ordered = sorted((r for r in results if _cycles(r)), key=_cycles)
    rest = sorted((r for r in results if not _cycles(r)), key=_pps, reverse=True)
    first, second = ordered[:2]
    level = [r for r in ordered[1:] if _cycles(r) / _cycles(first) - 1 <= _noise(r, first)]
    level += [r for r in rest if _may_be_as_fast(r, first)]
    return Ranking(
        cell,
        (*ordered, *rest),
        tuple(r.point.switch for r in level),
        _cycles(second) / _cycles(first) - 1,
        "cycles",
        tuple(r.point.switch for r in rest),
    )


def _may_be_as_fast(other: Result, first: Result) -> bool:
    """Return whether the trials of the other overlap with those of the first, or are a lower bound."""
    floor = min(first.throughput_trials_pps, default=_pps(first))
    return _is_limited(other) or max(other.throughput_trials_pps, default=_pps(other)) >= floor


def _noise(*results: Result) -> float:
    """Return the noise of cycles, estimated by the spread of the rates, since a result keeps its rates per trial."""
    return max(MIN_CYCLES_LEAD, *(relative_spread(r.throughput_trials_pps) for r in results))


def _is_limited(result: Result) -> bool:
    return result.verdict.kind is VerdictKind.TESTER_LIMITED


def _cycles(result: Result) -> float:
    """Return the cycles per packet; 0.0 if unknown."""
    return result.switch_cycles_per_packet or 0.0


def _pps(result: Result) -> float:
    return result.throughput_pps or 0.0


def cell_id(point: Point) -> str:
    """Return the id of the point without its switch, as ``Comparison.point`` has it."""
    return replace(point, switch="").point_id.lstrip("/")


def level_with_first(ranking: Ranking, comparisons: Sequence[Comparison]) -> tuple[str, ...]:
    """Return the labels that do not differ significantly from the first, by the ranking or by a comparison."""
    open_ = {label for label, c in _with_first(ranking, comparisons) if not c.distinguishable}
    others = [r.point.switch for r in ranking.results[1:]]
    return tuple(label for label in others if label in open_ or label in ranking.level)


def too_few_tell(ranking: Ranking, comparisons: Sequence[Comparison]) -> bool:
    """Return whether the first is level with others only because too few trials are accepted."""
    level = level_with_first(ranking, comparisons)
    return bool(level) and untested(ranking, comparisons) == level


def untested(ranking: Ranking, comparisons: Sequence[Comparison]) -> tuple[str, ...]:
    """Return the labels whose difference from the first was not tested, because too few trials are accepted."""
    level = level_with_first(ranking, comparisons)
    few = {label for label, c in _with_first(ranking, comparisons) if min(c.trials_a, c.trials_b) < MIN_TRIALS}
    return tuple(label for label in level if label in few)


def _with_first(ranking: Ranking, comparisons: Sequence[Comparison]) -> Iterator[tuple[str, Comparison]]:
    """Yield the label of each other switch and its comparison with the first, by the metric of the ranking."""
    cell, first = cell_id(ranking.point), ranking.first.point.switch
    for c in comparisons:
        if c.point == cell and c.metric == ranking.metric and first in (c.a, c.b):
            yield (c.b if c.a == first else c.a), c
