# SPDX-License-Identifier: BSD-3-Clause
"""The end of the terminal table: switch against switch, legend, why trials were rejected, what the figures rest on."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from rich.table import Table
from rich.text import Text

from planebench.metrics.column import in_terminal
from planebench.metrics.results import RESULT, OfResult
from planebench.model.records import VerdictKind
from planebench.model.words import ARROW_WORDS, ARROWS, NOTHING, reasons
from planebench.report.cells import Notes
from planebench.report.comparison import ComparisonRow, comparison_rows, counted, deciding
from planebench.report.conditions import conditions_remark
from planebench.report.evidence import causes
from planebench.report.glyphs import Glyphs
from planebench.report.grid import bare_table
from planebench.report.latency import floor_sentence
from planebench.report.ledger import unexplained_sentences
from planebench.report.searches import deviations
from planebench.report.throughput import band_words
from planebench.stats.derived import Derived
from planebench.stats.results import DIRECTION_ORDER

MAX_COMPARISONS = 16
"""Rows of the table of comparisons; a run with more has them in the page."""
MAX_CAUSES = 8
MAX_UNEXPLAINED = 4

Block = tuple[str, list[str]]
"""A title and its lines."""


def against_table(derived: Derived, glyphs: Glyphs, width: int) -> Iterator[Table | Text]:
    """The comparisons that decide; only their number where they are too many, or the terminal too narrow."""
    first, _ = deciding(derived)
    rows = [(_against(row, glyphs), row.distinguishable) for row in comparison_rows(derived, first)]
    if not rows:
        return
    heads = ("test point", "metric", "b / a", "", "95 % CI", "result")
    needed = sum(max(map(len, column)) + 3 for column in zip(heads, *(cells for cells, _ in rows), strict=True))
    if len(rows) > MAX_COMPARISONS or needed > width:
        yield Text(f"Pairwise comparison: {counted(first)} (see the report)")
        return
    table = bare_table(glyphs)
    for position, head in enumerate(heads):
        table.add_column(head, no_wrap=True, justify="right" if position in (3, 4) else "left")
    for cells, told in rows:
        table.add_row(*(Text(cell) for cell in cells), style="" if told else "dim")
    yield table


def legend(derived: Derived, notes: Notes) -> Iterator[str]:
    """What every sign of the table says; only of signs that are in use."""
    results, glyphs = derived.results, notes.glyphs
    directions = {r.point.direction for r in results}
    yield "Mpps, bar = share of the best"
    yield from (f"{glyphs.arrow(d)} {ARROW_WORDS[d]}" for d in DIRECTION_ORDER if d in directions)
    yield band_words(results)
    if any(s.samples and math.isfinite(s.p50) for r in results for s in r.latency):
        yield "latency: p50 / p99 in µs"
    if any(r.verdict.kind is VerdictKind.TESTER_LIMITED and r.throughput_pps is not None for r in results):
        yield "≥ tester-limited (lower bound)"
        figures = in_terminal(RESULT, (OfResult(derived.run, r) for r in results))
        yield from (brief.legend for _, brief in figures if brief.legend)
    if any(r.capacity_estimate_pps is not None for r in results):
        yield "est.: extrapolated capacity = throughput / utilization (assumes idle cycles can be used)"
    if any(r.verdict.kind is VerdictKind.UNSTABLE for r in results):
        yield "~ unstable"
    if any(r.throughput_pps is None for r in results):
        yield f"{NOTHING} no accepted trial"
    if notes.struck:
        yield "(...) rejected, shown for information only"


def endnotes(derived: Derived) -> Iterator[Block]:
    """Blocks of small print: rejected trials by cause, deviations, latency floor, unexplained losses."""
    groups = causes(derived.rejected)
    if groups:
        yield f"{len(derived.rejected)} trials rejected:", list(cut(_cause_lines(derived), MAX_CAUSES))
    found = deviations(derived.results)
    if found:
        yield "Deviations from the standard:", found
    floors = floor_sentence(
        derived.run.header.calibration, (r.point.frame_size_bytes for r in derived.results if not r.point.traffic)
    )
    if floors:
        yield floors[0].upper() + floors[1:], []
    if remark := conditions_remark(derived):
        yield f"{remark}; see `planebench report --conditions`", []
    open_ = unexplained_sentences(derived.results)
    if open_:
        yield "Unaccounted losses:", list(cut(open_, MAX_UNEXPLAINED))


def _cause_lines(derived: Derived) -> list[str]:
    return [
        f"{group.trials} {group.kind.value}: {reasons((group.text,), 110)} "
        f"({', '.join(f'{label} {n}' for label, n in group.switches)})"
        for group in causes(derived.rejected)
    ]


def cut(lines: Sequence[str], limit: int) -> Iterator[str]:
    """The first lines, and how many more there are."""
    yield from lines[:limit]
    if len(lines) > limit:
        yield f"and {len(lines) - limit} more; see the report"


def _against(row: ComparisonRow, glyphs: Glyphs) -> tuple[str, ...]:
    point = row.point
    for direction, arrow in ARROWS.items():
        point = point.replace(arrow, glyphs.arrow(direction))
    words = (point, row.metric, f"{row.b} / {row.a}", row.ratio, row.interval, row.told)
    return tuple(glyphs.text(word) for word in words)
