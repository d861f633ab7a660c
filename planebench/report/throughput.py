# SPDX-License-Identifier: BSD-3-Clause
"""Throughput: rows of its charts, its figures, its tables and its sentences."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial

from planebench.analysis.counting import counts, same_cell
from planebench.analysis.metrics.results import RESULT, OfResult
from planebench.model.header import Run
from planebench.model.records import Point, Verdict
from planebench.model.results import Result
from planebench.model.time_had import STOOD_SHARE
from planebench.model.words import (
    ARROWS,
    NOTHING,
    cycles,
    estimate,
    frames,
    frames_words,
    interval,
    mark,
    mpps,
    percent,
    point_name,
    reasons,
    several,
    throughput,
    us,
)
from planebench.report.charts import curves, grouped_bars
from planebench.report.figure import WIDE_PX, Colors, Figure, cell_title, frames_key, safe
from planebench.report.svg import ChartRow
from planebench.report.tables import PageTable, on_page, page_table, point_columns


def short_mpps(pps: float) -> str:
    """Return a rate in Mpps with three digits: ``0.98``, ``12.5``, ``135``."""
    return mpps(pps) if pps < 10e6 else us(pps / 1e6)


def path_name(point: Point) -> str:
    """Return the path of a test point and its direction: ``loopback-1 ⇄``."""
    return f"{point.scenario_label} {ARROWS[point.direction]}"


def throughput_row(result: Result) -> ChartRow:
    """Return one bar: the rate and its 95 % confidence interval in Mpps, and how it may be read."""
    rate = (result.throughput_pps or 0.0) / 1e6
    low, high = (rate if end is None else end / 1e6 for end in (result.throughput_low_pps, result.throughput_high_pps))
    return {
        "switch": result.point.switch,
        "path": path_name(result.point),
        "mpps": rate,
        "low": low,
        "high": high,
        "label": NOTHING if result.throughput_pps is None else short_mpps(result.throughput_pps),
        "limited": result.verdict.kind.is_bound,
        "counts": counts(result),
        "cell": point_name(result.point),
        "tip": throughput_tip(result),
    }


def throughput_tip(result: Result) -> str:
    """Return the throughput of a result in words, with its interval, its verdict and the evidence for both."""
    point = result.point
    starts = f"{several(result.starts, 'start')}, " if result.throughput_pps is not None else ""
    host = f"the host took {percent(result.stood_share)} of the time"
    if result.stood_share > STOOD_SHARE and result.counted_pps is not None:
        host += f", as counted {mpps(result.counted_pps)}"
    return (
        f"{point.switch}, {point.scenario_label} {point.direction} {frames(point)}: {_throughput_words(result)}"
        f"{verdict_remark(result.verdict)}; {starts}{host}"
    )


def verdict_remark(verdict: Verdict) -> str:
    """Return a verdict behind a figure with its first reason, where it says more than that the figure is valid."""
    if not verdict.reasons:
        return ""
    return f"; verdict {verdict.kind.value}: {reasons(verdict.texts, 100)}"


def _throughput_words(result: Result) -> str:
    if result.throughput_pps is None:
        return "no trial counts"
    bound = mark(result.verdict.kind) == "≥"
    trials = several(len(result.throughput_trials_pps), "trial")
    known = interval(result.throughput_low_pps, result.throughput_high_pps, mpps)
    words = (
        f"{'at least ' * bound}{mpps(result.throughput_pps)} Mpps{f' {known}' if known else ''}, "
        f"{result.throughput_l1_gbps or 0:.1f} Gb/s layer 1, mean of {trials}"
    )
    if bound and result.switch_busy_share is not None:
        words += (
            f"; core utilization {percent(result.switch_busy_share)}, "
            f"{cycles(result.switch_cycles_per_packet)} cycles per packet"
        )
        capacity = estimate(result.capacity_estimate_pps, result.capacity_low_pps, result.capacity_high_pps)
        words += f", {capacity} Mpps" if capacity else ""
    return words


def smallest_frames(results: Iterable[Result]) -> tuple[int, str]:
    """Return frame size and traffic profile of the smallest frames."""
    return min((r.point.frame_size_bytes, r.point.traffic) for r in results)


def rate_figures(kind: str, results: Sequence[Result], colors: Colors) -> Iterator[Figure]:
    """Yield the rates of all paths and switches, a figure a kind of frames; the overview has the smallest ones."""
    smallest = smallest_frames(results) if results else None
    for size, traffic in dict.fromkeys((r.point.frame_size_bytes, r.point.traffic) for r in results):
        if ((size, traffic) == smallest) == (kind == "overview"):
            members = [r for r in results if (r.point.frame_size_bytes, r.point.traffic) == (size, traffic)]
            words = frames_words(traffic, size)
            key = kind if kind == "overview" else f"throughput-{safe(words).removesuffix('-B')}"
            look = partial(grouped_bars, colors=colors)
            rows = [throughput_row(r) for r in members]
            yield Figure(key, kind, members[0].point.scenario, f"Throughput, {words}", rows, look, WIDE_PX)


def chain_length_figures(results: Sequence[Result], colors: Colors) -> Iterator[Figure]:
    """Yield curves over the length of chains of one function."""
    plain = [r for r in results if r.point.chained and not r.point.named]
    for cell, members in same_cell(plain, chain_length=1).items():
        rows = [{**throughput_row(r), "x": r.point.chain_length} for r in members if counts(r)]
        rows = [{**row, "y": row["mpps"]} for row in rows]
        lengths = sorted({row["x"] for row in rows})
        if len(lengths) > 1:
            titles = "VNFs in the chain", "Mpps"
            look = partial(curves, colors=colors, titles=titles, values=lengths, log_y=False)
            key = f"chain-{cell.scenario}-{cell.direction}-{frames_key(cell)}"
            yield Figure(key, "chain", cell.scenario, cell_title(cell), rows, look)


def strata_sentences(results: Iterable[Result]) -> list[str]:
    """Return what explains each wide interval: ``28.1 Mpps: 38.2 near (12 trials), 19.4 far (1 trial)``."""
    return [
        f"{point_name(r.point)}: {throughput(r)} Mpps: "
        + ", ".join(f"{mpps(it.throughput_pps)} {it.name} ({several(it.trials, 'trial')})" for it in r.strata)
        for r in results
        if r.strata
    ]


def throughput_table(run: Run, results: Sequence[Result]) -> PageTable:
    """Return a row per result, with what the figure rests on."""
    items = [OfResult(run, result) for result in results]
    return page_table(
        "Throughput at maximum offered load (R+)",
        (*point_columns(lambda it: it.result.point), *on_page(RESULT, items)),
        items,
        "Cycles / packet, batch (packets per non-empty poll) and core utilization are reported by the switch; "
        "unknown: it has no such counter.",
        out=lambda it: not counts(it.result),
    )
