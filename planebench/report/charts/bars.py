# SPDX-License-Identifier: BSD-3-Clause
"""Bars, ranges and dots: throughput, latency, the parts of a latency, published tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt

from planebench.report.charts.base import BAR_STEP, by_row, color, log_axis, log_scale, named_axis, table
from planebench.report.charts.figure import GRID, INK, MUTED, PART_COLORS, PART_KINDS, PARTS, WHOLE, ChartRow, Colors


def throughput_bars(rows: Sequence[ChartRow], colors: Colors, top: float) -> alt.TopLevelMixin:
    """Draw horizontal bars by frame size and switch, with whiskers for intervals.

    A lower bound is pale and ends in an arrow. ``top`` is the end of the Mpps axis, equal for all charts of a scenario.
    """
    return by_row(_bars(rows, colors, top).properties(width=235, height=alt.Step(BAR_STEP)), "size", rows)


def overview_bars(rows: Sequence[ChartRow], colors: Colors, top: float) -> alt.TopLevelMixin:
    """Draw the bars of several paths, each row with its ``path``, one below the other on one axis."""
    return by_row(_bars(rows, colors, top).properties(width=330, height=alt.Step(BAR_STEP)), "path", rows)


def _bars(rows: Sequence[ChartRow], colors: Colors, top: float) -> Any:
    base = alt.Chart(table(rows)).encode(y=_switch_axis(rows, colors), description="cell:N")
    x = alt.X("mpps:Q", title="Mpps", scale=alt.Scale(domain=[0, top]), axis=alt.Axis(tickCount=5))
    bars = base.mark_bar(height={"band": 0.74}, strokeWidth=1.2).encode(
        x=x,
        color=color(colors),
        stroke=color(colors),
        fillOpacity=_when("limited", 0.28, 1.0),
        strokeDash=alt.condition("datum.limited", alt.value([3, 2]), alt.value([1, 0])),
        description="tip:N",
    )
    whiskers = (
        base.transform_filter("datum.high > datum.low")
        .mark_rule(color=INK, strokeWidth=1.2)
        .encode(x="low:Q", x2="high:Q")
    )
    arrows = (
        base.transform_filter("datum.limited")
        .mark_point(shape="triangle-right", size=70, filled=True, opacity=1, xOffset=5)
        .encode(x="mpps:Q", color=color(colors))
    )
    labels = base.mark_text(align="left", dx=12, fontSize=11).encode(
        x="high:Q", text="label:N", color=_when("counts", INK, MUTED)
    )
    return alt.layer(bars, whiskers, arrows, labels)


def latency_ranges(rows: Sequence[ChartRow], colors: Colors, domain: tuple[float, float]) -> alt.TopLevelMixin:
    """Draw latency by load and switch on a log axis: a dot at the median, lines to p99 and p99.9.

    Those that do not count are hollow and thin.

    A thin dashed line is the tester latency baseline, if it is known.
    """
    scale, axis = log_scale(domain), log_axis(domain, labelOverlap=True)
    data = table(rows)
    base = alt.Chart(data).encode(y=_switch_axis(rows, colors), color=color(colors), description="cell:N")
    x = alt.X("p50:Q", title="latency, µs (log scale)", scale=scale, axis=axis)
    tail = base.mark_rule(strokeWidth=1.3).encode(x=x, x2="p99_9:Q")
    body = base.mark_rule(strokeCap="round").encode(
        x=x, x2="p99:Q", strokeWidth=_when("counts", 5, 1.3), description="tip:N"
    )
    median = base.mark_point(size=34, opacity=1, strokeWidth=1).encode(
        x=x,
        fill=alt.condition("datum.counts", color(colors), alt.value("transparent")),
        stroke=alt.value(INK),
        description="tip:N",
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
    return by_row(alt.layer(*layers, width=235, height=alt.Step(BAR_STEP)), "load", rows)


def _when(flag: str, then: Any, otherwise: Any) -> Any:
    return alt.condition(f"datum.{flag}", alt.value(then), alt.value(otherwise))


def _switch_axis(rows: Sequence[ChartRow], colors: Colors) -> alt.Y:
    present = {row["switch"] for row in rows}
    order = [label for label in colors if label in present]
    return alt.Y("switch:N", sort=order, axis=named_axis(110))


def anatomy_bars(rows: Sequence[ChartRow]) -> alt.TopLevelMixin:
    """Draw a bar per switch (and direction, if both send) by load; axes differ, because the shares matter."""
    order = list(dict.fromkeys(row["bar"] for row in rows))
    present = [kind for kind in PART_KINDS.values() if any(row["kind"] == kind for row in rows)]
    scale = alt.Scale(domain=present, range=[PART_COLORS[kind] for kind in present])
    bars = (
        alt.Chart(table(rows))
        .mark_bar(height={"band": 0.74}, stroke="white", strokeWidth=0.6)
        .encode(
            y=alt.Y("bar:N", sort=order, axis=named_axis(130)),
            x=alt.X("start:Q", title="mean latency, µs", axis=alt.Axis(tickCount=5)),
            x2="end:Q",
            color=alt.Color("kind:N", scale=scale, legend=alt.Legend(orient="bottom", title=None, labelColor=INK)),
            description="tip:N",
        )
    )
    return by_row(bars.properties(width=235, height=alt.Step(BAR_STEP)), "load", rows)


def stacked_parts(rows: Sequence[ChartRow]) -> alt.TopLevelMixin:
    """Draw two bars per switch and chain: the chain, and its functions one behind the other."""
    names = list(dict.fromkeys([WHOLE, *(row["part"] for row in rows)]))
    scale = alt.Scale(domain=names, range=[PARTS[i % len(PARTS)] for i in range(len(names))])
    order = list(dict.fromkeys(row["bar"] for row in rows))
    y = alt.Y("bar:N", sort=order, axis=named_axis())
    base = alt.Chart(table(rows)).encode(y=y)
    bars = base.mark_bar(height={"band": 0.74}).encode(
        x=alt.X("us:Q", title="mean latency, µs", stack="zero", axis=alt.Axis(tickCount=5)),
        color=alt.Color(
            "part:N", scale=scale, legend=alt.Legend(title=None, orient="bottom", columns=2, labelColor=INK)
        ),
        order="order:Q",
        description="tip:N",
    )
    labels = base.mark_text(align="left", dx=4, fontSize=11, color=INK).encode(
        x=alt.X("sum(us):Q", stack=False), text=alt.Text("sum(us):Q", format=".3~g")
    )
    layered = alt.layer(bars, labels, width=200, height=alt.Step(BAR_STEP))
    return by_row(layered, "chain", rows, own_y=True)


LINE_STEP = 16
"""Height of a line in px."""


def shape_dots(rows: Sequence[ChartRow]) -> alt.TopLevelMixin:
    """Draw a panel per test point (or switch) with a line per switch (or test point), as multiples of the reference."""
    low, high = min(row["ratio"] for row in rows), max(row["ratio"] for row in rows)
    domain = min(low, 1.0) / 1.15, max(high, 1.0) * 1.15
    scale, axis = log_scale(domain), log_axis(domain)
    x = alt.X("ratio:Q", title="multiple of the reference (log scale)", scale=scale, axis=axis)
    order = list(dict.fromkeys(row["line"] for row in rows))  # a panel has only the lines that it needs
    y = alt.Y("line:N", sort=order, axis=named_axis())
    base = alt.Chart(table([{**row, "one": 1.0} for row in rows]))
    rule = base.mark_rule(color=MUTED, strokeDash=[2, 2]).encode(x=alt.X("one:Q", scale=scale))
    span = base.mark_line(color=GRID, strokeWidth=3).encode(x=x, y=y, detail="line:N")
    theirs, ours = (f"datum.whose == '{whose}'" for whose in ("the paper", "here"))
    hollow = base.transform_filter(theirs).mark_point(size=52, filled=False, strokeWidth=1.6, color=INK, opacity=1)
    filled = base.transform_filter(ours).mark_point(size=44, filled=True, color=PARTS[0], opacity=1)
    marks = base.mark_text(align="left", dx=6, fontSize=11, color=INK).encode(x=x, y=y, text="mark:N")
    dots = [mark.encode(x=x, y=y, description="tip:N") for mark in (hollow, filled)]
    layered = alt.layer(rule, span, *dots, marks, width=225, height=alt.Step(LINE_STEP))
    return by_row(layered, "panel", rows, own_y=True)
