# SPDX-License-Identifier: BSD-3-Clause
"""Curves over load and frame size, and the scatter plots of conext19 (Fig. 1). Looks as in charts.py."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt

from planebench.report.chart_data import Row, apart, end_labels
from planebench.report.charts import Colours, colour, line_labels, log_gap, log_ticks, plain, shape, table

_WIDTH, _HEIGHT = 240, 170


def curves_over_load(rows: Sequence[Row], colours: Colours, y_title: str) -> alt.TopLevelMixin:
    """A line a switch over intended Mpps, on a log axis."""
    top = max(row["x"] for row in rows) * 1.04
    x = alt.X("x:Q", title="intended load, Mpps", scale=alt.Scale(domain=[0, top]), axis=alt.Axis(tickCount=5))
    return _curves(rows, colours, x, y_title)


def curves_over_sizes(rows: Sequence[Row], colours: Colours, y_title: str) -> alt.TopLevelMixin:
    """A line a switch over frame size, both axes logarithmic."""
    sizes = sorted({row["x"] for row in rows})
    scale = alt.Scale(type="log", base=2, domain=[sizes[0], sizes[-1]], nice=False)
    axis = alt.Axis(values=sizes, format="d")
    return _curves(rows, colours, alt.X("x:Q", title="frame size, B", scale=scale, axis=axis), y_title)


def curves_over_vnfs(rows: Sequence[Row], colours: Colours, y_title: str) -> alt.TopLevelMixin:
    """A line a switch over the number of VNFs, both axes logarithmic: they differ by orders of magnitude."""
    counts = sorted({row["x"] for row in rows})
    scale = alt.Scale(type="log", base=2, domain=[counts[0], counts[-1]], nice=False)
    return _curves(rows, colours, alt.X("x:Q", title="VNFs", scale=scale, axis=alt.Axis(values=counts)), y_title)


def scatter(rows: Sequence[Row], colours: Colours, x_title: str, y_title: str, log_x: bool) -> alt.TopLevelMixin:
    """A point a switch, named, with whiskers from ``x_low`` to ``x_high`` and ``y_low`` to ``y_high``; log y."""
    domain = min(row["y_low"] for row in rows) / 1.6, max(row["y_high"] for row in rows) * 1.6
    x_scale, gap = _x_scale(rows, log_x)
    x = alt.X("x:Q", title=x_title, scale=x_scale, axis=alt.Axis(format="~g", tickCount=5))
    y = _log_y(y_title, domain)
    ink = colour(colours)
    base = alt.Chart(table(rows)).encode(color=ink)
    points = base.mark_point(size=75, filled=True, opacity=1).encode(
        x=x, y=y, shape=shape(colours), description="tip:N"
    )
    across = base.mark_rule(strokeWidth=1.2).encode(x=alt.X("x_low:Q", scale=x_scale), x2="x_high:Q", y=y)
    along = base.mark_rule(strokeWidth=1.2).encode(x=x, y=alt.Y("y_low:Q", scale=_log_scale(domain)), y2="y_high:Q")
    placed = apart(rows, "x", "y", dx=gap, dy=log_gap(domain))
    labels = alt.Chart(table(placed)).mark_text(align="left", dx=8, fontSize=11)
    labels = labels.encode(x=x, y=alt.Y("label_y:Q", scale=_log_scale(domain)), text="switch:N", color=ink)
    return plain(alt.layer(across, along, points, labels).properties(width=_WIDTH, height=_HEIGHT))


def _x_scale(rows: Sequence[Row], log: bool) -> tuple[alt.Scale, float]:
    """The scale, and how near two points are that want their labels apart."""
    top = max(row["x_high"] for row in rows)
    if log:
        return alt.Scale(type="log", domain=[min(row["x_low"] for row in rows) / 1.3, top * 2.2], nice=False), top
    return alt.Scale(domain=[0, top * 1.35]), top * 0.4


def _curves(rows: Sequence[Row], colours: Colours, x: alt.X, y_title: str) -> alt.TopLevelMixin:
    domain = min(row["low"] for row in rows) / 1.3, max(row["high"] for row in rows) * 1.3
    y = _log_y(y_title, domain)
    base = alt.Chart(table(rows)).encode(x=x, color=colour(colours))
    lines = base.mark_line(strokeWidth=1.8).encode(y=y)
    whiskers = base.mark_rule(strokeWidth=1.2).encode(y=alt.Y("low:Q", scale=_log_scale(domain)), y2="high:Q")
    points = base.mark_point(size=34, filled=True, opacity=1).encode(y=y, shape=shape(colours), description="tip:N")
    edge = max(row["x"] for row in rows)
    placed = [{**row, "x": edge} for row in end_labels(rows, "x", "y", log_gap(domain), log=True)]
    labels = line_labels(placed, x, alt.Y("label_y:Q", scale=_log_scale(domain)), colours)
    return plain(alt.layer(lines, whiskers, points, labels).properties(width=_WIDTH, height=_HEIGHT))


def _log_scale(domain: tuple[float, float]) -> alt.Scale:
    return alt.Scale(type="log", domain=list(domain), nice=False)


def _log_y(title: str, domain: tuple[float, float]) -> alt.Y:
    axis = alt.Axis(format="~g", values=log_ticks(*domain))
    return alt.Y("y:Q", title=title, scale=_log_scale(domain), axis=axis)
