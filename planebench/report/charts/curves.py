# SPDX-License-Identifier: BSD-3-Clause
"""Curves and scatter plots: over load, frame size, number of VNFs, chain length and percentile."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt

from planebench.report.charts.base import (
    apart,
    color,
    dash,
    end_labels,
    line_labels,
    log_axis,
    log_gap,
    log_scale,
    plain,
    shape,
    table,
)
from planebench.report.charts.figure import INK, MUTED, ChartRow, Colors


def chain_curves(rows: Sequence[ChartRow], colors: Colors, top: float) -> alt.TopLevelMixin:
    """Draw throughput over chain length (linear), a labeled line per switch; hollow points are lower bounds."""
    chains = sorted({row["chain"] for row in rows})
    shown = [row for row in rows if row["counts"]]
    scale = alt.Scale(domain=[chains[0], chains[-1]], nice=False)
    x = alt.X("chain:Q", title="VNFs in the chain", scale=scale, axis=alt.Axis(values=chains, format="d"))
    y = alt.Y("mpps:Q", title="Mpps", scale=alt.Scale(domain=[0, top]), axis=alt.Axis(tickCount=5))
    base = alt.Chart(table(shown)).encode(x=x, y=y, color=color(colors), description="switch:N")
    lines = base.mark_line(strokeWidth=2)
    whiskers = base.mark_rule(strokeWidth=1.2).encode(y="low:Q", y2="high:Q")
    points = base.mark_point(size=42, strokeWidth=1.8, opacity=1).encode(
        fill=alt.condition("datum.limited", alt.value("transparent"), color(colors)),
        shape=shape(colors),
        description="tip:N",
    )
    labels = line_labels(end_labels(shown, "chain", "mpps", top * 0.075), x, "label_y:Q", colors)
    return plain(alt.layer(lines, whiskers, points, labels, width=240, height=190))


def percentile_curves(rows: Sequence[ChartRow], colors: Colors, domain: tuple[float, float]) -> alt.TopLevelMixin:
    """Draw latency (log) by percentile: x is log(1 - percentile), so that both ends of the distribution are visible."""
    least = min(0.1, *(row["above"] for row in rows))
    shares = [s for s in (1.0, 0.1, 0.01, 0.001, 0.0001, 0.00001) if s >= least * 0.999]
    names = alt.Axis(values=shares, labelExpr="'p' + format(100 * (1 - datum.value), '~g')", grid=True)
    x = alt.X("above:Q", title="percentile", scale=alt.Scale(type="log", domain=[1.0, least], nice=False), axis=names)
    y = _log_y("us", "latency, µs (log scale)", domain)
    lines = (
        alt.Chart(table(rows))
        .mark_line(strokeWidth=1.8, interpolate="monotone")
        .encode(x=x, y=y, color=color(colors), strokeDash=dash(colors), description="cell:N")
    )
    ends = end_labels([{**r, "from_right": -r["above"]} for r in rows], "from_right", "us", log_gap(domain), log=True)
    labels = line_labels(ends, x, "label_y:Q", colors)
    points = alt.Chart(table(ends)).mark_point(size=30, filled=True, opacity=1, clip=False)
    points = points.encode(x=x, y=y, color=color(colors), shape=shape(colors), description="cell:N")
    return plain(alt.layer(lines, points, labels, width=240, height=170))


_WIDTH, _HEIGHT = 240, 170


def loss_curves(rows: Sequence[ChartRow], colors: Colors) -> alt.TopLevelMixin:
    """Load against loss in per cent, a line a switch, labelled at the right edge."""
    top = max(1.0, *(row["loss"] for row in rows)) * 1.08
    x = _load_axis("mpps", rows)
    y = alt.Y("loss:Q", title="lost, %", scale=alt.Scale(domain=[0, top]), axis=alt.Axis(tickCount=5))
    base = alt.Chart(table(rows)).encode(x=x, y=y, color=color(colors), description="switch:N")
    lines = base.mark_line(strokeWidth=1.8)
    points = base.mark_point(size=30, filled=True, opacity=1).encode(shape=shape(colors), description="tip:N")
    labels = line_labels(_at_edge(rows, "loss", top * 13 / _HEIGHT), x, "label_y:Q", colors)
    return plain(alt.layer(lines, points, labels, width=_WIDTH, height=_HEIGHT))


def latency_load(rows: Sequence[ChartRow], colors: Colors, floor_us: float | None) -> alt.TopLevelMixin:
    """Draw p50 (a line with whiskers for intervals) and p99 (dashed) over load, with a log y axis.

    A ring is a knee, a thin gray line the tester latency baseline.
    """
    values = [row[key] for row in rows for key in ("low", "high", "p99")] + ([floor_us] if floor_us else [])
    domain = (min(values) / 1.3, max(values) * 1.3)
    scale = log_scale(domain)
    x = _load_axis("mpps", rows)
    y = _log_y("p50", "latency, µs (log scale)", domain)
    base = alt.Chart(table(rows)).encode(x=x, color=color(colors), description="switch:N")
    p99 = base.mark_line(strokeWidth=1.2, strokeDash=[4, 3]).encode(y=alt.Y("p99:Q", scale=scale))
    p50 = base.mark_line(strokeWidth=2).encode(y=y)
    whiskers = base.mark_rule(strokeWidth=1.2).encode(y=alt.Y("low:Q", scale=scale), y2="high:Q")
    points = base.mark_point(size=30, filled=True, opacity=1).encode(y=y, shape=shape(colors), description="tip:N")
    knees = base.transform_filter("datum.knee").mark_point(size=150, strokeWidth=1.8, opacity=1).encode(y=y)
    labels = line_labels(_at_edge(rows, "p50", log_gap(domain), log=True), x, "label_y:Q", colors)
    layers: list[Any] = [p99, p50, whiskers, points, knees, labels]
    if floor_us:
        floor = alt.Chart(table([{"floor": floor_us}])).mark_rule(color=MUTED, strokeWidth=1)
        layers.insert(0, floor.encode(y=alt.Y("floor:Q", scale=scale)))
    return plain(alt.layer(*layers, width=_WIDTH, height=_HEIGHT))


def _at_edge(rows: Sequence[ChartRow], y: str, gap: float, log: bool = False) -> list[ChartRow]:
    """Return labels at the right edge, because lines that go further would cover a label at the end of a line."""
    edge = max(row["mpps"] for row in rows)
    return [{**row, "mpps": edge} for row in end_labels(rows, "mpps", y, gap, log)]


def _load_axis(field: str, rows: Sequence[ChartRow]) -> alt.X:
    top = max(row[field] for row in rows) * 1.04
    return alt.X(
        f"{field}:Q", title="intended load, Mpps", scale=alt.Scale(domain=[0, top]), axis=alt.Axis(tickCount=5)
    )


def curves_over_load(rows: Sequence[ChartRow], colors: Colors, y_title: str) -> alt.TopLevelMixin:
    """Draw a line per switch over intended Mpps, with a log y axis."""
    return _curves(rows, colors, _load_axis("x", rows), y_title)


def curves_over_sizes(rows: Sequence[ChartRow], colors: Colors, y_title: str) -> alt.TopLevelMixin:
    """Draw a line per switch over frame size, with log axes."""
    sizes = sorted({row["x"] for row in rows})
    scale = alt.Scale(type="log", base=2, domain=[sizes[0], sizes[-1]], nice=False)
    axis = alt.Axis(values=sizes, format="d")
    return _curves(rows, colors, alt.X("x:Q", title="frame size, B", scale=scale, axis=axis), y_title)


def curves_over_vnfs(rows: Sequence[ChartRow], colors: Colors, y_title: str) -> alt.TopLevelMixin:
    """Draw a line per switch over the number of VNFs, with log axes: figures differ by orders of magnitude."""
    counts = sorted({row["x"] for row in rows})
    scale = alt.Scale(type="log", base=2, domain=[counts[0], counts[-1]], nice=False)
    return _curves(rows, colors, alt.X("x:Q", title="VNFs", scale=scale, axis=alt.Axis(values=counts)), y_title)


def scatter(rows: Sequence[ChartRow], colors: Colors, x_title: str, y_title: str, log_x: bool) -> alt.TopLevelMixin:
    """Draw a named point per switch, with whiskers to ``x_low`` and ``x_high``; log y axis.

    A point that is not compared is hollow.
    """
    domain = min(row["y"] for row in rows) / 1.6, max(row["y"] for row in rows) * 1.6
    x_scale, gap = _x_scale(rows, log_x)
    x = alt.X("x:Q", title=x_title, scale=x_scale, axis=alt.Axis(format=".3~g", tickCount=5))
    y = _log_y("y", y_title, domain)
    ink = color(colors)
    base = alt.Chart(table(rows)).encode(color=ink, description="switch:N")
    points = base.mark_point(size=75, strokeWidth=1.8, opacity=1).encode(
        x=x,
        y=y,
        fill=alt.condition("datum.counts", ink, alt.value("transparent")),
        shape=shape(colors),
        description="tip:N",
    )
    across = base.mark_rule(strokeWidth=1.2).encode(x=alt.X("x_low:Q", scale=x_scale), x2="x_high:Q", y=y)
    placed = apart(rows, "x", "y", dx=gap, dy=log_gap(domain))
    labels = alt.Chart(table(placed)).mark_text(align="left", dx=8, fontSize=11, color=INK)
    labels = labels.encode(x=x, y=alt.Y("label_y:Q", scale=log_scale(domain)), text="label:N", description="switch:N")
    return plain(alt.layer(across, points, labels, width=_WIDTH, height=_HEIGHT))


def _x_scale(rows: Sequence[ChartRow], log: bool) -> tuple[alt.Scale, float]:
    """Return the scale, and the distance below which the labels of two points are moved apart."""
    top = max(row["x_high"] for row in rows)
    if log:
        return alt.Scale(type="log", domain=[min(row["x_low"] for row in rows) / 1.3, top * 2.2], nice=False), top
    return alt.Scale(domain=[0, top * 1.35]), top * 0.4


def _curves(rows: Sequence[ChartRow], colors: Colors, x: alt.X, y_title: str) -> alt.TopLevelMixin:
    rows = [{"low": row["y"], "high": row["y"], **row} for row in rows]
    domain = min(row["low"] for row in rows) / 1.3, max(row["high"] for row in rows) * 1.3
    y = _log_y("y", y_title, domain)
    base = alt.Chart(table(rows)).encode(x=x, color=color(colors), description="switch:N")
    lines = base.mark_line(strokeWidth=1.8).encode(y=y)
    whiskers = base.mark_rule(strokeWidth=1.2).encode(y=alt.Y("low:Q", scale=log_scale(domain)), y2="high:Q")
    points = base.mark_point(size=34, filled=True, opacity=1).encode(y=y, shape=shape(colors), description="tip:N")
    edge = max(row["x"] for row in rows)
    placed = [{**row, "x": edge} for row in end_labels(rows, "x", "y", log_gap(domain), log=True)]
    labels = line_labels(placed, x, alt.Y("label_y:Q", scale=log_scale(domain)), colors)
    return plain(alt.layer(lines, whiskers, points, labels, width=_WIDTH, height=_HEIGHT))


def _log_y(field: str, title: str, domain: tuple[float, float]) -> alt.Y:
    return alt.Y(f"{field}:Q", title=title, scale=log_scale(domain), axis=log_axis(domain))
