# SPDX-License-Identifier: BSD-3-Clause
"""The tables of one scenario for the terminal: throughput, tester limits, latency by load."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from rich.table import Table
from rich.text import Text

from planebench.analysis.counting import counts, latency_counts
from planebench.analysis.metrics.column import in_terminal
from planebench.analysis.metrics.results import RESULT, OfResult
from planebench.analysis.standings import Standing, Standings
from planebench.model.reasons import ReasonCode
from planebench.model.records import Point, Verdict
from planebench.model.results import Result
from planebench.model.words import (
    NOTHING,
    UNKNOWN,
    estimate,
    load_words,
    percentiles,
    reasons,
    throughput,
)
from planebench.report.terminal.grid import (
    Glyphs,
    LoadColumn,
    chunks,
    column_of,
    column_tables,
    column_title,
    columns_of,
    new_table,
    row_name_width,
    rows,
)
from planebench.report.trials import cause, shared_text

BEST = "bold green"
_SUPERSCRIPT = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
_FIGURE_WIDTH = 8
_MAX_BAR = 14
_LATENCY_WIDTH = 26


@dataclass(slots=True)
class Notes:
    """Footnotes: the same cause gets the same number."""

    glyphs: Glyphs
    struck: bool = False
    """True if the figure of a load that was not carried was shown (in parentheses)."""
    _texts: dict[tuple[str, ReasonCode, str], list[tuple[str, ...]]] = field(default_factory=dict)

    def add(self, verdict: Verdict) -> str:
        """Return the mark to print behind a figure for its verdict: a superscript number, or ``^1``."""
        key = (verdict.kind.value, *cause(verdict.reasons[0]))
        self._texts.setdefault(key, []).append(verdict.texts)
        number = str(list(self._texts).index(key) + 1)
        return number.translate(_SUPERSCRIPT) if self.glyphs.unicode else f"^{number}"

    def numbered(self) -> Iterator[tuple[int, str]]:
        """Yield number and text of every note."""
        for number, ((kind, *_), found) in enumerate(self._texts.items(), start=1):
            alike = len(set(found)) == 1
            yield number, f"{kind}: {reasons(found[0] if alike else (shared_text([texts[0] for texts in found]),))}"


def throughput_tables(standings: Standings, results: Sequence[Result], notes: Notes, width: int) -> list[Table]:
    """Return tables of switches (by chain length) by direction and frame size; more than one if it is too wide.

    Green: shown to be faster than all others.
    """
    leaders = _leaders(standings.throughput)
    columns = columns_of(results)
    name_width = row_name_width(results) + 4
    parts = chunks(columns, (width - name_width) // (_FIGURE_WIDTH + 2))
    bar = min(_MAX_BAR, (width - name_width) // len(parts[0]) - _FIGURE_WIDTH - 3)
    return [_throughput_table(results, leaders, part, notes, bar if bar >= 3 else 0) for part in parts]


def _leaders(standings: Iterable[Standing]) -> frozenset[Point]:
    """Return the points of the switches that are shown to be better than all others."""
    return frozenset(it.results[0].point for it in standings if it.state == "different")


def latency_tables(results: Sequence[Result], notes: Notes, width: int) -> list[Table]:
    """Return a table per direction and frame size with latencies: switches (by chain length) by load."""
    measured = [r for r in results if r.latency]
    columns = columns_of(measured)
    tables = []
    for column in columns:
        members = [r for r in measured if column_of(r) == column]
        loads = list(dict.fromkeys(s.load for r in members for s in r.latency))
        name_width = max(len(_latency_title(column, notes.glyphs)), row_name_width(members)) + 4
        for chunk in chunks(loads, (width - name_width) // _LATENCY_WIDTH):
            tables.append(_latency_table(members, column, chunk, notes))
    return tables


def _throughput_table(
    results: Sequence[Result], leaders: Collection[Point], columns: Sequence[LoadColumn], notes: Notes, bar: int
) -> Table:
    glyphs = notes.glyphs
    table = new_table(results, glyphs)
    for column in columns:
        title = column_title(column, glyphs)
        table.add_column(Text(title.ljust(_FIGURE_WIDTH + bar) if bar else title), justify="left" if bar else "right")
    for lead, members, ends in rows(results):
        cells = []
        for column in columns:
            result = next((r for r in members if column_of(r) == column), None)
            if result is None:
                cells.append(Text(""))
                continue
            leads = result.point in leaders
            cells.append(_throughput_cell(result, _best_pps(results, result), leads, notes, bar))
        table.add_row(*lead, *cells, end_section=ends)
    return table


def _throughput_cell(result: Result, best: float, leads: bool, notes: Notes, bar: int) -> Text:
    value = result.throughput_pps or 0.0
    style = BEST if leads else "dim" if not counts(result) else ""
    figure = notes.glyphs.text(throughput(result))
    cell = Text((figure + _note(result, notes)).rjust(_FIGURE_WIDTH - 1) + " ", style=style)
    if bar:
        cell.append(notes.glyphs.bar(value / best if best else 0.0, bar), style="green" if style == BEST else "blue")
    return cell


def _best_pps(results: Sequence[Result], result: Result) -> float:
    """Return the highest throughput of the same column and chain."""
    rivals = (r for r in results if column_of(r) == column_of(result))
    same = (r for r in rivals if r.point.chain_key == result.point.chain_key and counts(r))
    return max((r.throughput_pps or 0.0 for r in same), default=0.0)


def _note(result: Result, notes: Notes) -> str:
    """Return a footnote, unless the mark of the figure says the same."""
    if result.verdict.kind.is_bound or not result.verdict.reasons:
        return ""
    return notes.add(result.verdict)


def _latency_title(column: LoadColumn, glyphs: Glyphs) -> str:
    return f"latency {column_title(column, glyphs)}"


def _latency_table(results: Sequence[Result], column: LoadColumn, loads: Sequence[str], notes: Notes) -> Table:
    table = new_table(results, notes.glyphs)
    table.columns[-1].header = _latency_title(column, notes.glyphs)
    for load in loads:
        words = load_words(load).replace("the carried load", "carried")  # which the legend explains
        table.add_column(f"at {words}", justify="right", no_wrap=True)
    for lead, members, ends in rows(results):
        cells = [_latency_cell(members[0], load, notes) for load in loads]
        table.add_row(*lead, *cells, end_section=ends)
    return table


def _latency_cell(result: Result, load: str, notes: Notes) -> Text:
    summary = next((s for s in result.latency if s.load == load), None)
    if summary is None:
        return Text("")
    figure = notes.glyphs.text(percentiles(summary))
    if not latency_counts(summary):
        notes.struck = notes.struck or math.isfinite(summary.p50)
        shown = f"({figure})" if math.isfinite(summary.p50) else notes.glyphs.text(NOTHING)
        note = notes.add(summary.verdict)
        return Text(shown + note, style="dim")
    remark = notes.add(summary.verdict) if summary.verdict.reasons else ""
    return Text(figure + remark)


_ESTIMATE_WIDTH = 9


def _estimate(result: Result) -> str:
    return estimate(result.capacity_estimate_pps, result.capacity_low_pps, result.capacity_high_pps)


def limit_tables(standings: Standings, results: Sequence[Result], glyphs: Glyphs, width: int) -> list[Table]:
    """Return columns with a tester-limited throughput: what the switch reports of its core, and an estimate.

    Green: shown to need the fewest cycles. A switch that reports nothing is there all the same, as unknown.
    """
    run = standings.derived.run
    columns = {column_of(r) for r in results if r.verdict.kind.is_bound and _known(r)}
    members = [r for r in results if column_of(r) in columns and counts(r)]
    leaders = _leaders(standings.cost.values())
    figures = in_terminal(RESULT, (OfResult(run, r) for r in members))

    def cell(result: Result) -> Text:
        if not _known(result):
            return Text(UNKNOWN)
        row = OfResult(run, result)
        parts = [f"{figure.written(row)} {brief.letter}".rstrip().rjust(brief.width) for figure, brief in figures]
        words = " ".join(filter(None, (*parts, _estimate(result))))
        return Text(glyphs.text(words.rstrip()), style=BEST if result.point in leaders else "")

    widest = max([_ESTIMATE_WIDTH, *(len(_estimate(result)) for result in members)])
    cell_width = widest + sum(brief.width + 1 for _, brief in figures)
    return column_tables(members, "tester limits", cell, glyphs, width, cell_width, "left")


def _known(result: Result) -> bool:
    return result.switch_busy_share is not None or result.switch_cycles_per_packet is not None
