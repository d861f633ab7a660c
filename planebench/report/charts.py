# SPDX-License-Identifier: BSD-3-Clause
"""One Altair definition a figure, used for the page (SVG) and for image files alike.

Charts are about 340 px wide, so that a phone shows them unscaled and a desk screen three in a row. Their colours for
text and lines are the three of :mod:`planebench.report.palette`, which the page replaces in dark mode.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt

from planebench.report.chart_data import Row, end_labels
from planebench.report.palette import GRID, INK, MUTED, SHAPES

FONT = "Helvetica, Arial, sans-serif"
BAR_STEP = 19
"""Height of a switch's row in px."""

INK_LABELS: dict[str, Any] = {
    "grid": False,
    "ticks": False,
    "domain": False,
    "labelPadding": 6,
    "labelColor": INK,
    "labelLimit": 150,
}
"""Of an axis of names."""

Colours = Mapping[str, str]
"""Switch label -> colour, in the order of the run."""


def throughput_bars(rows: Sequence[Row], colours: Colours, top: float) -> alt.TopLevelMixin:
    """Horizontal bars by frame size and switch; whisker = lowest to highest trial; pale and dashed = lower bound.

    ``top`` is the end of the Mpps axis, equal for all charts of a scenario.
    """
    return by_row(_bars(rows, colours, top).properties(width=235, height=alt.Step(BAR_STEP)), "size", rows)


def overview_bars(panels: Mapping[str, Sequence[Row]], colours: Colours, top: float) -> alt.TopLevelMixin:
    """The bars of several scenarios, two in a row: ``{title: rows}``."""
    size = {"width": 330, "height": alt.Step(24)}
    titled = [_bars(rows, colours, top).properties(title=title, **size) for title, rows in panels.items()]
    columns = 2 if len(titled) > 1 else 1
    return plain(alt.concat(*titled, columns=columns, spacing={"row": 18, "column": 28}))


def _bars(rows: Sequence[Row], colours: Colours, top: float) -> Any:
    base = alt.Chart(table(rows)).encode(y=_switch_axis(rows, colours))
    x = alt.X("mpps:Q", title="Mpps", scale=alt.Scale(domain=[0, top]), axis=alt.Axis(tickCount=5))
    bars = base.mark_bar(height={"band": 0.74}, strokeWidth=1.2).encode(
        x=x,
        color=colour(colours),
        stroke=colour(colours),
        fillOpacity=_when("limited", 0.28, 1.0),
        strokeDash=alt.condition("datum.limited", alt.value([3, 2]), alt.value([1, 0])),
        description="tip:N",
    )
    whiskers = (
        base.transform_filter("datum.high > datum.low")
        .mark_rule(color=INK, strokeWidth=1.2)
        .encode(x="low:Q", x2="high:Q")
    )
    labels = base.mark_text(align="left", dx=5, fontSize=11).encode(
        x="high:Q", text="label:N", color=_when("counts", INK, MUTED)
    )
    return alt.layer(bars, whiskers, labels)


def chain_curves(rows: Sequence[Row], colours: Colours, top: float) -> alt.TopLevelMixin:
    """Throughput over chain length, a line a switch, labelled at its end; hollow points are lower bounds."""
    chains = sorted({row["chain"] for row in rows})
    shown = [row for row in rows if row["counts"]]
    x = alt.X("chain:O", title="VNFs in the chain", scale=alt.Scale(domain=chains), axis=alt.Axis(labelAngle=0))
    y = alt.Y("mpps:Q", title="Mpps", scale=alt.Scale(domain=[0, top]), axis=alt.Axis(tickCount=5))
    base = alt.Chart(table(shown)).encode(x=x, y=y, color=colour(colours))
    lines = base.mark_line(strokeWidth=2)
    whiskers = base.mark_rule(strokeWidth=1.2).encode(y="low:Q", y2="high:Q")
    points = base.mark_point(size=42, strokeWidth=1.8, opacity=1).encode(
        fill=alt.condition("datum.limited", alt.value("transparent"), colour(colours)),
        shape=shape(colours),
        description="tip:N",
    )
    labels = line_labels(end_labels(shown, "chain", "mpps", top * 0.075), x, "label_y:Q", colours)
    return plain(alt.layer(lines, whiskers, points, labels).properties(width=240, height=190))


def latency_ranges(rows: Sequence[Row], colours: Colours, domain: tuple[float, float]) -> alt.TopLevelMixin:
    """By load and switch, on a log axis: dot = median, thick line to p99, thin line to p99.9; pale = does not count.

    A thin dashed line is the latency floor of the tester, where it is known.
    """
    scale = alt.Scale(type="log", domain=list(domain), nice=False)
    axis = alt.Axis(format="~g", values=log_ticks(*domain), labelOverlap=True)
    data = table(rows)
    base = alt.Chart(data).encode(
        y=_switch_axis(rows, colours), color=colour(colours), opacity=_when("counts", 1.0, 0.4)
    )
    x = alt.X("p50:Q", title="latency, µs (log scale)", scale=scale, axis=axis)
    tail = base.mark_rule(strokeWidth=1.3).encode(x=x, x2="p99_9:Q")
    body = base.mark_rule(strokeWidth=5, strokeCap="round").encode(x=x, x2="p99:Q", description="tip:N")
    median = base.mark_point(size=34, filled=True, opacity=1, stroke=INK, strokeWidth=1).encode(
        x=x, description="tip:N"
    )
    labels = base.mark_text(align="left", dx=5, fontSize=11).encode(
        x=alt.X("p99_9:Q", scale=scale), text="label:N", color=_when("counts", INK, MUTED)
    )
    floor = (
        alt.Chart(data)
        .transform_filter("isValid(datum.floor)")
        .mark_rule(color=MUTED, strokeWidth=1, strokeDash=[2, 2])
        .encode(x=alt.X("min(floor):Q", scale=scale))
    )
    layers = [tail, body, median, labels] + ([floor] if any(row.get("floor") for row in rows) else [])
    return by_row(alt.layer(*layers).properties(width=235, height=alt.Step(BAR_STEP)), "load", rows)


