# SPDX-License-Identifier: BSD-3-Clause
"""Switch against switch: rows of words for table and page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from planebench.model.results import Comparison
from planebench.model.words import METRICS, NOTHING, load_words, point_words
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
    """Who is better; or that it cannot be told."""
    if not comparison.distinguishable:
        return "not distinguishable"
    b_is_better = (comparison.ratio < 1) == (comparison.metric in _LESS_IS_BETTER)
    return f"{comparison.b if b_is_better else comparison.a} better"


def counted(comparisons: Sequence[Comparison]) -> str:
    """``3 of 7 distinguishable``."""
    return f"{sum(c.distinguishable for c in comparisons)} of {len(comparisons)} distinguishable"


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
    low = "open" if comparison.low is None else f"{comparison.low:#.3g}"
    high = "open" if comparison.high is None else f"{comparison.high:#.3g}"
    return f"{low} to {high}"
