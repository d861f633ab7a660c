# SPDX-License-Identifier: BSD-3-Clause
"""A chart with its words, the colors of switches, and the rows that charts draw. Imports no chart library."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

from planebench.model.records import PartKind, Point
from planebench.model.scenario import ScenarioName
from planebench.model.words import ARROWS, frames, point_words, printable

if TYPE_CHECKING:
    import altair as alt

SWITCH_COLORS = (
    "#1a95cc",  # blue
    "#6f021a",  # maroon
    "#9a6000",  # ochre
    "#3a3fb9",  # indigo
    "#7c7c7c",  # grey
    "#7e0169",  # purple
    "#cb0051",  # crimson
    "#736bed",  # violet
    "#783700",  # brown
    "#c834a9",  # magenta
)
"""Any two differ for readers with each kind of color blindness, the first six in a black-and-white print, too."""

DARK_COLORS = (
    "#2f95fd",
    "#d51a3e",
    "#f7a122",
    "#e1d8ff",
    "#a3a3a3",
    "#d13eb2",
    "#fd5d46",
    "#adb8fa",
    "#fed893",
    "#a4517c",
)
"""What the page has instead of each of them in dark mode."""

DASHES = ([1, 0], [6, 2], [2, 2], [8, 2, 2, 2], [4, 4])
"""Dashes of lines without points, by the position of their switch."""

SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-right", "triangle-left")
"""Shapes of points, by the position of their switch like the colors."""

PART_COLORS = dict(zip(("switch hops", "VNFs", "hops with hosting", "tester"), SWITCH_COLORS, strict=False))
"""Parts of a latency, by whose they are: the four colors that differ most."""

INK, MUTED, GRID = "#22303c", "#66737f", "#dfe5ea"
"""Text, secondary text and lines in charts. The page swaps exactly these three values in dark mode."""

PARTS = SWITCH_COLORS[:6]
"""Colors of a stacked bar: the whole first, then its parts. They do not stand for switches."""


def switch_colors(labels: Sequence[str]) -> dict[str, str]:
    """Return the color of each label by its position; the eleventh switch has the first color again."""
    return {label: SWITCH_COLORS[i % len(SWITCH_COLORS)] for i, label in enumerate(labels)}


ChartRow = dict[str, Any]

TIP_MARK = "\u2063"
"""Separates the two parts of a :func:`tip` (an invisible character). Descriptions that Vega makes up have none."""

SMALLEST_US = 1e-3
"""One nanosecond: a log axis has no zero."""

FigureId = Literal[
    "overview",
    "throughput",
    "chain",
    "vnfs",
    "loss",
    "latency",
    "load",
    "jitter",
    "sizes",
    "jitter-sizes",
    "tradeoff",
    "deviation",
    "anatomy",
    "percentiles",
    "parts",
    "papers",
]
"""The kinds of figures. ``planebench.report.figures`` describes each; this module is light, for completion."""
PART_KINDS: dict[PartKind, str] = {
    "tester": "tester",
    "switch": "switch hops",
    "hosting": "hops with hosting",
    "vnf": "VNFs",
}
WHOLE = "chain"
"""The bar segment of a chain itself, not of one of its functions."""
KINDS: tuple[FigureId, ...] = get_args(FigureId)

Colors = Mapping[str, str]
"""Switch label -> color, in the order of the run."""


def point_name(point: Point) -> str:
    """Return the name of a test point with its switch, by which a mark of a chart is found: ``vpp p2p → 64 B``."""
    return f"{printable(point.switch)} {point_words(point)}"


def tip(words: str, point: Point | None = None) -> str:
    """Return the description of a mark: the test point that it belongs to, if any, and the words that a reader sees."""
    return f"{point_name(point) if point else ''}{TIP_MARK}{words}"


@dataclass(frozen=True, slots=True)
class Figure:
    """A chart with its words. ``key`` is its file name and anchor; ``make`` draws it when it is needed."""

    key: str
    kind: FigureId
    scenario: ScenarioName
    title: str
    make: Callable[[], alt.TopLevelMixin]

    @property
    def chart(self) -> alt.TopLevelMixin:
        """Return the chart, made anew each time: a big run has more charts than its page shows.

        Altair does not check it against its schema, which takes a third of the time: a test does.
        """
        from altair.utils.schemapi import debug_mode  # takes a second: the terminal needs no chart

        with debug_mode(False):
            return self.make()

    @property
    def full_title(self) -> str:
        """Return the title for places where no heading names the scenario and the kind."""
        return self.title if self.kind in ("overview", "papers") else f"{self.scenario} {self.kind}: {self.title}"


def frames_key(cell: Point) -> str:
    """Return frame size and traffic profile as part of a key."""
    return f"{cell.frame_size_bytes}-{safe(cell.traffic)}" if cell.traffic else str(cell.frame_size_bytes)


def safe(text: str) -> str:
    """Return a text reduced to characters that are safe in a file name and an anchor."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text)


def cell_figure(
    kind: FigureId, cell: Point, make: Callable[[], alt.TopLevelMixin], key: str = "", title: str = ""
) -> Figure:
    """Return a figure of a test point; ``key`` and ``title`` are put behind those of the point."""
    key = f"{kind}-{cell.scenario_slug}-{cell.direction}-{frames_key(cell)}{key}"
    return Figure(key, kind, cell.scenario, f"{chain_title(cell)}{cell_title(cell)}{title}", make)


def cell_title(cell: Point) -> str:
    """Return direction and frames: ``→ unidirectional, 64 B``."""
    return f"{ARROWS[cell.direction]} {cell.direction}, {frames(cell)}"


def chain_title(cell: Point) -> str:
    """Return the chain as the start of a title: ``firewall,l3fwd, ``, ``N = 2, ``; empty without a chain."""
    return f"{printable(cell.chain_label)}, " if cell.named else f"N = {cell.chain_length}, " * bool(cell.chain_length)
