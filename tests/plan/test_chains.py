# SPDX-License-Identifier: BSD-3-Clause
"""Chains by name in plans and on the command line: what they become, and what goes with them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from planebench.model.errors import UsageError
from planebench.plan import list_suites
from planebench.plan.expand import expand, skipped
from planebench.plan.override import override
from planebench.plan.passes import group_points, interleave
from planebench.plan.schema import load_plan, plan_from_document

QUICK = load_plan("quick")


def chains_of(plan: Any) -> list[tuple[int, str]]:
    return list(
        dict.fromkeys((point.chain_length, point.chain) for point in expand(plan) if point.scenario == "loopback")
    )


def test_a_chain_is_a_loopback_of_its_length_and_nothing_else_is_measured() -> None:
    plan = override(QUICK, chain=["l3fwd", "firewall,l3fwd,l2fwd"])
    assert {point.scenario for point in expand(plan)} == {"loopback"}
    assert chains_of(plan) == [(1, "l3fwd"), (3, "firewall,l3fwd,l2fwd")]
    assert plan.time_budget_s is None


def test_other_scenarios_go_with_it_if_asked_for() -> None:
    plan = override(QUICK, chain=["l3fwd"], scenario="p2p,loopback")
    assert {(p.scenario, p.chain) for p in expand(plan)} == {("p2p", ""), ("loopback", "l3fwd")}
    with pytest.raises(UsageError, match="add loopback"):
        override(QUICK, chain=["l3fwd"], scenario="p2p")


def test_a_chain_of_nothing_but_l2fwd_is_one_of_a_length() -> None:
    plan = override(QUICK, chain=["l2fwd,l2fwd", "l2fwd"], chain_length="2,3")
    assert chains_of(plan) == [(2, ""), (3, ""), (1, "")]


def test_chains_of_a_length_replace_those_by_name_and_the_other_way_round(document: dict[str, Any]) -> None:
    both = plan_from_document(document | {"chains": ["l3fwd"]}, "it")
    assert chains_of(both) == [(1, ""), (2, ""), (1, "l3fwd")]
    assert chains_of(override(both, chain_length="3")) == [(3, "")]
    assert chains_of(override(both, chain=["nat44"])) == [(1, "nat44")]
    assert chains_of(override(both, chain=["nat44"], chain_length="4")) == [(4, ""), (1, "nat44")]
    assert override(both, scenario="p2p").chains == ()
    assert override(both, chain=[]) == both


def test_a_plan_with_chains_needs_neither_lengths_nor_scenarios(document: dict[str, Any]) -> None:
    del document["scenarios"], document["chain_lengths"]
    plan = plan_from_document(document | {"chains": ["l3fwd", "firewall,l3fwd", "l3fwd"]}, "it")
    assert (plan.scenarios, chains_of(plan)) == (("loopback",), [(1, "l3fwd"), (2, "firewall,l3fwd")])
    with pytest.raises(UsageError, match="scenarios is missing"):
        plan_from_document(document, "it")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"chains": ["l4fwd"]}, ["it: ", 'chain "l4fwd"', "did you mean l3fwd?"]),
        ({"chains": "l3fwd"}, ["it: chains"]),
        ({"chains": [""]}, ["it: chain", "empty entry"]),
        ({"chains": ["l3fwd"], "scenarios": ["p2p"]}, ["it: ", "add loopback"]),
    ],
)
def test_errors_of_a_plan(document: dict[str, Any], change: dict[str, Any], words: list[str]) -> None:
    with pytest.raises(UsageError) as caught:
        plan_from_document(document | change, "it")
    assert all(word in str(caught.value) for word in words), caught.value


def test_paths_in_a_plan_are_from_its_folder(tmp_path: Path, document: dict[str, Any]) -> None:
    (tmp_path / "my.rules").write_text("")
    plan = plan_from_document(document | {"chains": ["firewall:rules=my.rules"]}, "it", tmp_path)
    assert plan.chains == (f"firewall:rules={tmp_path / 'my.rules'}",)
    text = "\n".join(f"{key}: {value!r}" for key, value in document.items())
    (tmp_path / "plan.yaml").write_text(f"{text}\nchains: ['firewall:rules=my.rules']\n")
    assert load_plan(tmp_path / "plan.yaml").chains == plan.chains


def test_paths_of_options_are_from_where_the_user_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "table.txt").write_text("")
    monkeypatch.chdir(tmp_path)
    assert override(QUICK, chain=["l3fwd:routes=table.txt"]).chains == (f"l3fwd:routes={tmp_path / 'table.txt'}",)


def test_each_chain_is_a_topology_and_has_an_order_of_its_own() -> None:
    groups = group_points(expand(override(QUICK, chain=["l3fwd", "firewall", "l2fwd"])))
    assert [(g.first.chain_length, g.first.chain) for g in groups] == [(1, "l3fwd"), (1, "firewall"), (1, "")]
    assert all(point.chain == group.first.chain for group in groups for point in group.points)
    orders = [
        [(s.point.switch, s.point.direction, s.point.frame_size_bytes) for s in interleave(g, 3, 1)] for g in groups
    ]
    assert orders[0] != orders[1]
    assert sorted(orders[0]) == sorted(orders[1])


def test_the_order_of_a_chain_without_a_name_is_what_it_was() -> None:
    (group,) = group_points(expand(override(QUICK, scenario="loopback")))
    first = [(s.point.switch, s.point.direction, s.point.frame_size_bytes) for s in interleave(group, 1, 1)][:3]
    assert first == [(switch, "unidirectional", 64) for switch in ("ovs-dpdk", "testpmd", "planed")]


def test_rates() -> None:
    plan = override(QUICK, rates="100,100k,1M,100k", loads="none")
    assert (plan.latency.rates_pps, plan.latency.loads) == ((100.0, 100e3, 1e6), ())
    assert override(plan, rates="none").latency.rates_pps == ()
    with pytest.raises(UsageError, match='rate "fast" is not valid'):
        override(QUICK, rates="fast")


def test_rates_of_a_plan(document: dict[str, Any]) -> None:
    document["latency"]["rates_pps"] = [100, "100k", 1e6, 100000]
    assert plan_from_document(document, "it").latency.rates_pps == (100.0, 100e3, 1e6)
    document["latency"]["rates_pps"] = [0]
    with pytest.raises(UsageError, match='rate "0" is not valid'):
        plan_from_document(document, "it")


def test_the_suite_of_can17_has_its_chains_and_every_part_alone() -> None:
    assert "can17" in list_suites()
    plan = load_plan("can17")
    chains = chains_of(plan.parts[0])
    assert chains == [(1, "l3fwd"), (2, "firewall,l3fwd"), (3, "firewall,l3fwd,l2fwd"), (1, "firewall"), (1, "")]
    assert (plan.send_burst, plan.drain_us) == (32, 100)
    own = next(part for part in plan.parts if part.name == "own-vnf")
    assert all(text.endswith(":send_burst=0") for chain in own.chains for text in chain.split(","))
    assert (min(plan.frame_sizes_bytes), max(plan.frame_sizes_bytes)) == (64, 1500)
    assert plan.parts[1].latency.loads == () and 100 in plan.latency.rates_pps and plan.latency.repetitions >= 3


def test_traffic_that_a_function_cannot_pass_is_left_out_and_said() -> None:
    plan = override(QUICK, chain=["nat44,l2fwd", "l3fwd"], traffic="plain,ipv6", frame_size="128")
    measured = {(point.chain, point.traffic) for point in expand(plan)}
    assert measured == {("nat44,l2fwd", ""), ("l3fwd", ""), ("l3fwd", "ipv6")}
    (entry,) = skipped(plan)
    assert entry.what == "loopback nat44,l2fwd, traffic ipv6"
    assert entry.reason.startswith("nat44 passes IPv4 only, and traffic ipv6 is IPv6")
    with pytest.raises(UsageError, match="nothing to measure: nat44 passes IPv4 only"):
        expand(override(QUICK, chain=["nat44"], traffic="ipv6", frame_size="128"))
