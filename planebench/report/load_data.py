# SPDX-License-Identifier: BSD-3-Clause
"""Rows of the charts over load: loss-rate curves, and latency against load with its knee."""

from __future__ import annotations

from collections.abc import Sequence

from planebench.model.results import CurvePoint, LatencySummary, Result
from planebench.model.words import latency_counts, load_words, mpps, printable, us
from planebench.report.chart_data import SMALLEST_US, TIP_MARK, Row
from planebench.report.latency_spread import Spreads

MIN_LOADS = 4
"""Loads that count for a chart of latency against load; fewer are read as well from the table."""


def loss_rows(results: Sequence[Result]) -> list[Row]:
    """Loss in per cent over intended Mpps, a row a load of every loss-rate curve (RFC 2544 section 26.3)."""
    return [_loss_row(result, point) for result in results for s in result.searches for point in s.curve]


def load_rows(results: Sequence[Result], spreads: Spreads) -> list[Row]:
    """p50 (``low`` to ``high``: of its trials) and p99 over intended Mpps, with at least MIN_LOADS loads that count."""
    rows: list[Row] = []
    for result in results:
        counting = [s for s in result.latency if latency_counts(s) and s.samples]
        if len(counting) >= MIN_LOADS:
            rows += [_load_row(result, s, spreads) for s in counting]
    return rows


def _loss_row(result: Result, point: CurvePoint) -> Row:
    switch, loss = printable(result.point.switch), point.loss_ratio * 100
    return {
        "switch": switch,
        "mpps": point.intended_pps / 1e6,
        "loss": loss,
        "tip": f"{TIP_MARK}{switch} at {mpps(point.intended_pps)} Mpps: {loss:.3g} % lost, "
        f"{mpps(point.forwarded_pps)} Mpps forwarded",
    }


def _load_row(result: Result, summary: LatencySummary, spreads: Spreads) -> Row:
    switch = printable(result.point.switch)
    spread = spreads.get((result.point, summary.load))
    low, high = spread.p50 if spread else (summary.p50, summary.p50)
    knee = result.load_finding is not None and result.load_finding.knee == summary.load
    return {
        "switch": switch,
        "mpps": summary.intended_pps / 1e6,
        "p50": max(summary.p50, SMALLEST_US),
        "low": max(low, SMALLEST_US),
        "high": max(high, SMALLEST_US),
        "p99": max(summary.p99, SMALLEST_US),
        "knee": knee,
        "tip": f"{TIP_MARK}{switch} at {load_words(summary.load)} ({mpps(summary.intended_pps)} Mpps): "
        f"p50 {us(summary.p50)}, p99 {us(summary.p99)} µs" + (", the knee" if knee else ""),
    }
