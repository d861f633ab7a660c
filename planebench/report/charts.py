# SPDX-License-Identifier: BSD-3-Clause
"""How charts are drawn: axes, bars, curves. What a figure is, is in figure.py."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt

from planebench.report.figure import (
    DASHES,
    GRID,
    INK,
    MUTED,
    PART_COLORS,
    PART_KINDS,
    PARTS,
    SHAPES,
    WHOLE,
    ChartRow,
    Colors,
)

# Axes, labels, colors and frames that all charts share; page and image files draw the same Altair definition.
#
# Charts are about 340 px wide, so that a phone shows them unscaled and a desk screen three in a row. Their colors for
# text and lines are the three of :mod:`planebench.report.figure`, which the page replaces in dark mode.

FONT = "Helvetica, Arial, sans-serif"

TICKS_MAX = 6
"""Labels of powers of ten on an axis, so that they do not collide."""
BAR_STEP = 19
"""Height of a switch's row in px."""


def table(rows: Sequence[ChartRow]) -> alt.InlineData:
    """Return rows as the data of a chart."""
    return alt.InlineData(values=tuple(rows))  # altair copies lists, for each layer and each property


def color(colors: Colors) -> Any:
    """Return the color of a mark by its switch, without a legend."""
    return alt.Color("switch:N", scale=alt.Scale(domain=list(colors), range=list(colors.values())), legend=None)


def shape(colors: Colors) -> Any:
    """Return the shape of a point by its switch, so that a print without colors can be read."""
    shapes = [SHAPES[i % len(SHAPES)] for i in range(len(colors))]
    return alt.Shape("switch:N", scale=alt.Scale(domain=list(colors), range=shapes), legend=None)


def dash(colors: Colors) -> Any:
    """Return the dashes of a line by its switch, for lines without points."""
    dashes = [DASHES[i % len(DASHES)] for i in range(len(colors))]
    return alt.StrokeDash("switch:N", scale=alt.Scale(domain=list(colors), range=dashes), legend=None)


def named_axis(limit: int = 150) -> alt.Axis:
    """Return an axis of names, without lines; a name is cut at ``limit`` px."""
    return alt.Axis(title=None, grid=False, ticks=False, domain=False, labelPadding=6, labelColor=INK, labelLimit=limit)


def log_scale(domain: tuple[float, float]) -> alt.Scale:
    """Return a logarithmic scale from the first to the last value of ``domain``."""
    return alt.Scale(type="log", domain=list(domain), nice=False)


def log_axis(domain: tuple[float, float], **options: Any) -> alt.Axis:
    """Return an axis for :func:`log_scale`, with a few round ticks; thousands as ``1k``, so that labels stay apart."""
    words = "format(datum.value, datum.value < 1000 ? '.3~g' : '~s')"
    return alt.Axis(labelExpr=words, values=log_ticks(*domain), **options)


def by_row(chart: Any, field: str, rows: Sequence[ChartRow], own_y: bool = False) -> alt.TopLevelMixin:
    """Return the chart once per value of ``field``, one below the other, with the value as the heading.

    ``own_y``: each has only the lines that it needs.
    """
    order = list(dict.fromkeys(row[field] for row in rows))
    header = alt.Header(
        title=None, labelOrient="top", labelAnchor="start", labelColor=MUTED, labelPadding=3, labelFontWeight=600
    )
    facet = chart.facet(row=alt.Row(f"{field}:N", sort=order, header=header), spacing=8)
    return plain(facet.resolve_scale(y="independent") if own_y else facet)


def line_labels(rows: Sequence[ChartRow], x: alt.X, y: str | alt.Y, colors: Colors) -> Any:
    """Draw the name of the switch at the end of its line, behind the shape of its points in its color."""
    base = alt.Chart(table(rows)).encode(x=x, y=y, description="switch:N")
    points = base.mark_point(size=30, filled=True, opacity=1, xOffset=10, clip=False)
    names = base.mark_text(align="left", dx=17, fontSize=11, color=INK, clip=False)
    return alt.layer(points.encode(color=color(colors), shape=shape(colors)), names.encode(text="switch:N"))


def log_ticks(low: float, high: float) -> list[float]:
    """Return ticks in 1, 2, 5 steps within less than two decades, beyond that powers of ten, at most TICKS_MAX."""
    steps = (1, 2, 5) if high / low < 200 else (1,)
    ticks = [t for t in (s * 10.0**e for e in range(-3, 8) for s in steps) if low <= t <= high]
    return ticks[:: math.ceil(len(ticks) / TICKS_MAX)] if len(steps) == 1 and ticks else ticks


def log_gap(domain: tuple[float, float]) -> float:
    """Return the distance between two labels in log10 units, on an axis 170 px high."""
    return 13 / 170 * math.log10(domain[1] / domain[0])


def plain(chart: Any) -> alt.TopLevelMixin:
    """Return the chart in the common style: no frame, no background, a pale grid."""
    text = {"labelFont": FONT, "titleFont": FONT}
    axis = {"labelColor": MUTED, "titleColor": MUTED, "gridColor": GRID, "domainColor": GRID, "tickColor": GRID}
    configured: alt.TopLevelMixin = chart.configure(  # one call: each makes the whole chart anew
        background="transparent",
        font=FONT,
        padding=4,
        view={"stroke": None},
        axis=text | axis | {"labelFontSize": 11, "titleFontSize": 11, "titleFontWeight": 400},
        axisY={"grid": True},
        header={"labelFont": FONT, "labelFontSize": 12},
        title={"font": FONT, "fontSize": 12, "color": MUTED, "anchor": "start"},
        text={"font": FONT},
    )
    return configured


def end_labels(rows: Sequence[ChartRow], x: str, y: str, gap: float, log: bool = False) -> list[ChartRow]:
    """Return a label at the end of each line; labels are at least ``gap`` apart (in y, or in log10 y)."""
    last: dict[str, ChartRow] = {}
    for row in rows:
        if row["switch"] not in last or row[x] >= last[row["switch"]][x]:
            last[row["switch"]] = row
    places = spread(
        {s: math.log10(r[y]) if log else r[y] for s, r in last.items()}, gap, floor=None if log else gap / 3
    )
    return [{**row, "label_y": 10 ** places[s] if log else places[s]} for s, row in last.items()]


def apart(rows: Sequence[ChartRow], x: str, y: str, dx: float, dy: float) -> list[ChartRow]:
    """Return the rows with a ``label_y`` at least ``dy`` (log10 y) from that of any other row within ``dx``."""
    placed: list[ChartRow] = []
    for row in sorted(rows, key=lambda r: r[y]):
        near = [math.log10(p["label_y"]) for p in placed if abs(p[x] - row[x]) < dx]
        place = max([math.log10(row[y]), *(other + dy for other in near)])
        placed.append({**row, "label_y": 10**place})
    return placed


def spread(wanted: Mapping[str, float], gap: float, floor: float | None = None) -> dict[str, float]:
    """Return positions at least ``gap`` apart in the same order; each group of neighbors is centered on its places.

    A position below ``floor`` is moved up, and the positions above it as far as needed.
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


# Bars, ranges and dots: throughput, latency, the parts of a latency, published tables.


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


# Curves and scatter plots: over load, frame size, number of VNFs, chain length and percentile.


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
