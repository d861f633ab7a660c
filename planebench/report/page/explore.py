# SPDX-License-Identifier: BSD-3-Clause
"""The results as the script of the page has them: names, by which it filters, and words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from planebench.model.records import Point
from planebench.model.results import Result
from planebench.model.words import frames, printable
from planebench.report.charts.figure import point_name
from planebench.report.images import Marks
from planebench.report.throughput import throughput_tip

ExploreCell = tuple[str, str, str, str, str]
"""Switch, scenario, frames, name and words of a result."""


@dataclass(frozen=True, slots=True)
class Explored:
    """The results of a page by number. A row or a mark with the number of a result is about it."""

    cells: Sequence[ExploreCell]
    switches: Sequence[str]
    numbers: Mapping[str, int]

    @property
    def choices(self) -> list[tuple[int, str, list[str]]]:
        """Return what a reader can filter by: the place in a cell, a title, and the values."""
        titles = enumerate(("Switch", "Scenario", "Frames"))
        return [(part, title, list(dict.fromkeys(cell[part] for cell in self.cells))) for part, title in titles]

    @property
    def marks(self) -> Marks:
        """Return the attributes of the marks of charts: the number of their result, or of their switch."""
        switches = {label: ("data-switch", str(number)) for number, label in enumerate(self.switches)}
        return switches | {name: ("data-cells", str(number)) for name, number in self.numbers.items()}

    def places(self, points: Iterable[Point]) -> str:
        """Return the numbers of the results at some test points: ``3 9``; empty where one has no result."""
        found = [self.numbers.get(point_name(point)) for point in points]
        return "" if None in found else " ".join(map(str, found))


def explored(results: Sequence[Result], labels: Iterable[str]) -> Explored:
    """Return what the script knows of some results; ``labels`` are the switches of the run, in its order."""
    cells = [
        (
            printable(r.point.switch),
            r.point.scenario,
            frames(r.point),
            point_name(r.point),
            throughput_tip(r),
        )
        for r in results
    ]
    return Explored(cells, [printable(label) for label in labels], {cell[3]: n for n, cell in enumerate(cells)})
