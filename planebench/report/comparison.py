# SPDX-License-Identifier: BSD-3-Clause
"""Comparisons of two switches as tables, and in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from operator import attrgetter

from planebench.analysis.answers import MARGIN
from planebench.analysis.compare import Derived
from planebench.analysis.counting import cell_id
from planebench.model.records import Point
from planebench.model.results import Comparison
from planebench.model.words import METRICS, NOTHING, load_words, point_words, several
from planebench.report.tables import PageColumn, PageTable, page_table

MAX_ROWS = 400
"""Rows per table of the page; the JSON export has all."""

_LESS_IS_BETTER = ("cycles_per_packet", "latency_p50", "latency_p99", "outage")


def comparison_tables(derived: Derived) -> tuple[PageTable, PageTable]:
    """Return the table of the ranking metrics (throughput, capacity, NDR, PDR), and that of the others."""
    cells = {cell_id(r.point): r.point for r in derived.results}

    def points(it: Comparison) -> tuple[Point, ...]:
        cell = cells.get(it.point)
        return () if cell is None else (replace(cell, switch=it.a), replace(cell, switch=it.b))

    def table(title: str, comparisons: Sequence[Comparison]) -> PageTable:
        significant, same = (sum(it.answer == answer for it in comparisons) for answer in ("different", "same"))
        caption = f"{title}: of {len(comparisons)} pairs {significant} differ and {same} are the same"
        return page_table(caption, columns, comparisons, out=lambda it: not it.distinguishable, max_rows=MAX_ROWS)

    columns = (
        PageColumn(
            "test point", lambda it: point_words(cells[it.point]) if it.point in cells else it.point, points=points
        ),
        PageColumn("metric", lambda it: METRICS[it.metric] + (f" at {load_words(it.load)}" if it.load else "")),
        PageColumn("a", attrgetter("a"), "switch"),
        PageColumn("b", attrgetter("b")),
        PageColumn("b / a", lambda it: f"{it.ratio:#.3g}", "strong"),
        PageColumn("95 % interval", interval_words, "number"),
        PageColumn("result", result_words),
        PageColumn("note", attrgetter("note"), "text"),
    )
    ranking = ("throughput", "capacity", "ndr", "pdr")
    return (
        table("Ranking metrics", [it for it in derived.comparisons if it.metric in ranking]),
        table("Other metrics", [it for it in derived.comparisons if it.metric not in ranking]),
    )


def result_words(comparison: Comparison) -> str:
    """Return the answer of a comparison: which switch is better, the same, open at a price, or not tested."""
    if comparison.answer != "different":
        return undecided_words(comparison)
    b_is_better = (comparison.ratio < 1) == (comparison.metric in _LESS_IS_BETTER)
    return f"{comparison.b if b_is_better else comparison.a} better"


def undecided_words(comparison: Comparison) -> str:
    """Return the answer of a comparison that found no difference: ``the same within 5 %``, open, or not tested."""
    if comparison.answer == "same":
        return f"the same within {MARGIN * 100:.0f} %"
    if comparison.answer == "untested":
        return f"not tested: {_few_words(comparison)}"
    return f"open: {_open_words(comparison)}"


def _open_words(comparison: Comparison) -> str:
    """Return what would decide a comparison: ``4 more starts of each, about 2 min, would decide it``."""
    starts = comparison.more_starts
    if starts is None:
        limited = comparison.low is None or comparison.high is None
        return "only a lower bound is known" if limited else "more starts may not decide it"
    minutes = comparison.more_minutes
    time = "" if minutes is None else f", about {max(1, round(minutes))} min,"
    return f"{several(starts, f'more {comparison.unit}')} of each{time} would decide it"


def _few_words(comparison: Comparison) -> str:
    """Return why nothing could be tested: with one start a side, the noise between starts is not known."""
    starts = comparison.starts_a, comparison.starts_b
    if max(starts) == 1:
        return "one start each"
    if min(starts) == 1:
        return f"only one start of {comparison.a if starts[0] == 1 else comparison.b}"
    return comparison.note or "the noise is not known"


def interval_words(comparison: Comparison) -> str:
    """Return the confidence interval: ``0.97 to 1.02``; a dash without one."""
    if comparison.low is None and comparison.high is None:
        return NOTHING
    if comparison.low is None:
        return f"no lower limit; upper limit {comparison.high:#.3g}"
    if comparison.high is None:
        return f"no upper limit; lower limit {comparison.low:#.3g}"
    return f"{comparison.low:#.3g} to {comparison.high:#.3g}"
