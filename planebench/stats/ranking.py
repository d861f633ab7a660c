# SPDX-License-Identifier: BSD-3-Clause
"""The order of the switches at each test point. Whether one is ahead of another is said by their comparison alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from planebench.model.records import Point
from planebench.model.results import Result
from planebench.stats.counting import counts


@dataclass(frozen=True, slots=True)
class Ranking:
    """The switches of one test point, best first: by throughput, where it is a bound by the capacity estimated."""

    point: Point
    results: tuple[Result, ...]

    @property
    def first(self) -> Result:
        """Return the best result."""
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
    """Return one ranking per test point with a figure."""
    cells = ((cell, [r for r in members if counts(r)]) for cell, members in same_cell(results).items())
    return tuple(Ranking(cell, tuple(sorted(usable, key=reach_pps, reverse=True))) for cell, usable in cells if usable)


def reach_pps(result: Result) -> float:
    """Return what a switch is likely to reach: a throughput, or for a lower bound the capacity where it is known."""
    known = result.capacity_estimate_pps if result.verdict.kind.is_bound else None
    return max(result.throughput_pps or 0.0, known or 0.0)


def cell_id(point: Point) -> str:
    """Return the id of the point without its switch, as ``Comparison.point`` has it."""
    return replace(point, switch="").point_id.lstrip("/")
