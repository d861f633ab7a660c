# SPDX-License-Identifier: BSD-3-Clause
"""Latency and jitter: rows and figures by load, frame size and percentile; sentences on latency against load."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

from planebench.analysis.capacity import latency_floor, least_ns
from planebench.analysis.compare import Derived
from planebench.analysis.counting import counts, latency_compares, latency_counts, same_cell
from planebench.analysis.histogram import exceedance, merge
from planebench.analysis.metrics.results import JITTERS
from planebench.model.header import Calibration, LatencyFloor
from planebench.model.plan import Plan
from planebench.model.records import Point
from planebench.model.results import JitterSummary, LatencySummary, LoadFinding, Result
from planebench.model.scenario import scenario_named
from planebench.model.words import (
    ARROWS,
    count,
    frame_size,
    frames,
    interval,
    load_words,
    mpps,
    percentiles,
    printable,
    result_words,
    us,
)
from planebench.report.figure import (
    SMALLEST_US,
    ChartRow,
    Colors,
    Figure,
    FigureId,
    cell_figure,
    chain_title,
    point_name,
    safe,
    tip,
)
from planebench.report.throughput import throughput_row, verdict_words

HOST_SHARE = 0.05
"""What the host adds to a p99 is told from this share on."""
SMALLEST_SHARE = 1e-5
"""The end of percentile curves: p99.999."""


def latency_row(result: Result, summary: LatencySummary) -> ChartRow:
    """Return the percentiles of one switch at one load, in us."""
    counting = latency_counts(summary)
    figures = percentiles(summary)
    return {
        "switch": printable(result.point.switch),
        "load": load_words(summary.load),
        "p50": max(summary.p50, SMALLEST_US),
        "p99": max(summary.p99, SMALLEST_US),
        "p99_9": max(summary.p99_9, SMALLEST_US),
        "label": figures if counting else f"({figures})",
        "counts": counting,
        "cell": point_name(result.point),
        "tip": tip(
            f"{printable(result.point.switch)} at {load_words(summary.load)}: mean {us(summary.mean)}, "
            f"p50 {us(summary.p50)}{_interval_words(summary.p50_low, summary.p50_high)}, p90 {us(summary.p90)}, "
            f"p99 {us(summary.p99)}{_interval_words(summary.p99_low, summary.p99_high)}, p99.9 {us(summary.p99_9)}, "
            f"max {us(summary.max)} µs; {verdict_words(summary.verdict)}; {count(summary.samples)} probes",
            result.point,
        ),
    }


def _interval_words(low: float | None, high: float | None) -> str:
    return f" {known}" if (known := interval(low, high, us)) else ""


def latency_rows(results: Sequence[Result], floor_us: float | None = None) -> list[ChartRow]:
    """Return all latencies with samples; ``floor_us`` is the tester latency baseline."""
    return [{**latency_row(r, s), "floor": floor_us} for r in results for s in r.latency if s.samples]


def percentile_rows(derived: Derived, results: Sequence[Result], load: str) -> list[ChartRow]:
    """Return the percentile curves at a load, valid trials merged; ``above`` is the share of slower probes."""
    rows: list[ChartRow] = []
    for result, summary in ((r, s) for r in results for s in r.latency if s.load == load and latency_counts(s)):
        names = {"switch": printable(result.point.switch), "cell": point_name(result.point)}
        curve = exceedance(merge(derived.histograms(result, summary)))
        rows += [
            {**names, "us": max(value, SMALLEST_US), "above": above}
            for value, above in curve
            if above >= SMALLEST_SHARE
        ]
    return rows


def scatter_latencies(results: Sequence[Result]) -> list[tuple[Result, LatencySummary]]:
    """Return every latency at the highest share of R+ that most switches were measured at (conext19, Fig. 1).

    One that was not carried is in it, too: a chart without it would hide its switch.
    """
    shares: dict[float, list[tuple[Result, LatencySummary]]] = {}
    for result in results:
        for latency in result.latency:
            if (share := _share(latency.load)) is not None and latency.samples and result.throughput_pps is not None:
                shares.setdefault(share, []).append((result, latency))
    found = max(shares.items(), key=lambda it: (len({r.point.switch for r, _ in it[1]}), it[0]), default=(0.0, []))[1]
    return found if len({r.point.switch for r, _ in found}) > 1 else []


def tradeoff_row(result: Result, latency: LatencySummary) -> ChartRow:
    """Return throughput (x), with its interval, and mean latency (y) of a switch."""
    bar = throughput_row(result)
    return {
        **_named(result, latency),
        **{"x": bar["mpps"], "x_low": bar["low"], "x_high": bar["high"]},
        "y": max(latency.mean, SMALLEST_US),
        "tip": f"{bar['tip']}; mean latency {us(latency.mean)} µs",
    }


def _named(result: Result, latency: LatencySummary) -> ChartRow:
    """Return the switch of a point and its label, with the verdict of a point that is not compared."""
    switch, shown = printable(result.point.switch), latency_compares(latency) and counts(result)
    kind = result.verdict.kind if latency_compares(latency) else latency.verdict.kind
    return {"switch": switch, "label": switch if shown else f"{switch} ({kind.value})", "counts": shown}


def deviation_row(result: Result, latency: LatencySummary) -> ChartRow:
    """Return mean latency (x) and its standard deviation (y) of a switch, over all probes."""
    named, mean, sd = _named(result, latency), max(latency.mean, SMALLEST_US), latency.stddev
    words = f"{named['switch']} at {load_words(latency.load)}: mean {us(latency.mean)}, sd {us(sd)} µs"
    said = tip(f"{words}; {verdict_words(latency.verdict)}", result.point)
    return {**named, "x": mean, "x_low": mean, "x_high": mean, "y": max(sd, SMALLEST_US), "tip": said}


def _share(load: str) -> float | None:
    """Return the share in a load label: 0.5 of ``0.50`` or ``0.50 carried``; None for a rate."""
    try:
        return float(load.partition(" ")[0])
    except ValueError:
        return None


MIN_LOADS = 3
"""Minimum of accepted loads for a chart of latency against load, the only one that compares switches at equal Mpps."""


def load_rows(results: Sequence[Result]) -> list[ChartRow]:
    """Return p50 (with its interval) and p99 over intended Mpps, for at least MIN_LOADS accepted loads."""
    rows: list[ChartRow] = []
    for result in results:
        counting = [s for s in result.latency if latency_counts(s) and s.samples]
        if len(counting) >= MIN_LOADS:
            rows += [_load_row(result, s) for s in counting]
    return rows


def _load_row(result: Result, summary: LatencySummary) -> ChartRow:
    switch = printable(result.point.switch)
    knee = result.load_finding is not None and result.load_finding.knee == summary.load
    return {
        "switch": switch,
        "mpps": summary.intended_pps / 1e6,
        "p50": max(summary.p50, SMALLEST_US),
        "low": max(summary.p50_low or summary.p50, SMALLEST_US),
        "high": max(summary.p50_high or summary.p50, SMALLEST_US),
        "p99": max(summary.p99, SMALLEST_US),
        "knee": knee,
        "tip": tip(
            f"{switch} at {load_words(summary.load)} ({mpps(summary.intended_pps)} Mpps): "
            f"p50 {us(summary.p50)}{_interval_words(summary.p50_low, summary.p50_high)}, "
            f"p99 {us(summary.p99)}{_interval_words(summary.p99_low, summary.p99_high)} µs"
            f"{', the knee' if knee else ''}; {verdict_words(summary.verdict)}",
            result.point,
        ),
    }


MIN_SIZES = 3
"""Frame sizes for a curve; two are read as well from the table."""

Look = Callable[[LatencySummary], float | None]
"""Returns a value of a latency in us; or None."""


def mean_of(summary: LatencySummary) -> float:
    """Return the mean latency."""
    return summary.mean


def jitter_of(field: str) -> Look:
    """Return the look at the mean jitter by the definition ``field`` of JITTERS."""

    def look(summary: LatencySummary) -> float | None:
        jitter: JitterSummary | None = getattr(summary, field)
        return None if jitter is None else jitter.mean

    return look


def curve_rows(
    results: Iterable[Result],
    x: Callable[[Result, LatencySummary], float],
    look: Look,
    least: int,
    load: str | None = None,
) -> list[ChartRow]:
    """Return a curve over ``x`` per switch; a switch with fewer than ``least`` points is left out.

    ``load`` is the only load that is shown; None shows all.
    """
    curves: dict[str, list[ChartRow]] = {}
    for result in results:
        for summary in result.latency:
            found = look(summary) if latency_compares(summary) and load in (None, summary.load) else None
            if found is not None:
                row = _row(result, summary, x(result, summary), found)
                curves.setdefault(result.point.switch, []).append(row)
    return [row for rows in curves.values() if len(rows) >= least for row in rows]


def _row(result: Result, summary: LatencySummary, x: float, value: float) -> ChartRow:
    switch = printable(result.point.switch)
    return {
        "switch": switch,
        "x": x,
        "y": max(value, SMALLEST_US),
        "tip": tip(
            f"{switch} at {load_words(summary.load)} ({mpps(summary.intended_pps)} Mpps), {frames(result.point)}: "
            f"{us(value)} µs; {verdict_words(summary.verdict)}",
            result.point,
        ),
    }


MEAN, _SD = "mean latency, µs (log scale)", "standard deviation, µs (log scale)"

DRAWN = [(JITTERS[field], field) for field in ("ipdv", "burst_jitter")]
"""The definitions of jitter that are drawn; PDV is the latency moved down, and in the table, as signed differences."""

JITTER = "mean jitter, µs (log scale)"


def tradeoff_figures(results: Sequence[Result], colors: Colors) -> Iterator[Figure]:
    """Yield throughput against mean latency, one figure per cell."""
    from planebench.report.charts import scatter

    for cell, title, found in _scattered(results):
        chart = partial(scatter, [tradeoff_row(r, s) for r, s in found], colors, "throughput, Mpps", MEAN, log_x=False)
        yield cell_figure("tradeoff", cell, chart, title=title)


def deviation_figures(results: Sequence[Result], colors: Colors) -> Iterator[Figure]:
    """Yield mean latency against its standard deviation, one figure per cell."""
    from planebench.report.charts import scatter

    for cell, title, found in _scattered(results):
        chart = partial(scatter, [deviation_row(r, s) for r, s in found], colors, MEAN, _SD, log_x=True)
        yield cell_figure("deviation", cell, chart, title=title)


def _scattered(results: Sequence[Result]) -> Iterator[tuple[Point, str, list[tuple[Result, LatencySummary]]]]:
    """Yield the test points that a scatter plot can show, each with the end of its title and its latencies."""
    found = scatter_latencies(results)  # one load for all test points, so that their charts can be compared
    for cell, members in same_cell(r for r, _ in found).items():
        if len(members) > 1:
            yield cell, f", at {load_words(found[0][1].load)}", [(r, s) for r, s in found if r in members]


def jitter_figures(results: Sequence[Result], colors: Colors) -> Iterator[Figure]:
    """Yield jitter over load, where enough loads were measured."""
    from planebench.report.charts import curves_over_load

    for name, field in DRAWN:
        for cell, members in same_cell(results).items():
            rows = curve_rows(members, lambda _, s: s.intended_pps / 1e6, jitter_of(field), MIN_LOADS)
            if rows:
                chart = partial(curves_over_load, rows, colors, JITTER)
                yield cell_figure("jitter", cell, chart, key=f"-{field}", title=f", {name}")


def size_figures(results: Sequence[Result], colors: Colors) -> Iterator[Figure]:
    """Yield mean latency over frame size, where enough sizes were measured."""
    yield from _sizes("sizes", results, colors, mean_of, MEAN, "")


def jitter_size_figures(results: Sequence[Result], colors: Colors) -> Iterator[Figure]:
    """Yield jitter over frame size, where enough sizes were measured."""
    for name, field in DRAWN:
        yield from _sizes("jitter-sizes", results, colors, jitter_of(field), JITTER, name)


def _sizes(
    kind: FigureId, results: Sequence[Result], colors: Colors, look: Look, y_title: str, name: str
) -> Iterator[Figure]:
    from planebench.report.charts import curves_over_sizes

    for cell, members in same_cell((r for r in results if not r.point.traffic), frame_size_bytes=64).items():
        loads = list(dict.fromkeys(s.load for r in members for s in r.latency))
        for load in dict.fromkeys([*loads[:1], *loads[-1:]]):  # the lowest and the highest: more says little more
            rows = curve_rows(members, lambda r, _: r.point.frame_size_bytes, look, MIN_SIZES, load)
            if rows:
                key = "-".join(filter(None, (kind, cell.scenario_slug, cell.direction, safe(load), safe(name))))
                way = f"{chain_title(cell)}{ARROWS[cell.direction]} {cell.direction}"
                title = ", ".join(filter(None, (way, load_words(load), name)))
                yield Figure(key, kind, cell.scenario, title, partial(curves_over_sizes, rows, colors, y_title))


def latency_figures(results: Sequence[Result], colors: Colors, calibration: Calibration | None) -> Iterator[Figure]:
    """Yield the percentiles by switch and load, one figure per cell, all on one axis."""
    from planebench.report.charts import latency_ranges

    cells = {cell: latency_rows(m, _floor_us(calibration, cell)) for cell, m in same_cell(results).items()}
    domain = _latency_domain([row for rows in cells.values() for row in rows])
    for cell, rows in cells.items():
        if rows:
            chart = partial(latency_ranges, rows, colors, domain)
            yield cell_figure("latency", cell, chart)


def load_figures(results: Sequence[Result], colors: Colors, calibration: Calibration | None) -> Iterator[Figure]:
    """Yield latency over load, one figure per cell with enough loads."""
    from planebench.report.charts import latency_load

    for cell, members in same_cell(results).items():
        rows = load_rows(members)
        if rows:
            chart = partial(latency_load, rows, colors, _floor_us(calibration, cell))
            yield cell_figure("load", cell, chart)


def _floor_us(calibration: Calibration | None, cell: Point) -> float | None:
    floor = latency_floor(calibration, cell)
    return floor.p50_ns / 1e3 if floor else None


def percentile_figures(derived: Derived, results: Sequence[Result], colors: Colors) -> Iterator[Figure]:
    """Yield the latency distribution, one figure per cell and load."""
    from planebench.report.charts import percentile_curves

    for cell, members in same_cell(results).items():
        loads = dict.fromkeys(s.load for r in members for s in r.latency)
        curves = {load: percentile_rows(derived, members, load) for load in loads}
        values = [row["us"] for rows in curves.values() for row in rows]
        for load, rows in curves.items():
            if rows:
                chart = partial(percentile_curves, rows, colors, (min(values), max(values) * 1.1))
                yield cell_figure("percentiles", cell, chart, key=f"-{safe(load)}", title=f", {load_words(load)}")


def _latency_domain(rows: Sequence[ChartRow]) -> tuple[float, float]:
    """Return one axis for all loads and chain lengths of a scenario, with room for labels on the right."""
    low = min((min(row["p50"], row["floor"] or row["p50"]) for row in rows), default=1.0) / 1.3
    high = max((row["p99_9"] for row in rows), default=10.0)
    return low, high * (high / low) ** 0.5 if math.isfinite(high) else low * 100


_SHARE = " of R+"
MIN_BATCHING_RATIO = 1.5
"""A lower ratio of two latencies has too many other causes for naming one."""
MIN_CARRIED = 0.98
"""Share of the intended load below which queues of the switch were full (as in measure/verdict.py)."""


def load_sentences(results: Iterable[Result]) -> list[str]:
    """Return a sentence per finding on latency against load: inversions first, then knees."""
    found = [(r, r.load_finding) for r in results if r.load_finding is not None]
    sentences = [text for r, finding in found for text in _inversion(r, finding)]
    return sentences + [text for r, finding in found for text in _knee(r, finding)]


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
    if not plan.send_burst or not any(scenario_named(r.point.scenario).has_vnfs for r in results):
        return ""
    return (
        f"VNFs whose text names no send_burst send {plan.send_burst} packets at once, or what has come in "
        f"{plan.drain_us} µs, as DPDK's l2fwd does: at low load a packet waits for others"
    )


def clock_sentences(results: Iterable[Result]) -> list[str]:
    """Return a sentence per latency by the clock of ports: p99, floor, probes, and what the software clock adds."""
    return [
        f"{r.point.switch} {frame_size(r.point.frame_size_bytes)} at {load_words(s.load)}: p99 {us(s.p99)} µs, clock: "
        f"{s.clock}{_floor_words(s.floor)}, of {s.probes_stamped} of {s.probes_sent} probes. "
        f"The software clock has {us(s.software_p99)} µs for the same probes: "
        f"{s.software_share_p99:.0%} of that is its own: the drivers of the tester and the wait for its next poll"
        for r in results
        for s in r.latency
        if s.software_p99 and s.software_share_p99 is not None and math.isfinite(s.p99)
    ]


def host_sentences(results: Iterable[Result]) -> list[str]:
    """Return a sentence per latency whose p99 is another with the probes that met what the host did."""
    return [
        f"{result_words(r)} at {load_words(s.load)}: p99 {us(s.p99)}{_interval_words(s.p99_low, s.p99_high)} µs, "
        f"{us(s.with_host_p99)}{_interval_words(s.with_host_p99_low, s.with_host_p99_high)} µs with what the host did"
        for r in results
        for s in r.latency
        if s.with_host_p99 is not None and s.with_host_p99 > (1 + HOST_SHARE) * s.p99
    ]


def _floor_words(floor_us: float | None) -> str:
    return "" if floor_us is None else f", floor {us(floor_us)} µs"


def floor_sentence(calibration: Calibration | None, sizes: Iterable[int]) -> str:
    """Return the tester latency baseline for some frame sizes: ``64 B 1.20 / 3.00 µs``. Empty if unknown."""
    wanted = set(sizes)
    floors = [f for f in (calibration.floors if calibration else ()) if f.frame_size_bytes in wanted]
    if not floors:
        return ""
    each = ", ".join(
        f"{frame_size(f.frame_size_bytes)} {us(f.p50_ns / 1e3)} / {us(f.p99_ns / 1e3)}{_clock_words(f)}"
        for f in sorted(floors, key=lambda floor: floor.frame_size_bytes)
    )
    return f"tester latency baseline, p50 / p99 in µs: {each}"


def _clock_words(floor: LatencyFloor) -> str:
    """Return the clock of a baseline and its floor; empty where a run does not have its histogram."""
    ns = least_ns(floor)
    return "" if ns is None else f" (clock: {floor.clock}{_floor_words(ns / 1e3)})"


def _inversion(result: Result, finding: LoadFinding) -> Iterator[str]:
    if finding.inversion is None or finding.inversion_ratio is None:
        return
    low, high = (load_words(label) for label in finding.inversion)
    shares = low.endswith(_SHARE) and high.endswith(_SHARE)
    other = high.removesuffix(_SHARE) if shares else high
    cause = ", as where packets wait for a batch" if _by_batching(result, finding) else ""
    yield f"{result_words(result)}: latency at {low} is {finding.inversion_ratio:.1f} times that at {other}{cause}"


def _by_batching(result: Result, finding: LoadFinding) -> bool:
    """Return whether packets that wait for a batch may explain the inversion: not where queues were full."""
    loads = [s for s in result.latency if s.load in (finding.inversion or ())]
    carried = all(s.achieved_fraction >= MIN_CARRIED for s in loads)
    return carried and (finding.inversion_ratio or 0.0) >= MIN_BATCHING_RATIO


def _knee(result: Result, finding: LoadFinding) -> Iterator[str]:
    if finding.knee is not None:
        yield f"{result_words(result)}: latency rises sharply above {load_words(finding.knee)} (knee)"
