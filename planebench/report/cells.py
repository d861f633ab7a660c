# SPDX-License-Identifier: BSD-3-Clause
"""The tables of one scenario for the terminal: throughput with bars, latency by load."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from rich import box
from rich.table import Table
from rich.text import Text

from planebench.model.records import Direction, VerdictKind
from planebench.model.results import LatencySummary, Result
from planebench.report.glyphs import Glyphs
from planebench.report.wording import NOTHING, frame_size, latency_counts, load_words, reasons, throughput, us
from planebench.stats.ranking import counts

T = TypeVar("T")

Column = tuple[Direction, int]
"""Direction mode and frame size in bytes."""

_BEST = "bold green"
_SUPERSCRIPT = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
_FIGURE_WIDTH = 8
_MAX_BAR = 14
_LATENCY_WIDTH = 18


@dataclass(slots=True)
class Notes:
    """Footnotes: the same text gets the same number."""

    glyphs: Glyphs
    struck: bool = False
    """Whether a figure that does not count was shown (in brackets)."""
    _texts: list[str] = field(default_factory=list)

    def add(self, text: str) -> str:
        """The mark to print behind a figure: a superscript number, or ``^1``."""
        if text not in self._texts:
            self._texts.append(text)
        number = str(self._texts.index(text) + 1)
        return number.translate(_SUPERSCRIPT) if self.glyphs.unicode else f"^{number}"

    def numbered(self) -> Iterator[tuple[int, str]]:
        """Number and text of every note."""
        return enumerate(self._texts, start=1)


def throughput_tables(results: Sequence[Result], notes: Notes, width: int) -> list[Table]:
    """Rows: switches (by chain length), columns: direction x frame size. More columns than fit make a second table."""
    columns = list(dict.fromkeys((r.point.direction, r.point.frame_size_bytes) for r in results))
    name_width = max(len(_row_name(r)) for r in results) + 4
    chunks = _chunks(columns, (width - name_width) // (_FIGURE_WIDTH + 2))
    bar = min(_MAX_BAR, (width - name_width) // len(chunks[0]) - _FIGURE_WIDTH - 3)
    return [_throughput_table(results, chunk, notes, bar if bar >= 3 else 0) for chunk in chunks]


def latency_tables(results: Sequence[Result], notes: Notes, width: int) -> list[Table]:
    """One table a direction and frame size that has latencies; rows: switches (by chain length), columns: loads."""
    measured = [r for r in results if r.latency]
    columns = list(dict.fromkeys((r.point.direction, r.point.frame_size_bytes) for r in measured))
    tables = []
    for column in columns:
        members = [r for r in measured if _column(r) == column]
        loads = list(dict.fromkeys(s.load for r in members for s in r.latency))
        name_width = max(len(_latency_title(column, notes.glyphs)), *(len(_row_name(r)) for r in members)) + 4
        for chunk in _chunks(loads, (width - name_width) // _LATENCY_WIDTH):
            tables.append(_latency_table(members, column, chunk, notes))
    return tables


def _chunks(items: Sequence[T], fitting: int) -> list[Sequence[T]]:
    """Parts of about equal length, none longer than ``fitting`` (but at least one item)."""
    count = math.ceil(len(items) / max(1, fitting))
    size = math.ceil(len(items) / count)
    return [items[i : i + size] for i in range(0, len(items), size)]


def _column(result: Result) -> Column:
    return (result.point.direction, result.point.frame_size_bytes)


def _row_name(result: Result) -> str:
    chain = f"{result.point.chain_length}  " if result.point.chain_length else ""
    return chain + result.point.switch


def _new_table(results: Sequence[Result], glyphs: Glyphs) -> Table:
    table = Table(
        box=box.SIMPLE_HEAD if glyphs.unicode else box.ASCII2, pad_edge=False, padding=(0, 1), header_style="dim"
    )
    if results[0].point.chain_length:
        table.add_column("N", justify="right", no_wrap=True)
    table.add_column("switch", no_wrap=True, overflow="ellipsis" if glyphs.unicode else "crop")
    return table


def _rows(results: Sequence[Result]) -> Iterator[tuple[list[Text], list[Result], bool]]:
    """``(leading cells, results of the row, last of its chain length)``."""
    keys = list(dict.fromkeys((r.point.chain_length, r.point.switch) for r in results))
    for i, (chain, switch) in enumerate(keys):
        starts, ends = i == 0 or keys[i - 1][0] != chain, i + 1 == len(keys) or keys[i + 1][0] != chain
        lead = [Text(str(chain) if starts else "")] if chain else []
        members = [r for r in results if (r.point.chain_length, r.point.switch) == (chain, switch)]
        yield [*lead, Text(switch)], members, ends


def _throughput_table(results: Sequence[Result], columns: Sequence[Column], notes: Notes, bar: int) -> Table:
    glyphs = notes.glyphs
    table = _new_table(results, glyphs)
    for direction, size in columns:
        title = f"{glyphs.arrow(direction)} {frame_size(size)}"
        table.add_column(Text(title.ljust(_FIGURE_WIDTH + bar) if bar else title), justify="left" if bar else "right")
    for lead, members, ends in _rows(results):
        cells = [_throughput_cell(members, results, column, notes, bar) for column in columns]
        table.add_row(*lead, *cells, end_section=ends)
    return table


def _throughput_cell(
    members: Sequence[Result], results: Sequence[Result], column: Column, notes: Notes, bar: int
) -> Text:
    result = next((r for r in members if _column(r) == column), None)
    if result is None:
        return Text("")
    best = _best_pps(results, result)
    value = result.throughput_pps or 0.0
    style = _BEST if best and value == best and counts(result) else "dim" if not counts(result) else ""
    figure = notes.glyphs.text(throughput(result))
    cell = Text((figure + _note(result, notes)).rjust(_FIGURE_WIDTH - 1) + " ", style=style)
    if bar:
        cell.append(notes.glyphs.bar(value / best if best else 0.0, bar), style="green" if style == _BEST else "blue")
    return cell


def _best_pps(results: Sequence[Result], result: Result) -> float:
    """The highest counting throughput of the cell's rivals: same column, same chain length."""
    rivals = (r for r in results if _column(r) == _column(result))
    same = (r for r in rivals if r.point.chain_length == result.point.chain_length and counts(r))
    return max((r.throughput_pps or 0.0 for r in same), default=0.0)


