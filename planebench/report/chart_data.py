# SPDX-License-Identifier: BSD-3-Clause
"""What the charts draw, as rows of plain values: derived from results and trials, without a word on looks."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from planebench.model.results import LatencySummary, Result
from planebench.model.run import Run
from planebench.model.words import (
    NOTHING,
    cycles,
    estimate,
    frames,
    latency_counts,
    load_words,
    mark,
    mpps,
    percent,
    printable,
    throughput,
    us,
)
from planebench.stats.choose import is_foreign
from planebench.stats.histogram import exceedance, merge
from planebench.stats.ranking import counts
from planebench.stats.results import latency_groups, run_band

Row = dict[str, Any]

TIP_MARK = "\u2063"
"""Starts every ``tip`` (an invisible separator): tells our descriptions of a mark from those that Vega makes up."""

SMALLEST_SHARE = 1e-5
"""Where percentile curves end: p99.999."""

SMALLEST_US = 1e-3
"""One nanosecond: a log axis has no zero."""


def throughput_row(result: Result) -> Row:
    """One bar: mean, lowest and highest trial in Mpps, and how it may be read."""
    shown = result.throughput_pps is not None
    rates = [r / 1e6 for r in result.throughput_trials_pps] or [0.0]
    kind = result.verdict.kind.value
    return {
        "switch": printable(result.point.switch),
        "size": frames(result.point),
        "size_bytes": result.point.frame_size_bytes,
        "chain": result.point.chain_length,
        "chain_label": printable(result.point.chain_label),
        "mpps": (result.throughput_pps or 0.0) / 1e6,
        "low": min(rates),
        "high": max(rates),
        "label": throughput(result) + _band_words(result) if shown else f"{NOTHING} {kind}",
        "limited": mark(result.verdict.kind) == "≥",
        "counts": counts(result),
        "tip": f"{TIP_MARK}{printable(result.point.switch)}, {printable(result.point.scenario_label)} "
        f"{result.point.direction} {frames(result.point)}: {_throughput_words(result)}",
    }


def latency_row(result: Result, summary: LatencySummary) -> Row:
    """Percentiles of one switch at one load, in us."""
    counting = latency_counts(summary)
    figures = f"{us(summary.p50)} / {us(summary.p99)}"
    return {
        "switch": printable(result.point.switch),
        "load": load_words(summary.load),
        "p50": max(summary.p50, SMALLEST_US),
        "p99": max(summary.p99, SMALLEST_US),
        "p99_9": max(summary.p99_9, SMALLEST_US),
        "label": figures if counting else f"({figures})",
        "counts": counting,
        "tip": f"{TIP_MARK}{printable(result.point.switch)} at {load_words(summary.load)}: mean {us(summary.mean)}, "
        f"p50 {us(summary.p50)}, p90 {us(summary.p90)}, p99 {us(summary.p99)}, p99.9 {us(summary.p99_9)}, "
        f"max {us(summary.max)} µs" + ("" if counting else f" ({summary.verdict.kind.value})"),
    }


def latency_rows(results: Sequence[Result], floor_us: float | None = None) -> list[Row]:
    """All latencies of a cell that have samples; loads in the order they come in. ``floor_us``: of the tester."""
    return [{**latency_row(r, s), "floor": floor_us} for r in results for s in r.latency if s.samples]


def percentile_rows(run: Run, results: Sequence[Result], load: str) -> list[Row]:
    """Percentile curves of the valid trials of one cell and load: ``above`` is the share of probes that took longer."""
    band = run_band(run.trials, run.header.settings.get("band"))
    by_point = run.by_point()
    rows: list[Row] = []
    for result in results:
        if any(s.load == load and latency_counts(s) for s in result.latency):
            choice = latency_groups(by_point[result.point], result.band or band)[load]
            rows += _curve(
                printable(result.point.switch), [t.latency.histogram for t in choice.trials if t.latency is not None]
            )
    return rows


def scatter_latencies(results: Sequence[Result]) -> list[tuple[Result, LatencySummary]]:
    """For conext19's Fig. 1: at the highest share of R+ where two switches or more have one that counts."""
    shares: dict[float, list[tuple[Result, LatencySummary]]] = {}
    for result in results:
        for latency in result.latency:
            share = _share(latency.load)
            if share is not None and _comparable(latency) and counts(result) and not is_foreign(result.verdict):
                shares.setdefault(share, []).append((result, latency))
    return next((shares[share] for share in sorted(shares, reverse=True) if len(shares[share]) > 1), [])


def tradeoff_row(result: Result, latency: LatencySummary, ends: tuple[float, float] | None) -> Row:
    """Throughput (x) and mean latency (y) of a switch, each from its lowest to its highest trial."""
    bar, (low, high) = throughput_row(result), ends or (latency.mean, latency.mean)
    x = {"x": bar["mpps"], "x_low": bar["low"], "x_high": bar["high"]}
    return {
        "switch": bar["switch"],
        **x,
        **_y(latency.mean, low, high),
        "tip": f"{bar['tip']}; mean {us(latency.mean)} µs",
    }


