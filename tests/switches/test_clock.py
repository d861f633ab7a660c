# SPDX-License-Identifier: BSD-3-Clause
"""The clock of a switch: a dimension of a run, set by cpufreq or emulated by planed."""

from __future__ import annotations

from dataclasses import replace

import pytest
from builders import verdict_of
from test_workers import request

from planebench.host.facts import HostFacts
from planebench.measure.conditions import clocked_cpus
from planebench.measure.survey import survey
from planebench.model.cpus import Cpus
from planebench.model.errors import UsageError
from planebench.model.records import DirectionCounts, Evidence, SwitchCycles, VerdictKind
from planebench.model.server import clock_words, parse_cpu_clock, speed_of
from planebench.plan.expand import expand
from planebench.plan.override import override
from planebench.plan.passes import group_points
from planebench.plan.schema import load_plan
from planebench.switches.planed import PlanedAdapter, switch_document
from planebench.switches.registry import get_adapter
from planebench.testbed.placement import place, place_vnfs


def test_a_clock_is_named_and_has_words() -> None:
    assert [parse_cpu_clock(text) for text in ("1200MHz", "duty:0.460", "duty:1", "own")] == [
        *("1200MHz", "duty:0.46", "", ""),
    ]
    assert [clock_words(clock) for clock in ("1200MHz", "duty:0.46", "")] == [
        *("at 1200 MHz", "at 46 % of the clock (emulated)", ""),
    ]
    assert sorted(("2600MHz", "800MHz"), key=speed_of) == ["800MHz", "2600MHz"]
    assert speed_of("duty:0.46") < speed_of("") and speed_of("")[0] != speed_of("800MHz")[0]
    for text in ("", "1200", "1MHz", "99999MHz", "duty:0", "duty:1.1", "duty:x", "duty:nan"):
        with pytest.raises(UsageError, match="100MHz to 10000MHz"):
            parse_cpu_clock(text)


def test_clocks_are_a_dimension_of_a_run() -> None:
    quick = override(load_plan("quick"), switch="testpmd", scenario="p2p,loopback", frame_size="64", loads="none")
    plan = override(quick, cpu_mhz="1200,2600", direction="unidirectional")
    points = expand(plan)
    assert [(p.scenario_label, p.cpu_clock) for p in points] == [
        ("p2p at 1200 MHz", "1200MHz"),
        ("p2p at 2600 MHz", "2600MHz"),
        ("loopback-1 at 1200 MHz", "1200MHz"),
        ("loopback-1 at 2600 MHz", "2600MHz"),
    ]
    assert [group.first.cpu_clock for group in group_points(points)] == [point.cpu_clock for point in points]
    assert points[0].point_id == "testpmd/p2p/unidirectional/64/virtio/process/plain/near/1200MHz"
    assert points[0].scenario_slug == "p2p-1200MHz" and points[0].chain_label == "at 1200 MHz"
    emulated = override(quick, duty="0.46,1", scenario="p2p", direction="unidirectional")
    assert [point.cpu_clock for point in expand(emulated)] == ["duty:0.46", ""]
    with pytest.raises(UsageError, match=r'--cpu-mhz: CPU clock "1MHz" is not valid'):
        override(quick, cpu_mhz="1")


def test_a_switch_that_cannot_emulate_a_clock_is_left_out_with_the_reason() -> None:
    assert get_adapter("planed").at_clock("duty:0.46").values["duty"] == 0.46
    assert get_adapter("testpmd").at_clock("1200MHz") == get_adapter("testpmd").at_clock("")
    with pytest.raises(UsageError, match="testpmd cannot emulate a clock; planed can"):
        get_adapter("testpmd").at_clock("duty:0.46")
    options = {"switch": "planed,testpmd", "scenario": "p2p", "frame_size": "64", "duty": "0.46"}
    absent = survey("quick", options, facts=HostFacts(cpus_online=(0, 1), cpus_allowed=(0, 1))).absent
    of_testpmd = [reason for point, reason in absent.items() if point.switch == "testpmd"]
    assert of_testpmd and all("cannot emulate a clock" in reason for reason in of_testpmd)
    assert not any("emulate" in reason for point, reason in absent.items() if point.switch == "planed")


def test_parts_of_a_suite_have_clocks_of_their_own() -> None:
    plan = load_plan("can17")
    clocks = ("1200MHz", "1600MHz", "2000MHz", "2400MHz", "2600MHz", "duty:0.46")
    assert {part.name: part.cpu_clocks for part in plan.parts if part.cpu_clocks != ("",)} == {
        "clocks": clocks,
        "ip-pipeline-clocks": clocks[:-1],  # the VNF, a program of its own, has no duty
    }
    assert set(plan.cpu_clocks) == {"", *clocks}


def test_planed_emulates_a_clock_and_says_so() -> None:
    adapter = get_adapter("planed:duty=0.46")
    document = switch_document(request(), "pb", adapter.values).to_json()
    assert {worker["duty_percent"] for worker in document["workers"]} == {46}
    assert adapter.settings(request())["clock"].startswith("EMULATED: 46 % of the CPU's")
    plain = switch_document(request(), "pb").to_json()
    assert not any("duty_percent" in worker for worker in plain["workers"])
    assert "clock" not in PlanedAdapter().settings(request())


@pytest.mark.parametrize(("found", "other"), [(1200, False), (1222, False), (1230, True), (1150, True)])
def test_a_trial_at_another_clock_says_so(found: int, other: bool) -> None:
    counts = DirectionCounts("n0->n1", 1000, 1000, 900, refused_packets=500, attempted_packets=1500)
    switch = SwitchCycles(counters={"wanted_mhz": 1200, "core_mhz": found})
    verdict = verdict_of("r_plus", True, 10**9, (counts,), Evidence(), switch)
    assert verdict.kind is VerdictKind.VALID
    assert verdict.texts == (f"the core of the switch ran at {found} MHz, not at 1200",) * other


def test_the_clock_is_that_of_the_server_and_not_of_the_tester() -> None:
    assert clocked_cpus(place(Cpus((0, 1)), 1)) == {1}
    placement = place_vnfs(Cpus(tuple(range(8))), (2,))
    cpus = clocked_cpus(placement)
    assert {placement.switch_cpu, *placement.cpus_of_vnf(0)} == cpus and not cpus & set(placement.tester_cpus)


def test_a_switch_with_duty_has_it_on_all_workers() -> None:
    alone = switch_document(replace(request(), queues=1), "pb", {"duty": 0.25}).to_json()
    assert [worker["duty_percent"] for worker in alone["workers"]] == [25]
