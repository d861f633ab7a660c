# SPDX-License-Identifier: BSD-3-Clause
"""Terminal tables of what the searches found: a column a method, and back-to-back frames."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from planebench.model.results import BurstSummary, Result, SearchResult
from planebench.model.words import METHODS, count, us
from planebench.report.cells import Notes
from planebench.report.grid import bare_table, chunks, column_of, column_title
from planebench.report.search_words import methods_of, search_counts, search_figure

_BURST_HEADS = ("mean", "min", "max", "runs", "buffer µs")

_Row = tuple[Result, list[Text]]


def search_tables(results: Sequence[Result], notes: Notes, width: int) -> list[Table]:
    """Rates by search in Mpps, a row a point; a table of bursts below where back-to-back frames were searched."""
    members = [r for r in results if r.searches]
    methods = methods_of(members)
    rates = [(r, _rates(r, methods, notes)) for r in members]
    bursts = [(r, _burst(s.burst, notes)) for r in members for s in r.searches if s.burst is not None]
    return [
        *_tables("rates by search", [METHODS.get(m, m) for m in methods], rates, notes, width),
        *_tables("frames a burst", [notes.glyphs.text(head) for head in _BURST_HEADS], bursts, notes, width),
    ]


def _tables(title: str, heads: Sequence[str], rows: Sequence[_Row], notes: Notes, width: int) -> list[Table]:
    """A row a point; more columns than fit make a second table."""
    if not rows:
        return []
    lead = max(len(title), *(len(_name(r)) for r, _ in rows)) + 16
    widest = max(len(head) for head in (*heads, *(cell.plain for _, cells in rows for cell in cells))) + 3
    return [_table(title, heads, rows, part, notes) for part in chunks(range(len(heads)), (width - lead) // widest)]


def _table(title: str, heads: Sequence[str], rows: Sequence[_Row], part: Sequence[int], notes: Notes) -> Table:
    table = bare_table(notes.glyphs)
    table.add_column(title, no_wrap=True, overflow="ellipsis" if notes.glyphs.unicode else "crop")
    table.add_column("", no_wrap=True)
    for i in part:
        table.add_column(heads[i], justify="right", no_wrap=True)
    for result, cells in rows:
        at = Text(column_title(column_of(result), notes.glyphs))
        table.add_row(Text(_name(result)), at, *(cells[i] for i in part))
    return table


def _rates(result: Result, methods: Sequence[str], notes: Notes) -> list[Text]:
    found = {s.method: s for s in result.searches}
    return [_rate(found[m], notes) if m in found else Text("") for m in methods]


def _rate(search: SearchResult, notes: Notes) -> Text:
    figure = notes.glyphs.text(search_figure(search))
    note = notes.add(search.verdict) if search.verdict.reasons else ""
    notes.struck = notes.struck or not search_counts(search)
    return Text(figure + note, style="" if search_counts(search) else "dim")


def _burst(burst: BurstSummary, notes: Notes) -> list[Text]:
    packets = (round(burst.mean_packets), burst.min_packets, burst.max_packets, burst.repetitions)
    return [Text(notes.glyphs.text(figure)) for figure in (*(count(n) for n in packets), us(burst.buffer_ns / 1e3))]


def _name(result: Result) -> str:
    point = result.point
    if point.chain:
        return f"{point.switch} {point.chain_label}"
    return f"{point.switch} N={point.chain_length}" if point.chain_length else point.switch
