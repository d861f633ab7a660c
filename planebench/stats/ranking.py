# SPDX-License-Identifier: BSD-3-Clause
"""The ranking of the switches at each test point, and which of them are shown to be behind the first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from planebench.model.records import Point, VerdictKind
from planebench.model.results import Comparison, Result
from planebench.stats.counting import counts


@dataclass(frozen=True, slots=True)
class Ranking:
    """The switches of one test point, best first.

    ``by``: highest throughput; or fewest cycles per packet, if the tester limits the throughput of a switch.
    ``unordered``: labels without cycles in a ranking by cycles; they are last, and not tested.
    ``tests``: by label, the comparison of the first with each other switch that was compared with it.
    """

    point: Point
    results: tuple[Result, ...]
    by: Literal["throughput", "cycles"] = "throughput"
    unordered: tuple[str, ...] = ()
    tests: Mapping[str, Comparison] = field(default_factory=dict)

    @property
    def metric(self) -> Literal["throughput", "cycles_per_packet"]:
        """Return the metric of comparisons that decides."""
        return "throughput" if self.by == "throughput" else "cycles_per_packet"

    @property
    def first(self) -> Result:
        """Return the result with the highest throughput, or the fewest cycles per packet."""
        return self.results[0]

    @property
    def level(self) -> tuple[str, ...]:
        """Return the labels that no test has shown to be behind the first."""
        others = (result.point.switch for result in self.results[1:])
        return tuple(label for label in others if label not in self.tests or not self.tests[label].distinguishable)

    @property
    def untested(self) -> tuple[str, ...]:
        """Return those of the level labels whose difference from the first was not tested."""
        return tuple(it for it in self.level if it not in self.tests or self.tests[it].answer == "untested")

    @property
    def lead(self) -> float | None:
        """Return the lead of the first over the second as a share of 1, by the ratio of their comparison.

        None where no test has shown one.
        """
        second = self.results[1].point.switch if len(self.results) > 1 else ""
        if not second or second in self.level:
            return None
        test = self.tests[second]
        ratio = test.ratio if (test.b == second) == (self.by == "cycles") else 1 / test.ratio
        return ratio - 1


def same_cell(results: Iterable[Result], **alike: Any) -> dict[Point, list[Result]]:
    """Return the results by test point: the key is the point with an empty switch label.

    Points that differ only in the fields ``alike`` are one, e.g. ``chain_length=1``; the key has these values.
    """
    cells: dict[Point, list[Result]] = {}
    for result in results:
        cells.setdefault(replace(result.point, switch="", **alike), []).append(result)
    return cells


def rank(results: Sequence[Result], comparisons: Iterable[Comparison] = ()) -> tuple[Ranking, ...]:
    """Return one ranking per test point with an accepted result; only results of its main band are compared."""
    tests: dict[tuple[str, str], list[Comparison]] = {}
    for comparison in comparisons:
        tests.setdefault((comparison.point, comparison.metric), []).append(comparison)
    rankings = []
    for cell, members in same_cell(results).items():
        usable = [r for r in members if counts(r)]
        band = _main_band(usable)
        comparable = [r for r in usable if r.band == band]
        if comparable:
            ranking = _by_cycles(cell, comparable) if _cycles_decide(comparable) else _by_throughput(cell, comparable)
            mine = tests.get((cell_id(cell), ranking.metric), ())
            rankings.append(replace(ranking, tests=_with_first(ranking.first.point.switch, mine)))
    return tuple(rankings)


def _with_first(first: str, comparisons: Iterable[Comparison]) -> dict[str, Comparison]:
    return {c.b if c.a == first else c.a: c for c in comparisons if first in (c.a, c.b)}


def _main_band(results: Sequence[Result]) -> str | None:
    bands = [r.band for r in results]
    return max(bands, key=lambda band: (bands.count(band), band == "near"), default=None)


def _cycles_decide(results: Sequence[Result]) -> bool:
    """Return whether cycles decide: every tester-limited switch must report its cycles, and at least two must be
    limited."""
    limited = [r for r in results if r.verdict.kind is VerdictKind.TESTER_LIMITED]
    return bool(limited) and all(_cycles(r) for r in limited) and sum(bool(_cycles(r)) for r in results) > 1


def _by_throughput(cell: Point, results: Sequence[Result]) -> Ranking:
    return Ranking(cell, tuple(sorted(results, key=_pps, reverse=True)))


def _by_cycles(cell: Point, results: Sequence[Result]) -> Ranking:
    ordered = sorted((r for r in results if _cycles(r)), key=_cycles)
    rest = sorted((r for r in results if not _cycles(r)), key=_pps, reverse=True)
    return Ranking(cell, (*ordered, *rest), "cycles", tuple(r.point.switch for r in rest))


def _cycles(result: Result) -> float:
    """Return the cycles per packet; 0.0 if unknown."""
    return result.switch_cycles_per_packet or 0.0


def _pps(result: Result) -> float:
    return result.throughput_pps or 0.0


def cell_id(point: Point) -> str:
    """Return the id of the point without its switch, as ``Comparison.point`` has it."""
    return replace(point, switch="").point_id.lstrip("/")


def level_with_first(ranking: Ranking, comparisons: Iterable[Comparison]) -> tuple[str, ...]:
    """Return the labels that no comparison has shown to be behind the first."""
    return _tested(ranking, comparisons).level


def too_few_tell(ranking: Ranking, comparisons: Iterable[Comparison]) -> bool:
    """Return whether the first is level with others only because nothing was tested."""
    tested = _tested(ranking, comparisons)
    return bool(tested.level) and tested.untested == tested.level


def untested(ranking: Ranking, comparisons: Iterable[Comparison]) -> tuple[str, ...]:
    """Return the labels whose difference from the first was not tested."""
    return _tested(ranking, comparisons).untested


def _tested(ranking: Ranking, comparisons: Iterable[Comparison]) -> Ranking:
    cell = cell_id(ranking.point)
    mine = (c for c in comparisons if c.point == cell and c.metric == ranking.metric)
    return replace(ranking, tests=_with_first(ranking.first.point.switch, mine))
