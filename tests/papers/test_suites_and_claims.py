# SPDX-License-Identifier: BSD-3-Clause
"""What claims compare is what the suite of their paper measures: a cut of a suite does not make a claim undecidable."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache

import pytest

from planebench.model.records import Point
from planebench.papers.claims import Claim, ClaimCell, all_claims
from planebench.papers.measured import LATENCIES, _paper_name, counterpart, expanded, fits
from planebench.plan.expand import expand, points_of, switch_labels
from planebench.plan.passes import _labels
from planebench.plan.schema import load_plan

ON_REQUEST = {
    "bess-above-clickos": "ClickOS has no adapter",
    "clickos-slows-with-the-rate": "ClickOS has no adapter",
    "two-queues-fill-the-line": "--chain l3fwd:cores=2, which takes six cores",
    "billion-routes": "--chain l3fwd:fib=cuckoo:synthetic=1000M, where the suite has what the memory holds",
}
"""Claims for which the suite of the paper has no points, and why."""

OF_SUITES = [claim for claim in all_claims() if claim.id not in ON_REQUEST]
COMPARING = [claim for claim in OF_SUITES if claim.compare is not None]
ON_CELLS = [
    claim
    for claim in OF_SUITES
    if claim.trend or claim.line_rate or claim.no_leader or claim.correlation or claim.chain_below_parts
]


class Suite:
    """The points and loads of a suite, with the names that claims use for its switches."""

    def __init__(self, name: str) -> None:
        plan = load_plan(name)
        self.names = {label.label: _paper_name(label.adapter) for label in switch_labels(plan.switches)}
        self.points = frozenset(expand(plan))
        self.loads = {(it, load) for part in plan.sections for it in points_of(part) for load in _labels(part, it)}

    def of(self, cell: ClaimCell, adapters: tuple[str, ...]) -> list[Point]:
        """Return the points of a cell, of these adapters or of all."""
        return [p for p in self.points if fits(p, cell) and self.names[p.switch] in adapters]


suite = cache(Suite)


@pytest.mark.parametrize("claim", COMPARING, ids=lambda claim: claim.id)
def test_the_suite_has_both_sides_of_every_comparison(claim: Claim) -> None:
    shape, of = claim.compare, suite(claim.paper)
    assert shape is not None
    for a, b in expanded(shape.each, shape.a, shape.b):
        pairs = [
            (point, counterpart(point, b, label))
            for point in of.of(a, claim.switches)
            for label in ([key for key, name in of.names.items() if name in shape.rivals] or [point.switch])
        ]
        there = [(one, other) for one, other in pairs if other in of.points]
        if shape.metric in LATENCIES:
            loads = a.load, b.load or a.load
            there = [it for it in there if set(zip(it, loads, strict=True)) <= of.loads]
        assert there, f"{a} against {b}"
        if shape.rivals and claim.paper == "ic16":
            assert len(there) == len(pairs), "every frame size of the one side is there on the other"


def cells_of(claim: Claim) -> Iterator[ClaimCell]:
    if claim.trend is not None:
        for (cell,) in expanded(claim.trend.each, claim.trend.cell):
            yield from (cell.model_copy(update={claim.trend.over: value}) for value in claim.trend.values)
    if claim.line_rate is not None:
        yield from (*claim.line_rate.cells, *claim.line_rate.short)
    if claim.no_leader is not None:
        yield from claim.no_leader.cells
    if claim.correlation is not None:
        yield claim.correlation.cell
    if claim.chain_below_parts is not None:
        names = (f"ip-pipeline:{name}" for name in ("any", "firewall", "l3fwd"))
        yield from (claim.chain_below_parts.cell.model_copy(update={"chain": name}) for name in names)


@pytest.mark.parametrize("claim", ON_CELLS, ids=lambda claim: claim.id)
def test_the_suite_has_every_cell_of_a_claim(claim: Claim) -> None:
    of = suite(claim.paper)
    for cell in cells_of(claim):
        found = of.of(cell, claim.switches)
        assert found, cell
        assert cell.load is None or any((point, cell.load) in of.loads for point in found), cell


def test_the_loads_of_a_minimum_are_those_of_the_suite() -> None:
    (claim,) = (it for it in all_claims() if it.minimum is not None)
    assert claim.minimum is not None
    of = suite(claim.paper)
    for load in claim.minimum.loads:
        assert any((point, load) in of.loads for point in of.of(claim.minimum.cell, claim.switches))


def test_the_vnf_of_can17_is_measured_at_the_clocks_of_table_1() -> None:
    (claim,) = (it for it in all_claims() if it.clocks is not None)
    assert claim.clocks is not None
    of, clocks = suite(claim.paper), set[str]()
    for point in of.points:
        if fits(replace(point, cpu_clock=""), claim.clocks.cell) and of.names[point.switch] == "bess":
            clocks.add(point.cpu_clock)
    assert clocks == {"", "1200MHz", "1600MHz", "2000MHz", "2400MHz", "2600MHz"}


def test_no_claim_is_on_request_that_is_none() -> None:
    assert ON_REQUEST.keys() <= {claim.id for claim in all_claims()}
