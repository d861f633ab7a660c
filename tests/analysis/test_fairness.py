# SPDX-License-Identifier: BSD-3-Clause
"""The fairness manifest: what differs between switches, and where an adapter says something else than was measured."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from builders import make_header, make_trial

from planebench.analysis.conditions import Condition, between, contradictions, fairness, unread
from planebench.model.conditions import MANIFEST_KEYS, Conditions, FeatureClaim, PortConditions, ThreadConditions
from planebench.model.header import Build, Run, SwitchInfo

OFF = ("version_1", "in_order")
ON = (*OFF, "mrg_rxbuf", "indirect_desc")
ALL = {**dict.fromkeys(MANIFEST_KEYS, "unknown"), "function": "patch: two of them", "cores": "1", "ring_size": "256"}


def port(name: str = "n0", features: tuple[str, ...] | None = OFF, rings: int = 256, **more: Any) -> PortConditions:
    side = "wire" if name.startswith("n") else "vnf"
    sizes = None if features is None else (rings, rings)
    return PortConditions(name, side, "vhost-user", "planed", 1, **{"ring_sizes": sizes, "features": features, **more})


def thread(cpus: str = "1", mhz: int | None = 2600) -> ThreadConditions:
    return ThreadConditions("w0", cpus, "SCHED_OTHER", -20, mhz)


USUAL = (thread(),)


def found(switch: str, *ports: PortConditions, threads: Any = USUAL, **more: Any) -> Conditions:
    return Conditions(switch, "p2p", 0, "virtio", 0, "2026-11-21T12:34:00.000Z", ports, threads, **more)


def run_of(settings: dict[str, dict[str, str]], *conditions: Conditions, **header: Any) -> Run:
    switches = tuple(SwitchInfo(label, label, "1.0", values) for label, values in settings.items())
    return Run(replace(make_header(**header), switches=switches), (make_trial(),), conditions=conditions)


def rows(run: Run) -> dict[str, Condition]:
    return {condition.key: condition for condition in fairness(run)}


def texts(condition: Condition) -> list[str]:
    return [cell.text for cell in condition.cells]


def test_the_order_is_that_of_the_manifest_then_own_keys_then_what_was_only_measured_then_the_host() -> None:
    run = run_of({"a": {**ALL, "caches": "EMC"}, "b": ALL}, found("a", port()), host={"governor": None})
    keys = list(rows(run))
    assert keys[: len(MANIFEST_KEYS)] == list(MANIFEST_KEYS)
    assert keys[len(MANIFEST_KEYS)] == "caches"
    assert keys[-2:] == ["wire", "governor"]
    assert {"packed_rings", "indirect_descriptors", "polling_threads", "cpu_mhz"} < set(keys[len(MANIFEST_KEYS) + 1 :])
    assert all(len(condition.cells) == 2 for condition in rows(run).values())


def test_what_differs_what_does_not_and_what_cannot_be_told() -> None:
    values = {"burst": "32", "memory": "hugepages", "buffers": "default", "queues": "1"}
    here = rows(run_of({"a": {**ALL, **values}, "b": {**ALL, **values, "burst": "64", "queues": "unknown"}}))
    assert here["burst"].state == "differs"
    assert here["memory"].state == "same"
    assert here["queues"].state == "not known"
    assert here["buffers"].state == "not known", "two defaults need not be the same"
    assert [key for key, condition in here.items() if condition.state == "differs"] == ["burst"]


def test_a_function_is_compared_by_what_it_is() -> None:
    more = {"function": "patch: some other way"}
    assert rows(run_of({"a": ALL, "b": {**ALL, **more}}))["function"].state == "same"
    assert rows(run_of({"a": ALL, "b": {**ALL, "function": "learning"}}))["function"].state == "differs"


def test_a_key_of_ones_own_is_no_difference_unless_two_have_it() -> None:
    one = rows(run_of({"a": {**ALL, "backend": "dpdk"}, "b": ALL}))["backend"]
    assert (one.state, texts(one)) == ("own", ["dpdk", "\N{EN DASH}"])
    two = rows(run_of({"a": {**ALL, "backend": "dpdk"}, "b": ALL, "c": {**ALL, "backend": "planed"}}))["backend"]
    assert two.state == "differs"


def test_what_was_measured_counts_before_what_is_said() -> None:
    settings = {"a": {**ALL, "mergeable_buffers": "on (default)"}, "b": ALL}
    run = run_of(settings, found("a", port(features=OFF)), found("b", port(features=ON)))
    cells = rows(run)["mergeable_buffers"].cells
    assert [(cell.text, cell.measured, cell.claim) for cell in cells] == [
        ("off", True, "on (default)"),
        ("on", True, ""),
    ]
    assert contradictions(run, fairness(run)) == ("a declares mergeable buffers on (default), but off was measured",)


@pytest.mark.parametrize("claim", ["unknown", "default", "as the driver likes", "", "one of both"])
def test_a_claim_that_cannot_be_read_contradicts_nothing(claim: str) -> None:
    run = run_of({"a": {**ALL, "mergeable_buffers": claim}}, found("a", port(features=ON)))
    assert contradictions(run, fairness(run)) == ()


@pytest.mark.parametrize(
    ("claim", "wrong"),
    [
        ("wires on, VNFs off", False),
        ("wire on, VNF off", False),
        ("VNFs off", False),
        ("offered", False),
        ("wires offered, VNFs default: as the driver likes", False),
        ("no virtio port", False),
        ("-", False),
        ("on", True),
        ("off", True),
        ("Off: the tester offers none", True),
        ("none", True),
        ("none: frames have their checksums", True),
        ("wires off, VNFs off", True),
        ("wires on, VNFs on (default)", True),
        ("VNFs on", True),
    ],
)
def test_a_claim_is_held_against_the_ports_of_its_side(claim: str, wrong: bool) -> None:
    both = found("a", port("n0", ON), port("v0", OFF))
    run = run_of({"a": {**ALL, "mergeable_buffers": claim}}, both)
    assert texts(rows(run)["mergeable_buffers"]) == ["wire on, VNF off"]
    words = f"a declares mergeable buffers {claim}, but wire on, VNF off was measured"
    assert contradictions(run, fairness(run)) == ((words,) if wrong else ())


def test_the_claim_of_testpmd_is_held_against_a_vnf_port() -> None:
    claim = FeatureClaim(wire="on", vnf="off")  # as testpmd and Open vSwitch state it
    run = run_of({"a": {**ALL, "mergeable_buffers": str(claim)}}, found("a", port("n0", ON), port("v0", ON)))
    assert contradictions(run, fairness(run)) == (
        "a declares mergeable buffers wires on, VNFs off, but on was measured",
    )


@pytest.mark.parametrize(
    ("claim", "rings", "wrong"),
    [("256", 256, False), ("1024 (default)", 256, True), ("wire 256, VNF 1024", 1024, False), ("default", 64, False)],
)
def test_the_ring_size_is_that_of_the_rings(claim: str, rings: int, wrong: bool) -> None:
    run = run_of({"a": {**ALL, "ring_size": claim}}, found("a", port(rings=rings)))
    assert texts(rows(run)["ring_size"]) == [str(rings)]
    assert bool(contradictions(run, fairness(run))) == wrong


def test_a_side_without_virtio_leaves_what_is_said() -> None:
    memif = replace(port(features=None), kind="net_memif")
    run = run_of({"a": {**ALL, "mergeable_buffers": "off"}}, found("a", memif))
    assert texts(rows(run)["mergeable_buffers"]) == ["off"]
    assert not rows(run)["mergeable_buffers"].cells[0].measured
    both = run_of({"a": ALL}, found("a", memif, port("v0", OFF)))
    assert texts(rows(both)["mergeable_buffers"]) == ["VNF off"]


def test_starts_that_differ_are_both_told() -> None:
    run = run_of({"a": ALL}, found("a", port(rings=256)), found("a", port(rings=1024)))
    assert texts(rows(run)["ring_size"]) == ["256 or 1024"]


def test_threads_that_may_run_elsewhere_contradict_the_cores() -> None:
    run = run_of({"a": ALL, "b": ALL}, found("a", threads=(thread("0,1"),)), found("b", threads=(thread("1"),)))
    cores = rows(run)["cores"]
    assert (texts(cores), cores.cells[0].claim, cores.cells[1].claim) == (["0,1", "1"], "1", "")
    assert contradictions(run, fairness(run)) == ("a declares cores 1, but 0,1 was measured",)
    assert texts(rows(run)["polling_threads"])[1] == "CPU 1, SCHED_OTHER, nice -20"


def test_a_switch_without_threads_of_its_own_says_so_and_contradicts_nothing() -> None:
    run = run_of({"a": ALL}, found("a", port(), threads=()))
    assert texts(rows(run)["polling_threads"]) == ["none of its own"]
    assert contradictions(run, fairness(run)) == ()


def test_a_frequency_differs_by_more_than_it_jitters() -> None:
    def state(*mhz: int) -> str:
        found_ = [found(label, threads=(thread(mhz=value),)) for label, value in zip("ab", mhz, strict=True)]
        return rows(run_of({"a": ALL, "b": ALL}, *found_))["cpu_mhz"].state

    assert (state(2600, 2610), state(2600, 3500)) == ("same", "differs")


def test_what_could_not_be_read_is_unknown_and_said_once() -> None:
    broken = found("a", threads=None, problem="ports of the tester: RpcError")
    run = run_of({"a": ALL, "b": ALL}, broken, broken, found("b", port()))
    assert texts(rows(run)["polling_threads"]) == ["unknown", "CPU 1, SCHED_OTHER, nice -20"]
    assert rows(run)["polling_threads"].state == "not known"
    assert unread(run) == ("conditions of a could not all be read: ports of the tester: RpcError",)


@pytest.mark.parametrize("settings", [{}, {"function": "patch", "burst": "32"}, {"something": "else"}])
def test_a_switch_that_states_few_keys_has_these(settings: dict[str, str]) -> None:
    run = run_of({"a": settings, "b": settings})
    assert [key for key in rows(run) if key != "wire"] == list(settings)
    assert contradictions(run, fairness(run)) == ()


def test_a_run_without_switches_has_no_conditions() -> None:
    assert fairness(run_of({})) == ()


def test_two_runs_are_held_against_each_other_where_both_know() -> None:
    a = run_of({"a": {**ALL, "burst": "32"}, "gone": ALL}, found("a", port(features=OFF)))
    b = run_of({"a": {**ALL, "burst": "64", "cores": "unknown"}, "new": ALL}, found("a", port(features=ON)))
    assert between(a, b) == (
        "a: burst 32 against 64",
        "a: mergeable buffers off against on",
        "a: indirect descriptors off against on",
    )
    assert between(a, a) == ()


def built(run: Run, **builds: Build | None) -> Run:
    switches = tuple(replace(it, build=builds.get(it.label)) for it in run.header.switches)
    return replace(run, header=replace(run.header, switches=switches))


NATIVE = Build({"a": "1", "librte_*": "2"}, "clang 19.1.7", "znver3", "native")


@pytest.mark.parametrize(
    ("other", "state", "words"),
    [
        (Build({"b": "3"}, "GCC 12.2.0", "corei7", "generic"), "differs", "generic (-march=corei7, GCC 12.2.0)"),
        (Build({"b": "3"}, level="generic", package="dpdk"), "differs", "generic (package dpdk)"),
        (Build({"b": "3"}), "differs", "unknown"),
        (Build({"b": "3"}, "GCC 12.2.0", "znver4", "native"), "same", "native (-march=znver4, GCC 12.2.0)"),
        (None, "own", "\N{EN DASH}"),
    ],
)
def test_for_which_cpus_a_switch_was_built_is_a_condition(other: Build | None, state: str, words: str) -> None:
    condition = rows(built(run_of({"a": ALL, "b": ALL}), a=NATIVE, b=other))["build"]
    assert (condition.state, texts(condition)) == (state, ["native (-march=znver3, clang 19.1.7)", words])
    unknown = rows(built(run_of({"a": ALL, "b": ALL}), a=Build({"a": "1"}), b=Build({"b": "2"}, "GCC 12.2.0")))
    assert unknown["build"].state == "not known"
    assert "build" not in rows(run_of({"a": ALL, "b": ALL})), "a run that does not tell"


def test_two_runs_with_other_builds_of_a_switch_say_so() -> None:
    run = run_of({"a": ALL})
    a, b = built(run, a=NATIVE), built(run, a=replace(NATIVE, files={"a": "1", "librte_*": "9"}))
    words = "native (-march=znver3, clang 19.1.7)"
    assert between(a, b) == (f"a: build {words} against {words}: other files librte_*",)
    assert between(a, a) == between(run, a) == between(b, run) == ()
