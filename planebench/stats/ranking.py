# SPDX-License-Identifier: BSD-3-Clause
"""The order of the switches at each test point. Whether one leads is said by their comparison alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from planebench.model.records import Point
from planebench.model.results import Result
from planebench.stats.counting import counts


@dataclass(frozen=True, slots=True)
class Ranking:
    """The switches of one test point, best first.

    ``by``: highest throughput; or fewest cycles per packet, if the tester limits the throughput of a switch.
    ``unordered``: labels without cycles in a ranking by cycles; they are last, and not tested.
    """

    point: Point
    results: tuple[Result, ...]
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
    """Return one ranking per test point with an accepted result; only results of its main band are in it."""
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
    """Return whether cycles decide: every switch with a lower bound must report its cycles, and at least two must be
    limited."""
    limited = [r for r in results if r.verdict.kind.is_bound]
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
