# SPDX-License-Identifier: BSD-3-Clause
"""The suites of the papers: what they hold, and that they say what they leave out."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planebench.measure.survey import refusals
from planebench.model.plan import Plan, Skipped
from planebench.plan import list_suites
from planebench.plan.estimate import estimate
from planebench.plan.expand import expand, points_of, skipped, switch_labels
from planebench.plan.override import override
from planebench.plan.schema import load_plan
from planebench.switches.registry import get_adapter
from planebench.testbed.chain import parse_chain

PAPERS = ("netsoft19", "conext19", "can17", "ic16")


def part(plan: Plan, name: str) -> Plan:
    return next(part for part in plan.parts if part.name == name)


def test_there_are_these() -> None:
    assert list_suites() == (
        "can17",
        "conext19",
        "conext19-starts",
        "deviation-starts",
        "ic16",
        "ic16-starts",
        "more-starts",
        "near-and-far",
        "netsoft19",
        "quick",
        "regression",
        "sixty-starts",
        "snabb-starts",
        "waiting",
    )


@pytest.mark.parametrize("name", PAPERS)
def test_a_suite_of_a_paper_names_it_and_what_it_leaves_out(name: str) -> None:
    plan = load_plan(name)
    assert plan.papers[0] == name
    assert plan.left_out and all(entry.reason for entry in plan.left_out)
    assert all(part.purpose for part in plan.parts)
    assert (plan.missing_switches, plan.missing_hostings) == ("skip", "skip")
    hostings = {hosting for point in expand(plan) for hosting in point.hostings}
    assert {"process", "vm", "exec"} <= hostings  # beside each other, and DPDK's driver as a spot check


@pytest.mark.parametrize("name", ["netsoft19", "conext19", "can17"])
def test_the_vnfs_of_the_papers_batch_and_planeds_own_are_beside_them(name: str) -> None:
    plan = load_plan(name)
    assert plan.sending == {"send_burst": 32, "drain_us": 100}
    own = part(plan, "own-vnf")
    assert {vnf.text.rpartition(":")[2] for chain in own.chains for vnf in parse_chain(chain)} == {"send_burst=0"}


def test_can17_sweeps_threshold_and_timer_from_100_pps_to_the_maximum() -> None:
    plan = load_plan("can17")
    sweep = part(plan, "batching")
    sending = [vnf.sending() or plan.sending for chain in sweep.chains for vnf in parse_chain(chain)]
    found = {(it["send_burst"], it["drain_us"]) for it in sending}
    assert found == {(burst, drain) for burst in (1, 8, 32, 64) for drain in (0, 10, 100)}
    assert (min(sweep.latency.rates_pps), sweep.latency.loads, sweep.latency.anatomy) == (100, (1.0,), True)


def test_conext19_has_every_cell_of_its_figures_and_tables() -> None:
    plan = override(load_plan("conext19"), switch="sim")
    # 3 sizes x (p2p 2 + p2v 3 + v2v 2 + five chains x 2 directions)
    assert len(points_of(part(plan, "throughput"))) == 3 * (2 + 3 + 2 + 5 * 2)
    in_vms = [point for point in expand(plan) if point.hosting == "vm"]
    assert len(in_vms) == 3 * (5 * 2 + 3 + 2)  # and p2v and v2v with their ends in them
    table3 = points_of(part(plan, "table-3"))
    assert [p.scenario_label for p in table3] == ["p2p", "loopback-1", "loopback-2", "loopback-3", "loopback-4"]
    assert {(p.direction, p.frame_size_bytes) for p in table3} == {("unidirectional", 64)}
    assert part(plan, "table-3").latency.loads == (0.1, 0.5, 0.99)
    assert part(plan, "table-4").latency.rates_pps == (1e6,)
    assert part(plan, "fig-1").latency.loads == (0.95,)


def test_conext19_starts_has_points_of_conext19_in_more_starts() -> None:
    """Its figures are those of the same test points, so that claims of conext19 can be told by them."""
    few, many = load_plan("conext19"), load_plan("conext19-starts")
    assert many.papers == few.papers and {"bess", "vpp", "snabb", "fastclick"} < set(many.switches) < set(few.switches)
    assert set(points_of(override(many, switch="sim"))) < set(points_of(override(few, switch="sim")))
    assert many.throughput.repetitions > 2 * (few.throughput.repetitions_max or 0)
    wanted = [it.latency for it in many.parts if it.latency.wanted]
    assert {it.repetitions for it in wanted} == {many.throughput.repetitions}
    for name in ("table-3", "table-4", "fig-1"):
        own, theirs = part(many, name).latency, part(few, name).latency
        assert (own.loads, own.rates_pps) == (theirs.loads, theirs.rates_pps)


def test_more_starts_has_points_of_the_papers_in_more_starts() -> None:
    twenty, eighty = load_plan("conext19-starts"), load_plan("more-starts")
    assert eighty.throughput.repetitions > 2 * twenty.throughput.repetitions
    assert (eighty.wire, eighty.send_burst, eighty.drain_us) == (twenty.wire, twenty.send_burst, twenty.drain_us)
    of_chain = part(eighty, "far-cores").chains
    assert set(of_chain) < set(load_plan("can17").chains)
    for switch in ("fastclick", "vpp"):
        own = {point for point in points_of(override(eighty, switch=switch)) if point.chain not in of_chain}
        assert own and own < set(points_of(override(twenty, switch=switch)))


def test_sixty_starts_has_points_of_conext19_starts_in_more_starts() -> None:
    twenty, sixty = load_plan("conext19-starts"), load_plan("sixty-starts")
    assert sixty.throughput.repetitions > 2 * twenty.throughput.repetitions
    assert (sixty.wire, sixty.send_burst, sixty.drain_us) == (twenty.wire, twenty.send_burst, twenty.drain_us)
    for switch in ("snabb", "vpp"):
        own = set(expand(override(sixty, switch=switch)))
        assert own and own < set(expand(override(twenty, switch=switch)))
    own_loads, loads = (part(it, "table-3").latency.loads for it in (sixty, twenty))
    assert set(own_loads) < set(loads)


def test_snabb_starts_has_the_chains_of_sixty_starts_in_more_starts() -> None:
    sixty, many = (override(load_plan(name), switch="snabb") for name in ("sixty-starts", "snabb-starts"))
    assert many.throughput.repetitions > 2 * sixty.throughput.repetitions
    assert (many.wire, many.send_burst, many.drain_us) == (sixty.wire, sixty.send_burst, sixty.drain_us)
    assert set(expand(many)) == set(expand(sixty))


def test_deviation_starts_has_the_point_of_fig_1_in_more_starts() -> None:
    twenty, sixty = load_plan("conext19-starts"), load_plan("deviation-starts")
    figure = part(twenty, "fig-1")
    assert sixty.latency.repetitions == sixty.throughput.repetitions > 2 * twenty.throughput.repetitions
    assert sixty.latency.loads == figure.latency.loads
    own, theirs = (set(expand(override(plan, switch="vpp"))) for plan in (sixty, twenty))
    assert own < theirs and {(p.scenario, p.direction) for p in own} == {("p2p", "bidirectional")}


def test_near_and_far_has_the_chain_of_more_starts() -> None:
    own, chains = load_plan("near-and-far"), part(load_plan("more-starts"), "far-cores")
    mine, theirs = (set(points_of(override(plan, switch="bess"))) for plan in (own, chains))
    assert mine == theirs
    assert own.throughput.repetitions >= 20 and own.latency.loads == ()


def test_waiting_has_one_point_of_more_starts() -> None:
    eighty, many = load_plan("more-starts"), load_plan("waiting")
    assert many.throughput.repetitions > 2 * eighty.throughput.repetitions
    assert set(points_of(many)) == set(points_of(part(override(eighty, switch="fastclick"), "table-3")))
    assert many.latency.loads == part(eighty, "table-3").latency.loads
    assert (many.wire, many.send_burst, many.drain_us) == (eighty.wire, eighty.send_burst, eighty.drain_us)


def test_ic16_starts_has_points_of_ic16_in_more_starts() -> None:
    """Some of them at clocks at which the tester is no limit."""
    few, many = load_plan("ic16"), load_plan("ic16-starts")
    assert many.papers == few.papers and set(many.switches) < set(few.switches)
    assert many.throughput.repetitions == 2 * (few.throughput.repetitions_max or 0)
    assert many.throughput.restarts == many.throughput.repetitions - 1  # each is of a start, which few has not
    assert many.latency.repetitions == many.throughput.repetitions
    for switch in ("planed", "planed:offload=fib"):
        points = points_of(override(many, switch=switch))
        assert {point.cpu_clock for point in points} == {"", "duty:0.3"}
        assert {replace(point, cpu_clock="") for point in points} <= set(points_of(override(few, switch=switch)))


def test_ic16_has_its_sizes_counts_and_loads() -> None:
    """Frame sizes and numbers of VNFs of Figs. 2 to 7; 2.5 and 10 Gb/s in total, 156 Mb/s for each VNF (Fig. 7c)."""
    plan = load_plan("ic16")
    for name, switches in (("many-l2", {"planed", "veb"}), ("many-l3", {"veb"}), ("bare-l3", {"planed"})):
        points = points_of(part(plan, name))
        assert {(p.switch, p.chain_length, p.frame_size_bytes) for p in points} == {
            (switch, count, size) for switch in switches for count in (16, 32, 63) for size in (64, 128, 256, 512, 1024)
        }
        assert part(plan, name).latency.total_bps == (10e9,)
    for name in ("latency-l3", "latency-bare-l3"):
        routers = part(plan, name)
        assert (routers.vnf_counts, routers.chains) == ((8, 16, 32, 63), ("l3fwd:fib=cuckoo:synthetic=1M",))
        assert (routers.latency.total_bps, routers.latency.per_vnf_bps) == ((2.5e9,), (156e6,))
    assert {p.latency.stamp for p in plan.parts} == {"all"}
    assert part(plan, "one").latency.anatomy
    assert part(plan, "updates-2").frame_sizes_bytes == (64, 128, 256, 512, 1024)


def test_ic16_fits_its_budget_on_two_cores() -> None:
    """With the switches of Debian, where VMs are emulated: without the passes over comparisons that stay open."""
    plan = load_plan("ic16")
    adapters = {label.label: get_adapter(label.adapter) for label in switch_labels(plan.switches)}
    here = [p for p in expand(plan) if p.placement == "near" and "vm" not in p.hostings]
    absent = refusals(plan, here, adapters, hugepages=False)
    measured = [point for point in here if point not in absent]
    assert len(measured) == 112
    took_s = estimate(plan, measured, {label: adapter.cost for label, adapter in adapters.items()})
    assert plan.time_budget_s is not None
    assert took_s < 0.75 * plan.time_budget_s <= 2500


def test_a_part_is_about_its_switches_alone() -> None:
    plan = load_plan("ic16")
    offload = part(plan, "offload")
    assert {p.switch for p in points_of(offload)} == {"planed-offload"}
    others = override(plan, switch="planed,testpmd")
    assert not points_of(part(others, "offload"))
    assert Skipped("part offload", "the options leave none of its switches (planed-offload)") in skipped(others)


def test_regression_is_made_for_a_ci() -> None:
    plan = load_plan("regression")
    assert (plan.throughput.repetitions, plan.throughput.restarts) == (16, None), "each with a start of its own"
    three = override(plan, switch="vpp,planed,testpmd")
    assert plan.time_budget_s is not None
    assert estimate(three, expand(three)) < plan.time_budget_s
