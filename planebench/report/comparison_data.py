# SPDX-License-Identifier: BSD-3-Clause
"""Switch against switch, for the page."""

from __future__ import annotations

from collections.abc import Sequence

from planebench.model.results import Comparison
from planebench.report.comparison_words import comparison_rows, counted, deciding
from planebench.report.page_table import Head, PageTable, Row
from planebench.stats.derived import Derived

MAX_ROWS = 400
"""Of each table; the JSON export has them all."""

_HEADS = (
    Head("point"),
    Head("by"),
    Head("a", "switch"),
    Head("b", "switch"),
    Head("b / a", "strong"),
    Head("interval", "number"),
    Head("told apart"),
    Head("note", "text"),
)


def comparison_tables(derived: Derived) -> tuple[PageTable, PageTable]:
    """Comparisons of what decides (throughput or cycles a packet, NDR, PDR); and all others."""
    first, rest = deciding(derived)
    return _table(derived, "What decides", first), _table(derived, "Everything else", rest)


def _table(derived: Derived, caption: str, comparisons: Sequence[Comparison]) -> PageTable:
    rows = tuple(
        Row((r.point, r.metric, r.a, r.b, r.ratio, r.interval, r.told, r.note), not r.distinguishable)
        for r in comparison_rows(derived, comparisons[:MAX_ROWS])
    )
    return PageTable(f"{caption}: {counted(comparisons)}", _HEADS, rows, left_out=max(0, len(comparisons) - MAX_ROWS))
