# SPDX-License-Identifier: BSD-3-Clause
"""What a claim is about and whose its limit is stand in claims.yaml, beside the sentence that it is read from."""

from __future__ import annotations

import re

import pytest

from planebench.papers.claims import Claim, Compare, all_claims
from planebench.papers.data import paper_facts
from planebench.papers.measured import LATENCIES, OFFLOAD

STAND_INS = {"planed", "testpmd", "grout"}
OF_BARE_METAL = ("bare-metal-fills-from-512", "billion-routes")
FIRST = re.compile(r"any other|all others|every other|the others of them")
COMPARING = [claim for claim in all_claims() if claim.compare is not None]


def named(claim: Claim) -> set[str]:
    return {*claim.switches, *(claim.compare.rivals if claim.compare else ())}


def test_what_is_not_of_the_paper_decides_nothing() -> None:
    """planed is the bare metal of ic16, whose program was not published, and stands for no switch."""
    about = {claim.id: STAND_INS & set(claim.switches) for claim in all_claims()}
    assert {id_: it for id_, it in about.items() if it} == {name: {"planed"} for name in OF_BARE_METAL}
    beside = [claim for claim in COMPARING if claim.compare and STAND_INS & set(claim.compare.rivals)]
    assert {claim.compare.b.scenario for claim in beside if claim.compare} == {"bare"}
    assert {claim.paper for claim in all_claims() if named(claim) & {"planed", OFFLOAD, "veb"}} == {"ic16"}


@pytest.mark.parametrize("claim", COMPARING, ids=lambda claim: claim.id)
def test_a_limit_is_a_figure_of_the_paper_or_says_whose_it_is(claim: Claim) -> None:
    shape = claim.compare
    assert shape is not None
    limits = {limit for limit in (shape.above, shape.below) if limit not in (None, 1)}
    facts = paper_facts(claim.paper)
    figures = {facts[name] for name in re.findall(r"\{([\w.-]+)", claim.says)}
    wanted = {round(value, 6) for it in figures for value in (it, 1 + it, 1 - it)}
    assert claim.bound or {round(limit, 6) for limit in limits} <= wanted
    assert not claim.bound or limits


def test_other_shapes_say_whose_their_limit_is() -> None:
    with_limits = [it for it in all_claims() if it.predicted or it.far_cores or it.clocks]
    assert with_limits and all(it.bound for it in with_limits)


def test_every_comparison_names_its_scenario_and_direction() -> None:
    shapes = [(it.id, it.compare or it.trend or it.order or it.minimum or it.correlation) for it in all_claims()]
    cells = [(id_, it.a if isinstance(it, Compare) else it.cell) for id_, it in shapes if it is not None]
    cells += [
        (it.id, cell) for it in all_claims() if it.line_rate for cell in (*it.line_rate.cells, *it.line_rate.short)
    ]
    assert cells and [id_ for id_, cell in cells if not (cell.scenario and cell.direction)] == []


@pytest.mark.parametrize("claim", COMPARING, ids=lambda claim: claim.id)
def test_a_latency_is_one_at_a_load(claim: Claim) -> None:
    shape = claim.compare
    assert shape is not None
    loads = shape.a.load or shape.each.load
    assert bool(loads) is (shape.metric in LATENCIES)


def test_who_is_ahead_of_all_has_them_as_rivals() -> None:
    """Each of them has to be there, and told apart."""
    first = [it for it in all_claims() if FIRST.search(it.says)]
    assert len(first) > 9
    assert [it.id for it in first if not it.of_rivals] == []
    assert {it.id for it in all_claims() if it.of_rivals} == {it.id for it in first if it.of_rivals}


def test_switches_are_ranked_by_the_versions_of_their_paper() -> None:
    ranked = [it for it in all_claims() if it.order or (it.compare and it.compare.rivals)]
    of_peers = [it for it in ranked if it.paper in ("conext19", "netsoft19")]
    assert len(of_peers) > 15 and [it.id for it in of_peers if "versions" not in it.conditions] == []


def test_a_full_line_is_one() -> None:
    of_lines = [it for it in all_claims() if it.line_rate]
    assert of_lines and [it.id for it in of_lines if "line" not in it.conditions] == []


def test_near_saturation_depends_on_rings() -> None:
    near = [it for it in COMPARING if it.compare and {"0.95", "0.99"} & {it.compare.a.load, *it.compare.each.load}]
    assert near and [it.id for it in near if "rings" not in it.conditions] == []
