# SPDX-License-Identifier: BSD-3-Clause
"""Charts over load: loss-rate curves, and latency against load. Looks as in charts.py."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt

from planebench.report.chart_data import Row, end_labels
from planebench.report.charts import Colours, colour, line_labels, log_gap, log_ticks, plain, shape, table
from planebench.report.palette import MUTED

_WIDTH, _HEIGHT = 240, 170


def loss_curves(rows: Sequence[Row], colours: Colours) -> alt.TopLevelMixin:
    """Load against loss in per cent, a line a switch, labelled at the right edge."""
    top = max(1.0, *(row["loss"] for row in rows)) * 1.08
    x = _load_axis(rows)
    y = alt.Y("loss:Q", title="lost, %", scale=alt.Scale(domain=[0, top]), axis=alt.Axis(tickCount=5))
    base = alt.Chart(table(rows)).encode(x=x, y=y, color=colour(colours))
    lines = base.mark_line(strokeWidth=1.8)
    points = base.mark_point(size=30, filled=True, opacity=1).encode(shape=shape(colours), description="tip:N")
    labels = line_labels(_at_edge(rows, "loss", top * 13 / _HEIGHT), x, "label_y:Q", colours)
    return plain(alt.layer(lines, points, labels).properties(width=_WIDTH, height=_HEIGHT))


def latency_load(rows: Sequence[Row], colours: Colours, floor_us: float | None) -> alt.TopLevelMixin:
    """p50 (line; whiskers: lowest and highest trial) and p99 (dashed) over load, log y.

    Ring = knee; thin grey line = latency floor of the tester.
    """
    values = [row[key] for row in rows for key in ("low", "high", "p99")] + ([floor_us] if floor_us else [])
    domain = (min(values) / 1.3, max(values) * 1.3)
    scale = alt.Scale(type="log", domain=list(domain), nice=False)
    axis = alt.Axis(format="~g", values=log_ticks(*domain))
    x = _load_axis(rows)
    y = alt.Y("p50:Q", title="latency, µs (log scale)", scale=scale, axis=axis)
    base = alt.Chart(table(rows)).encode(x=x, color=colour(colours))
    p99 = base.mark_line(strokeWidth=1.2, strokeDash=[4, 3]).encode(y=alt.Y("p99:Q", scale=scale))
    p50 = base.mark_line(strokeWidth=2).encode(y=y)
    whiskers = base.mark_rule(strokeWidth=1.2).encode(y=alt.Y("low:Q", scale=scale), y2="high:Q")
    points = base.mark_point(size=30, filled=True, opacity=1).encode(y=y, shape=shape(colours), description="tip:N")
    knees = base.transform_filter("datum.knee").mark_point(size=150, strokeWidth=1.8, opacity=1).encode(y=y)
    labels = line_labels(_at_edge(rows, "p50", log_gap(domain), log=True), x, "label_y:Q", colours)
    layers: list[Any] = [p99, p50, whiskers, points, knees, labels]
    if floor_us:
        floor = alt.Chart(table([{"floor": floor_us}])).mark_rule(color=MUTED, strokeWidth=1)
        layers.insert(0, floor.encode(y=alt.Y("floor:Q", scale=scale)))
    return plain(alt.layer(*layers).properties(width=_WIDTH, height=_HEIGHT))


def _at_edge(rows: Sequence[Row], y: str, gap: float, log: bool = False) -> list[Row]:
    """Labels at the right edge: at the end of its own line a label would lie under the lines that go on."""
    edge = max(row["mpps"] for row in rows)
    return [{**row, "mpps": edge} for row in end_labels(rows, "mpps", y, gap, log)]


def _load_axis(rows: Sequence[Row]) -> alt.X:
    top = max(row["mpps"] for row in rows) * 1.04
    return alt.X("mpps:Q", title="intended load, Mpps", scale=alt.Scale(domain=[0, top]), axis=alt.Axis(tickCount=5))