def _note(result: Result, notes: Notes) -> str:
    """Only what the marks do not say already gets a footnote."""
    if result.verdict.kind is VerdictKind.TESTER_LIMITED or not result.verdict.reasons:
        return ""
    return notes.add(f"{result.verdict.kind.value}: {reasons(result.verdict.reasons)}")


def _latency_title(column: Column, glyphs: Glyphs) -> str:
    return f"latency {glyphs.arrow(column[0])} {frame_size(column[1])}"


def _latency_table(results: Sequence[Result], column: Column, loads: Sequence[str], notes: Notes) -> Table:
    table = _new_table(results, notes.glyphs)
    table.columns[-1].header = _latency_title(column, notes.glyphs)
    for load in loads:
        table.add_column(f"at {load_words(load)}", justify="right", no_wrap=True)
    for lead, members, ends in _rows(results):
        cells = [_latency_cell(members[0], load, results, notes) for load in loads]
        table.add_row(*lead, *cells, end_section=ends)
    return table


def _latency_cell(result: Result, load: str, results: Sequence[Result], notes: Notes) -> Text:
    summary = next((s for s in result.latency if s.load == load), None)
    if summary is None:
        return Text("")
    figure = notes.glyphs.text(f"{us(summary.mean)} / {us(summary.p99)}")
    if not latency_counts(summary):
        notes.struck = notes.struck or summary.samples > 0
        shown = f"({figure})" if summary.samples else notes.glyphs.text(NOTHING)
        note = notes.add(f"{summary.verdict.kind.value}: {reasons(summary.verdict.reasons)}")
        return Text(shown + note, style="dim")
    return Text(figure, style=_BEST if summary.mean == _lowest_mean(results, result, load) else "")


def _lowest_mean(results: Sequence[Result], result: Result, load: str) -> float:
    rivals = [r for r in results if r.point.chain_length == result.point.chain_length]
    summaries: list[LatencySummary] = [s for r in rivals for s in r.latency if s.load == load and latency_counts(s)]
    return min((s.mean for s in summaries), default=math.nan)
