# SPDX-License-Identifier: BSD-3-Clause
"""The order of the switches here against the paper's: Kendall's tau over pairs that both of them order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from planebench.model.words import printable
from planebench.papers.claims import Cell, Claim, Order
from planebench.papers.comparing import Spot, cell_words, paper_value
from planebench.papers.measured import UNITS, Measured, expanded
from planebench.papers.told import Compared, Sample, told

MIN_SWITCHES = 3
"""Two switches make one pair: a coin would be right in half of all cases."""
MIN_TAU = 0.5
"""Three pairs of four as in the paper."""


@dataclass(frozen=True, slots=True)
class Ranked:
    """Pairs of switches that the paper orders. Kendall's tau is between ``low`` and ``high``."""

    switches: tuple[str, ...]
    compared: tuple[Compared, ...]
    agree: int
    disagree: int

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
        untold = f", {self.untold} inconclusive" if self.untold else ""
        return f"Kendall's tau {tau} over {len(self.switches)} switches and {len(self.compared)} pairs{untold}"


@dataclass(frozen=True, slots=True)
class Placed:
    """A switch in a cell: its figure here, with VNFs in a hosting, and the paper's."""

    label: str
    hosting: str
    sample: Sample
    paper: float


def rank_order(claim: Claim, shape: Order, measured: Measured) -> Ranked:
    """Return the pairs of switches in all cells of the claim; pairs with equal published figures are left out."""
    switches: dict[str, None] = {}
    compared: list[Compared] = []
    for (cell,) in expanded(shape.each, shape.cell):
        placed = list(_placed(claim, shape, cell, measured))
        switches |= dict.fromkeys(it.label for it in placed)
        pairs = [(a, b) for a, b in combinations(placed, 2) if a.hosting == b.hosting]
        compared += [_pair(a, b, shape, cell) for a, b in pairs if a.paper != b.paper]
    held = [it.holds for it in compared]
    return Ranked(tuple(switches), tuple(compared), held.count(True), held.count(False))


def _placed(claim: Claim, shape: Order, cell: Cell, measured: Measured) -> Iterator[Placed]:
    """Yield each switch once per point; of two entries with one adapter the first."""
    first = {adapter: label for label, adapter in reversed([*measured.adapters.items()])}
    for adapter, label in first.items():
        for point in measured.points(label, cell):
            sample = measured.sample(point, shape.metric, cell.load)
            paper = paper_value(claim.paper, shape.metric, adapter, Spot(point, cell.load))
            if sample is not None and paper is not None:
                yield Placed(label, point.hosting, sample, paper)


def _pair(a: Placed, b: Placed, shape: Order, cell: Cell) -> Compared:
    answer = told(a.sample, b.sample)
    holds = None if answer.above is None else answer.above is (a.paper > b.paper)
    what = f"{printable(a.label)} and {printable(b.label)}, {cell_words(cell)}"
    figures = f"{a.sample.shown} against {b.sample.shown} {UNITS[shape.metric]}"
    return Compared(what, figures, holds, answer, a.paper / b.paper)


def order_holds(ranked: Ranked) -> bool | None:
    """Return whether the order is as published; None if it depends on the inconclusive pairs."""
    if ranked.low >= MIN_TAU:
        return True
    return False if ranked.high < MIN_TAU else None


def too_few(ranked: Ranked) -> Sequence[str]:
    """Return what is missing for an order; empty if it can be judged."""
    there = len(ranked.switches)
    if there < MIN_SWITCHES:
        return (f"{MIN_SWITCHES} of the paper's switches in these cells, {there or 'none'} there",)
    return () if ranked.compared else ("switches that the paper does not have level",)
