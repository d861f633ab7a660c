# SPDX-License-Identifier: BSD-3-Clause
"""Claims that compare pairs of points of a run: the shapes compare and trend."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from planebench.model.records import Point
from planebench.model.scenario import scenario_named
from planebench.model.words import load_words, point_words, printable
from planebench.papers.claims import ANY, Claim, ClaimCell, ClaimMetric, Compare, TrendClaim
from planebench.papers.data import PaperFigure, paper_figures
from planebench.papers.measured import UNITS, RunFigures, counterpart, expanded
from planebench.papers.told import Compared, FigureSample, Told, told

ClaimLimits = tuple[float | None, float | None]
"""A ratio is to be above the first and below the second; None is no limit."""


@dataclass
class PairsFound:
    """The comparisons of a claim in a run, and what the run lacks: ``absent`` are switches, by adapter."""

    compared: list[Compared] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    absent: list[str] = field(default_factory=list)

    def add(self, found: Compared | str) -> None:
        """Add a comparison, or the words for what is missing."""
        if isinstance(found, str):
            self.missing.append(found)
        else:
            self.compared.append(found)


@dataclass(frozen=True, slots=True)
class Spot:
    """A point at a load; the load is None where the metric has none."""

    point: Point
    load: str | None


def compare(claim: Claim, shape: Compare, measured: RunFigures, labels: Sequence[str]) -> PairsFound:
    """Return the comparisons of a claim for ``labels``; a side that names its own switches uses those instead."""
    found = PairsFound()
    for a, b in expanded(shape.each, shape.a, shape.b):
        own = measured.labels(a.switches) if a.switches else list(labels)
        for label in own:
            points = measured.points(label, a)
            if not points:
                found.add(f"{printable(label)} {cell_words(a)}")
            others = measured.labels(b.switches) if b.switches else [label]
            if not others:
                found.add(f"a switch to set it against ({', '.join(b.switches)})")
                found.absent += b.switches
            for point in points:
                for other in others:
                    sides = Spot(point, a.load), Spot(counterpart(point, b, other), b.load or a.load)
                    found.add(_judged(claim, shape.metric, (shape.above, shape.below), measured, *sides))
    return found


def trend(claim: Claim, shape: TrendClaim, measured: RunFigures, labels: Sequence[str]) -> PairsFound:
    """Return the last value of the axis against the first, and those steps between neighbors that refute the claim."""
    found, values = PairsFound(), ", ".join(map(str, shape.values))
    axis = {"chain_length": "number of VNFs", "frame_size_bytes": "frame size"}[shape.over]
    for (cell,) in expanded(shape.each, shape.cell):
        for label in labels:
            groups: dict[Point, dict[int, Point]] = {}
            for value in shape.values:
                for point in measured.points(label, cell.model_copy(update={shape.over: value})):
                    same = counterpart(point, ClaimCell(**{shape.over: shape.values[0]}), label)
                    groups.setdefault(same, {})[value] = point
            usable = [list(group.values()) for group in groups.values() if len(group) > 1]
            if not usable:
                found.add(f"{printable(label)} {cell_words(cell)} with two of {values} as its {axis}")
            for points in usable:
                _add_steps(found, claim, shape, measured, [Spot(point, cell.load) for point in points])
    return found


def _add_steps(found: PairsFound, claim: Claim, shape: TrendClaim, measured: RunFigures, spots: Sequence[Spot]) -> None:
    limits: ClaimLimits = (1.0, None) if shape.goes == "up" else (None, 1.0)
    found.add(_judged(claim, shape.metric, limits, measured, spots[-1], spots[0]))
    for before, after in pairwise(spots):
        step = _judged(claim, shape.metric, limits, measured, after, before)
        if len(spots) > 2 and isinstance(step, Compared) and step.holds is False:
            found.add(step)


def _judged(
    claim: Claim, metric: ClaimMetric, limits: ClaimLimits, measured: RunFigures, a: Spot, b: Spot
) -> Compared | str:
    samples = []
    for spot in (a, b):
        sample = measured.sample(spot.point, metric, spot.load)
        if sample is None:
            return spot_words(spot)
        samples.append(sample)
    one, other = samples
    holds, answer = judged(one, other, limits)
    return Compared(
        f"{spot_words(a)} against {_differs(b, a)}",
        f"{one.shown} against {other.shown} {UNITS[metric]}",
        holds,
        answer,
        _paper_ratio(claim.paper, metric, measured, a, b),
    )


def judged(a: FigureSample, b: FigureSample, limits: ClaimLimits) -> tuple[bool | None, Told]:
    """Return whether a / b lies within the limits, and the answer for the limit that decides."""
    answers = [
        (told(a, b, limit), wanted) for limit, wanted in zip(limits, (True, False), strict=True) if limit is not None
    ]
    for answer, wanted in answers:
        if answer.above is not None and answer.above is not wanted:
            return False, answer
    for answer, _ in answers:
        if answer.above is None:
            return None, answer
    return True, answers[0][0]


def spot_words(spot: Spot) -> str:
    """Return a point and its load in words: ``vpp loopback-2 → 64 B at 50 % of R+``."""
    load = f" at {load_words(spot.load)}" if spot.load else ""
    return f"{printable(spot.point.switch)} {point_words(spot.point)}{load}"


def cell_words(cell: ClaimCell) -> str:
    """Return what a cell requires, in words: ``p2p unidirectional 64 B at 50 % of R+``."""
    name: str = cell.scenario or ""
    beside = bool(cell.scenario) and scenario_named(name).side_by_side
    if cell.chain_length and (cell.chain is None or beside):
        name += f"-{cell.chain_length}"
    size = f"{cell.frame_size_bytes} B" if cell.frame_size_bytes else ""
    chain, traffic = ("" if it == ANY else it for it in (cell.chain, cell.traffic))
    load = f"at {load_words(cell.load)}" if cell.load else ""
    placed = f"placed {cell.placement}" if cell.placement else ""
    return " ".join(filter(None, (name, chain, placed, cell.direction, size, traffic, load)))


def _differs(b: Spot, a: Spot) -> str:
    """Return ``b`` in words, reduced to its load or its switch where only that differs from ``a``."""
    if b.point == a.point and b.load:
        return load_words(b.load)
    if spot_words(b).removeprefix(printable(b.point.switch)) == spot_words(a).removeprefix(printable(a.point.switch)):
        return printable(b.point.switch)
    return (
        spot_words(b).removeprefix(f"{printable(b.point.switch)} ")
        if b.point.switch == a.point.switch
        else spot_words(b)
    )


def _paper_ratio(paper: str, metric: ClaimMetric, measured: RunFigures, a: Spot, b: Spot) -> float | None:
    figures = [paper_figure(paper, metric, measured.adapters.get(spot.point.switch, ""), spot) for spot in (a, b)]
    values = [figure.value if figure else None for figure in figures]
    return values[0] / values[1] if values[0] is not None and values[1] is not None else None


def paper_figure(paper: str, metric: ClaimMetric, switch: str, spot: Spot) -> PaperFigure | None:
    """Return the published figure of a switch at a point and load; None if the paper has none."""
    wanted = "latency" if metric == "latency" else "throughput"
    point = spot.point
    if point.chain or point.traffic or metric in ("jitter", "deviation"):
        return None
    for figure in paper_figures():
        key = figure.paper, figure.metric, figure.switch, figure.scenario, figure.chain_length, figure.frame_size_bytes
        cell = point.scenario, point.chain_length, point.frame_size_bytes
        same_way = figure.direction in (None, point.direction)
        if key == (paper, wanted, switch, *cell) and same_way and figure.load == (spot.load or ""):
            return figure
    return None


def all_words(found: Sequence[Compared]) -> Iterator[str]:
    """Yield a sentence per comparison: both figures, the published ratio, and the result."""
    for it in found:
        paper = f", the paper's {it.paper:.2f}" if it.paper is not None else ""
        why = it.told.why if it.holds is None else ""
        ends = {True: "confirmed", False: "not confirmed", None: why or "inconclusive"}[it.holds]
        yield f"{it.what}: {it.words}{paper}: {ends}"
