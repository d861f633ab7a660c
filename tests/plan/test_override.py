# SPDX-License-Identifier: BSD-3-Clause
from __future__ import annotations

from typing import Any

import pytest

from planebench.analysis.search.task import search_settings
from planebench.model.errors import UsageError
from planebench.model.plan import Plan
from planebench.plan.expand import expand, switch_labels
from planebench.plan.override import override
from planebench.plan.schema import load_plan
from planebench.switches.registry import get_adapter

QUICK = load_plan("quick")


def test_no_option_changes_nothing() -> None:
    assert override(QUICK) == QUICK


def test_lists() -> None:
    plan = override(
        QUICK,
        switch="vpp, planed,vpp",
        scenario="loopback,p2p",
        frame_size="256,64,256",
        direction="bidirectional",
        chain_length="3,1",
    )
    assert plan.switches == ("vpp", "planed", "vpp")
    assert plan.scenarios == ("loopback", "p2p")
    assert plan.frame_sizes_bytes == (256, 64)
    assert plan.directions == ("bidirectional",)
    assert plan.chain_lengths == (3, 1)


def test_a_switch_that_was_asked_for_must_be_there() -> None:
    assert (QUICK.missing_switches, override(QUICK, switch="vpp").missing_switches) == ("skip", "error")


def test_single_values() -> None:
    rings: dict[str, Any] = {"ring_size": 1024, "wire_ring_size": "2048"}
    plan = override(
        QUICK, duration=2.5, repeat=7, wire="veth", **rings, loads="0.2,0.9", seed=9, switch_cores=2, name="mine"
    )
    assert (plan.throughput.duration_s, plan.latency.duration_s) == (2.5, 2.5)
    assert (plan.throughput.repetitions, plan.latency.repetitions) == (7, QUICK.latency.repetitions)
    assert (plan.wire, plan.ring_size, plan.seed, plan.switch_cores, plan.name) == ("veth", 1024, 9, 2, "mine")
    assert (plan.latency.loads, plan.wire_ring_size) == ((0.2, 0.9), 2048)


def test_the_check_is_full_unless_asked_for() -> None:
    assert (QUICK.check, override(QUICK, check="sampled").check) == ("full", "sampled")
    with pytest.raises(UsageError, match=r"--check: .*full, sampled"):
        override(QUICK, check="some")


def test_no_latency() -> None:
    assert override(QUICK, loads="none").latency.loads == ()


@pytest.mark.parametrize(
    "options", [{"switch": "vpp"}, {"duration": 10.0}, {"repeat": 9}, {"scenario": "p2p"}, {"loads": "0.1"}]
)
def test_the_time_budget_is_that_of_the_plan_as_written(options: dict[str, Any]) -> None:
    assert override(QUICK, **options).time_budget_s is None


@pytest.mark.parametrize("options", [{"name": "mine"}, {"seed": 4}])
def test_options_that_take_no_time_keep_the_budget(options: dict[str, Any]) -> None:
    assert override(QUICK, **options).time_budget_s == 270


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"switch": "planed,,vpp"}, ['"planed,,vpp"', "empty entry"]),
        ({"switch": ""}, ["switch", "empty entry"]),
        ({"scenario": "p2p,p3p"}, ['"p3p"', "Valid: p2p, p2v"]),
        ({"frame_size": "64,20"}, ['"20"', "64..1518 and 9000"]),
        ({"direction": "uni"}, ['"uni"', "Valid: unidirectional"]),
        ({"chain_length": "0"}, ['"0"', "1..5"]),
        (
            {"chain_length": "2", "scenario": "p2p"},
            ["--chain-length 2", "add --scenario loopback"],
        ),
        ({"duration": 0.0}, ["--duration: ", '"0.0"', "greater than 0"]),
        ({"duration": float("inf")}, ['"inf"', "finite"]),
        ({"repeat": 0}, ["--repeat: ", '"0"', "greater than or equal to 1"]),
        ({"wire": "vet"}, ['"vet"', "did you mean veth", "virtio, memif, vhost, veth"]),
        ({"switch_cores": 5}, ["--switch-cores: ", '"5"', "1, 2, 3, 4"]),
        ({"ring_size": 100}, ['"100"', "256"]),
        ({"wire_ring_size": "100"}, ['"100"', "own", "256"]),
        ({"loads": "0.5,1.1"}, ['"1.1"', "none"]),
        ({"loads": "half"}, ['"half"', "0.10,0.50"]),
        ({"loads": "nan"}, ['"nan"', "none"]),
        ({"seed": -1}, ['"-1"', "greater than or equal to 0"]),
        ({"name": "a/b"}, ['"a/b"', "letters"]),
    ],
)
def test_errors_name_value_and_way_out(options: dict[str, Any], words: list[str]) -> None:
    with pytest.raises(UsageError) as caught:
        override(QUICK, **options)
    assert all(word in str(caught.value) for word in words), str(caught.value)


