# SPDX-License-Identifier: BSD-3-Clause
"""A comparison of two switches as seen from one of them: ratio and interval."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from planebench.model.records import Point
from planebench.model.results import Comparison, Metric
from planebench.stats.ranking import cell_id

_A, _B = (tuple(f"{letter}{then}" for then in (" is ", " not ", ": ")) for letter in "ab")
"""How notes of stats/compare.py begin that are about one side."""


@dataclass(frozen=True, slots=True)
class Versus:
    """``ratio`` = one / other with its interval of 95 %; a side of it is None where it is open, both with too few."""

    ratio: float
    low: float | None
    high: float | None
    distinguishable: bool
    note: str

    @property
    def words(self) -> str:
        """Ratio, sign of multiplication, interval; ``open`` for a side that a lower bound leaves open."""
        if self.low is None and self.high is None:
            return f"{self.ratio:.2f} × (no interval)"
        low, high = ("open" if side is None else f"{side:.2f}" for side in (self.low, self.high))
        return f"{self.ratio:.2f} × [{low}, {high}]"


def versus(
    comparisons: Sequence[Comparison], cell: Point, metric: Metric, one: str, other: str, load: str = ""
) -> Versus | None:
    """``one`` against ``other`` at a cell (a point, whatever its switch); None where they were not compared."""
    at = cell_id(cell)
    for c in comparisons:
        if c.point == at and (c.metric, c.load) == (metric, load) and {c.a, c.b} == {one, other}:
            c = replace(c, note=_named(c))
            return _seen(c) if c.b == one else _turned(c)
    return None


def _seen(c: Comparison) -> Versus:
    return Versus(c.ratio, c.low, c.high, c.distinguishable, c.note)


def _turned(c: Comparison) -> Versus | None:
    """a / b of a comparison that says b / a; None where b / a is 0."""
    if not c.ratio:
        return None
    return Versus(1 / c.ratio, _inverse(c.high), _inverse(c.low), c.distinguishable, c.note)


def _named(c: Comparison) -> str:
    """The note with the labels for its a and b: who reads one pair does not know which is which."""
    parts = []
    for part in c.note.split("; "):
        part = part.replace("a and b ", f"{c.a} and {c.b} ", 1) if part.startswith("a and b ") else part
        part = f"{c.a}{part[1:]}" if part.startswith(_A) else f"{c.b}{part[1:]}" if part.startswith(_B) else part
        parts.append(part)
    return "; ".join(parts)


def _inverse(side: float | None) -> float | None:
    return 1 / side if side else None
