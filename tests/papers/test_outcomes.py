# SPDX-License-Identifier: BSD-3-Clause
"""Every claim comes out each way: for each there is a run that confirms it, one that contradicts it, and one that does
not decide. A claim that cannot fail, or that no run can confirm, fails here."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from builders import make_point, make_verdict
from hypothesis import given, settings
from hypothesis import strategies as st
from making import LARGE_HOST, Figure, anatomy, delay, measured, of_can17, rate, run

from planebench.model.header import Run
from planebench.model.records import FibUpdates, Point, TrafficSent, VerdictKind
from planebench.model.results import SearchResult
from planebench.model.scenario import scenario_named
from planebench.papers.claims import ANY, Claim, ClaimCell, Compare, all_claims
from planebench.papers.comparing import Spot, paper_figure
from planebench.papers.judge import judge
from planebench.papers.measured import EMULATED_NIC, OFFLOAD, RunFigures, counterpart, expanded, hosted
from planebench.papers.told import ClaimOutcome
from planebench.testbed.rates import line_rate_pps

YES, NO, OPEN = ClaimOutcome.CONFIRMED, ClaimOutcome.NOT_CONFIRMED, ClaimOutcome.CANNOT_BE_TESTED
ADAPTER = {OFFLOAD: "planed:offload=fib", EMULATED_NIC: "planed:nic=veb"}
CLEARLY = 1.5
MIX_BYTES = 124

Figures = Iterator[list[Figure]]


def switches_of(names: tuple[str, ...]) -> list[str]:
    return [ADAPTER.get(name, name) for name in names]


def point_of(cell: ClaimCell, switch: str) -> Point:
    scenario = scenario_named(cell.scenario or "loopback")
    length = cell.chain_length or (len(cell.chain.split(",")) if cell.chain and cell.chain != ANY else 1)
    whichever = (cell.chain or "").endswith(ANY)
    texts = [(cell.chain or "").replace(ANY, "l3fwd")] * (length if whichever and scenario.chained else 1)
    chain, hosting = hosted(",".join(texts), "process")
    return make_point(
        switch,
        scenario.name,
        direction=cell.direction or "unidirectional",
        frame_size_bytes=cell.frame_size_bytes or 64,
        chain_length=length if scenario.has_vnfs else 0,
        chain=chain if scenario.has_vnfs else "",
        hosting=hosting,
        traffic="fib-1M" if cell.traffic == ANY else cell.traffic or "",
        placement=cell.placement or "near",
    )


def figure(point: Point, metric: str, value: float, load: str | None, **how: Any) -> list[Figure]:
    """Trials of a point with this figure: in Mpps, Gb/s or us."""
    fields = {name: getattr(point, name) for name in POINT_FIELDS}
    if metric == "throughput":
        return rate(point.switch, point.scenario, value, **fields, **how)
    if metric == "updates":
        how["extra"] = {"updates": FibUpdates(None, 10**9, 0, round(value * 1000))}
        return rate(point.switch, point.scenario, 1.0, **fields, **how)
    if metric == "gbps":
        return rate(point.switch, point.scenario, value * 1e3 / (point.frame_size_bytes + 20) / 8, **fields)
    mean = value if metric == "latency" else 1000.0
    more = {} if metric == "latency" else {metric: value}
    return delay(point.switch, point.scenario, load or "", mean, **fields, **more, **how)


POINT_FIELDS = ("direction", "frame_size_bytes", "chain_length", "chain", "hosting", "traffic", "placement")


def wanted_ratio(shape: Compare, wish: ClaimOutcome) -> float:
    above, below = shape.above, shape.below
    limit = above or below or 1.0
    if wish is OPEN:
        return limit
    if wish is NO:
        return above / CLEARLY if above else limit * CLEARLY
    return math.sqrt(above * below) if above and below else above * CLEARLY if above else limit / CLEARLY


def of_compare(claim: Claim, wish: ClaimOutcome) -> Figures:
    shape = claim.compare
    assert shape is not None
    for a, b in expanded(shape.each, shape.a, shape.b):
        one = point_of(a, switches_of(claim.switches)[0])
        yield figure(one, shape.metric, 10 * wanted_ratio(shape, wish), a.load)
        for switch in switches_of(shape.rivals) or [one.switch]:
            yield figure(counterpart(one, b, switch), shape.metric, 10.0, b.load or a.load)


def of_trend(claim: Claim, wish: ClaimOutcome) -> Figures:
    shape = claim.trend
    assert shape is not None
    factor = {YES: CLEARLY, NO: 1 / CLEARLY, OPEN: 1.0}[wish]
    for (cell,) in expanded(shape.each, shape.cell):
        for number, value in enumerate(shape.values):
            point = point_of(cell.model_copy(update={shape.over: value}), switches_of(claim.switches)[0])
            figured = 10.0 * factor ** (number if shape.goes == "up" else -number)
            yield figure(point, shape.metric, figured, cell.load)


def of_order(claim: Claim, wish: ClaimOutcome) -> Figures:
    shape = claim.order
    assert shape is not None
    for (cell,) in expanded(shape.each, shape.cell):
        for switch in ("bess", "fastclick", "vpp", "snabb", "ovs-dpdk", "vale", "t4p4s"):
            point = point_of(cell, switch)
            theirs = paper_figure(claim.paper, shape.metric, switch, Spot(point, cell.load))
            if theirs is not None:
                value = theirs.value or sum(theirs.bounds or ()) / 2
                yield figure(point, shape.metric, {YES: 10 * value, NO: 1e4 / value, OPEN: 10.0}[wish], cell.load)


def of_line(claim: Claim, wish: ClaimOutcome) -> Figures:
    assert claim.line_rate is not None
    for cell in (*claim.line_rate.cells, *claim.line_rate.short):
        point = point_of(cell, switches_of(claim.switches)[0])
        mix = cell.traffic == "facebook"
        line = line_rate_pps(MIX_BYTES if mix else point.frame_size_bytes) / 1e6
        whole = line * (2 if point.direction == "bidirectional" else 1)
        sent = (TrafficSent("n0->n1", 1000, 1000 * MIX_BYTES),) if mix else ()
        filled = {YES: 1.2, NO: 0.5, OPEN: 0.98} if cell in claim.line_rate.cells else {YES: 0.5, NO: 1.2, OPEN: 0.98}
        yield figure(point, "throughput", whole * filled[wish], None, extra={"sent": sent})


def of_no_leader(claim: Claim, wish: ClaimOutcome) -> Figures:
    """Three switches each lead in one scenario, or the first leads in all, or all are the same."""
    assert claim.no_leader is not None
    for number, cell in enumerate(claim.no_leader.cells):
        for place, switch in enumerate(claim.switches):
            leads = place == (number % 3 if wish is YES else 0)
            yield figure(point_of(cell, switch), "throughput", 12.0 if leads and wish is not OPEN else 8.0, None)


def of_correlation(claim: Claim, wish: ClaimOutcome) -> Figures:
    shape = claim.correlation
    assert shape is not None
    same, opposite, none, level = (1, 2, 3, 4), (4, 3, 2, 1), (2, 4, 1, 3), (1, 1, 1, 1)
    order = {YES: opposite if shape.sign == "opposite" else none, NO: same, OPEN: level}[wish]
    for switch, first, second in zip(claim.switches, same, order, strict=False):
        point = point_of(shape.cell, switch)
        if shape.metrics == ("latency", "deviation"):
            fields = {name: getattr(point, name) for name in POINT_FIELDS}
            yield delay(switch, point.scenario, shape.cell.load or "", 100.0 * first, deviation=10.0 * second, **fields)
        else:
            yield figure(point, shape.metrics[0], first, None)
            yield figure(point, shape.metrics[1], 10.0 * second, shape.cell.load)


def of_minimum(claim: Claim, wish: ClaimOutcome) -> Figures:
    shape = claim.minimum
    assert shape is not None
    point = point_of(shape.cell, switches_of(claim.switches)[0])
    yield figure(point, "throughput", 1.0, None)
    values = {YES: (60.0, 5.0, 20.0), NO: (5.0, 9.0, 20.0), OPEN: (5.0, 5.0, 5.0)}[wish]
    yield from (figure(point, "latency", us, load) for load, us in zip(shape.loads, values, strict=False))


def of_predicted(claim: Claim, wish: ClaimOutcome) -> Figures:
    """A frame takes 1/3 us through a chain of one and 1/3 us from VNF to VNF: a chain of two takes 2/3 us."""
    assert claim.predicted is not None
    yield rate("vpp", "loopback", 3.0)
    yield rate("vpp", "v2v", 3.0)
    yield rate("vpp", "loopback", 1.5 * {YES: 1.0, NO: 0.5, OPEN: 1.2}[wish], chain_length=2)


def of_share(claim: Claim, wish: ClaimOutcome) -> Figures:
    assert claim.share is not None
    share = {YES: 0.8, NO: 0.2, OPEN: 0.5}[wish]
    parts = anatomy(share if claim.share.part == "switch" else 1 - share)
    vnf = {"hosting": claim.share.hosting} if claim.share.hosting else of_can17("l3fwd")
    yield delay(switches_of(claim.switches)[0], "loopback", "0.50", 9.0, extra={"anatomy": parts}, **vnf)


def of_chain(claim: Claim, wish: ClaimOutcome) -> Figures:
    whole = {YES: 34.0, NO: 60.0, OPEN: 46.0}[wish]
    for chain, us in (("firewall,l3fwd", whole), ("firewall", 23.0), ("l3fwd", 23.0)):
        yield delay("bess", "loopback", "2Mpps", us, frame_size_bytes=128, **of_can17(chain))


def of_far_cores(claim: Claim, wish: ClaimOutcome) -> Figures:
    assert claim.far_cores is not None
    for band, mpps in (("near", 10.0), ("far", 10 * claim.far_cores.below * {YES: 0.7, NO: 1.2, OPEN: 1.0}[wish])):
        yield figure(point_of(claim.far_cores.cell, "bess"), "throughput", mpps, None, band=band)


def of_clocks(claim: Claim, wish: ClaimOutcome) -> Figures:
    assert claim.clocks is not None
    point = point_of(claim.clocks.cell, "bess")
    fields = {name: getattr(point, name) for name in POINT_FIELDS}
    for clock, mpps in (("1200MHz", 4.0), ("2600MHz", 4.0 * 2.6 / 1.2 * {YES: 1.0, NO: 0.5, OPEN: 0.9}[wish])):
        yield rate("bess", point.scenario, mpps, cpu_clock=clock, **fields)


MAKERS: dict[str, Callable[[Claim, ClaimOutcome], Figures]] = {
    "compare": of_compare,
    "trend": of_trend,
    "order": of_order,
    "line_rate": of_line,
    "no_leader": of_no_leader,
    "correlation": of_correlation,
    "minimum": of_minimum,
    "predicted": of_predicted,
    "share": of_share,
    "chain_below_parts": of_chain,
    "far_cores": of_far_cores,
    "clocks": of_clocks,
}


def searched(wish: ClaimOutcome, kind: VerdictKind = VerdictKind.VALID) -> RunFigures:
    """A run with searches of three repetitions: they vary more than R+, or less, or as much."""
    wide, narrow = (0.7, 1.0, 1.4), (0.999, 1.0, 1.001)
    of_search, of_rate = {YES: (wide, narrow), NO: (narrow, wide), OPEN: (wide, wide)}[wish]
    made = measured(run(rate("vpp", "p2p", 10.0, trials=of_rate)))
    searches = tuple(
        SearchResult(make_point("vpp"), "rfc2544", make_verdict(kind), True, number, 8e6 * factor, 8.1e6 * factor)
        for number, factor in enumerate(of_search)
    )
    made.derived.results = tuple(dataclasses.replace(it, searches=searches) for it in made.derived.results)
    return made


def figures(claim: Claim, wish: ClaimOutcome) -> Figures:
    kind = next(name for name in MAKERS if getattr(claim, name) is not None)
    return MAKERS[kind](claim, wish)


def judgement(claim: Claim, wish: ClaimOutcome, **header: Any) -> Any:
    if claim.spread is not None:
        return judge(claim, searched(wish))
    return judge(claim, measured(run(*figures(claim, wish), host=LARGE_HOST, **header)))


@pytest.mark.parametrize("wish", [YES, NO, OPEN], ids=["confirmed", "contradicted", "undecided"])
def test_every_claim_comes_out_each_way(wish: ClaimOutcome) -> None:
    why = "insufficient data" if wish is OPEN else ""
    found = {claim.id: judgement(claim, wish) for claim in all_claims()}
    assert found
    assert {id_: it for id_, it in found.items() if (it.outcome, it.why) != (wish, why)} == {}


def test_a_run_without_test_points_covers_no_claim() -> None:
    nothing = measured(run(host=LARGE_HOST))
    found = {claim.id: judge(claim, nothing) for claim in all_claims()}
    said = (OPEN, "not covered by this run")
    assert {id_: it for id_, it in found.items() if (it.outcome, it.why) != said} == {}


def test_searches_without_a_rate_were_done_and_say_nothing() -> None:
    (claim,) = (it for it in all_claims() if it.spread is not None)
    found = judge(claim, searched(YES, VerdictKind.INVALID))
    assert (found.outcome, found.why) == (OPEN, "insufficient data")
    why = "no two searches of a point came to a rate that is no bound (invalid)"
    assert f"3 searches without one: {why}" in found.evidence


OTHERS: dict[str, dict[str, Any]] = {
    "line": {"line_bps": None, "wire": "vhost"},
    "rings": {"wire_ring_size": None},
    "batching": {"send_burst": 0},
    "ports": {"wire": "vhost"},
    "nics": {"wire": "memif"},
    "stamps": {"clock": "software"},
}
"""Settings of a run that differs from the papers in one condition."""


@pytest.mark.parametrize("wish", [YES, NO], ids=["confirmed", "contradicted"])
@pytest.mark.parametrize("name", OTHERS)
def test_under_other_conditions_a_claim_is_neither_confirmed_nor_contradicted(name: str, wish: ClaimOutcome) -> None:
    about = [claim for claim in all_claims() if name in claim.conditions]
    found = {claim.id: judgement(claim, wish, settings=OTHERS[name]) for claim in about}
    assert found
    assert {id_ for id_, it in found.items() if it.outcome is not ClaimOutcome.OTHER_CONDITIONS} == set()
    # A wire with the ports of VNFs has no NICs.
    also = {"ports": {"nics"}, "line": {"ports", "nics"}}.get(name, set())
    named = [set(it.why.split(", ")) - also for it in found.values()]
    assert named == [{name}] * len(found)
    assert all(f"With these {wish.value.removesuffix(' here')}: " in it.evidence for it in found.values())


def later(made: Run, switch: str, **changes: Any) -> Run:
    switches = (dataclasses.replace(it, **changes) if it.label == switch else it for it in made.header.switches)
    return dataclasses.replace(made, header=dataclasses.replace(made.header, switches=tuple(switches)))


def test_bess_with_one_worker_is_not_that_of_can17() -> None:
    for claim in (it for it in all_claims() if "hops" in it.conditions):
        found = judge(claim, measured(later(run(*figures(claim, NO), host=LARGE_HOST), "bess", adapter="bess")))
        assert (found.outcome, found.why) == (ClaimOutcome.OTHER_CONDITIONS, "hops"), claim.id


def test_a_ranking_is_that_of_the_versions_of_its_paper() -> None:
    about = [it for it in all_claims() if "versions" in it.conditions]
    runs = [(claim, run(*figures(claim, YES), host=LARGE_HOST)) for claim in about]
    with_vpp = [(claim, made) for claim, made in runs if "vpp" in made.switch_labels]
    assert len(with_vpp) > 9
    for claim, made in with_vpp:
        assert judge(claim, measured(later(made, "vpp", version="19.04.1-release"))).outcome is YES, claim.id
        found = judge(claim, measured(later(made, "vpp", version="26.06-release")))
        assert found.outcome is ClaimOutcome.OTHER_CONDITIONS, claim.id
        assert found.evidence.startswith("vpp 26.06-release (the paper: 19.04). With these confirmed: ")


@settings(max_examples=40, deadline=None)
@given(st.floats(0.2, 5.0), st.sampled_from([claim for claim in all_claims() if claim.compare is not None]))
def test_a_ratio_is_judged_by_the_side_of_its_limits_on_which_it_is(ratio: float, claim: Claim) -> None:
    shape = claim.compare
    assert shape is not None
    low, high = shape.above or 0.0, shape.below or math.inf
    scale = low or high
    sides: list[list[Figure]] = []
    for a, b in expanded(shape.each, shape.a, shape.b):
        one = point_of(a, switches_of(claim.switches)[0])
        others = [counterpart(one, b, switch) for switch in switches_of(shape.rivals) or [one.switch]]
        sides += [figure(other, shape.metric, 10.0, b.load or a.load) for other in others]
        sides.append(figure(one, shape.metric, 10 * ratio * scale, a.load))
    found = judge(claim, measured(run(*sides, host=LARGE_HOST))).outcome
    true = low < ratio * scale < high
    clear = min(abs(math.log(ratio * scale / limit)) for limit in (low, high) if 0 < limit < math.inf) > 0.02
    assert found in ((YES if true else NO), OPEN)
    assert not clear or found is not OPEN
