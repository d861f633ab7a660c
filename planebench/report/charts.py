# SPDX-License-Identifier: BSD-3-Clause
"""How charts look: bars in groups, rows on one axis, curves, scatter plots. What a figure is, is in figure.py."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from planebench.model.grouped import grouped
from planebench.report.figure import PART_COLORS, Colors, shape_of
from planebench.report.svg import (
    CHARACTER_PX,
    GRID,
    INK,
    MUTED,
    Canvas,
    ChartRow,
    Scale,
    ends,
    spread,
    text_px,
)

LINE_PX = 13
"""Between two lines of text."""
ROW_PX = 19
"""Height of a row of a chart with rows."""
PLOT_PX = 170
"""Height of a plot."""
NAME_PX = 150
"""The longest name of a row."""

# Bars in groups: the rates of all switches on all paths.

BAR_PX = (6.0, 48.0)
"""The least and the greatest width of a bar with its gap."""
GROUP_GAP_PX = 16.0
LABEL_PX = 23.0
"""A bar as wide as this has room for its figure."""


def grouped_bars(rows: Sequence[ChartRow], width: float, colors: Colors) -> Canvas:
    """Draw a group of bars a path, a bar a switch, as many groups beside each other as there is room for.

    All have one axis. A lower bound is pale and ends in an arrow.
    """
    groups = grouped((row["path"], row) for row in rows)
    switches = [label for label in colors if any(row["switch"] == label for row in rows)]
    left, room = 34.0, width - 34.0
    bar = (room / len(groups) - GROUP_GAP_PX) / len(switches)
    bar = min(max(bar, min(LABEL_PX, (room - GROUP_GAP_PX) / len(switches)), BAR_PX[0]), BAR_PX[1])
    step = max(bar * len(switches), text_px(groups)) + GROUP_GAP_PX
    in_line = max(1, min(len(groups), int(room / step)))
    lines = math.ceil(len(groups) / in_line)
    in_line = math.ceil(len(groups) / lines)
    step = room / in_line
    bar = min((step - GROUP_GAP_PX) / len(switches), BAR_PX[1])
    height = 160 if lines == 1 else 100
    canvas = Canvas(width, lines * (height + 40) + 18)
    _legend(canvas, switches, colors)
    top = max((row["mpps"] for row in rows), default=1.0) * 1.13 or 1.0
    for number, (path, members) in enumerate(groups.items()):
        line, place = divmod(number, in_line)
        bottom = line * (height + 40) + height + 30
        y = Scale(0.0, top, float(bottom), float(bottom - height + 10))
        if place == 0:
            canvas.axis(y, "Mpps" if line == 0 else "", left, left + step * in_line, upright=True)
        middle = left + step * (place + 0.5)
        canvas.text(middle, bottom + 15, path, "middle", MUTED)
        for row in members:
            x = middle + (switches.index(row["switch"]) - len(switches) / 2) * bar
            _bar(canvas, row, x, bar, y, colors[row["switch"]])
    return canvas


def _bar(canvas: Canvas, row: ChartRow, x: float, width: float, y: Scale, color: str) -> None:
    """Draw a bar from ``x`` on, with its interval, and its figure where there is room."""
    head, middle, pale = y(row["mpps"]), x + width / 2, row["limited"]
    canvas.add(
        "rect", row, x=x + 1.0, y=head, width=width - 2.0, height=y.start - head, fill=color, stroke=color,
        fill_opacity=0.3 if pale else "", stroke_dasharray="3 2" if pale else "",
    )  # fmt: skip
    over = head
    if pale:
        canvas.line([(middle - 3, head - 2), (middle, head - 6), (middle + 3, head - 2)], color, stroke_width=1.4)
        over = head - 6
    elif row["low"] < row["high"]:
        canvas.whisker(y, row["low"], row["high"], middle, True, INK)
        over = y(row["high"])
    if width >= LABEL_PX - 1 or not row["counts"]:
        canvas.text(middle, over - 3, row["label"], "middle", font_size=10)


def _legend(canvas: Canvas, switches: Sequence[str], colors: Colors) -> None:
    x = canvas.width
    for label in reversed(switches):
        x -= text_px([label]) + 24
        if x < 30:
            return
        canvas.point(x + 5, 7, "square", colors[label], {"switch": label}, r=4)
        canvas.text(x + 14, 11, label)


# Rows: one below the other on one axis, under the heading of their group.


class _Rows:
    """The frame of a chart with rows: the place of each, by group and name."""

    def __init__(self, rows: Sequence[ChartRow], width: float, group: str, line: str, right: float = 8.0) -> None:
        self.groups = grouped(dict.fromkeys((str(row[group]) if group else "", str(row[line])) for row in rows))
        names = [name for lines in self.groups.values() for name in lines]
        self.left = min(NAME_PX, text_px(names)) + 10
        self.right = max(width - right, self.left + 60)
        self.places: dict[tuple[str, str], float] = {}
        y = 4.0
        for heading, lines in self.groups.items():
            y += (LINE_PX + 6) * bool(heading)
            for name in lines:
                self.places[heading, name] = y + ROW_PX / 2
                y += ROW_PX
        self.bottom = y
        self.canvas = Canvas(width, y + 36)

    def scale(self, low: float, high: float, title: str, log: bool = False) -> Scale:
        """Draw axis, headings and names; return the scale."""
        scale = Scale(low, high, self.left, self.right, log)
        self.canvas.axis(scale, title, self.bottom, 0.0, upright=False)
        most = int((self.left - 10) / CHARACTER_PX)
        for heading, lines in self.groups.items():
            if heading:
                top = self.places[heading, lines[0]] - ROW_PX / 2 - 5
                self.canvas.text(0, top, heading, fill=MUTED, font_weight=600)
            for name in lines:
                cut = name if len(name) <= most + 1 else f"{name[: most - 1]}…"
                self.canvas.text(self.left - 6, self.places[heading, name] + 4, cut, "end")
        return scale


def path_dots(rows: Sequence[ChartRow], width: float, colors: Colors) -> Canvas:
    """Draw a row a path with the p99 of each switch, on a log axis."""
    frame = _Rows(rows, width, "", "path", right=20.0)
    x = frame.scale(*ends([row["us"] for row in rows], log=True), "p99 latency, µs (log scale)", log=True)
    for (_, name), y in frame.places.items():
        members = [row for row in rows if row["path"] == name]
        frame.canvas.line([(x(f(row["us"] for row in members)), y) for f in (min, max)], GRID, stroke_width=3)
        for row in members:
            frame.canvas.point(x(row["us"]), y, shape_of(colors[row["switch"]]), colors[row["switch"]], row, r=4)
    return frame.canvas


def latency_ranges(rows: Sequence[ChartRow], width: float, colors: Colors, domain: tuple[float, float]) -> Canvas:
    """Draw the percentiles of each switch by load: dot p50, thick line to p99, thin line to p99.9; log axis."""
    rows = sorted(rows, key=lambda row: list(colors).index(row["switch"]))
    frame = _Rows(rows, width, "load", "switch", right=text_px(row["label"] for row in rows) + 8)
    x = frame.scale(*domain, "latency, µs (log scale)", log=True)
    for row in rows:
        y, color = frame.places[row["load"], row["switch"]], colors[row["switch"]]
        frame.canvas.line([(x(row["p50"]), y), (x(row["p99_9"]), y)], color, stroke_width=1.3)
        thick = 5 if row["counts"] else 1.3
        frame.canvas.line([(x(row["p50"]), y), (x(row["p99"]), y)], color, row, stroke_width=thick)
        frame.canvas.point(x(row["p50"]), y, "circle", color, hollow=not row["counts"])
        frame.canvas.text(x(row["p99_9"]) + 5, y + 4, row["label"], fill=INK if row["counts"] else MUTED)
    floor = next((row["floor"] for row in rows if row.get("floor")), None)
    if floor and floor >= domain[0]:
        line = [(x(floor), 0.0), (x(floor), frame.bottom)]
        frame.canvas.line(line, MUTED, stroke_dasharray="2 2")
    return frame.canvas


def anatomy_bars(rows: Sequence[ChartRow], width: float) -> Canvas:
    """Draw a bar a switch (and direction, if both send) by load, of segments; the legend is below."""
    frame = _Rows(rows, width, "load", "bar")
    x = frame.scale(0.0, max(row["end"] for row in rows) * 1.02, "mean latency, µs")
    for row in rows:
        y, left = frame.places[str(row["load"]), row["bar"]], x(row["start"])
        top, height = y - ROW_PX * 0.37, ROW_PX * 0.74
        color = PART_COLORS[row["part"]]
        frame.canvas.add("rect", row, x=left, y=top, width=x(row["end"]) - left, height=height, fill=color)
    place = frame.bottom + 36
    for part in dict.fromkeys(row["part"] for row in rows):
        frame.canvas.point(8, place + 6, "square", PART_COLORS[part], r=4)
        frame.canvas.text(18, place + 10, part)
        place += LINE_PX + 3
    frame.canvas.height = place + 4
    return frame.canvas


# Curves and scatter plots


class _Plot:
    """A plot with two axes; names of switches stand at its right edge."""

    def __init__(
        self,
        width: float,
        labels: Sequence[str],
        x: tuple[float, float],
        y: tuple[float, float],
        titles: tuple[str, str],
        log: tuple[bool, bool] = (False, True),
        names: Mapping[float, str] | None = None,
    ) -> None:
        self.canvas = Canvas(width, PLOT_PX + 54)
        right = width - text_px(labels) - 22
        self.x = Scale(*x, 38.0, max(right, 100.0), log[0])
        self.y = Scale(*y, PLOT_PX + 18.0, 18.0, log[1])
        self.canvas.axis(self.y, titles[1], self.x.start, self.x.end, upright=True)
        self.canvas.axis(self.x, titles[0], self.y.start, self.y.end, upright=False, names=names)

    def names(self, wanted: Mapping[str, float], colors: Colors) -> None:
        """Write the names of switches at the right edge, each at the height of its last value."""
        places = spread({name: self.y(value) for name, value in wanted.items()}, LINE_PX)
        for name, y in places.items():
            self.canvas.point(self.x.end + 9, y, shape_of(colors[name]), colors[name], {"switch": name})
            self.canvas.text(self.x.end + 17, y + 4, name)


def curves(
    rows: Sequence[ChartRow],
    width: float,
    colors: Colors,
    titles: tuple[str, str],
    *,
    values: Sequence[float] = (),
    log_x: bool = False,
    log_y: bool = True,
    dashed: str = "",
    floor: float | None = None,
) -> Canvas:
    """Draw a line a switch through its ``x`` and ``y``, with whiskers from ``low`` to ``high``.

    ``values``: the ticks of the x axis, where it has few. ``dashed``: the key of a second line. A hollow point is a
    lower bound, a ring a knee, a gray line the ``floor``. Intervals do not stretch the axis: a longer one is cut.
    """
    of_switch = {label: [row for row in rows if row["switch"] == label] for label in colors}
    of_switch = {label: sorted(found, key=lambda row: row["x"]) for label, found in of_switch.items() if found}
    found = [row[key] for row in rows for key in ("y", *filter(None, [dashed]))]
    low, high = ends(found, log_y)
    if floor and log_y and floor >= low / 2:
        low = min(low, floor / 1.15)
    x_ends = (min(values), max(values)) if values else (0.0, max(row["x"] for row in rows) * 1.04)
    ticks = {value: f"{value:g}" for value in values}
    plot = _Plot(width, list(of_switch), x_ends, (low, high), titles, (log_x, log_y), ticks or None)
    x, y, canvas = plot.x, plot.y, plot.canvas
    if floor and floor >= low:
        canvas.line([(x.start, y(floor)), (x.end, y(floor))], MUTED)
    for label, line in of_switch.items():
        color, about = colors[label], {"switch": label}
        if dashed:
            canvas.line([(x(row["x"]), y(row[dashed])) for row in line], color, about, stroke_dasharray="4 3")
        canvas.line([(x(row["x"]), y(row["y"])) for row in line], color, about, stroke_width=1.8)
        for row in line:
            at = x(row["x"])
            if "low" in row and row["low"] < row["high"]:
                canvas.whisker(y, row["low"], row["high"], at, True, color)
            canvas.point(at, y(row["y"]), shape_of(color), color, row, hollow=row.get("limited", False))
            if row.get("knee"):
                canvas.point(at, y(row["y"]), "circle", color, r=7, hollow=True)
    plot.names({label: line[-1]["y"] for label, line in of_switch.items()}, colors)
    return canvas


def scatter(rows: Sequence[ChartRow], width: float, colors: Colors, titles: tuple[str, str], log_x: bool) -> Canvas:
    """Draw a named point a switch, with whiskers to ``x_low`` and ``x_high``; log y axis. Hollow: not compared."""
    x_ends = ends([row["x"] for row in rows], log_x)
    y_ends = ends([row["y"] for row in rows], log=True)
    longest = [max((row["label"] for row in rows), key=len)]
    plot = _Plot(width, longest, x_ends, (y_ends[0] / 1.2, y_ends[1] * 1.2), titles, (log_x, True))
    places: list[tuple[float, float]] = []
    for row in sorted(rows, key=lambda row: -row["y"]):
        x, y, color = plot.x(row["x"]), plot.y(row["y"]), colors[row["switch"]]
        if row["x_low"] < row["x_high"]:
            plot.canvas.whisker(plot.x, row["x_low"], row["x_high"], y, False, color)
        plot.canvas.point(x, y, shape_of(color), color, row, r=4.5, hollow=not row["counts"])
        label = y
        while any(abs(label - other) < LINE_PX and abs(x - beside) < text_px(longest) for beside, other in places):
            label += 1
        places.append((x, label))
        plot.canvas.text(x + 8, label + 4, row["label"])
    return plot.canvas