@pytest.mark.parametrize(
    ("text", "scenarios", "lengths"),
    [
        ("pvp", ("loopback",), (1,)),
        ("PVVP,p2p", ("loopback", "p2p"), (2,)),
        ("loopback-3,loopback-5", ("loopback",), (3, 5)),
        ("P2P,bridged-2", ("p2p", "bridged"), (2,)),
        ("pvvp,loopback", ("loopback",), (2, 1)),
    ],
)
def test_a_scenario_may_say_how_many_vnfs_it_has(
    text: str, scenarios: tuple[str, ...], lengths: tuple[int, ...]
) -> None:
    plan = override(QUICK, scenario=text)
    assert (plan.scenarios, plan.chain_lengths) == (scenarios, lengths)


def test_functions_say_how_many_vnfs_there_are() -> None:
    plan = override(QUICK, scenario="pvp", chain=["firewall,l3fwd"])
    assert {point.scenario_label for point in expand(plan)} == {"loopback firewall,l3fwd"}


@pytest.mark.parametrize("text", ["ovs", "OVS-DPDK", "OpenvSwitch", "ovs-dpdk"])
def test_a_switch_has_the_names_that_others_give_it(text: str) -> None:
    plan = override(QUICK, switch=f"{text}:workers=2,old={text}:workers=2")
    assert [it.label for it in switch_labels(plan.switches)] == ["ovs-dpdk", "old"]
    assert all(switch.endswith("workers=2") for switch in plan.switches)
    assert {get_adapter(switch).name for switch in plan.switches} == {"ovs-dpdk"}


def test_plans_are_not_changed_in_place() -> None:
    before: Plan = load_plan("quick")
    override(QUICK, frame_size="128")
    assert before == QUICK


def test_searches() -> None:
    plan = override(QUICK, search="ndr,r_plus,bswlv,ndr", search_duration=0.2, max_r=4)
    assert plan.search.methods == ("ndr", "bswlv"), "R+ is always taken"
    assert (plan.search.duration_s, plan.search.max_r) == (0.2, 4)
    settings = search_settings(plan, senders=2)
    assert (settings.duration_s, settings.max_r, settings.max_load_pps) == (0.2, 4, None)
    assert settings.r_plus_duration_s == QUICK.throughput.duration_s


def test_a_line_rate_is_per_direction() -> None:
    plan = override(QUICK, max_rate="14.88M")
    assert plan.throughput.max_rate_pps == 14.88e6
    assert search_settings(plan, senders=2).max_load_pps == pytest.approx(2 * 14.88e6)


def test_restarts_and_curve() -> None:
    plan = override(QUICK, repeat=4, restarts=3, loads="curve")
    assert plan.throughput.restarts == 3
    assert plan.latency.loads[0] == 0.05 and plan.latency.loads[-1] == 0.99 and len(plan.latency.loads) > 8


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"search": "nrd"}, 'unknown search "nrd", did you mean ndr'),
        ({"search": ""}, "empty entry"),
        ({"search_duration": 0.0}, '--search-duration: "0.0" is not valid: input should be greater than 0'),
        ({"max_r": 0}, '--max-r: "0" is not valid: input should be greater than or equal to 1'),
        ({"restarts": 5}, 'restarts "5" is not valid for 5 repetitions. Valid: 0..4'),
        ({"restarts": -1}, '--restarts: "-1" is not valid'),
        ({"max_rate": "fast"}, 'rate "fast" is not valid'),
        ({"line": "fast"}, 'bit rate "fast" is not valid'),
        ({"line": "0"}, 'bit rate "0" is not valid'),
        ({"max_rate": "0"}, 'rate "0" is not valid'),
        ({"max_rate": "1e99"}, 'rate "1e99" is not valid'),
        ({"max_rate": "1.2.3M"}, 'rate "1.2.3M" is not valid'),
    ],
)
def test_bad_values_are_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        override(QUICK, **options)


def test_an_option_that_does_not_exist_is_a_mistake_of_ours() -> None:
    with pytest.raises(TypeError, match="no option frame_sizes"):
        override(QUICK, frame_sizes="64")


def test_repetitions_by_option_are_all_and_fewer_take_fewer_restarts_with_them() -> None:
    assert QUICK.throughput.repetitions_max == 8
    repeated = override(QUICK, repeat=4).throughput
    assert (repeated.repetitions_max, repeated.looks, repeated.restarts) == (None, (4,), None)
    assert override(override(QUICK, restarts=2), repeat=2).throughput.restarts == 1
    with pytest.raises(UsageError, match="restarts"):
        override(QUICK, repeat=1, restarts=1)
