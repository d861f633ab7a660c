# SPDX-License-Identifier: BSD-3-Clause
"""The throughput per core of each path, and the cores that a 10 Gb/s port would need, for the page."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from planebench.model.records import VerdictKind
from planebench.model.results import Result
from planebench.model.run import Run
from planebench.model.words import NOTHING, UNKNOWN, cycles, mark, mpps, percent
from planebench.report.conditions import switch_cores
from planebench.report.page.table import PageColumn, PageTable, number, page_table
from planebench.report.papers import OTHER_BAND, rate_words
from planebench.report.recommend import main_cells, use_words
from planebench.stats.choose import of_other_band
from planebench.stats.counting import counts
from planebench.stats.ranking import same_cell

PORT_GBPS = 10
"""Layer 1, the ports of the papers."""

NOTE = (
    f"Cores for {PORT_GBPS} Gb/s: layer 1, aggregate of all directions, divided by the per-core rate and "
    "rounded up. This "
    "assumes linear scaling with cores, which this run did not measure. ≤: the rate is a lower bound, so "
    "the core count is an "
    "upper bound. Cycles per packet and core utilization are reported by the switch; unknown: it has no such counter."
)


def cores_table(run: Run, results: Sequence[Result]) -> PageTable:
    """Return a row per switch at the test point that each path is judged by (recommend.py)."""
    cells = same_cell(results)
    items = [
        (result, use_words(cell), switch_cores(run, result.point.switch))
        for cell in main_cells(cells)
        for result in cells[cell]
    ]

    def accepted(words: Callable[[Result], str]) -> Callable[[Any], str]:
        return lambda it: words(it[0]) if counts(it[0]) else NOTHING

    columns = (
        PageColumn("path", lambda it: it[1]),
        PageColumn("switch", lambda it: it[0].point.switch, "switch"),
        PageColumn("Mpps", accepted(rate_words), "strong"),
        number("Gb/s", accepted(lambda r: f"{mark(r.verdict.kind)}{r.throughput_l1_gbps:.2f}")),
        number("cores", lambda it: it[2]),
        number("Mpps per core", lambda it: _per_core(it[0], it[2])),
        number("cycles / packet", accepted(lambda r: _known(r.switch_cycles_per_packet, cycles))),
        number("core utilization", accepted(lambda r: _known(r.switch_busy_share, percent))),
        number(f"cores for {PORT_GBPS} Gb/s", lambda it: _cores(it[0], it[2])),
    )
    foreign = f" In parentheses: {OTHER_BAND}." if any(of_other_band(r.verdict) for r, *_ in items) else ""
    return page_table(
        "Throughput of each path in total and per core",
        columns,
        items,
        NOTE + foreign,
        out=lambda it: not counts(it[0]) or of_other_band(it[0].verdict),
    )


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
    sign = {VerdictKind.TESTER_LIMITED: "≤", VerdictKind.UNSTABLE: "~"}.get(result.verdict.kind, "")
    number = math.ceil(PORT_GBPS / (gbps / cores))
    return str(number) if number == 1 and sign == "≤" else f"{sign}{number}"
