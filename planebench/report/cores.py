# SPDX-License-Identifier: BSD-3-Clause
"""The throughput per core of each path, and the cores that a 10 Gb/s port would need, for the page."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from planebench.analysis.counting import counts, same_cell
from planebench.model.header import Run
from planebench.model.records import Point
from planebench.model.results import Result
from planebench.model.words import NOTHING, UNKNOWN, cycles, directions_words, frames, mark, mpps, percent, throughput
from planebench.report.answers import path_words
from planebench.report.conditions import switch_cores
from planebench.report.page.table import PageColumn, PageTable, number, page_table

PORT_GBPS = 10
"""Layer 1, the ports of the papers."""

NOTE = (
    f"Cores for {PORT_GBPS} Gb/s: layer 1, aggregate of all directions, divided by the per-core rate and "
    "rounded up. This "
    "assumes linear scaling with cores, which this run did not measure. ≤: the rate is a lower bound, so "
    "the core count is an "
    "upper bound. Cycles per packet and core utilization are reported by the switch; unknown: it has no such counter."
)


PREFERRED = ("bidirectional", "unidirectional", "reversed")
"""The direction that is shown, if it was run."""


def cores_table(run: Run, results: Sequence[Result]) -> PageTable:
    """Return a row per switch and path, at the smallest frames, bidirectional if that was run."""
    cells = same_cell(results)
    items = [
        (result, use_words(cell), switch_cores(run, result.point.switch))
        for cell in _main_cells(cells)
        for result in cells[cell]
    ]

    def accepted(words: Callable[[Result], str]) -> Callable[[Any], str]:
        return lambda it: words(it[0]) if counts(it[0]) else NOTHING

    columns = (
        PageColumn("path", lambda it: it[1]),
        PageColumn("switch", lambda it: it[0].point.switch, "switch", lambda it: (it[0].point,)),
        PageColumn("Mpps", accepted(throughput), "strong"),
        number("Gb/s", accepted(lambda r: f"{mark(r.verdict.kind)}{r.throughput_l1_gbps:.2f}")),
        number("cores", lambda it: it[2]),
        number("Mpps per core", lambda it: _per_core(it[0], it[2])),
        number("cycles / packet", accepted(lambda r: _known(r.switch_cycles_per_packet, cycles))),
        number("core utilization", accepted(lambda r: _known(r.switch_busy_share, percent))),
        number(f"cores for {PORT_GBPS} Gb/s", lambda it: _cores(it[0], it[2])),
    )
    return page_table(
        "Throughput of each path in total and per core",
        columns,
        items,
        NOTE,
        out=lambda it: not counts(it[0]),
    )


def use_words(cell: Point) -> str:
    """Return a test point in words: ``between NICs (p2p), 64 B, bidirectional``."""
    return f"{path_words(cell)}, {frames(cell)}, {directions_words(cell.direction)}"


def _main_cells(cells: Iterable[Point]) -> list[Point]:
    paths: dict[Point, list[Point]] = {}
    for cell in cells:
        paths.setdefault(replace(cell, direction="unidirectional", frame_size_bytes=0, traffic=""), []).append(cell)
    return [min(members, key=_order) for members in paths.values()]


def _order(cell: Point) -> tuple[int, str, int]:
    return cell.frame_size_bytes, cell.traffic, PREFERRED.index(cell.direction)


def _per_core(result: Result, cores: int) -> str:
    if not counts(result) or result.throughput_pps is None:
        return NOTHING
    return mark(result.verdict.kind) + mpps(result.throughput_pps / cores)


def _known(value: float | None, words: Callable[[float], str]) -> str:
    return UNKNOWN if value is None else words(value)


def _cores(result: Result, cores: int) -> str:
    gbps = result.throughput_l1_gbps
    if not counts(result) or not gbps:
        return NOTHING
    kind = result.verdict.kind
    sign = "≤" if kind.is_bound else ""
    number = math.ceil(PORT_GBPS / (gbps / cores))
    return str(number) if number == 1 and sign == "≤" else f"{sign}{number}"
