# SPDX-License-Identifier: BSD-3-Clause
"""A chart with its words, the colors of switches, and the rows that charts draw."""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from planebench.model.records import PartKind, Point
from planebench.model.scenario import ScenarioName
from planebench.model.words import ARROWS, frames
from planebench.report.svg import Canvas, ChartRow

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

OWN_COLORS = ("planed", "ovs-dpdk", "testpmd", "vpp", "bess", "fastclick", "snabb")
"""The switches that have a color of their own in every run, in the order of the colors."""

SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-right", "triangle-left")
"""Shapes of points, by the color of their switch."""

PART_COLORS = dict(zip(("switch hops", "VNFs", "hops with hosting", "tester"), SWITCH_COLORS, strict=False))
"""Parts of a latency, by whose they are: the four colors that differ most."""

Colors = Mapping[str, str]
"""Switch label -> color, in the order of the run."""


def switch_colors(labels: Sequence[str]) -> dict[str, str]:
    """Return the color of each label: that of its name in every run, of an unknown one by its hash.

    Of two unknown names with one color the later one in the alphabet gets the next that is free.
    """
    numbers = {label: OWN_COLORS.index(label) for label in labels if label in OWN_COLORS}
    rest = range(len(OWN_COLORS), len(SWITCH_COLORS))
    for label in sorted(set(labels) - set(numbers)):
        own = zlib.crc32(label.encode()) % len(rest)
        order = [*rest[own:], *rest[:own], *range(len(OWN_COLORS))]
        numbers[label] = next((it for it in order if it not in numbers.values()), rest[own])
    return {label: SWITCH_COLORS[numbers[label]] for label in labels}


def shape_of(color: str) -> str:
    """Return the shape of the points of a switch, so that a print without colors can be read."""
    return SHAPES[SWITCH_COLORS.index(color) % len(SHAPES)]


SMALLEST_US = 1e-3
"""One nanosecond: a log axis has no zero."""

PART_KINDS: dict[PartKind, str] = {
    "tester": "tester",
    "switch": "switch hops",
    "hosting": "hops with hosting",
    "vnf": "VNFs",
}

CHART_PX, WIDE_PX, NARROW_PX = 330.0, 860.0, 356.0
"""Width of a chart, of the one of the first screen, and of that one on a phone."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A chart with its words. ``key`` is its file name and anchor; ``look`` draws its rows at a width in px."""

    key: str
    kind: str
    scenario: ScenarioName
    title: str
    rows: Sequence[ChartRow]
    look: Callable[[Sequence[ChartRow], float], Canvas]
    width_px: float = CHART_PX

    def svg(self, width_px: float | None = None) -> str:
        """Return the drawing: when it is needed, as a big run has more charts than its page shows."""
        return self.look(self.rows, width_px or self.width_px).svg(self.full_title)

    @property
    def full_title(self) -> str:
        """Return the title for places where no heading names the scenario and the kind."""
        of_run = self.kind in ("overview", "p99", "throughput")
        return self.title if of_run else f"{self.scenario} {self.kind}: {self.title}"


def frames_key(cell: Point) -> str:
    """Return frame size and traffic profile as part of a key."""
    return f"{cell.frame_size_bytes}-{safe(cell.traffic)}" if cell.traffic else str(cell.frame_size_bytes)


def safe(text: str) -> str:
    """Return a text reduced to characters that are safe in a file name and an anchor."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text)


def cell_figure(
    kind: str,
    cell: Point,
    rows: Sequence[ChartRow],
    look: Callable[[Sequence[ChartRow], float], Canvas],
    more: str = "",
) -> Figure:
    """Return a figure of a test point; ``more`` of its title is put behind the words of the point."""
    key = f"{kind}-{cell.scenario_slug}-{cell.direction}-{frames_key(cell)}"
    chain = f"{cell.chain_label}, " if cell.named else f"N = {cell.chain_length}, " * bool(cell.chain_length)
    return Figure(key, kind, cell.scenario, f"{chain}{cell_title(cell)}{more}", rows, look)


def cell_title(cell: Point) -> str:
    """Return direction and frames: ``→ unidirectional, 64 B``."""
    return f"{ARROWS[cell.direction]} {cell.direction}, {frames(cell)}"
