# SPDX-License-Identifier: BSD-3-Clause
"""Axes, labels, colors and frames that all charts share; page and image files draw the same Altair definition.

Charts are about 340 px wide, so that a phone shows them unscaled and a desk screen three in a row. Their colors for
text and lines are the three of :mod:`planebench.report.charts.figure`, which the page replaces in dark mode.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt

from planebench.report.charts.figure import DASHES, GRID, INK, MUTED, SHAPES, ChartRow, Colors

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
