# SPDX-License-Identifier: BSD-3-Clause
"""VNFs side by side in plans and on the command line: which points they make, and what does not go with them."""

from __future__ import annotations

from typing import Any

import pytest

from planebench.model.errors import UsageError
from planebench.model.switch import USUAL_COST, SwitchCost
from planebench.plan.estimate import estimate, fit_memory
from planebench.plan.expand import expand
from planebench.plan.override import override
from planebench.plan.passes import VNF_START_S, group_points
from planebench.plan.schema import load_plan, plan_from_document

QUICK = load_plan("quick")
ROUTER = "l3fwd:fib=cuckoo:synthetic=1M"


def shapes(plan: Any) -> list[tuple[str, int, str]]:
    return list(dict.fromkeys((point.scenario, point.chain_length, point.chain) for point in expand(plan)))


def test_each_number_of_vnfs_is_a_topology_of_one_direction() -> None:
    plan = override(QUICK, scenario="parallel", vnfs="1,8,63,8")
    assert shapes(plan) == [("parallel", 1, ""), ("parallel", 8, ""), ("parallel", 63, "")]
    assert {point.direction for point in expand(plan)} == {"unidirectional"}
    assert expand(plan)[0].scenario_label == "parallel-1"
    assert len(group_points(expand(plan))) == 3


def test_every_vnf_is_what_a_chain_of_one_function_says() -> None:
    plan = override(QUICK, scenario="parallel", vnfs="2,3", chain=["l2fwd", ROUTER])
    assert shapes(plan) == [("parallel", 2, ""), ("parallel", 3, ""), ("parallel", 2, ROUTER), ("parallel", 3, ROUTER)]
    point = expand(plan)[-1]
    assert point.scenario_label == f"parallel-3 {ROUTER}"
    assert point.chain_label == f"3 x {ROUTER}"
    assert point.chain_text == ROUTER
    assert point.point_id.split("/")[1] == f"parallel-3:{ROUTER}"


def test_a_plan_has_numbers_of_vnfs_beside_chains(document: dict[str, Any]) -> None:
    more = {"scenarios": ["loopback", "parallel"], "vnf_counts": [4], "chains": ["l3fwd,l2fwd", "l3fwd"]}
    del document["chain_lengths"]
    assert shapes(plan_from_document(document | more, "it")) == [
        ("loopback", 2, "l3fwd,l2fwd"),
        ("loopback", 1, "l3fwd"),
        ("parallel", 4, "l3fwd"),
    ]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"scenario": "parallel", "vnfs": "64"}, ['number of VNFs "64"', "1..63"]),
        ({"scenario": "parallel", "vnfs": "0"}, ['"0"', "1..63"]),
        ({"vnfs": "8"}, ["--vnfs 8", "add --scenario bare and parallel"]),
        ({"scenario": "parallel-8"}, ["use parallel", "1..63"]),
        ({"scenario": "parallel", "chain": ["l3fwd,l2fwd"]}, ["one function each"]),
        ({"scenario": "parallel", "direction": "bidirectional"}, ["not valid for parallel", "unidirectional"]),
    ],
)
def test_what_does_not_go_together_is_told(options: dict[str, Any], words: list[str]) -> None:
    with pytest.raises(UsageError) as caught:
        expand(override(QUICK, **options))
    assert all(word in str(caught.value) for word in words), caught.value


def test_in_a_plan_of_parts_a_number_of_vnfs_chooses() -> None:
    plan = override(load_plan("ic16"), vnfs="8", switch="planed")
    assert {point.scenario for point in expand(plan)} == {"bare", "parallel"}
    assert {point.chain_length for point in expand(plan)} == {8}
    with pytest.raises(UsageError, match="no part of ic16 has it"):
        override(load_plan("ic16"), vnfs="9")


def test_processes_and_their_fibs_take_their_time_to_start() -> None:
    plan = override(QUICK, scenario="parallel", vnfs="8", frame_size="64", loads="none", repeat=1)
    alone = override(plan, switch="planed")
    offloaded = override(plan, switch="planed:offload=fib", chain=[ROUTER])
    per_trial = estimate(alone, expand(alone)[:1]) - USUAL_COST.start_s - 8 * VNF_START_S
    assert per_trial > QUICK.throughput.duration_s
    offloading = {"planed": SwitchCost(offloads=True)}
    assert estimate(offloaded, expand(offloaded), offloading) > USUAL_COST.start_s + 8_000_000 / 10_000_000
    assert estimate(offloaded, expand(offloaded), offloading) < estimate(
        override(alone, chain=[ROUTER]), expand(override(alone, chain=[ROUTER]))
    )


def offloads(switch: str) -> bool:
    return "offload" in switch


def test_fibs_are_as_large_as_the_memory_holds() -> None:
    plan = load_plan("ic16")
    same, nothing = fit_memory(plan, 24 << 30, offloads)
    assert (same, nothing) == (plan, ())
    smaller, told = fit_memory(plan, 16 << 30, offloads)
    fitting = "l3fwd:fib=cuckoo:synthetic=100000"
    one_table = "l3fwd:fib=cuckoo:synthetic=1000M"  # of one process: 9 GB
    sleeping = f"separate:{fitting}:idle=sleep"
    assert {chain for chain in smaller.chains if "synthetic" in chain} == {fitting, sleeping, one_table}
    assert {point.chain for point in expand(smaller) if "synthetic" in point.chain} >= {fitting, one_table}
    assert [entry.what for entry in told] == [ROUTER, f"separate:{ROUTER}:idle=sleep"]
    assert "16384 MiB of memory" in told[0].reason
    least, _ = fit_memory(plan, 1 << 20, offloads)
    assert any(chain.endswith("synthetic=1000") for chain in least.chains)
