# SPDX-License-Identifier: BSD-3-Clause
"""Plans of several matrices: what their parts become, what they share, and what options make of them."""

from __future__ import annotations

import dataclasses
from collections import Counter
from typing import Any

import pytest

from planebench.model.errors import UsageError
from planebench.model.plan import Plan
from planebench.model.switch import USUAL_COST
from planebench.plan.estimate import estimate
from planebench.plan.expand import expand, max_frame_bytes, points_of, skipped
from planebench.plan.override import override
from planebench.plan.passes import SOCKET_S, group_points, latency_steps
from planebench.plan.schema import plan_from_document
from planebench.store.codec import from_json, to_json


@pytest.fixture
def parts(document: dict[str, Any]) -> dict[str, Any]:
    """Throughput of p2p and loopback at two sizes, latency of p2p at one, of v2v at a rate, p2p again at more loads."""
    document["latency"] = {"loads": [], "duration_s": 0.5}
    document["parts"] = [
        {"name": "all"},
        {
            "name": "table-3",
            "for": "Table 3",
            "scenarios": ["p2p"],
            "frame_sizes_bytes": [64],
            "latency": {"loads": [0.1, 0.5]},
        },
        {
            "name": "table-4",
            "scenarios": ["v2v"],
            "frame_sizes_bytes": [128],
            "latency": {"rates_pps": ["1M"], "repetitions": 2},
        },
        {
            "name": "again",
            "scenarios": ["p2p"],
            "frame_sizes_bytes": [64],
            "latency": {"loads": [0.5, 0.99], "repetitions": 3},
        },
    ]
    return document


@pytest.fixture
def plan(parts: dict[str, Any]) -> Plan:
    return plan_from_document(parts, "it")


def steps_of(plan: Plan) -> Counter[tuple[str, str, str]]:
    """Switch, scenario and load of every latency trial."""
    return Counter(
        (wanted.step.point.switch, wanted.step.point.scenario, wanted.step.load)
        for group in group_points(expand(plan))
        for wanted in latency_steps(plan, group)
    )


def test_a_part_has_its_own_keys_and_those_of_the_plan(plan: Plan) -> None:
    everything, table3, table4, _ = plan.parts
    assert (everything.scenarios, everything.frame_sizes_bytes) == (("p2p", "loopback"), (64, 1024))
    assert (table3.purpose, table3.switches, table3.latency.loads) == ("Table 3", plan.switches, (0.1, 0.5))
    assert (table4.latency.rates_pps, table4.latency.duration_s, table4.latency.repetitions) == ((1e6,), 0.5, 2)
    assert plan.sections == plan.parts and everything.sections == (everything,)


def test_the_plan_itself_has_what_its_parts_have_between_them(plan: Plan) -> None:
    assert plan.scenarios == ("p2p", "loopback", "v2v")
    assert plan.frame_sizes_bytes == (64, 1024, 128)
    assert (plan.latency.loads, plan.latency.rates_pps) == ((0.1, 0.5, 0.99), (1e6,))
    assert max_frame_bytes(plan) == 1518


def test_a_point_of_two_parts_is_there_once(plan: Plan) -> None:
    points = expand(plan)
    assert len(points) == len(set(points)) == 2 * (2 + 2 * 2 + 1)
    assert sum(len(points_of(part)) for part in plan.parts) == len(points) + 2 * 2


def test_every_latency_trial_comes_once_however_many_parts_want_it(plan: Plan) -> None:
    per_switch = {("p2p", "0.10"): 1, ("p2p", "0.50"): 3, ("p2p", "0.99"): 3, ("v2v", "1Mpps"): 2}
    assert steps_of(plan) == {(switch, *key): n for switch in plan.switches for key, n in per_switch.items()}


def test_time_is_that_of_each_trial_once(plan: Plan, parts: dict[str, Any]) -> None:
    del parts["parts"]
    alone = plan_from_document({**parts, "scenarios": ["p2p", "loopback"]}, "it")
    with_v2v = plan_from_document({**parts, "scenarios": ["v2v"], "frame_sizes_bytes": [128]}, "it")
    r_plus = estimate(alone, expand(alone)) + estimate(with_v2v, expand(with_v2v))
    trials = sum(steps_of(plan).values())
    trials_s = trials * (0.5 + USUAL_COST.trial_overhead_s)
    echo_s = 2 * (2 * USUAL_COST.start_s - SOCKET_S)  # v2v is started once more in each repetition of its latency
    assert estimate(plan, expand(plan)) == pytest.approx(r_plus + trials_s + echo_s)


def test_it_is_stored_and_read_back_the_same(plan: Plan) -> None:
    assert from_json(Plan, to_json(plan), "a plan") == plan


