# SPDX-License-Identifier: BSD-3-Clause
"""Figures of many VNFs (ic16), of restarts under traffic, and throughput per core."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from planebench.analysis.counting import counts, same_cell
from planebench.analysis.outages import outage_reports
from planebench.model.chain_name import chain_label, chain_slug
from planebench.model.header import Run
from planebench.model.outage import OutageReport
from planebench.model.records import Point
from planebench.model.results import Result
from planebench.model.words import (
    NOTHING,
    UNKNOWN,
    count,
    cycles,
    directions_words,
    frames,
    load_words,
    mark,
    mpps,
    percent,
    printable,
    throughput,
)
from planebench.report.answers import path_words
from planebench.report.charts import curves_over_vnfs
from planebench.report.figure import ChartRow, Colors, Figure, cell_title, frames_key, safe
from planebench.report.latency import DRAWN, JITTER, MEAN, Look, curve_rows, jitter_of, mean_of
from planebench.report.page.table import PageColumn, PageTable, number, page_table
from planebench.report.setup import switch_cores
from planebench.report.throughput import throughput_row

_THROUGHPUT = "throughput, Mpps (log scale)"


def over_vnfs(results: Sequence[Result], colors: Colors) -> Iterator[Figure]:
    """Yield figures per kind of VNF, frame size and traffic with several numbers of VNFs."""
    for cell, members in same_cell(results, chain_length=1).items():
        rows = throughput_over_vnfs(members)
        if rows:
            chart = partial(curves_over_vnfs, rows, colors, _THROUGHPUT)
            yield Figure(_key(cell, "throughput"), "vnfs", cell.scenario, _title(cell, "throughput"), chart)
        yield from _latencies(cell, members, colors)


def _latencies(cell: Point, members: Sequence[Result], colors: Colors) -> Iterator[Figure]:
    looks: list[tuple[str, str, Look]] = [("mean latency", MEAN, mean_of)]
    looks += [(name, JITTER, jitter_of(field)) for name, field in DRAWN]
    for load in dict.fromkeys(summary.load for result in members for summary in result.latency):
        for name, y_title, look in looks:
            rows = curve_rows(members, lambda r, _: r.point.chain_length, look, MIN_COUNTS, load)
            if rows:
                chart = partial(curves_over_vnfs, rows, colors, y_title)
                words = f"{name}, {load_words(load)}"
                yield Figure(_key(cell, safe(words)), "vnfs", cell.scenario, _title(cell, words), chart)


def _key(cell: Point, what: str) -> str:
    kind = f"{chain_slug(cell.chain, 1)}-" if cell.chain else ""
    kind += f"{cell.where_slug.removeprefix('-')}-" if cell.where_words else ""
    return f"vnfs-{kind}{frames_key(cell)}-{what}"


def _title(cell: Point, what: str) -> str:
    kind = f"each {printable(chain_label(cell.chain, 1))}{cell.where_words}, " if cell.named else ""
    return f"{kind}{cell_title(cell)}, {what}"


MIN_COUNTS = 2
"""Numbers of VNFs for a curve: what lies between one and many is the question."""

SMALLEST_MPPS = 1e-6
"""A log axis has no zero."""


def throughput_over_vnfs(results: Sequence[Result]) -> list[ChartRow]:
    """Return the accepted throughputs of switches with at least MIN_COUNTS numbers of VNFs."""
    rows: dict[str, list[ChartRow]] = {}
    for result in results:
        if counts(result) and result.throughput_pps:
            bar = throughput_row(result)
            x, low = result.point.chain_length, max(bar["low"], SMALLEST_MPPS)
            ends = {"low": low, "high": max(bar["high"], low)}
            rows.setdefault(bar["switch"], []).append({**bar, **ends, "x": x, "y": max(bar["mpps"], low)})
    return [row for found in rows.values() if len(found) >= MIN_COUNTS for row in found]


# The throughput per core of each path, and the cores that a 10 Gb/s port would need, for the page.

PORT_GBPS = 10
"""Layer 1, the ports of the papers."""

CORES_NOTE = (
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
        CORES_NOTE,
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


# Restarts under traffic, for the terminal and the page: the time without frames, and where the lost frames went.

TITLE = "Outages"
OUTAGES_NOTE = (
    "Outage: the longest time without a received frame. Calm: the same traffic just before, without a restart. "
    "Dropped: counted by the switch or a VNF. Gone: sent, neither received nor counted. In brackets: functional, "
    "frames were counted, times are no figures of performance."
)


def outage_lines(run: Run) -> list[str]:
    """Return a line for each switch and restart: the median outage, and the frames lost."""
    return [
        f"{_what(it)}: {_shown(it, f'{it.silence_median_ns / 1e6:.1f} ms')}, {count(round(it.lost_median_packets))} "
        f"frames lost (median of {len(it.outages)})"
        for it in outage_reports(run)
    ]


def outage_table(run: Run) -> PageTable:
    """Return a row for each restart, in the order in which they were measured."""
    items = [(report, number, it) for report in outage_reports(run) for number, it in enumerate(report.outages, 1)]
    columns = (
        PageColumn("switch", lambda it: it[0].switch, "switch"),
        PageColumn("restart", lambda it: printable(_restart(it[0])), "text"),
        number("no.", lambda it: it[1]),
        number("outage ms", lambda it: _ms(it[2].silence.duration_ns)),
        number("calm ms", lambda it: _ms(it[2].calm.duration_ns)),
        number("restart ms", lambda it: _ms(it[2].restart_ns)),
        number("lost", lambda it: count(it[2].lost_packets)),
        number("not taken", lambda it: count(it[2].unsent_ring_full_packets)),
        number("dropped", lambda it: count(it[2].dropped_packets)),
        number("gone", lambda it: count(it[2].gone_packets)),
        number("of", lambda it: count(it[2].intended_packets)),
        number("late", lambda it: count(it[2].unsent_late_packets)),
    )
    return page_table("Restarts under traffic", columns, items, OUTAGES_NOTE, out=lambda it: bool(it[0].functional))


def _ms(ns: float) -> str:
    return f"{ns / 1e6:.1f}"


def _what(report: OutageReport) -> str:
    return printable(f"{report.switch}: {_restart(report)}")


def _restart(report: OutageReport) -> str:
    how = "killed" if report.killed else "ended"
    return f"{report.chain}: {report.victim} {how}, {count(round(report.rate_pps))} frames/s"


def _shown(report: OutageReport, text: str) -> str:
    return f"({text})" if report.functional else text
