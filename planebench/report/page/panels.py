# SPDX-License-Identifier: BSD-3-Clause
"""The charts of the page: drawn once, grouped by kind, and as many as the file has room for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from planebench.model.records import ScenarioName
from planebench.report.anatomy import NOTE
from planebench.report.charts.figure import Figure, Kind
from planebench.report.images import inline_svg

_WHISKERS = "Whiskers: lowest and highest trial."

_GROUPS: tuple[tuple[Kind, str, str], ...] = (
    ("throughput", "Throughput", f"Received rate at saturating input. {_WHISKERS}"),
    ("chain", "Throughput by chain length", f"Received rate at saturating input. {_WHISKERS}"),
    ("loss", "Loss-rate curve", "Share of frames that did not arrive, by load (RFC 2544 section 26.3)."),
    ("latency", "Latency", "Dot: median. Thick line: to p99. Thin line: to p99.9. Figures: median / p99 in µs."),
    (
        "load",
        "Latency against load",
        f"Line: p50. {_WHISKERS} Dashed: p99. Ring: the knee. Grey: latency floor of the tester.",
    ),
    ("jitter", "Jitter against load", "Mean of all differences, by the definition in the title."),
    ("sizes", "Latency against frame size", f"Mean. {_WHISKERS}"),
    ("jitter-sizes", "Jitter against frame size", "Mean of all differences, by the definition in the title."),
    (
        "tradeoff",
        "Throughput against mean latency",
        "As conext19, Fig. 1. Low and to the right is good. Both ways: lowest and highest trial.",
    ),
    (
        "deviation",
        "Mean latency against its standard deviation",
        "As conext19, Fig. 1. Low and to the left is good. Of all probes together, so without whiskers.",
    ),
    ("anatomy", "Where the time goes", f"Mean latency of the probes, part by part along the path. {NOTE}"),
    ("percentiles", "Latency distribution", "Every probe that came back, by percentile. Low and flat is good."),
)

_CHAINS = (
    "Latency of a chain beside its parts",
    "Mean latency at the same load in packets a second. Above: the chain. Below: its functions, each run alone, one "
    "behind the other.",
)

_LAST: tuple[Kind, ...] = ("jitter-sizes", "jitter", "parts", "anatomy", "percentiles")
"""Drawn after all others, in this order, while there is room: tables have most of what they show."""


@dataclass(frozen=True, slots=True)
class Panels:
    """Charts as markup by key; a figure that is not among them is left out."""

    figures: tuple[Figure, ...]
    drawn: Mapping[str, Markup]


def draw(figures: Sequence[Figure], room_bytes: int) -> Panels:
    """Draw what there is room for; those of every kind that is rarely read last."""
    drawn: dict[str, Markup] = {}
    for figure in sorted(figures, key=lambda f: _LAST.index(f.kind) + 1 if f.kind in _LAST else 0):
        if room_bytes <= 0:
            break
        drawn[figure.key] = Markup(inline_svg(figure.chart, figure.full_title, figure.key))
        room_bytes -= len(drawn[figure.key])
    return Panels(tuple(figures), drawn)


def scenario_groups(panels: Panels, scenario: ScenarioName) -> list[dict[str, Any]]:
    """The groups of charts of a scenario that have any, in their order on the page."""
    members = [f for f in panels.figures if f.scenario == scenario]
    groups = (_group(panels, members, *group) for group in _GROUPS)
    return [group for group in groups if group["panels"] or group["left_out"]]


def chains_group(panels: Panels) -> dict[str, Any]:
    """The group of the section on chains; empty where no chain can be set against its parts."""
    return _group(panels, panels.figures, "parts", *_CHAINS)


def _group(panels: Panels, figures: Sequence[Figure], kind: Kind, title: str, caption: str) -> dict[str, Any]:
    found = [f for f in figures if f.kind == kind]
    shown = [{"key": f.key, "title": f.title, "svg": panels.drawn[f.key]} for f in found if f.key in panels.drawn]
    left_out = len(found) - len(shown)
    return {"kind": kind, "title": title, "caption": caption, "panels": shown, "left_out": left_out}