def test_options_of_the_matrix_choose_and_a_part_without_any_goes(plan: Plan) -> None:
    chosen = override(plan, scenario="v2v,loopback", chain_length="2")
    assert {(p.scenario, p.chain_length, p.frame_size_bytes) for p in expand(chosen)} == {
        ("loopback", 2, 64),
        ("loopback", 2, 1024),
        ("v2v", 0, 128),
    }
    assert [(entry.what, entry.reason) for entry in skipped(chosen)] == [
        ("part table-3", "the options leave nothing of it"),
        ("part again", "the options leave nothing of it"),
    ]
    assert {point.scenario for point in expand(override(plan, frame_size="128"))} == {"v2v"}


def test_what_no_part_has_is_refused_by_name(plan: Plan) -> None:
    with pytest.raises(UsageError, match=r'frame size "512": no part of small has it. Valid: 64, 1024, 128;'):
        override(plan, frame_size="512")
    with pytest.raises(UsageError, match='chain "l3fwd": no part'):
        override(plan, chain=["l3fwd"])
    with pytest.raises(UsageError, match="nothing to measure: the options leave nothing of it"):
        expand(override(plan, scenario="loopback", frame_size="128"))


def test_chains_choose_loopback_and_traffic_chooses_too(parts: dict[str, Any]) -> None:
    parts["parts"] = [
        {"name": "a", "scenarios": ["p2p", "loopback"], "chains": ["l3fwd", "firewall"], "traffic": ["plain", "imix"]},
        {"name": "b"},
    ]
    del parts["chain_lengths"]
    plan = plan_from_document(parts, "it")
    chosen = override(plan, chain=["l3fwd"], traffic="imix")
    assert {(p.scenario, p.chain, p.traffic) for p in expand(chosen)} == {("loopback", "l3fwd", "imix")}
    both = override(plan, chain=["l3fwd"], scenario="p2p,loopback")
    assert {(p.scenario, p.chain) for p in expand(both)} == {("p2p", ""), ("loopback", "l3fwd")}


def test_all_other_options_go_to_every_part_and_loads_to_those_with_latency(plan: Plan) -> None:
    new = override(plan, switch="planed", duration=2.0, wire="memif", loads="none", rates="5k", seed=3)
    assert {part.wire for part in (new, *new.parts)} == {"memif"}
    assert {part.latency.duration_s for part in new.parts} == {2.0}
    assert [part.latency.rates_pps for part in new.parts] == [(), (5000,), (5000,), (5000,)]
    assert new.seed == 3
    assert set(steps_of(new)) == {("planed", "p2p", "5kpps"), ("planed", "v2v", "5kpps")}
    assert override(plan) == plan


def test_the_order_within_a_part_follows_the_seed_of_the_run(plan: Plan) -> None:
    def order(seed: int) -> list[Any]:
        new = override(plan, seed=seed)
        return [s.step for group in group_points(expand(new)) for s in latency_steps(new, group)]

    assert order(1) == order(1)
    assert any(order(1) != order(seed) for seed in range(2, 9))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"parts": []}, "it: parts is a list"),
        ({"parts": ["x"]}, r"it: parts\.0"),
        ({"parts": [{"for": "x"}]}, r"it: parts\.0: .*give name, for"),
        ({"parts": [{"name": "x", "switches": ["vpp"]}]}, 'it: part x: unknown key "switches".*name, for, scenarios'),
        ({"parts": [{"name": "x"}, {"name": "y", "scenarios": ["p2q"]}]}, "it: part y: .*p2q"),
        ({"parts": [{"name": "x"}, {"name": "x"}]}, 'it: two parts have the name "x"'),
        ({"parts": [{"name": "x"}], "name": None}, "it: name"),
        ({"parts": [{"name": "x"}], "scenario": ["p2p"]}, 'it: unknown key "scenario", did you mean scenarios'),
    ],
)
def test_errors_name_the_part(parts: dict[str, Any], change: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        plan_from_document(parts | change, "it")


def test_parts_that_would_mix_two_kinds_of_latency_are_refused(parts: dict[str, Any]) -> None:
    parts["parts"][3]["latency"]["duration_s"] = 1.0
    with pytest.raises(UsageError, match=r"parts table-3 and again both take latency of planed/p2p/.* at 0.50,"):
        plan_from_document(parts, "it")


def test_parts_of_a_record_are_plans_whose_matrix_alone_differs(plan: Plan) -> None:
    own = {"name", "purpose", "parts", "description", "scenarios", "frame_sizes_bytes", "latency"}
    for part in plan.parts:
        changed = {f.name for f in dataclasses.fields(Plan) if getattr(part, f.name) != getattr(plan, f.name)}
        assert changed <= own


def test_a_part_about_no_switch_of_the_plan_says_so(document: dict[str, Any]) -> None:
    document["parts"] = [{"name": "all"}, {"name": "misspelt", "only": ["planned"]}]
    (entry,) = skipped(plan_from_document(document, "it"))
    assert (entry.what, entry.reason) == (
        "part misspelt",
        "it is of planned only, and the switches are planed, testpmd",
    )
