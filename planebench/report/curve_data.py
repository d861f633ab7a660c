# SPDX-License-Identifier: BSD-3-Clause
"""Rows of curves as the papers have them: latency and jitter over load and over frame size (can17, ic16)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from planebench.model.results import JitterSummary, LatencySummary, Result
from planebench.model.words import frames, latency_counts, load_words, mpps, printable, us
from planebench.report.chart_data import SMALLEST_US, TIP_MARK, Row, throughput_row
from planebench.report.latency_spread import Spreads
from planebench.report.load_data import MIN_LOADS
from planebench.stats.choose import is_foreign
from planebench.stats.ranking import counts

MIN_SIZES = 3
"""Frame sizes for a curve; two are read as well from the table."""

MIN_COUNTS = 2
"""Numbers of VNFs for a curve: what lies between one and many is the question."""
SMALLEST_MPPS = 1e-6
"""A log axis has no zero."""

Look = Callable[[Result, LatencySummary], tuple[float, tuple[float, float] | None] | None]
"""The value of a latency, in us, and between what its trials lie; None where it has no such value."""


def mean_of(spreads: Spreads) -> Look:
    """The mean latency, with the lowest and highest of the trials where there are several."""

    def look(result: Result, summary: LatencySummary) -> tuple[float, tuple[float, float] | None]:
        spread = spreads.get((result.point, summary.load))
        return summary.mean, spread.mean if spread else None

    return look


def jitter_of(field: str) -> Look:
    """The mean jitter by one of the definitions."""

    def look(_: Result, summary: LatencySummary) -> tuple[float, None] | None:
        jitter: JitterSummary | None = getattr(summary, field)
        return None if jitter is None else (jitter.mean, None)

    return look


def over_load(results: Sequence[Result], look: Look) -> list[Row]:
    """Over intended Mpps, of the switches with at least MIN_LOADS loads that count."""
    rows: list[Row] = []
    for result in results:
        found = [row for s in _counting(result) if (row := _row(result, s, s.intended_pps / 1e6, look))]
        rows += found if len(found) >= MIN_LOADS else []
    return rows


def over_sizes(results: Sequence[Result], load: str, look: Look) -> list[Row]:
    """Over frame size at one load, of the switches with at least MIN_SIZES sizes; ``results`` differ in size only."""
    by_switch: dict[str, list[Row]] = {}
    for result in results:
        for summary in _counting(result):
            row = _row(result, summary, result.point.frame_size_bytes, look) if summary.load == load else None
            if row:
                by_switch.setdefault(result.point.switch, []).append(row)
    return [row for rows in by_switch.values() if len(rows) >= MIN_SIZES for row in rows]


def throughput_over_vnfs(results: Sequence[Result]) -> list[Row]:
    """Throughput of the switches with at least MIN_COUNTS numbers of VNFs that count; ``results`` differ in these."""
    rows: dict[str, list[Row]] = {}
    for result in results:
        if counts(result) and result.throughput_pps and not is_foreign(result.verdict):
            bar = throughput_row(result)
            x, low = result.point.chain_length, max(bar["low"], SMALLEST_MPPS)
            ends = {"low": low, "high": max(bar["high"], low)}
            rows.setdefault(bar["switch"], []).append({**bar, **ends, "x": x, "y": max(bar["mpps"], low)})
    return _enough(rows, MIN_COUNTS)


def latency_over_vnfs(results: Sequence[Result], load: str, look: Look) -> list[Row]:
    """The same of a latency, or jitter, at one load."""
    rows: dict[str, list[Row]] = {}
    for result in results:
        for summary in _counting(result):
            row = _row(result, summary, result.point.chain_length, look) if summary.load == load else None
            if row:
                rows.setdefault(result.point.switch, []).append(row)
    return _enough(rows, MIN_COUNTS)


def _enough(rows: Mapping[str, Sequence[Row]], least: int) -> list[Row]:
    return [row for found in rows.values() if len(found) >= least for row in found]


def _counting(result: Result) -> Iterator[LatencySummary]:
    return (s for s in result.latency if latency_counts(s) and s.samples and not is_foreign(s.verdict))


def _row(result: Result, summary: LatencySummary, x: float, look: Look) -> Row | None:
    found = look(result, summary)
    if found is None:
        return None
    value, ends = found
    low, high = ends or (value, value)
    switch = printable(result.point.switch)
    return {
        "switch": switch,
        "x": x,
        "y": max(value, SMALLEST_US),
        "low": max(low, SMALLEST_US),
        "high": max(high, SMALLEST_US),
        "tip": f"{TIP_MARK}{switch} at {load_words(summary.load)} ({mpps(summary.intended_pps)} Mpps), "
        f"{frames(result.point)}: {us(value)} µs",
    }
