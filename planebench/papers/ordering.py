# SPDX-License-Identifier: BSD-3-Clause
"""Ranks of switches, by Kendall's tau over pairs: here against the paper's order, or one metric against another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from planebench.model.records import Point
from planebench.model.words import printable
from planebench.papers.claims import Claim, ClaimCell, Correlation, Order
from planebench.papers.comparing import Spot, cell_words, paper_figure
from planebench.papers.data import PaperFigure, paper_figures
from planebench.papers.measured import LATENCIES, UNITS, RunFigures, expanded
from planebench.papers.told import Compared, FigureSample, Told, told

MIN_SWITCHES = 3
"""Two switches make one pair: a coin would be right in half of all cases."""
MIN_TAU = 0.5
"""Three pairs of four as in the paper."""
DISPUTED = Told(None, why="two runs tell it differently")


@dataclass(frozen=True, slots=True)
class Ranked:
    """Pairs of switches in two orders, which agree or disagree. Kendall's tau is between ``low`` and ``high``.

    ``disputed``: how many of the inconclusive pairs agree in one run and disagree in another.
    """

    switches: tuple[str, ...]
    compared: tuple[Compared, ...]
    agree: int
    disagree: int
    disputed: int = 0

    @property
    def untold(self) -> int:
        """Return the number of inconclusive pairs."""
        return len(self.compared) - self.agree - self.disagree

    @property
    def low(self) -> float:
        """Return Kendall's tau if every inconclusive pair contradicted the paper."""
        return (self.agree - self.disagree - self.untold) / len(self.compared)

    @property
    def high(self) -> float:
        """Return Kendall's tau if every inconclusive pair agreed with the paper."""
        return (self.agree - self.disagree + self.untold) / len(self.compared)

    @property
    def words(self) -> str:
        """Return ``Kendall's tau 0.80 over 5 switches and 10 pairs``, with both ends if pairs are inconclusive."""
        tau = f"{self.low:.2f}" if not self.untold else f"{self.low:.2f} to {self.high:.2f}"
        disputed = f" ({self.disputed} told differently by two runs)" if self.disputed else ""
        untold = f", {self.untold} inconclusive{disputed}" if self.untold else ""
        return f"Kendall's tau {tau} over {len(self.switches)} switches and {len(self.compared)} pairs{untold}"


@dataclass(frozen=True, slots=True)
class RankedSwitch:
    """A switch at a point of a cell: its figure here, and the paper's."""

    point: Point
    sample: FigureSample
    paper: PaperFigure


def rank_order(claim: Claim, shape: Order, measured: RunFigures) -> Ranked:
    """Return the pairs of switches in all cells of the claim; pairs with equal published figures are left out."""
    switches: dict[str, None] = {}
    compared: list[Compared] = []
    for (cell,) in expanded(shape.each, shape.cell):
        placed: list[RankedSwitch] = []  # each switch once per point
        for adapter, label in _first_labels(measured).items():
            for point in measured.points(label, cell):
                sample = measured.sample(point, shape.metric, cell.load)
                paper = paper_figure(claim.paper, shape.metric, adapter, Spot(point, cell.load))
                if sample is not None and paper is not None:
                    placed.append(RankedSwitch(point, sample, paper))
        placed.sort(key=lambda it: it.point.switch)  # alike in all runs
        switches |= dict.fromkeys(it.point.switch for it in placed)
        pairs = [(a, b) for a, b in combinations(placed, 2) if _alike(a.point, b.point)]
        compared += [_pair(a, b, shape, cell) for a, b in pairs if (a.paper.above(b.paper) or b.paper.above(a.paper))]
    held = [it.holds for it in compared]
    return Ranked(tuple(switches), tuple(compared), held.count(True), held.count(False))


def _first_labels(measured: RunFigures) -> dict[str, str]:
    """Return a label for each adapter: of two entries with one adapter the first."""
    return {adapter: label for label, adapter in reversed([*measured.adapters.items()])}


def _alike(a: Point, b: Point) -> bool:
    """Return whether two points differ in their switch only: VNFs in VMs are not ranked with those in processes."""
    return replace(a, switch=b.switch) == b


def _pair(a: RankedSwitch, b: RankedSwitch, shape: Order, cell: ClaimCell) -> Compared:
    answer = told(a.sample, b.sample)
    holds = None if answer.above is None else answer.above is a.paper.above(b.paper)
    what = f"{printable(a.point.switch)} and {printable(b.point.switch)}, {cell_words(cell)}"
    figures = f"{a.sample.shown} against {b.sample.shown} {UNITS[shape.metric]}"
    both = a.paper.value, b.paper.value
    return Compared(what, figures, holds, answer, both[0] / both[1] if both[0] and both[1] else None)


