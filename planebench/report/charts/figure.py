# SPDX-License-Identifier: BSD-3-Clause
"""A chart with its words, the colors of switches, and the rows that charts draw. Imports no chart library."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

from planebench.model.records import Point, ScenarioName
from planebench.model.words import ARROWS, frames, printable

if TYPE_CHECKING:
    import altair as alt

SWITCH_COLORS = (
    "#2878d0",  # blue
    "#d9731a",  # orange
    "#199473",  # green
    "#bf4f9b",  # magenta
    "#8068cf",  # violet
    "#a98600",  # ochre
    "#d64545",  # red
    "#3494ab",  # teal
    "#7b8794",  # grey
    "#96704e",  # brown
)

SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-right", "triangle-left")
"""Shapes of points, by the position of their switch like the colors."""

PART_COLORS = {"tester": "#7b8794", "switch hops": "#2878d0", "hops with hosting": "#8068cf", "VNFs": "#d9731a"}
"""Parts of a latency, by whose they are."""

INK, MUTED, GRID = "#22303c", "#66737f", "#dfe5ea"
"""Text, secondary text and lines in charts. The page swaps exactly these three values in dark mode."""

PARTS = ("#3a6ea5", "#199473", "#d9731a", "#8068cf", "#a98600", "#bf4f9b")
"""Colors of a stacked bar: the whole first, then its parts. They do not stand for switches."""


def switch_colors(labels: Sequence[str]) -> dict[str, str]:
    """Return the color of each label by its position; the eleventh switch has the first color again."""
    return {label: SWITCH_COLORS[i % len(SWITCH_COLORS)] for i, label in enumerate(labels)}


ChartRow = dict[str, Any]

TIP_MARK = "\u2063"
"""Starts every ``tip`` (an invisible separator): tells our descriptions of a mark from those that Vega makes up."""

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
KINDS: tuple[FigureId, ...] = get_args(FigureId)

Colors = Mapping[str, str]
"""Switch label -> color, in the order of the run."""


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
