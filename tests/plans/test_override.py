# SPDX-License-Identifier: BSD-3-Clause
from __future__ import annotations

from typing import Any

import pytest

from planebench.model.errors import UsageError
from planebench.plans import Plan, load_plan, override

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
    plan = override(QUICK, duration=2.5, repeat=7, wire="veth", ring_size=1024, loads="0.2,0.9", seed=9, name="mine")
    assert (plan.throughput.duration_s, plan.latency.duration_s) == (2.5, 2.5)
    assert (plan.throughput.repetitions, plan.latency.repetitions) == (7, QUICK.latency.repetitions)
    assert (plan.wire, plan.ring_size, plan.seed, plan.name) == ("veth", 1024, 9, "mine")
    assert plan.latency.loads == (0.2, 0.9)


def test_no_latency() -> None:
    assert override(QUICK, loads="none").latency.loads == ()


@pytest.mark.parametrize(
    "options", [{"switch": "vpp"}, {"duration": 10.0}, {"repeat": 9}, {"scenario": "p2p"}, {"loads": "0.1"}]
)
def test_the_time_budget_is_that_of_the_plan_as_written(options: dict[str, Any]) -> None:
    assert override(QUICK, **options).time_budget_s is None


@pytest.mark.parametrize("options", [{"name": "mine"}, {"seed": 4}])
def test_options_that_take_no_time_keep_the_budget(options: dict[str, Any]) -> None:
    assert override(QUICK, **options).time_budget_s == 280


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"switch": "planed,,vpp"}, ['"planed,,vpp"', "empty entry"]),
        ({"switch": ""}, ["switch", "empty entry"]),
        ({"scenario": "p2p,p3p"}, ['"p3p"', "Valid: p2p, p2v"]),
        ({"frame_size": "64,20"}, ['"20"', "64..1518 and 9000"]),
        ({"direction": "uni"}, ['"uni"', "Valid: unidirectional"]),
        ({"chain_length": "0"}, ['"0"', "1..5"]),
        ({"chain_length": "2", "scenario": "p2p"}, ['"2"', "only loopback", "add loopback"]),
        ({"duration": 0.0}, ['"0.0"', "3600"]),
        ({"duration": float("inf")}, ['"inf"', "3600"]),
        ({"repeat": 0}, ['"0"', "1..1000"]),
        ({"wire": "vet"}, ['"vet"', "did you mean veth", "virtio, veth"]),
        ({"ring_size": 100}, ['"100"', "256"]),
        ({"loads": "0.5,1.1"}, ['"1.1"', "none"]),
        ({"loads": "half"}, ['"half"', "0.10,0.50"]),
        ({"loads": "nan"}, ['"nan"', "none"]),
        ({"seed": -1}, ['"-1"', "0 or more"]),
        ({"name": "a/b"}, ['"a/b"', "letters"]),
    ],
)
def test_errors_name_value_and_way_out(options: dict[str, Any], words: list[str]) -> None:
    with pytest.raises(UsageError) as caught:
        override(QUICK, **options)
    assert all(word in str(caught.value) for word in words), str(caught.value)


def test_plans_are_not_changed_in_place() -> None:
    before: Plan = load_plan("quick")
    override(QUICK, frame_size="128")
    assert before == QUICK
