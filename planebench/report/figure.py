# SPDX-License-Identifier: BSD-3-Clause
"""A chart with its words: what figures.py and chain_figures.py make."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

import altair as alt

from planebench.model.records import Point, ScenarioName

Kind = Literal[
    "throughput",
    "chain",
    "loss",
    "latency",
    "load",
    "percentiles",
    "anatomy",
    "tradeoff",
    "overview",
    "parts",
    "papers",
]


@dataclass(frozen=True, slots=True)
class Figure:
    """A chart with its words. ``key`` is its file name and anchor."""

    key: str
    kind: Kind
    scenario: ScenarioName
    title: str
    chart: alt.TopLevelMixin

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
