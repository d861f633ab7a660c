# SPDX-License-Identifier: BSD-3-Clause
"""Search results: tables of page and terminal, back-to-back bursts, loss-rate curves, deviations from standards."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial

from rich.table import Table
from rich.text import Text

from planebench.analysis.counting import same_cell, search_counts
from planebench.analysis.search import METHODS, short_name
from planebench.model.records import Verdict
from planebench.model.results import BurstSummary, CurvePoint, Result, SearchResult
from planebench.model.words import NOTHING, count, interval, mpps, printable, us
from planebench.report.figure import ChartRow, Colors, Figure, cell_figure, tip
from planebench.report.page.table import PageColumn, PageTable, number, page_table, point_columns, verdict_cell
from planebench.report.terminal.cells import Notes
from planebench.report.terminal.grid import bare_table, chunks, column_of, column_title


def search_table(results: Sequence[Result]) -> PageTable:
    """Return what searches came to in Mpps; below, its error, the rate forwarded at it, and remarks."""
    members = [r for r in results if r.searches]
    columns = (
        *point_columns(members, lambda it: it.point),
        *(PageColumn(short_name(method), partial(_cell, method), "two") for method in methods_of(members)),
    )
    return page_table(
        "Rates by search, Mpps",
        columns,
        members,
        f"{definitions(members)} Mean over the starts of the switch. {RESOLUTION} "
        "First loss: from the frame loss rate test. Back-to-back: mean longest burst without loss, in frames. "
        "In parentheses: did not converge.",
    )


RESOLUTION = (
    "Of three starts or more: the 95 % interval. Of fewer: the bounds, which are the resolution of the search; starts "
    "may differ by more."
)


def definitions(results: Sequence[Result]) -> str:
    """Return what each search that was run finds, a sentence each."""
    return " ".join(f"{METHODS[m].short_name}: {METHODS[m].help}." for m in methods_of(results) if m in METHODS)


def burst_table(results: Sequence[Result]) -> PageTable:
    """Return the longest bursts without loss (RFC 9004) and the buffer time that they imply."""
    items = [(r, s, s.burst) for r in results for s in r.searches if s.burst is not None]
    columns = (
        *point_columns(items, lambda it: it[0].point),
        number("at Mpps", lambda it: mpps(it[2].rate_pps)),
        number("mean frames", lambda it: count(round(it[2].mean_packets))),
        number("min", lambda it: count(it[2].min_packets)),
        number("max", lambda it: count(it[2].max_packets)),
        number("sd", lambda it: count(round(it[2].stddev_packets))),
        number("repetitions", lambda it: it[2].repetitions),
        number("buffer µs", lambda it: us(it[2].buffer_ns / 1e3)),
        PageColumn("verdict", lambda it: verdict_cell(it[1].verdict), "verdict"),
    )
    return page_table("Back-to-back frames (RFC 9004)", columns, items, out=lambda it: not search_counts(it[1]))


def _cell(method: str, result: Result) -> tuple[str, str]:
    found = [s for s in result.searches if s.method == method]
    if not found:
        return NOTHING, ""
    search, *others = found
    figure, error = search_figure(result, method)
    starts = starts_words([result], method)
    error = ", ".join(filter(None, [error and f"bounds {error}", starts])) if starts else error
    small = [] if search.conditional_pps is None else [f"forwards {mpps(search.conditional_pps)}"]
    if others:
        small.append(f"in other starts {', '.join(mpps(s.lower_pps) for s in others)}")
    return figure, "; ".join(filter(None, [error, *small, *_remarks(found).texts]))


def _remarks(found: Sequence[SearchResult]) -> Verdict:
    """Return the verdict of the first start that has a remark."""
    return next((s.verdict for s in found if s.verdict.reasons), found[0].verdict)


_BURST_HEADS = ("mean", "min", "max", "runs", "buffer µs")

_Row = tuple[Result, list[Text]]


def search_tables(results: Sequence[Result], notes: Notes, width: int) -> list[Table]:
    """Return the rates by search in Mpps, and a table of bursts if back-to-back frames were searched."""
    members = [r for r in results if r.searches]
    methods = methods_of(members)
    rates = [(r, _rates(r, methods, notes)) for r in members]
    bursts = [(r, _burst(s.burst, notes)) for r in members for s in r.searches if s.burst is not None]
    return [
        *_tables("rates by search", [_head(m, members) for m in methods], rates, notes, width),
        *_tables("frames per burst", [notes.glyphs.text(head) for head in _BURST_HEADS], bursts, notes, width),
    ]


def _tables(title: str, heads: Sequence[str], rows: Sequence[_Row], notes: Notes, width: int) -> list[Table]:
    """Return tables with a row per point; columns that do not fit are in a second table."""
    if not rows:
        return []
    lead = max(len(title), *(len(_name(r)) for r, _ in rows)) + 16
    shown = (*heads, *(cell.plain for _, cells in rows for cell in cells))
    widest = max(len(line) for text in shown for line in text.splitlines()) + 3
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
    return [_rate(result, method, notes) for method in methods]


def _head(method: str, members: Sequence[Result]) -> str:
    starts = starts_words(members, method)
    return f"{short_name(method)}\n(bounds, {starts})" if starts else short_name(method)


def _rate(result: Result, method: str, notes: Notes) -> Text:
    found = [s for s in result.searches if s.method == method]
    if not found:
        return Text("")
    figure, error = search_figure(result, method)
    error = f"({error})" if error and starts_words([result], method) else error
    words = notes.glyphs.text(" ".join(filter(None, [figure, error])))
    verdict, is_one = _remarks(found), any(map(search_counts, found))
    return Text(words + (notes.add(verdict) if verdict.reasons else ""), style="" if is_one else "dim")


def _burst(burst: BurstSummary, notes: Notes) -> list[Text]:
    packets = (round(burst.mean_packets), burst.min_packets, burst.max_packets, burst.repetitions)
    return [Text(notes.glyphs.text(figure)) for figure in (*(count(n) for n in packets), us(burst.buffer_ns / 1e3))]


def _name(result: Result) -> str:
    point = result.point
    if point.chain:
        return f"{point.switch} {point.chain_label}"
    return f"{point.switch} N={point.chain_length}" if point.chain_length else point.switch


def loss_rows(results: Sequence[Result]) -> list[ChartRow]:
    """Return loss in percent over intended Mpps, a row per load of every loss-rate curve (RFC 2544 section 26.3)."""
    return [_loss_row(result, point) for result in results for s in result.searches for point in s.curve]


def _loss_row(result: Result, point: CurvePoint) -> ChartRow:
    switch, loss = printable(result.point.switch), point.loss_ratio * 100
    return {
        "switch": switch,
        "mpps": point.intended_pps / 1e6,
        "loss": loss,
        "tip": tip(
            f"{switch} at {mpps(point.intended_pps)} Mpps: {loss:.3g} % lost, "
            f"{mpps(point.forwarded_pps)} Mpps forwarded",
            result.point,
        ),
    }


def loss_figures(results: Sequence[Result], colors: Colors) -> Iterator[Figure]:
    """Yield the loss-rate curves, one figure per cell."""
    from planebench.report.charts import loss_curves

    for cell, members in same_cell(results).items():
        rows = loss_rows(members)
        if rows:
            yield cell_figure("loss", cell, partial(loss_curves, rows, colors))


def deviations(results: Iterable[Result]) -> list[str]:
    """Return every deviation from a standard once, with its methods: ``NDR, PDR: trials of 0.1 s; ...``."""
    methods: dict[str, list[str]] = {}
    for search in (s for r in results for s in r.searches):
        for text in search.deviations:
            names = methods.setdefault(text, [])
            name = short_name(search.method)
            if name not in names:
                names.append(name)
    return [f"{', '.join(names)}: {text}" for text, names in methods.items()]


def search_figure(result: Result, method: str) -> tuple[str, str]:
    """Return what a search came to, in Mpps or in frames of a burst, and its error; in parentheses if it came to none.

    The error: the interval of the starts, ``[9.61, 9.99]``, or the bounds of so few starts that :func:`starts_words`
    tells them.
    """
    found = [s for s in result.searches if s.method == method]
    figure = result.search_figure(method)
    if figure is None:
        burst = found[0].burst
        words = search_bounds(found) if burst is None else count(round(burst.mean_packets))
        return (words if any(map(search_counts, found)) else f"({words})"), ""
    words = f"{'≥' * figure.is_bound}{mpps(figure.pps)}"
    if figure.low_pps is not None:
        return words, interval(figure.low_pps, figure.high_pps, mpps)
    ended = [s for s in found if search_counts(s) and s.lower_pps]
    return words, search_bounds(ended) if all(s.upper_pps for s in ended) else ""


def starts_words(results: Iterable[Result], method: str) -> str:
    """Return of how many starts the figures without an interval are: ``one start``, ``1 to 2 starts``; or nothing."""
    found = [figure for result in results if (figure := result.search_figure(method)) is not None]
    starts = sorted({figure.starts for figure in found if figure.low_pps is None})
    if starts in ([], [1]):
        return "one start" if starts else ""
    return f"{' to '.join(map(str, starts))} starts"


def search_bounds(found: Sequence[SearchResult]) -> str:
    """Return the least load that met the goal and the highest that did not, in Mpps."""
    lower = min((s.lower_pps for s in found if s.lower_pps is not None), default=None)
    upper = max((s.upper_pps for s in found if s.upper_pps is not None), default=None)
    if lower is None:
        return NOTHING if upper is None else f"<{mpps(upper)}"
    return mpps(lower) if upper is None else f"{mpps(lower)}{NOTHING}{mpps(upper)}"


def methods_of(results: Sequence[Result]) -> list[str]:
    """Return the methods that were run, in the order of their columns."""
    found = dict.fromkeys(s.method for r in results for s in r.searches)
    return [m for m in METHODS if m in found] + [m for m in found if m not in METHODS]
