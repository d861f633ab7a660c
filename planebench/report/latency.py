# SPDX-License-Identifier: BSD-3-Clause
"""Latency and jitter: rows and figures by path, load, frame size and percentile; tables; sentences."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from functools import partial

from planebench.analysis.capacity import latency_floor
from planebench.analysis.chains import MIN_CARRIED
from planebench.analysis.compare import Derived
from planebench.analysis.counting import counts, latency_compares, latency_counts, same_cell
from planebench.analysis.metrics.results import JITTER, LATENCY, OfLatency
from planebench.analysis.standings import Standings, latency_at
from planebench.model.grouped import grouped
from planebench.model.header import Calibration, Run
from planebench.model.plan import Plan
from planebench.model.records import Point
from planebench.model.results import LatencySummary, Result
from planebench.model.scenario import scenario_named
from planebench.model.words import (
    count,
    frames_words,
    interval,
    load_share,
    load_words,
    mpps,
    percentiles,
    point_name,
    us,
)
from planebench.report.charts import curves, latency_ranges, path_dots, scatter
from planebench.report.figure import SMALLEST_US, Colors, Figure, cell_figure
from planebench.report.svg import ChartRow
from planebench.report.tables import PageColumn, PageTable, on_page, page_table, point_columns
from planebench.report.throughput import path_name, smallest_frames, throughput_row, verdict_remark

MEAN = "mean latency, µs (log scale)"
LOAD_TITLE = "intended load, Mpps"


def latency_row(result: Result, summary: LatencySummary, words: str) -> ChartRow:
    """Return what every mark of a latency has: ``words`` behind the switch and the load."""
    at = f"{result.point.switch} at {load_words(summary.load)} ({mpps(summary.intended_pps)} Mpps)"
    return {
        "switch": result.point.switch,
        "cell": point_name(result.point),
        "tip": f"{at}: {words}{verdict_remark(summary.verdict)}",
    }


def _percentile_words(summary: LatencySummary) -> str:
    """Return the percentiles with their intervals."""
    s = summary
    return (
        f"p50 {us(s.p50)}{_interval_words(s.p50_low, s.p50_high)}, "
        f"p99 {us(s.p99)}{_interval_words(s.p99_low, s.p99_high)}, p99.9 {us(s.p99_9)} µs, {count(s.samples)} probes"
    )


def _interval_words(low: float | None, high: float | None) -> str:
    return f" {known}" if (known := interval(low, high, us)) else ""


def latency_rows(results: Sequence[Result], floor_us: float | None = None) -> list[ChartRow]:
    """Return the percentiles of all latencies that have some; ``floor_us`` is the tester latency baseline."""
    rows = []
    for result, summary in ((r, s) for r in results for s in r.latency if s.samples and math.isfinite(s.p99)):
        counting, figures = latency_counts(summary), percentiles(summary)
        names = {"p50": summary.p50, "p99": summary.p99, "p99_9": summary.p99_9}
        rows.append(
            {
                **latency_row(result, summary, _percentile_words(summary)),
                **{name: max(value, SMALLEST_US) for name, value in names.items()},
                "load": load_words(summary.load),
                "label": figures if counting else f"({figures})",
                "counts": counting,
                "floor": floor_us,
            }
        )
    return rows


def load_rows(results: Sequence[Result]) -> list[ChartRow]:
    """Return p50 (with its interval) and p99 over intended Mpps, for at least MIN_LOADS accepted loads."""
    rows: list[ChartRow] = []
    for result in results:
        found = [s for s in result.latency if latency_counts(s) and s.samples and math.isfinite(s.p99)]
        for s in found if len(found) >= MIN_LOADS else ():
            knee = result.load_finding is not None and result.load_finding.knee == s.load
            values = {"y": s.p50, "low": s.p50_low or s.p50, "high": s.p50_high or s.p50, "p99": s.p99}
            rows.append(
                {
                    **latency_row(result, s, _percentile_words(s) + ", the knee" * knee),
                    **{name: max(value, SMALLEST_US) for name, value in values.items()},
                    "x": s.intended_pps / 1e6,
                    "knee": knee,
                }
            )
    return rows


MIN_LOADS = 3
"""Minimum of accepted loads for a chart of latency against load, the only one that compares switches at equal Mpps."""


def scatter_latencies(results: Sequence[Result]) -> list[tuple[Result, LatencySummary]]:
    """Return every latency at the highest share of R+ that most switches were measured at (conext19, Fig. 1).

    One that was not carried is in it, too: a chart without it would hide its switch.
    """
    every = ((r, s) for r in results if r.throughput_pps is not None for s in r.latency if s.samples)
    shares = grouped((share, (r, s)) for r, s in every if (share := load_share(s.load)) is not None)
    found = max(shares.items(), key=lambda it: (len({r.point.switch for r, _ in it[1]}), it[0]), default=(0.0, []))[1]
    return found if len({r.point.switch for r, _ in found}) > 1 else []


def _scatter_row(kind: str, result: Result, latency: LatencySummary) -> ChartRow:
    """Return throughput, with its interval, and mean latency of a switch; or mean and standard deviation."""
    compares = latency_compares(latency)
    shown, verdict = compares and counts(result), result.verdict if compares else latency.verdict
    switch, mean = result.point.switch, max(latency.mean, SMALLEST_US)
    row = {
        **latency_row(result, latency, f"mean {us(latency.mean)}, sd {us(latency.stddev)} µs"),
        "label": switch if shown else f"{switch} ({verdict.kind.value})",
        "counts": shown,
    }
    if kind == "deviation":
        return {**row, "x": mean, "x_low": mean, "x_high": mean, "y": max(latency.stddev, SMALLEST_US)}
    bar = throughput_row(result)
    words = f"{bar['tip']}; mean latency {us(latency.mean)} µs"
    return {**row, "x": bar["mpps"], "x_low": bar["low"], "x_high": bar["high"], "y": mean, "tip": words}


def scatter_figures(kind: str, results: Sequence[Result], colors: Colors) -> Iterator[Figure]:
    """Yield mean latency against throughput, or its standard deviation against it, one figure per cell."""
    titles = ("throughput, Mpps", MEAN) if kind == "tradeoff" else (MEAN, "standard deviation, µs (log scale)")
    found = scatter_latencies(results)  # one load for all test points, so that their charts can be compared
    for cell, members in same_cell(r for r, _ in found).items():
        if len(members) > 1:
            every = (_scatter_row(kind, r, s) for r, s in found if r in members)
            rows = [row for row in every if math.isfinite(row["x"]) and math.isfinite(row["y"])]
            look = partial(scatter, colors=colors, titles=titles, log_x=kind == "deviation")
            yield cell_figure(kind, cell, rows, look, more=f", at {load_words(found[0][1].load)}")


def latency_figures(results: Sequence[Result], colors: Colors, calibration: Calibration | None) -> Iterator[Figure]:
    """Yield the percentiles by switch and load, one figure per cell, all on one axis."""
    cells = {cell: latency_rows(m, _floor_us(calibration, cell, m)) for cell, m in same_cell(results).items()}
    every = [row for rows in cells.values() for row in rows]
    known = [row[key] for row in every for key in ("p50", "p99_9") if math.isfinite(row[key])] or [1.0, 10.0]
    look = partial(latency_ranges, colors=colors, domain=(min(known) / 1.15, max(known) * 1.15))
    for cell, rows in cells.items():
        if rows:
            yield cell_figure("latency", cell, rows, look)


def load_figures(results: Sequence[Result], colors: Colors, calibration: Calibration | None) -> Iterator[Figure]:
    """Yield latency over load, one figure per cell with enough loads, the smallest frames first."""
    for cell, members in sorted(same_cell(results).items(), key=lambda it: it[0].frame_size_bytes):
        rows = load_rows(members)
        if rows:
            floor, titles = _floor_us(calibration, cell, members), (LOAD_TITLE, "latency, µs (log scale)")
            yield cell_figure(
                "load", cell, rows, partial(curves, colors=colors, titles=titles, dashed="p99", floor=floor)
            )


def p99_figures(derived: Derived, colors: Colors) -> Iterator[Figure]:
    """Yield the p99 of all paths and switches as one figure: of the smallest frames, at the middle load."""
    found = [it for it in Standings(derived).latency if it.results]
    smallest = smallest_frames(r for it in found for r in it.results) if found else None
    found = [it for it in found if (it.point.frame_size_bytes, it.point.traffic) == smallest]
    loads = [it.load for it in found]
    rows = []
    for it in found:
        usual = max(loads, key=loads.count)
        path = path_name(it.point) + ("" if it.load == usual else f" at {load_words(it.load)}")
        for result in it.results:
            summary = latency_at(result, it.load)
            if summary is not None:
                row = latency_row(result, summary, _percentile_words(summary))
                rows.append({**row, "path": path, "us": max(summary.p99, SMALLEST_US)})
    if smallest and rows:
        title = f"p99 latency, {frames_words(smallest[1], smallest[0])}, at {load_words(usual)}"
        look = partial(path_dots, colors=colors)
        yield Figure("p99", "p99", found[0].point.scenario, title, rows, look, 400.0)


def _floor_us(calibration: Calibration | None, cell: Point, members: Sequence[Result]) -> float | None:
    """Return the latency of the tester alone by the clock of the results; None where they have several clocks."""
    clocks = {summary.clock for result in members for summary in result.latency}
    floor = latency_floor(calibration, cell, *clocks) if len(clocks) == 1 else None
    return floor.p50_ns / 1e3 if floor else None


# Tables


def latency_table(run: Run, results: Sequence[Result]) -> PageTable:
    """Return a row per latency, in us, with its probes and, where it is known, the tester latency baseline."""
    items = _latencies(run, results)
    columns = (*point_columns(lambda it: it.result.point), *on_page(LATENCY, items))
    note = "Sent, stamped, received: probes. Stamped but not received: lost, or still in flight when the trial ended."
    if any(column.title == "baseline" for column in columns):
        note += " Baseline: the p50 that the tester measures without a switch at this frame size."
    return page_table("Latency in µs", columns, items, note, out=lambda it: not latency_counts(it.summary))


def jitter_table(run: Run, results: Sequence[Result]) -> PageTable:
    """Return p50 / p99 / max in us of each definition that a latency has."""
    items = [it for it in _latencies(run, results) if it.summary.ipdv or it.summary.pdv or it.summary.burst_jitter]
    columns = (
        *point_columns(lambda it: it.result.point),
        PageColumn("load", lambda it: load_words(it.summary.load)),
        *on_page(LATENCY, items, JITTER),
        PageColumn("clock", lambda it: it.summary.clock),
    )
    title = "Jitter, p50 / p99 / max in µs"
    return page_table(title, columns, items, out=lambda it: not latency_counts(it.summary))


def _latencies(run: Run, results: Sequence[Result]) -> list[OfLatency]:
    return [OfLatency(run, result, summary) for result in results for summary in result.latency]


# Sentences

MIN_BATCHING_RATIO = 1.5
"""A lower ratio of two latencies has too many other causes for naming one."""


def load_sentences(results: Iterable[Result]) -> list[str]:
    """Return a sentence per finding on latency against load: inversions first, then knees."""
    inversions, knees = [], []
    for result in results:
        finding = result.load_finding
        if finding is not None and finding.inversion is not None and finding.inversion_ratio is not None:
            low, high = (load_words(label) for label in finding.inversion)
            of = " of R+"
            other = high.removesuffix(of) if low.endswith(of) and high.endswith(of) else high
            loads = [s for s in result.latency if s.load in finding.inversion]
            carried = all(s.achieved_fraction >= MIN_CARRIED for s in loads)  # else queues were full
            batches = carried and finding.inversion_ratio >= MIN_BATCHING_RATIO
            inversions.append(
                f"{point_name(result.point)}: latency at {low} is {finding.inversion_ratio:.1f} times that at {other}"
                f"{', as where packets wait for a batch' * batches}"
            )
        if finding is not None and finding.knee is not None:
            words = f"latency rises sharply above {load_words(finding.knee)} (knee)"
            knees.append(f"{point_name(result.point)}: {words}")
    return inversions + knees


def v2v_sentence(plan: Plan, results: Iterable[Result]) -> str:
    """Return the remark that v2v has one latency although several loads were requested; empty if not so."""
    echoed = [r for r in results if scenario_named(r.point.scenario).latency_by_echo]
    loads = {s.load for r in echoed for s in r.latency}
    if len(plan.latency.loads) < 2 or len(loads) != 1:
        return ""
    scenario = echoed[0].point.scenario
    return (
        f"{scenario} latency is measured only at a fixed {load_words(*loads)} (see docs/methodology.md), "
        "not at several loads"
    )


def batching_sentence(plan: Plan, results: Iterable[Result]) -> str:
    """Return how the VNFs of the run collect frames before they send; empty if they do not, or there are none."""
    known = [scenario_named(r.point.scenario) for r in results]
    if not plan.send_burst or not any(it.has_vnfs or it.latency_by_echo for it in known):
        return ""
    return (
        f"VNFs whose text names no send_burst send {plan.send_burst} packets at once, or what has come in "
        f"{plan.drain_us} µs, as DPDK's l2fwd does: at low load a packet waits for others"
    )
