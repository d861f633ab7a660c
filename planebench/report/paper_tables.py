# SPDX-License-Identifier: BSD-3-Clause
"""Tables as the papers print them: a row a switch, columns by scenario. Throughput, and mean latency (conext19)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from planebench.model.results import LatencySummary, Result
from planebench.model.words import ARROWS, NOTHING, frames, latency_counts, load_words, printable, throughput, us
from planebench.stats.choose import is_foreign

_SHARE = " of R+"
OTHER_BAND = "of the other core distance, not to be compared with the rest"


@dataclass(frozen=True, slots=True)
class Group:
    """Columns under one head."""

    name: str
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MatrixRow:
    """The cells of a switch, by group."""

    switch: str
    groups: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Matrix:
    """A table with a head of two lines."""

    caption: str
    groups: tuple[Group, ...]
    rows: tuple[MatrixRow, ...]
    note: str


Cells = dict[tuple[str, str, str], str]
"""(switch, group, column) -> what stands there."""


def paper_tables(results: Sequence[Result]) -> list[Matrix]:
    """Throughput by direction; latency by direction and frames, where there is any."""
    tables = [_throughput(members) for members in _by(results, lambda r: r.point.direction)]
    measured = [r for r in results if any(s.samples for s in r.latency)]
    kinds = _by(measured, lambda r: (r.point.direction, r.point.traffic, r.point.frame_size_bytes))
    return tables + [_latency(members) for members in kinds]


def _throughput(results: Sequence[Result]) -> Matrix:
    cells = {(r.point.switch, _path(r), frames(r.point)): _rate(r) for r in results}
    direction = results[0].point.direction
    note = "As in conext19, Figs. 4 to 6. R+, all directions together, losses ignored. Marks as in the summary."
    if any(is_foreign(r.verdict) for r in results):
        note += f" In brackets: {OTHER_BAND}."
    return _matrix(f"Throughput, Mpps, {ARROWS[direction]} {direction}", results, cells, note)


def _latency(results: Sequence[Result]) -> Matrix:
    found = [(r, s) for r in results for s in r.latency]
    cells = {(r.point.switch, _path(r), load_words(s.load).removesuffix(_SHARE)): _mean(s) for r, s in found}
    point = results[0].point
    brackets = "does not count"
    if any(is_foreign(s.verdict) for _, s in found):
        brackets += f", or {OTHER_BAND}"
    note = (
        "As in conext19, Tables 3 and 4. Columns: share of each switch's own R+ (so at different rates), or a rate. "
        f"In brackets: {brackets}. A dash: no probe came back, or it was not run."
    )
    caption = f"RTT latency, mean µs, {ARROWS[point.direction]} {point.direction}, {frames(point)}"
    return _matrix(caption, results, cells, note)


def _matrix(caption: str, results: Sequence[Result], cells: Cells, note: str) -> Matrix:
    columns: dict[str, dict[str, None]] = {}
    for _, group, column in cells:
        columns.setdefault(group, {})[column] = None
    groups = tuple(Group(name, tuple(found)) for name, found in columns.items())
    rows = tuple(
        MatrixRow(s, tuple(tuple(cells.get((s, g.name, c), NOTHING) for c in g.columns) for g in groups))
        for s in dict.fromkeys(r.point.switch for r in results)
    )
    return Matrix(caption, groups, rows, note)


def _mean(summary: LatencySummary) -> str:
    if not summary.samples:
        return NOTHING
    sound = latency_counts(summary) and not is_foreign(summary.verdict)
    return us(summary.mean) if sound else f"({us(summary.mean)})"


def _rate(result: Result) -> str:
    return f"({throughput(result)})" if is_foreign(result.verdict) else throughput(result)


def _path(result: Result) -> str:
    return printable(result.point.scenario_label)


def _by(results: Iterable[Result], key: Callable[[Result], object]) -> list[list[Result]]:
    found: dict[object, list[Result]] = {}
    for result in results:
        found.setdefault(key(result), []).append(result)
    return list(found.values())
