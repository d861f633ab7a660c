# SPDX-License-Identifier: BSD-3-Clause
"""What a core gives at each use case, and how many cores a 10 Gb/s port would take, for the page."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from planebench.model.records import VerdictKind
from planebench.model.results import Result
from planebench.model.run import Run
from planebench.model.words import NOTHING, UNKNOWN, cycles, mark, mpps, percent, throughput
from planebench.report.conditions import switch_cores
from planebench.report.page_table import Head, PageTable, Row, heads
from planebench.report.papers import OTHER_BAND
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
    """A row a switch at the cell that each path is judged by (recommend.py)."""
    cells = same_cell(results)
    shown = [(use_words(cell), result) for cell in main_cells(cells) for result in cells[cell]]
    rows = tuple(Row((use, r.point.switch, *_cells(r, switch_cores(run, r.point.switch))), _out(r)) for use, r in shown)
    numbers = ("Gb/s", "cores", "Mpps per core", "cycles / packet", "core utilization", f"cores for {PORT_GBPS} Gb/s")
    columns = (Head("path"), Head("switch", "switch"), Head("Mpps", "strong"), *heads(numbers))
    foreign = f" In parentheses: {OTHER_BAND}." if any(of_other_band(r.verdict) for _, r in shown) else ""
    return PageTable("Throughput of each path in total and per core", columns, rows, NOTE + foreign)


def _out(result: Result) -> bool:
    return not counts(result) or of_other_band(result.verdict)


def _cells(result: Result, cores: int) -> tuple[Any, ...]:
    gbps, pps = result.throughput_l1_gbps, result.throughput_pps
    if not counts(result) or gbps is None or pps is None:
        return (NOTHING, NOTHING, cores, *(NOTHING,) * 4)
    told = mark(result.verdict.kind)
    rate = f"({throughput(result)})" if of_other_band(result.verdict) else throughput(result)
    known = result.switch_cycles_per_packet, result.switch_busy_share
    return (
        rate,
        f"{told}{gbps:.2f}",
        cores,
        f"{told}{mpps(pps / cores)}",
        UNKNOWN if known[0] is None else cycles(known[0]),
        UNKNOWN if known[1] is None else percent(known[1]),
        _cores(result, gbps / cores),
    )


def _cores(result: Result, gbps_a_core: float) -> str:
    if gbps_a_core <= 0:
        return NOTHING
    sign = {VerdictKind.TESTER_LIMITED: "≤", VerdictKind.UNSTABLE: "~"}.get(result.verdict.kind, "")
    number = math.ceil(PORT_GBPS / gbps_a_core)
    return str(number) if number == 1 and sign == "≤" else f"{sign}{number}"
