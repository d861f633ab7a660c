# SPDX-License-Identifier: BSD-3-Clause
"""Figures of many VNFs (ic16), of restarts under traffic, and throughput per core."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from planebench.analysis.counting import counts, latency_compares, same_cell
from planebench.analysis.metrics.results import JITTERS
from planebench.analysis.outages import outage_reports
from planebench.model.chain_name import chain_label, chain_slug
from planebench.model.grouped import grouped
from planebench.model.header import Run
from planebench.model.outage import OutageReport
from planebench.model.results import LatencySummary, Result
from planebench.model.words import (
    NOTHING,
    UNKNOWN,
    count,
    cycles,
    frames,
    load_words,
    mark,
    mpps,
    percent,
    throughput,
    us,
)
from planebench.report.charts import curves
from planebench.report.figure import SMALLEST_US, Colors, Figure, cell_title, frames_key, safe
from planebench.report.latency import MEAN, latency_row
from planebench.report.setup import switch_cores
from planebench.report.svg import ChartRow
from planebench.report.tables import PageColumn, PageTable, known, number, page_table, point_columns
from planebench.report.throughput import throughput_row

MIN_COUNTS = 2
"""Numbers of VNFs for a curve: what lies between one and many is the question."""

SMALLEST_MPPS = 1e-6
"""A log axis has no zero."""


Look = Callable[[LatencySummary], float | None]
"""Returns a value of a latency in us; or None."""

_JITTER_AXIS = "mean jitter, µs (log scale)"
LOOKS: tuple[tuple[str, str, Look], ...] = (
    ("mean latency", MEAN, lambda s: s.mean),
    (JITTERS["ipdv"], _JITTER_AXIS, lambda s: None if s.ipdv is None else s.ipdv.mean),
    (JITTERS["burst_jitter"], _JITTER_AXIS, lambda s: None if s.burst_jitter is None else s.burst_jitter.mean),
)
"""Name, title of the axis, look. PDV is the latency moved down, and in the table."""


def over_vnfs(results: Sequence[Result], colors: Colors) -> Iterator[Figure]:
    """Yield figures per kind of VNF, frame size and traffic with several numbers of VNFs: rate, latency, jitter."""
    for cell, members in same_cell(results, chain_length=1).items():
        kind = f"{chain_slug(cell.chain, 1)}-" if cell.chain else ""
        kind += f"{cell.where_slug.removeprefix('-')}-" if cell.where_words else ""
        named = f"each {chain_label(cell.chain, 1)}{cell.where_words}, " if cell.named else ""
        found = [("throughput", "throughput", "throughput, Mpps (log scale)", _throughputs(members))]
        for load in dict.fromkeys(summary.load for result in members for summary in result.latency):
            for name, y_title, look in LOOKS:
                words = f"{name}, {load_words(load)}"
                found.append((safe(words), words, y_title, _latencies(members, load, look)))
        for key, words, y_title, every in found:
            several = Counter(row["switch"] for row in every)
            rows = [row for row in every if several[row["switch"]] >= MIN_COUNTS]
            if rows:
                numbers = sorted({row["x"] for row in rows})
                chart = partial(curves, colors=colors, titles=("VNFs", y_title), values=numbers, log_x=True)
                title = f"{named}{cell_title(cell)}, {words}"
                name = f"vnfs-{cell.scenario}-{kind}{frames_key(cell)}-{key}"
                yield Figure(name, "vnfs", cell.scenario, title, rows, chart)


def _latencies(results: Sequence[Result], load: str, look: Look) -> list[ChartRow]:
    """Return a value of the latencies at a load, over the number of VNFs."""
    rows = []
    for result, summary in ((r, s) for r in results for s in r.latency if s.load == load and latency_compares(s)):
        if (value := look(summary)) is not None and math.isfinite(value):
            row = latency_row(result, summary, f"{frames(result.point)}: {us(value)} µs")
            rows.append({**row, "x": result.point.chain_length, "y": max(value, SMALLEST_US)})
    return rows


def _throughputs(results: Sequence[Result]) -> list[ChartRow]:
    """Return the accepted throughputs over the number of VNFs."""
    rows = []
    for result in results:
        if counts(result) and result.throughput_pps:
            bar = throughput_row(result)
            low = max(bar["low"], SMALLEST_MPPS)
            places = {"x": result.point.chain_length, "y": max(bar["mpps"], low)}
            rows.append({**bar, **places, "low": low, "high": max(bar["high"], low)})
    return rows


# The throughput per core of each path, and the cores that a 10 Gb/s port would need, as a table.

PORT_GBPS = 10
"""Layer 1, the ports of the papers."""

CORES_NOTE = (
    f"Cores for {PORT_GBPS} Gb/s: layer 1, aggregate of all directions, divided by the per-core rate and rounded up. "
    "This assumes linear scaling with cores, which this run did not measure. ≤: the rate is a lower bound, so the core "
    "count is an upper bound. Cycles per packet and core utilization are reported by the switch; unknown: it has no "
    "such counter."
)


PREFERRED = ("bidirectional", "unidirectional", "reversed")
"""The direction that is shown, if it was run."""


def cores_table(run: Run, results: Sequence[Result]) -> PageTable:
    """Return a row per switch and path, at the smallest frames, bidirectional if that was run."""
    cells = same_cell(results)
    paths = grouped((replace(it, direction="unidirectional", frame_size_bytes=0, traffic=""), it) for it in cells)
    firsts = (
        min(of_path, key=lambda it: (it.frame_size_bytes, it.traffic, PREFERRED.index(it.direction)))
        for of_path in paths.values()
    )
    shown = [result for first in firsts for result in cells[first]]
    items = [(r, switch_cores(run, r.point.switch)) for r in shown]

    def accepted(words: Callable[[Result, int], str]) -> Callable[[tuple[Result, int]], str]:
        return lambda it: words(*it) if counts(it[0]) else NOTHING

    def needed(r: Result, cores: int) -> str:
        if not r.throughput_l1_gbps:
            return NOTHING
        number = math.ceil(PORT_GBPS / (r.throughput_l1_gbps / cores))
        return f"{'≤' * (r.verdict.kind.is_bound and number > 1)}{number}"

    columns = (
        *point_columns(lambda it: it[0].point),
        PageColumn("Mpps", accepted(lambda r, _: throughput(r)), "strong"),
        number("Gb/s", accepted(lambda r, _: f"{mark(r.verdict.kind)}{r.throughput_l1_gbps:.2f}")),
        number("cores", lambda it: it[1]),
        number("Mpps per core", accepted(lambda r, n: mark(r.verdict.kind) + mpps((r.throughput_pps or 0.0) / n))),
        number("cycles / packet", accepted(lambda r, _: known(r.switch_cycles_per_packet, cycles, UNKNOWN))),
        number("core utilization", accepted(lambda r, _: known(r.switch_busy_share, percent, UNKNOWN))),
        number(f"cores for {PORT_GBPS} Gb/s", accepted(needed)),
    )
    return page_table(
        "Throughput of each path in total and per core",
        columns,
        items,
        CORES_NOTE,
        out=lambda it: not counts(it[0]),
    )


# Restarts under traffic: the time without frames, and where the lost frames went.

OUTAGES_NOTE = (
    "Outage: the longest time without a received frame. Calm: the same traffic just before, without a restart. "
    "Dropped: counted by the switch or a VNF. Gone: sent, neither received nor counted. In brackets: functional, "
    "frames were counted, times are no figures of performance."
)


def outage_sentences(run: Run) -> list[str]:
    """Return a sentence for each switch and restart: the median outage, and the frames lost."""
    return [
        f"{it.switch}: {_restart(it)}: {_shown(it, f'{it.silence_median_ns / 1e6:.1f} ms')}, "
        f"{count(round(it.lost_median_packets))} frames lost (median of {len(it.outages)})"
        f"{'; times are not representative: ' * bool(it.functional)}{'; '.join(it.functional)}"
        for it in outage_reports(run)
    ]


def outage_table(run: Run) -> PageTable:
    """Return a row for each restart, in the order in which they were measured."""
    items = [(report, number, it) for report in outage_reports(run) for number, it in enumerate(report.outages, 1)]
    columns = (
        PageColumn("switch", lambda it: it[0].switch, "switch"),
        PageColumn("restart", lambda it: _restart(it[0]), "text"),
        number("no.", lambda it: it[1]),
        number("outage ms", lambda it: _shown(it[0], f"{it[2].silence.duration_ns / 1e6:.1f}")),
        number("calm ms", lambda it: f"{it[2].calm.duration_ns / 1e6:.1f}"),
        number("restart ms", lambda it: f"{it[2].restart_ns / 1e6:.1f}"),
        number("lost", lambda it: count(it[2].lost_packets)),
        number("not taken", lambda it: count(it[2].unsent_ring_full_packets)),
        number("dropped", lambda it: count(it[2].dropped_packets)),
        number("gone", lambda it: count(it[2].gone_packets)),
        number("of", lambda it: count(it[2].intended_packets)),
        number("late", lambda it: count(it[2].unsent_late_packets)),
    )
    return page_table("Restarts under traffic", columns, items, OUTAGES_NOTE, out=lambda it: bool(it[0].functional))


def _restart(report: OutageReport) -> str:
    how = "killed" if report.killed else "ended"
    return f"{report.chain}: {report.victim} {how}, {count(round(report.rate_pps))} frames/s"


def _shown(report: OutageReport, text: str) -> str:
    return f"({text})" if report.functional else text