def rank_correlation(claim: Claim, shape: Correlation, measured: RunFigures) -> Ranked:
    """Return the pairs of switches in a cell; they agree where one is above the other by both metrics.

    Only of opposite ranks a single pair tells something.
    """
    known: list[tuple[Point, tuple[FigureSample, FigureSample]]] = []
    for adapter, label in _first_labels(measured).items():
        for point in measured.points(label, shape.cell) if adapter in claim.switches else ():
            one, other = (measured.sample(point, metric, shape.cell.load) for metric in shape.metrics)
            if one is not None and other is not None:
                known.append((point, (one, other)))
    units = [f"{UNITS[metric]} {metric}" if metric in LATENCIES else UNITS[metric] for metric in shape.metrics]
    words = {True: "the same order by both", False: "opposite orders", None: "a difference below the measurement noise"}
    compared: list[Compared] = []
    same: list[bool | None] = []
    for (a, of_a), (b, of_b) in combinations(known, 2):
        if not _alike(a, b):
            continue
        sides = list(zip(of_a, of_b, strict=True))
        above = [told(one, other).above for one, other in sides]
        same.append(None if None in above else above[0] is above[1])
        figures = [f"{one.shown} against {other.shown} {unit}" for (one, other), unit in zip(sides, units, strict=True)]
        holds = not same[-1] if shape.sign == "opposite" and same[-1] is not None else None
        what = f"{printable(a.switch)} and {printable(b.switch)}, {cell_words(shape.cell)}"
        compared.append(Compared(what, ", ".join(figures), holds, Told(None, why=words[same[-1]])))
    switches = tuple(dict.fromkeys(point.switch for point, _ in known))
    return Ranked(switches, tuple(compared), same.count(True), same.count(False))


def ranked_together(runs: Sequence[Ranked]) -> Ranked:
    """Return the pairs of several runs as one ranking; one that agrees in a run and disagrees in another is disputed.

    A run that has only a few of the switches or test points cannot tell the order of all of them alone.
    """
    pairs: dict[str, Compared] = {}
    disputed: set[str] = set()
    for it in (it for run in runs for it in run.compared):
        known = pairs.get(it.what)
        if known is None or known.holds is None:
            pairs[it.what] = it
        elif it.holds not in (None, known.holds):
            disputed.add(it.what)
    held = [it.holds for what, it in pairs.items() if what not in disputed]
    switches = tuple(dict.fromkeys(name for run in runs for name in run.switches))
    compared = tuple(replace(it, holds=None, told=DISPUTED) if it.what in disputed else it for it in pairs.values())
    return Ranked(switches, compared, held.count(True), held.count(False), len(disputed))


def ranks(claim: Claim, measured: RunFigures) -> tuple[Ranked, bool | None]:
    """Return the ranks of a claim of an order or a correlation, and whether they are as it says.

    None if that depends on the inconclusive pairs.
    """
    if claim.order is not None:
        ranked = rank_order(claim, claim.order, measured)
        return ranked, None if too_few(ranked) else order_holds(ranked)
    assert claim.correlation is not None  # which its caller asked
    ranked = rank_correlation(claim, claim.correlation, measured)
    if too_few(ranked):
        return ranked, None
    if claim.correlation.sign == "opposite":
        return ranked, True if ranked.high <= -MIN_TAU else False if ranked.low > -MIN_TAU else None
    if ranked.low > -MIN_TAU and ranked.high < MIN_TAU:
        return ranked, True
    return ranked, False if ranked.low >= MIN_TAU or ranked.high <= -MIN_TAU else None


def order_holds(ranked: Ranked) -> bool | None:
    """Return whether the order is as published; None if it depends on the inconclusive pairs."""
    if ranked.low >= MIN_TAU:
        return True
    return False if ranked.high < MIN_TAU else None


def ranked_switches(claim: Claim) -> tuple[str, ...]:
    """Return the switches of the paper that an order or a correlation is about."""
    shape = claim.order
    if shape is None:
        return claim.switches
    key = claim.paper, shape.metric, shape.cell.scenario
    figures = [it for it in paper_figures() if (it.paper, it.metric, it.scenario) == key]
    return tuple(dict.fromkeys(it.switch for it in figures))


def too_few(ranked: Ranked) -> tuple[str, ...]:
    """Return what is missing for an order; empty if it can be judged."""
    there = len(ranked.switches)
    if there < MIN_SWITCHES:
        return (f"{MIN_SWITCHES} of the paper's switches in these cells, {there or 'none'} there",)
    return () if ranked.compared else ("switches that the paper does not have level",)
