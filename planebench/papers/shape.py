# SPDX-License-Identifier: BSD-3-Clause
"""The papers' tables beside ours, as shape: every figure as a multiple of a named reference, theirs and ours alike.

Throughput and v2v latency: of one switch that both have, in the same cell. Table 3: of the switch's own p2p latency at
0.50 R+. Figures that do not count, or are of another core distance than their reference, have no ratio.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from planebench.model.grouped import grouped
from planebench.model.records import Point, VerdictKind
from planebench.model.scenario import Direction
from planebench.model.words import ARROWS, frame_size, load_words, printable
from planebench.papers.data import PaperFigure, PaperMetric, paper_figures
from planebench.papers.measured import SIMULATED, RunFigures
from planebench.papers.told import FigureSample, middle

OWN_REFERENCE = ("p2p", 0, "0.50")


@dataclass(frozen=True, slots=True)
class Ratio:
    """A figure over its reference. ``mark``: ``≥`` or ``≤`` where one of both is a bound."""

    value: float
    mark: str = ""

    @property
    def words(self) -> str:
        """Return the ratio with its mark: ``≥1.34``."""
        return f"{self.mark}{self.value:.2f}"


@dataclass(frozen=True, slots=True)
class ShapeEntry:
    """One cell of a table for one switch; ``reference`` says what both ratios are multiples of."""

    switch: str
    cell: str
    reference: str
    paper: Ratio | None
    ours: Ratio | None


@dataclass(frozen=True, slots=True)
class Shape:
    """A table of a paper beside ours."""

    paper: str
    title: str
    note: str
    entries: tuple[ShapeEntry, ...]

    @property
    def cells(self) -> tuple[str, ...]:
        """Return the columns in the order of the paper."""
        return tuple(dict.fromkeys(entry.cell for entry in self.entries))

    @property
    def switches(self) -> tuple[str, ...]:
        """Return the switches of paper and run."""
        return tuple(dict.fromkeys(entry.switch for entry in self.entries))


@dataclass(frozen=True, slots=True)
class _Cell:
    """The cell of a published table without its switch."""

    metric: PaperMetric
    point: Point
    load: str

    @property
    def words(self) -> str:
        name = self.point.scenario_label
        if self.metric == "throughput":
            return f"{name} {ARROWS[self.point.direction]} {frame_size(self.point.frame_size_bytes)}"
        return f"{name}, {load_words(self.load)}"


def shapes(measured: RunFigures) -> tuple[Shape, ...]:
    """Return every table for which paper and run have a switch in common."""
    tables = (
        Shape(
            "conext19",
            "Throughput (Fig. 4)",
            "Share of the throughput of the switch in brackets, in the same cell. conext19 has lines of 10 Gb/s.",
            tuple(_across(measured, _cells("throughput", ("p2p", "p2v", "v2v")))),
        ),
        Shape(
            "conext19",
            "Latency by chain length and load (Table 3)",
            "Multiples of the switch's own mean latency in p2p at 50 % of R+, 64 B, unidirectional.",
            tuple(_own(measured, _cells("latency", ("p2p", "loopback")))),
        ),
        Shape(
            "conext19",
            "v2v latency at 1 Mpps (Table 4)",
            "Multiples of the mean latency of the switch in brackets.",
            tuple(_across(measured, _cells("latency", ("v2v",)))),
        ),
    )
    return tuple(table for table in tables if any(entry.ours for entry in table.entries))


def _cells(metric: PaperMetric, scenarios: Sequence[str]) -> dict[_Cell, list[PaperFigure]]:
    def cell(it: PaperFigure) -> _Cell:
        direction: Direction = it.direction or "unidirectional"
        return _Cell(metric, Point("", it.scenario, direction, it.chain_length, it.frame_size_bytes), it.load)

    figures = (it for it in paper_figures() if it.metric == metric and it.scenario in scenarios)
    return grouped((cell(figure), figure) for figure in figures)


def _across(measured: RunFigures, cells: dict[_Cell, list[PaperFigure]]) -> Iterator[ShapeEntry]:
    for cell, figures in cells.items():
        theirs = _values(figures)
        ours = _samples(measured, cell)
        # The best published switch with an accepted figure here; a valid one before a lower bound.
        shared = [label for label, sample in ours.items() if sample.counts and measured.adapters[label] in theirs]
        sign = 1 if cell.metric == "throughput" else -1
        reference = max(
            shared,
            key=lambda label: (ours[label].kind is VerdictKind.VALID, sign * theirs[measured.adapters[label]]),
            default=None,
        )
        if reference is None or len(theirs) < 2:  # one figure of the paper has no shape
            continue
        base, adapter = ours[reference], measured.adapters[reference]
        name = f"{cell.words} ({printable(reference)})"
        for switch in _rows(measured, theirs, ours):
            key = measured.adapters.get(switch, switch)
            paper = Ratio(theirs[key] / theirs[adapter]) if key in theirs else None
            mine = _ratio(ours.get(switch), base)
            if paper or mine:
                yield ShapeEntry(switch, name, reference, paper, mine)


def _own(measured: RunFigures, cells: dict[_Cell, list[PaperFigure]]) -> Iterator[ShapeEntry]:
    base = next(cell for cell in cells if (cell.point.scenario, cell.point.chain_length, cell.load) == OWN_REFERENCE)
    our_base, their_base = _samples(measured, base), _values(cells[base])
    for cell, figures in cells.items():
        theirs, ours = _values(figures), _samples(measured, cell)
        for switch in _rows(measured, their_base, our_base):
            key = measured.adapters.get(switch, switch)
            paper = Ratio(theirs[key] / their_base[key]) if key in theirs else None
            mine = _ratio(ours.get(switch), our_base[switch]) if switch in our_base else None
            if paper or mine:
                yield ShapeEntry(switch, cell.words, base.words, paper, mine)


def _values(figures: Sequence[PaperFigure]) -> dict[str, float]:
    """Return the figures of a cell by switch, without those of which the paper gives no more than bounds."""
    return {figure.switch: figure.value for figure in figures if figure.value is not None}


def _rows(measured: RunFigures, theirs: dict[str, float], ours: dict[str, FigureSample]) -> list[str]:
    """Return the labels of the run in its order, then the switches that only the paper has."""
    there = {measured.adapters[label] for label in ours}
    return [*ours, *(switch for switch in theirs if switch not in there)]


def _samples(measured: RunFigures, cell: _Cell) -> dict[str, FigureSample]:
    """Return the figures of a cell by label, whatever the wire of the run."""
    found: dict[str, FigureSample] = {}
    for point in measured.by_point:
        if replace(point, switch="", wire=cell.point.wire, hosting=cell.point.hosting) == cell.point:
            sample = measured.sample(point, cell.metric, cell.load)
            if sample is not None and measured.adapters.get(point.switch) != SIMULATED:
                found.setdefault(point.switch, sample)
    return found


def _ratio(figure: FigureSample | None, base: FigureSample) -> Ratio | None:
    """Return a figure over its reference; None if one does not count, or both are lower bounds."""
    if figure is None or not figure.counts or not base.counts:
        return None
    bound, base_bound = figure.kind.is_bound, base.kind.is_bound
    if bound and base_bound and figure is not base:
        return None
    mark = "≥" if bound else "≤" if base_bound else ""
    return Ratio(middle(figure) / middle(base), "" if figure is base else mark)
