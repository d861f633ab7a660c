# SPDX-License-Identifier: BSD-3-Clause
"""The charts of the page: drawn once, grouped by kind, and as many as the file has room for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from planebench.report.charts.figure import Figure
from planebench.report.figures import FIGURES, FigureKind
from planebench.report.images import Marks, inline_svg


@dataclass(frozen=True, slots=True)
class FigureGroup:
    """The figures of one kind in one section. The template shows those that were drawn and counts the others."""

    kind: FigureKind
    figures: tuple[Figure, ...]


def draw(figures: Sequence[Figure], room_bytes: int, marks: Marks | None = None) -> Mapping[str, Markup]:
    """Draw the charts that there is room for, as markup by key; kinds that are rarely read come last."""
    last = {kind.id: kind.last for kind in FIGURES}
    drawn: dict[str, Markup] = {}
    for figure in sorted(figures, key=lambda f: last.get(f.kind, 0)):
        if room_bytes <= 0:
            break
        drawn[figure.key] = Markup(inline_svg(figure.chart, figure.full_title, figure.key, marks))
        room_bytes -= len(drawn[figure.key])
    return drawn


def groups(figures: Sequence[Figure], section: str) -> list[FigureGroup]:
    """Return the groups of charts of a section that have any, in the order of the registry."""
    found = []
    for kind in FIGURES:
        members = tuple(f for f in figures if f.kind == kind.id and (kind.section or f.scenario) == section)
        if members:
            found.append(FigureGroup(kind, members))
    return found
