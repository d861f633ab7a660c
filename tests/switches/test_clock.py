# SPDX-License-Identifier: BSD-3-Clause
"""The clock of a switch: an option of every one, a dimension of a run, and emulated by planed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from test_workers import request

from planebench.measure.power import clocked_cpus, held_clock
from planebench.measure.verdict import judge
from planebench.model.errors import UsageError
from planebench.model.records import DirectionCounts, Evidence, SwitchCycles, VerdictKind
from planebench.placement import Cpus, place, place_vnfs
from planebench.plans.load import load_plan
from planebench.plans.override import override
from planebench.plans.switch_options import with_clocks
from planebench.switches.planed_document import switch_document, switch_settings
from planebench.switches.registry import ADAPTERS, get_adapter


def test_every_switch_that_is_a_program_has_a_clock() -> None:
    programs = [name for name in ADAPTERS if name != "sim"]
    assert {get_adapter(f"{name}:cpu_mhz=1200").cpu_mhz for name in programs} == {1200}
    assert get_adapter("planed").cpu_mhz is None
    with pytest.raises(UsageError, match=r'cpu_mhz "1" is not valid\. Valid: 100\.\.10000'):
        get_adapter("bess:cpu_mhz=1")


def test_clocks_are_a_dimension_of_a_run() -> None:
    assert with_clocks(("bess", "vpp:name=old:cpu_mhz=9"), ("1200", "2600")) == (
        "bess:cpu_mhz=1200:name=bess-1200MHz",
        "bess:cpu_mhz=2600:name=bess-2600MHz",
        "vpp:cpu_mhz=1200:name=old-1200MHz",
        "vpp:cpu_mhz=2600:name=old-2600MHz",
    )
    plan = override(load_plan("quick"), switch="testpmd", cpu_mhz="1200,2600")
    assert plan.switches == ("testpmd:cpu_mhz=1200:name=testpmd-1200MHz", "testpmd:cpu_mhz=2600:name=testpmd-2600MHz")


def test_planed_emulates_a_clock_and_says_so() -> None:
    adapter = get_adapter("planed:duty=0.46")
    document = switch_document(request(), "pb", adapter.values).to_json()
    assert {worker["duty_percent"] for worker in document["workers"]} == {46}
    assert switch_settings(request(), adapter.values)["clock"].startswith("EMULATED: 46 % of the CPU's")
    plain = switch_document(request(), "pb").to_json()
    assert not any("duty_percent" in worker for worker in plain["workers"])
    assert "clock" not in switch_settings(request(), {})


@pytest.mark.parametrize(
    ("found", "kind"), [(1200, "valid"), (1222, "valid"), (1230, "disturbed"), (1150, "disturbed")]
)
def test_a_trial_at_another_clock_is_disturbed(found: int, kind: str) -> None:
    counts = DirectionCounts("n0->n1", 1000, 1000, 900, refused_packets=500, attempted_packets=1500)
    switch = SwitchCycles(counters={"wanted_mhz": 1200, "core_mhz": found})
    verdict = judge("r_plus", True, 10**9, (counts,), Evidence(), switch)
    assert verdict.kind is VerdictKind(kind)
    if kind == "disturbed":
        assert verdict.reasons[0].text == f"the core of the switch ran at {found} MHz, not at 1200"


def test_the_clock_is_that_of_the_server_and_not_of_the_tester() -> None:
    assert clocked_cpus(place(Cpus((0, 1)), 1)) == {1}
    placement = place_vnfs(Cpus(tuple(range(8))), (2,))
    cpus = clocked_cpus(placement)
    assert {placement.switch_cpu, *placement.cpus_of_vnf(0)} == cpus and not cpus & set(placement.tester_cpus)


def test_without_a_clock_nothing_is_set_or_read(tmp_path: Path) -> None:
    with held_clock(None, place(Cpus((0, 1))), tmp_path / "no-planed") as found:
        pass
    assert found == {}


def test_a_switch_with_duty_has_it_on_all_workers() -> None:
    alone = switch_document(replace(request(), queues=1), "pb", {"duty": 0.25}).to_json()
    assert [worker["duty_percent"] for worker in alone["workers"]] == [25]