def deviation_row(result: Result, latency: LatencySummary) -> Row:
    """Mean latency (x) and its standard deviation (y) of a switch, of all probes together."""
    switch, mean = printable(result.point.switch), max(latency.mean, SMALLEST_US)
    tip = f"{TIP_MARK}{switch} at {load_words(latency.load)}: mean {us(latency.mean)}, sd {us(latency.stddev)} µs"
    sd = latency.stddev
    return {"switch": switch, "x": mean, "x_low": mean, "x_high": mean, **_y(sd, sd, sd), "tip": tip}


def _comparable(latency: LatencySummary) -> bool:
    return latency_counts(latency) and latency.samples > 0 and not is_foreign(latency.verdict)


def _band_words(result: Result) -> str:
    """What tells a bar that is not to be compared with the others."""
    return f" ({result.band or 'unknown'} band)" if is_foreign(result.verdict) else ""


def _y(value: float, low: float, high: float) -> Row:
    return {"y": max(value, SMALLEST_US), "y_low": max(low, SMALLEST_US), "y_high": max(high, SMALLEST_US)}


def end_labels(rows: Sequence[Row], x: str, y: str, gap: float, log: bool = False) -> list[Row]:
    """For each switch a label at the last point of its line, moved apart to at least ``gap`` (in y, or in log10 y)."""
    last: dict[str, Row] = {}
    for row in rows:
        if row["switch"] not in last or row[x] >= last[row["switch"]][x]:
            last[row["switch"]] = row
    places = spread(
        {s: math.log10(r[y]) if log else r[y] for s, r in last.items()}, gap, floor=None if log else gap / 3
    )
    return [{**row, "label_y": 10 ** places[s] if log else places[s]} for s, row in last.items()]


def apart(rows: Sequence[Row], x: str, y: str, dx: float, dy: float) -> list[Row]:
    """Each row with a ``label_y`` at least ``dy`` (log10 y) from that of any other row within ``dx``."""
    placed: list[Row] = []
    for row in sorted(rows, key=lambda r: r[y]):
        near = [math.log10(p["label_y"]) for p in placed if abs(p[x] - row[x]) < dx]
        place = max([math.log10(row[y]), *(other + dy for other in near)])
        placed.append({**row, "label_y": 10**place})
    return placed


def spread(wanted: Mapping[str, float], gap: float, floor: float | None = None) -> dict[str, float]:
    """Positions at least ``gap`` apart, in the same order, each group of neighbours centred on where it belongs.

    No position is below ``floor``: what would be there is moved up, and what is in its way with it.
    """
    groups: list[tuple[list[str], float]] = []
    for name in sorted(wanted, key=lambda n: wanted[n]):
        groups.append(([name], wanted[name]))
        while len(groups) > 1 and _overlap(groups[-2], groups[-1], gap):
            (names_a, centre_a), (names_b, centre_b) = groups[-2:]
            total = len(names_a) + len(names_b)
            centre = (centre_a * len(names_a) + centre_b * len(names_b)) / total
            groups[-2:] = [(names_a + names_b, centre)]
    places = {n: centre + (i - (len(names) - 1) / 2) * gap for names, centre in groups for i, n in enumerate(names)}
    lowest = -math.inf if floor is None else floor
    for name, place in places.items():
        places[name] = max(place, lowest)
        lowest = places[name] + gap
    return places


def _overlap(a: tuple[list[str], float], b: tuple[list[str], float], gap: float) -> bool:
    return b[1] - a[1] < gap * (len(a[0]) + len(b[0])) / 2


def _curve(switch: str, histograms: Sequence[str]) -> list[Row]:
    points = [(value, above) for value, above in exceedance(merge(histograms)) if above >= SMALLEST_SHARE]
    return [{"switch": switch, "us": max(value, SMALLEST_US), "above": above} for value, above in points]


def _share(load: str) -> float | None:
    try:
        return float(load)
    except ValueError:
        return None


def _throughput_words(result: Result) -> str:
    if result.throughput_pps is None:
        return f"no trial counts ({result.verdict.kind.value})"
    at_least = "at least " if mark(result.verdict.kind) == "≥" else ""
    unstable = ", unstable" if mark(result.verdict.kind) == "~" else ""
    trials = len(result.throughput_trials_pps)
    plural = "" if trials == 1 else "s"
    return (
        f"{at_least}{mpps(result.throughput_pps)} Mpps, {result.throughput_l1_gbps or 0:.1f} Gb/s layer 1, "
        f"mean of {trials} trial{plural}{unstable}{_band_words(result)}{_limit_words(result)}"
    )


def _limit_words(result: Result) -> str:
    """What is known of a switch that the tester limits."""
    if mark(result.verdict.kind) != "≥" or result.switch_busy_share is None:
        return ""
    words = (
        f"; switch {percent(result.switch_busy_share)} busy, {cycles(result.switch_cycles_per_packet)} cycles a packet"
    )
    return words + (f", {estimate(result.capacity_estimate_pps)} Mpps" if result.capacity_estimate_pps else "")
