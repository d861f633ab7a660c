# SPDX-License-Identifier: BSD-3-Clause
"""The suite can fail: of each switch that is bad in one way, exactly the check that is for it."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import bad
import pytest

from planebench.conformance import leftovers
from planebench.conformance.rig import Rig
from planebench.host.netns import VethWire
from planebench.host.planed_program import REMEDY, find_planed
from planebench.host.process import Supervisor
from planebench.host.procfs import processes_with
from planebench.host.programs import NotFound
from planebench.model.errors import StartError
from planebench.switches.registry import get_adapter

pytestmark = pytest.mark.dataplane

USUAL = "forwards,wiring,intact,order,counters"
TESTER_CPU = str(min(os.sched_getaffinity(0)))


@pytest.fixture(autouse=True)
def needs_planed() -> None:
    if find_planed() is None:
        pytest.skip(f"planed is not here: {REMEDY}")


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is dead stays dead: nobody need wait a quarter of a minute for it."""
    monkeypatch.setattr("planebench.measure.live.CONNECT_DEADLINE_S", 3.0)
    monkeypatch.setattr("planebench.conformance.leftovers.GRACE_S", 0.5)
    monkeypatch.setattr("planebench.conformance.enduring.OTHERS_S", 0.1)


@pytest.fixture(autouse=True)
def litter_bin(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The only place where switches leave things: others work on the machine."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setattr(leftovers, "FOLDERS", ((str(folder), 1),))
    return folder


@pytest.fixture(scope="module")
def namespaces() -> None:
    try:
        with Supervisor(Path("/tmp")) as supervisor:
            VethWire.create(supervisor, ["n0"], cpus=frozenset({0})).close()
    except StartError as error:
        pytest.skip(f"no network namespaces here: {error}")


@pytest.mark.usefixtures("namespaces")
def test_a_page_of_python_passes_everything() -> None:
    results = bad.check(bad.PySwitch(), "p2v", bad.ALL, "veth")
    assert not bad.failed(results), results
    assert {result.outcome for result in results.values()} == {"pass", "remark"}


@pytest.fixture(scope="module")
def one_that_changes(namespaces: None) -> Iterator[Rig]:
    """A switch that can be told to go wrong, in place of a start for each fault."""
    with bad.rig(bad.PySwitch(), "p2p", "veth") as it:
        yield it


@pytest.mark.parametrize(
    ("fault", "wrong"),
    [
        ("loses", "forwards"),
        ("damages", "intact"),
        ("rewrites-macs", "intact"),
        ("overtakes", "order"),
        ("doubles", "order"),
        ("sends-back", "wiring"),
    ],
)
def test_a_fault_of_forwarding_fails_its_own_check(one_that_changes: Rig, fault: str, wrong: str) -> None:
    switch = one_that_changes.live.switch
    assert isinstance(switch, bad.RunningPySwitch)
    switch.become(fault)
    results = bad.checked(one_that_changes, USUAL)
    assert bad.failed(results) == {wrong}, results
    assert results[wrong].expected and results[wrong].came


@pytest.mark.usefixtures("namespaces")
@pytest.mark.parametrize(
    ("fault", "checks", "wrong"),
    [
        ("has-company", "cores", "cores"),
        ("dies-of-runts", "bad-frames", "bad-frames"),
        pytest.param("oversleeps", "bad-frames,pause", "pause", marks=pytest.mark.all),
    ],
)
def test_a_fault_of_character_fails_its_own_check(fault: str, checks: str, wrong: str) -> None:
    results = bad.check(bad.PySwitch(fault=fault), "p2p", checks, "veth")
    assert bad.failed(results) == {wrong}, results


@pytest.mark.usefixtures("namespaces")
@pytest.mark.parametrize("cpu", ["any", TESTER_CPU])
def test_a_thread_that_is_not_pinned_or_pinned_elsewhere(cpu: str) -> None:
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("one CPU is all there is")
    assert bad.failed(bad.check(bad.PySwitch(cpu=cpu), "p2p", "cores", "veth")) == {"cores"}


def test_cross_connects_in_another_order_are_found_though_every_frame_arrives() -> None:
    results = bad.check(bad.BadPlaned(request=bad.swapped), "loopback-2", USUAL)
    assert bad.failed(results) == {"wiring"}, results
    assert "n0 -> v2" in results["wiring"].came


def test_counters_that_count_too_much() -> None:
    results = bad.check(bad.BadPlaned(wrap=bad.lying), "p2p", "forwards,counters")
    assert bad.failed(results) == {"counters"}, results


@pytest.fixture(scope="module")
def one_that_drops() -> Iterator[Rig]:
    with bad.rig(bad.BadPlaned(options={"drop_one_in": "7"}), "p2p", "virtio") as it:
        yield it


@pytest.mark.parametrize(
    ("hidden", "checks", "wrong"),
    [
        (False, f"{USUAL},overload,bad-frames", {"forwards"}),
        (True, "forwards,counters,overload", {"forwards", "counters", "overload"}),
    ],
)
def test_drops_that_are_counted_or_hidden(
    one_that_drops: Rig, monkeypatch: pytest.MonkeyPatch, hidden: bool, checks: str, wrong: set[str]
) -> None:
    # What does not come need not be waited for.
    monkeypatch.setattr("planebench.conformance.rig.ARRIVE_S", 0.3)
    monkeypatch.setattr("planebench.conformance.checks.SETTLE_S", 0.2)
    if hidden:
        monkeypatch.setattr(one_that_drops.live, "switch", bad.hiding_drops(one_that_drops.live.switch))
    assert bad.failed(bad.checked(one_that_drops, checks)) == wrong


def test_a_switch_that_dies_with_its_vnf() -> None:
    results = bad.check(bad.BadPlaned(wrap=bad.fragile), "p2v", "vnf-restart,vnf-killed,death")
    assert bad.failed(results) == {"vnf-restart", "vnf-killed"}, results


def test_a_death_without_last_words() -> None:
    assert bad.failed(bad.check(bad.BadPlaned(wrap=bad.silent_in_death), "p2p", "restart,death")) == {"death"}


def test_a_file_is_left(litter_bin: Path) -> None:
    results = bad.check(bad.BadPlaned(wrap=bad.littering(litter_bin)), "p2p", "starts")
    assert bad.failed(results) == {"leftovers"}, results
    assert str(litter_bin / "litter") in results["leftovers"].came


def test_a_file_that_somebody_else_leaves_is_a_remark(litter_bin: Path) -> None:
    results = bad.check(bad.BadPlaned(wrap=bad.littering(litter_bin, times=1)), "p2p", "starts")
    assert results["leftovers"].outcome == "remark", results


def test_a_process_is_left() -> None:
    left: list[subprocess.Popen[bytes]] = []
    try:
        results = bad.check(bad.BadPlaned(wrap=bad.leaving_a_process(left)), "p2p", "starts")
        assert bad.failed(results) == {"leftovers"}, results
        assert "sleep 300" in results["leftovers"].came
    finally:
        for process in left:
            process.kill()
            process.wait()
    assert not processes_with("/no/such/folder/of/anybody")


def test_a_broken_adapter_is_found_and_the_suite_goes_on() -> None:
    results = bad.check(bad.Broken(), "p2p", "found,options,settings,forwards")
    assert bad.failed(results) == {"found", "options", "settings"}, results
    assert "ZeroDivisionError" in results["options"].came
    assert "burst" in results["settings"].came


def test_what_does_not_start_is_not_run_further() -> None:
    results = bad.check(bad.Stillborn(), "p2p", USUAL)
    assert bad.failed(results) == {"starts"}
    assert {results[name].outcome for name in USUAL.split(",")} == {"not run"}


def test_why_a_switch_did_not_start_again_is_told() -> None:
    results = bad.check(bad.StartsOnce(), "p2p", "counters,overload")
    assert bad.failed(results) == {"counters"}
    assert results["overload"].outcome == "not run"
    assert results["overload"].remarks == ("the switch did not start again after a failure: port n0 is in use",)


def test_counters_of_one_worker_only() -> None:
    results = bad.check(bad.CountsOneWorker(), "p2p", "counters")
    assert not bad.failed(results)
    results = bad.check(bad.CountsOneWorker(), "workers-2", "counters,intact")
    assert bad.failed(results) == {"counters"}, results
    found = re.search(r"received (\d+), which is not (\d+)", results["counters"].came)
    assert found and int(found[2]) // 2 == int(found[1]), results["counters"].came
    assert "intact" not in results, "not for this part"


@pytest.mark.parametrize("switch", ["planed", "testpmd", "ovs-dpdk", "vpp", "bess", "fastclick"])
def test_every_switch_with_workers_counts_two_of_them(switch: str) -> None:
    """The frames of both workers are counted, on as few as two CPUs."""
    adapter = get_adapter(switch)
    if isinstance(found := adapter.find(), NotFound):
        pytest.skip(f"{switch} {found.words}")
    wire = next(it for it in ("virtio", "vhost", "memif") if it in adapter.wires)
    results = bad.check(adapter, "workers-2", "forwards,counters", wire)
    if results["starts"].outcome == "not supported":
        pytest.skip(results["starts"].remarks[0])
    assert not bad.failed(results), results
    assert results["counters"].outcome in ("pass", "remark")


def test_a_switch_with_one_worker_has_no_second() -> None:
    results = bad.check(bad.PySwitch(), "workers-2", "counters", "veth")
    assert {it.outcome for it in results.values()} == {"not supported"}
    assert results["counters"].remarks == ("pyswitch forwards with one worker",)


def test_what_is_refused_never_passes() -> None:
    results = bad.check(bad.Choosy(), "p2p", f"found,{USUAL}")
    assert results["found"].outcome == "pass"
    assert {result.outcome for name, result in results.items() if name != "found"} == {"not supported"}
    assert results["forwards"].remarks == ("it is Monday",)
