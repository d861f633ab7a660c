# SPDX-License-Identifier: BSD-3-Clause
"""Comparisons of two switches in words: rows of page and terminal, and the view from one of the two."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import attrgetter

from planebench.model.records import Point
from planebench.model.results import Comparison, Metric
from planebench.model.words import METRICS, NOTHING, load_words, point_words
from planebench.report.page.table import PageColumn, PageTable, page_table
from planebench.stats.compare import undecided
from planebench.stats.derived import Derived
from planebench.stats.ranking import cell_id

_LESS_IS_BETTER = ("cycles_per_packet", "latency_p50", "latency_p99")


@dataclass(frozen=True, slots=True)
class ComparisonRow:
    """One comparison in words: ``ratio`` is b / a."""

    point: str
    metric: str
    a: str
    b: str
    ratio: str
    interval: str
    told: str
    note: str
    distinguishable: bool


def comparison_rows(derived: Derived, comparisons: Iterable[Comparison]) -> list[ComparisonRow]:
    """The rows of some comparisons, in their order."""
    names = {cell_id(r.point): point_words(r.point) for r in derived.results}
    return [_row(c, names.get(c.point, c.point)) for c in comparisons]


def deciding(derived: Derived) -> tuple[list[Comparison], list[Comparison]]:
    """Comparisons of what a cell is ranked by, NDR and PDR; and all others."""
    by_cycles = {cell_id(r.point) for r in derived.rankings if r.by == "cycles"}
    first: list[Comparison] = []
    rest: list[Comparison] = []
    for comparison in derived.comparisons:
        ranked_by = "cycles_per_packet" if comparison.point in by_cycles else "throughput"
        (first if comparison.metric in (ranked_by, "ndr", "pdr") else rest).append(comparison)
    return first, rest


def told_words(comparison: Comparison) -> str:
    """Return which switch is better; else that no significant difference was found, or that none was tested."""
    if not comparison.distinguishable:
        return undecided(comparison)
    b_is_better = (comparison.ratio < 1) == (comparison.metric in _LESS_IS_BETTER)
    return f"{comparison.b if b_is_better else comparison.a} better"


def counted(comparisons: Sequence[Comparison]) -> str:
    """``3 of 7 distinguishable``."""
    return f"{sum(c.distinguishable for c in comparisons)} of {len(comparisons)} pairs differ significantly"


def _row(comparison: Comparison, point: str) -> ComparisonRow:
    at = f" at {load_words(comparison.load)}" if comparison.load else ""
    return ComparisonRow(
        point=point,
        metric=METRICS[comparison.metric] + at,
        a=comparison.a,
        b=comparison.b,
        ratio=f"{comparison.ratio:#.3g}",
        interval=_interval(comparison),
        told=told_words(comparison),
        note=comparison.note,
        distinguishable=comparison.distinguishable,
    )


def _interval(comparison: Comparison) -> str:
    if comparison.low is None and comparison.high is None:
        return NOTHING
    if comparison.low is None:
        return f"no lower limit; upper limit {comparison.high:#.3g}"
    if comparison.high is None:
        return f"no upper limit; lower limit {comparison.low:#.3g}"
    return f"{comparison.low:#.3g} to {comparison.high:#.3g}"


MAX_ROWS = 400
"""Of each table; the JSON export has them all."""

_COLUMNS = (
    PageColumn("test point", attrgetter("point")),
    PageColumn("metric", attrgetter("metric")),
    PageColumn("a", attrgetter("a"), "switch"),
    PageColumn("b", attrgetter("b"), "switch"),
    PageColumn("b / a", attrgetter("ratio"), "strong"),
    PageColumn("95 % CI", attrgetter("interval"), "number"),
    PageColumn("result", attrgetter("told")),
    PageColumn("note", attrgetter("note"), "text"),
)


def comparison_tables(derived: Derived) -> tuple[PageTable, PageTable]:
    """Comparisons of what decides (throughput or cycles a packet, NDR, PDR); and all others."""
    first, rest = deciding(derived)
    return _table(derived, "Ranking metrics", first), _table(derived, "Other metrics", rest)


def _table(derived: Derived, caption: str, comparisons: Sequence[Comparison]) -> PageTable:
    return page_table(
        f"{caption}: {counted(comparisons)}",
        _COLUMNS,
        comparison_rows(derived, comparisons),
        out=lambda it: not it.distinguishable,
        max_rows=MAX_ROWS,
    )


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
        """Ratio, sign of multiplication, interval; ``unbounded`` for a side without a limit."""
        if self.low is None and self.high is None:
            return f"{self.ratio:.2f} × (no confidence interval)"
        low, high = ("unbounded" if side is None else f"{side:.2f}" for side in (self.low, self.high))
        return f"{self.ratio:.2f} × [{low}, {high}]"


def versus(
    comparisons: Sequence[Comparison], cell: Point, metric: Metric, one: str, other: str, load: str = ""
) -> Versus | None:
    """``one`` against ``other`` at a cell (a point, whatever its switch); None where they were not compared."""
    at = cell_id(cell)
    for c in comparisons:
        if c.point == at and (c.metric, c.load) == (metric, load) and {c.a, c.b} == {one, other}:
            return _seen(c) if c.b == one else _turned(c)
    return None


def _seen(c: Comparison) -> Versus:
    return Versus(c.ratio, c.low, c.high, c.distinguishable, c.note)


def _turned(c: Comparison) -> Versus | None:
    """a / b of a comparison that says b / a; None where b / a is 0."""
    if not c.ratio:
        return None
    return Versus(1 / c.ratio, _inverse(c.high), _inverse(c.low), c.distinguishable, c.note)


def _inverse(side: float | None) -> float | None:
    return 1 / side if side else None
