# SPDX-License-Identifier: BSD-3-Clause
"""What the searches found: tables of page and terminal, bursts of back-to-back frames, loss-rate curves, deviations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial

from rich.table import Table
from rich.text import Text

from planebench.model.results import BurstSummary, CurvePoint, Result, SearchResult
from planebench.model.words import NOTHING, count, mpps, printable, us
from planebench.report.cells import Notes
from planebench.report.charts.figure import TIP_MARK, ChartRow, Colors, Figure, cell_key, full_cell_title
from planebench.report.grid import bare_table, chunks, column_of, column_title
from planebench.report.page_table import Head, PageTable, Row, heads, point_cells, point_heads, verdict_cell
from planebench.report.search_words import methods_of, search_bands, search_figure
from planebench.search import short_name
from planebench.stats.counting import search_counts
from planebench.stats.ranking import same_cell


def search_table(results: Sequence[Result]) -> PageTable:
    """Bounds in Mpps, below them what is forwarded at the lower one and, where it does not simply count, why."""
    members = [r for r in results if r.searches]
    points = [r.point for r in members]
    methods = methods_of(members)
    rows = []
    for result in members:
        found = {s.method: s for s in result.searches}
        cells = (_cell(found[m]) if m in found else (NOTHING, "") for m in methods)
        rows.append(Row((*point_cells(result.point, points), *cells, search_bands(result.searches))))
    titles = [short_name(m) for m in methods]
    return PageTable(
        "Rates by search, Mpps",
        (*point_heads(points), *heads(titles, "two"), Head("core group")),
        tuple(rows),
        "Relevant lower and upper bound of the search goal; below, the forwarding rate at the lower bound. "
        "First loss: from the frame loss rate test. Back-to-back: mean longest burst without loss, in frames. "
        "In parentheses: did not converge, rejected, or of another core-to-core latency group than the run.",
    )


def burst_table(results: Sequence[Result]) -> PageTable:
    """Back-to-back frames (RFC 9004): the longest bursts without loss, and the buffer time they imply."""
    members = [(r, s, s.burst) for r in results for s in r.searches if s.burst is not None]
    points = [r.point for r, _, _ in members]
    rows = tuple(
        Row(
            (
                *point_cells(r.point, points),
                mpps(b.rate_pps),
                count(round(b.mean_packets)),
                count(b.min_packets),
                count(b.max_packets),
                count(round(b.stddev_packets)),
                b.repetitions,
                us(b.buffer_ns / 1e3),
                verdict_cell(s.verdict),
            ),
            not search_counts(s),
        )
        for r, s, b in members
    )
    names = ("at Mpps", "mean frames", "min", "max", "sd", "repetitions", "buffer µs")
    return PageTable(
        "Back-to-back frames (RFC 9004)", (*point_heads(points), *heads(names), Head("verdict", "verdict")), rows
    )


def _cell(search: SearchResult) -> tuple[str, str]:
    small = [] if search.conditional_pps is None else [f"forwards {mpps(search.conditional_pps)}"]
    return search_figure(search), "; ".join([*small, *search.verdict.texts])


_BURST_HEADS = ("mean", "min", "max", "runs", "buffer µs")

_Row = tuple[Result, list[Text]]


def search_tables(results: Sequence[Result], notes: Notes, width: int) -> list[Table]:
    """Rates by search in Mpps, a row a point; a table of bursts below where back-to-back frames were searched."""
    members = [r for r in results if r.searches]
    methods = methods_of(members)
    rates = [(r, _rates(r, methods, notes)) for r in members]
    bursts = [(r, _burst(s.burst, notes)) for r in members for s in r.searches if s.burst is not None]
    return [
        *_tables("rates by search", [short_name(m) for m in methods], rates, notes, width),
        *_tables("frames per burst", [notes.glyphs.text(head) for head in _BURST_HEADS], bursts, notes, width),
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


def loss_rows(results: Sequence[Result]) -> list[ChartRow]:
    """Loss in per cent over intended Mpps, a row a load of every loss-rate curve (RFC 2544 section 26.3)."""
    return [_loss_row(result, point) for result in results for s in result.searches for point in s.curve]


def _loss_row(result: Result, point: CurvePoint) -> ChartRow:
    switch, loss = printable(result.point.switch), point.loss_ratio * 100
    return {
        "switch": switch,
        "mpps": point.intended_pps / 1e6,
        "loss": loss,
        "tip": f"{TIP_MARK}{switch} at {mpps(point.intended_pps)} Mpps: {loss:.3g} % lost, "
        f"{mpps(point.forwarded_pps)} Mpps forwarded",
    }


def loss_figures(results: Sequence[Result], colors: Colors) -> Iterator[Figure]:
    """Yield the loss-rate curves, one figure per cell."""
    from planebench.report.charts.curves import loss_curves

    for cell, members in same_cell(results).items():
        rows = loss_rows(members)
        if rows:
            chart = partial(loss_curves, rows, colors)
            yield Figure(cell_key("loss", cell), "loss", cell.scenario, full_cell_title(cell), chart)


def deviations(results: Iterable[Result]) -> list[str]:
    """Every deviation from a standard once, after the methods it holds for: ``NDR, PDR: trials of 0.1 s; ...``."""
    methods: dict[str, list[str]] = {}
    for search in (s for r in results for s in r.searches):
        for text in search.deviations:
            names = methods.setdefault(text, [])
            name = short_name(search.method)
            if name not in names:
                names.append(name)
    return [f"{', '.join(names)}: {text}" for text, names in methods.items()]
