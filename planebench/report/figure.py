# SPDX-License-Identifier: BSD-3-Clause
"""A chart with its words: what figures.py and chain_figures.py make."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, get_args

import altair as alt
from altair.utils.schemapi import debug_mode

from planebench.model.records import Point, ScenarioName
from planebench.model.words import ARROWS, frames, printable

Kind = Literal[
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
    "percentiles",
    "anatomy",
    "parts",
    "papers",
    "overview",
]
KINDS: tuple[Kind, ...] = get_args(Kind)


@dataclass(frozen=True, slots=True)
class Figure:
    """A chart with its words. ``key`` is its file name and anchor; ``make`` draws it up when it is asked for."""

    key: str
    kind: Kind
    scenario: ScenarioName
    title: str
    make: Callable[[], alt.TopLevelMixin]

    @property
    def chart(self) -> alt.TopLevelMixin:
        """The chart, made anew each time: a big run has more of them than its page shows.

        Altair does not check it against its schema, which takes a third of the time: a test does.
        """
        with debug_mode(False):
            return self.make()

    @property
    def full_title(self) -> str:
        """The title where no heading tells the scenario and the kind."""
        return self.title if self.kind in ("overview", "papers") else f"{self.scenario} {self.kind}: {self.title}"


def frames_key(cell: Point) -> str:
    """Frame size and traffic of a cell as part of a key: two cells that differ in either have two keys."""
    return f"{cell.frame_size_bytes}-{safe(cell.traffic)}" if cell.traffic else str(cell.frame_size_bytes)


def safe(text: str) -> str:
    """Fit for a file name and an anchor."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text)


def cell_key(kind: Kind, cell: Point) -> str:
    """The key of a figure of a cell."""
    return f"{kind}-{cell.scenario_slug}-{cell.direction}-{frames_key(cell)}"


def cell_title(cell: Point) -> str:
    """Direction and frames: ``→ unidirectional, 64 B``."""
    return f"{ARROWS[cell.direction]} {cell.direction}, {frames(cell)}"


def full_cell_title(cell: Point) -> str:
    """As :func:`cell_title`, with the chain where there is one."""
    return f"{chain_title(cell)}{cell_title(cell)}"


def chain_title(cell: Point) -> str:
    """``firewall,l3fwd, ``, ``N = 2, ``; empty where there is no chain."""
    return f"{printable(cell.chain_label)}, " if cell.named else f"N = {cell.chain_length}, " * bool(cell.chain_length)