def percentile_curves(rows: Sequence[Row], colours: Colours, domain: tuple[float, float]) -> alt.TopLevelMixin:
    """Latency by percentile, both ends of the distribution in view: x is log(1 - percentile), y is log us."""
    least = min(0.1, *(row["above"] for row in rows))
    shares = [s for s in (1.0, 0.1, 0.01, 0.001, 0.0001, 0.00001) if s >= least * 0.999]
    names = alt.Axis(values=shares, labelExpr="'p' + format(100 * (1 - datum.value), '~g')", grid=True)
    x = alt.X("above:Q", title="percentile", scale=alt.Scale(type="log", domain=[1.0, least], nice=False), axis=names)
    scale = alt.Scale(type="log", domain=list(domain), nice=False)
    y = alt.Y(
        "us:Q", title="latency, µs (log scale)", scale=scale, axis=alt.Axis(format="~g", values=log_ticks(*domain))
    )
    lines = (
        alt.Chart(table(rows))
        .mark_line(strokeWidth=1.8, interpolate="monotone")
        .encode(x=x, y=y, color=colour(colours))
    )
    ends = end_labels([{**r, "from_right": -r["above"]} for r in rows], "from_right", "us", log_gap(domain), log=True)
    labels = line_labels(ends, x, "label_y:Q", colours)
    return plain(alt.layer(lines, labels).properties(width=240, height=170))


def table(rows: Sequence[Row]) -> alt.InlineData:
    """Rows as the data of a chart."""
    return alt.InlineData(values=list(rows))


def colour(colours: Colours) -> Any:
    """The colour of a mark by its switch, without a legend."""
    return alt.Color("switch:N", scale=alt.Scale(domain=list(colours), range=list(colours.values())), legend=None)


def shape(colours: Colours) -> Any:
    """The shape of a point by its switch, so that a print without colours can be read."""
    shapes = [SHAPES[i % len(SHAPES)] for i in range(len(colours))]
    return alt.Shape("switch:N", scale=alt.Scale(domain=list(colours), range=shapes), legend=None)


def _when(flag: str, then: Any, otherwise: Any) -> Any:
    return alt.condition(f"datum.{flag}", alt.value(then), alt.value(otherwise))


def _switch_axis(rows: Sequence[Row], colours: Colours) -> alt.Y:
    present = {row["switch"] for row in rows}
    order = [label for label in colours if label in present]
    axis = alt.Axis(title=None, grid=False, ticks=False, domain=False, labelPadding=6, labelColor=INK, labelLimit=110)
    return alt.Y("switch:N", sort=order, axis=axis)


def by_row(chart: Any, field: str, rows: Sequence[Row]) -> alt.TopLevelMixin:
    """The chart once for each value of a field, one below the other, the value above its rows."""
    order = list(dict.fromkeys(row[field] for row in rows))
    header = alt.Header(
        title=None, labelOrient="top", labelAnchor="start", labelColor=MUTED, labelPadding=3, labelFontWeight=600
    )
    return plain(chart.facet(row=alt.Row(f"{field}:N", sort=order, header=header), spacing=8))


def line_labels(rows: Sequence[Row], x: alt.X, y: str | alt.Y, colours: Colours) -> Any:
    """The name of the switch at the end of its line."""
    text = alt.Chart(table(rows)).mark_text(align="left", dx=9, fontSize=11, clip=False)
    return text.encode(x=x, y=y, text="switch:N", color=colour(colours))


def log_ticks(low: float, high: float) -> list[float]:
    """1, 2, 5 steps within less than two decades, powers of ten beyond."""
    steps = (1, 2, 5) if high / low < 200 else (1,)
    ticks = [s * 10.0**e for e in range(-3, 8) for s in steps]
    return [t for t in ticks if low <= t <= high]


def log_gap(domain: tuple[float, float]) -> float:
    """Distance of two labels in log10 units on an axis 170 px high."""
    return 13 / 170 * math.log10(domain[1] / domain[0])


def plain(chart: Any) -> alt.TopLevelMixin:
    """No frame, no background, quiet grid."""
    text = {"labelFont": FONT, "titleFont": FONT}
    axis = {"labelColor": MUTED, "titleColor": MUTED, "gridColor": GRID, "domainColor": GRID, "tickColor": GRID}
    configured: alt.TopLevelMixin = (
        chart.configure(background="transparent", font=FONT, padding=4)
        .configure_view(stroke=None)
        .configure_axis(**text, **axis, labelFontSize=11, titleFontSize=11, titleFontWeight=400)
        .configure_axisY(grid=True)
        .configure_header(labelFont=FONT, labelFontSize=12)
        .configure_title(font=FONT, fontSize=12, color=MUTED, anchor="start")
        .configure_text(font=FONT)
    )
    return configured
