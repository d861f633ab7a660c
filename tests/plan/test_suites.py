# SPDX-License-Identifier: BSD-3-Clause
"""The suites of the papers: what they hold, and that they say what they leave out."""

from __future__ import annotations

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
    assert list_suites() == ("can17", "conext19", "ic16", "netsoft19", "quick", "regression")


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
    assert len(measured) == 114
    took_s = estimate(plan, measured, {label: adapter.cost for label, adapter in adapters.items()})
    assert plan.time_budget_s is not None
    assert took_s < 0.75 * plan.time_budget_s <= 2500


def test_a_part_is_about_its_switches_alone() -> None:
    plan = load_plan("ic16")
    offload = part(plan, "offload")
    assert {p.switch for p in points_of(offload)} == {"planed-offload"}
    others = override(plan, switch="planed,testpmd")
    assert not points_of(part(others, "offload"))
    why = "it is of planed-offload only, and the switches are planed, testpmd"
    assert Skipped("part offload", why) in skipped(others)


def test_regression_is_made_for_a_ci() -> None:
    plan = load_plan("regression")
    assert (plan.throughput.repetitions, plan.throughput.restarts) == (16, None), "each with a start of its own"
    three = override(plan, switch="vpp,planed,testpmd")
    assert plan.time_budget_s is not None
    assert estimate(three, expand(three)) < plan.time_budget_s
