# SPDX-License-Identifier: BSD-3-Clause
"""What VNFs run in as a dimension of the matrix: points, groups, names, plan files, what it costs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from planebench.host.programs import Found, NotFound
from planebench.measure.survey import refusals, survey
from planebench.model.errors import NotInstalledError, UsageError
from planebench.model.plan import Plan
from planebench.plan.estimate import estimate
from planebench.plan.expand import expand
from planebench.plan.override import override
from planebench.plan.passes import Rounds, group_points
from planebench.plan.schema import load_plan, plan_from_document
from planebench.store.codec import from_json, to_json
from planebench.switches.registry import get_adapter
from planebench.testbed.hosting.registry import HOSTINGS

QUICK = load_plan("quick")


def shapes(plan: Any) -> list[tuple[str, str, str]]:
    return list(dict.fromkeys((p.scenario_label, p.chain, p.hosting) for p in expand(plan)))


def test_each_hosting_is_a_topology_of_its_own() -> None:
    plan = override(QUICK, scenario="p2p,loopback", chain_length="2", hosting="process,container")
    assert shapes(plan) == [
        ("p2p", "", "process"),
        ("loopback-2", "", "process"),
        ("loopback-2 in containers", "", "container"),
    ]
    groups = group_points(expand(plan))
    assert [(group.first.scenario, group.first.hosting) for group in groups] == [
        *(("p2p", "process"), ("loopback", "process"), ("loopback", "container")),
    ]
    assert len({point.point_id for point in expand(plan)}) == len(expand(plan))
    assert {point.scenario_slug for point in expand(plan)} == {"p2p", "loopback-2", "loopback-2-container"}


def test_a_chain_that_says_what_it_runs_in_is_measured_once() -> None:
    chains = ["container:firewall,l3fwd", "container:l2fwd,separate:l2fwd", "container:l2fwd"]
    plan = override(QUICK, chain=chains, hosting="process,container")
    assert shapes(plan) == [
        ("loopback container:firewall,l3fwd", "container:firewall,l3fwd", "process"),
        ("loopback firewall,l3fwd in containers", "firewall,l3fwd", "container"),
        ("loopback container:l2fwd,separate:l2fwd", "container:l2fwd,separate:l2fwd", "process"),
        ("loopback-1 in containers", "", "container"),
    ]
    assert next(point.hostings for point in expand(plan)) == ("container", "process")


def test_vnfs_side_by_side_are_processes_of_their_own_in_any_case() -> None:
    plan = override(QUICK, scenario="parallel", vnfs="3", hosting="process,separate,container")
    assert shapes(plan) == [("parallel-3", "", "process"), ("parallel-3 in containers", "", "container")]


def test_in_a_plan_it_is_one_or_a_list_and_in_parts_too(document: dict[str, Any], tmp_path: Path) -> None:
    assert plan_from_document({**document, "hosting": "container"}, "p").hostings == ("container",)
    listed = plan_from_document({**document, "hosting": ["process", "container", "process"]}, "p")
    assert (listed.hosting, listed.more_hostings) == ("process", ("container",))
    assert from_json(Plan, to_json(listed), "plan") == listed
    parts = [{"name": "a"}, {"name": "b", "hosting": "container", "scenarios": ["loopback"]}]
    plan = plan_from_document({**document, "parts": parts}, "p")
    assert plan.hostings == ("process", "container")
    assert {p.hosting for p in expand(plan) if p.scenario == "loopback"} == {"process", "container"}
    everywhere = override(load_plan("conext19"), hosting="separate")
    usual = {point.hosting for point in expand(everywhere) if point.scenario == "loopback"}
    assert usual == {"separate", "exec"}  # a command of the user's is hosted as its text says


@pytest.mark.parametrize("text", ["docker", "image", "exec", ""])
def test_what_is_no_hosting_of_a_whole_chain_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="hosting"):
        override(QUICK, hosting=text)
    with pytest.raises(UsageError, match="Valid: process, separate, container, vm"):
        plan_from_document({**QUICK_DOCUMENT, "hosting": text}, "p")


QUICK_DOCUMENT = {
    "version": 1,
    "name": "x",
    "switches": ["planed"],
    "scenarios": ["loopback"],
    "frame_sizes_bytes": [64],
    "throughput": {"duration_s": 1.0, "repetitions": 1},
    "latency": {"loads": [], "duration_s": 0.5},
}


def test_the_order_of_trials_of_a_process_is_what_it_was() -> None:
    """The order is drawn from a text; that of runs before there were hostings is the same."""
    plain, hosted = (
        group_points(expand(override(QUICK, scenario="loopback", hosting=name)))[0] for name in ("process", "separate")
    )
    orders = [
        [[(step.point.direction, step.point.frame_size_bytes) for step in rounds.next(group.points)] for _ in range(5)]
        for group in (plain, hosted)
        for rounds in (Rounds(group, 1),)
    ]
    assert orders[0] != orders[1]


def test_it_takes_longer() -> None:
    def seconds(hosting: str) -> float:
        plan = override(QUICK, scenario="loopback", chain_length="2", hosting=hosting)
        return estimate(plan, expand(plan))

    assert seconds("process") < seconds("separate") < seconds("container") < seconds("vm")


def test_a_switch_without_vhost_user_ports_for_vnfs_is_told_as_not_supported() -> None:
    plan = override(QUICK, scenario="loopback", switch="linux-bridge,testpmd", wire="veth", hosting="container")
    points = expand(plan)
    adapters = {name: get_adapter(name) for name in ("linux-bridge", "testpmd")}
    found = refusals(plan, points, adapters, hugepages=False)
    (why,) = {why for point, why in found.items() if point.switch == "linux-bridge"}
    assert why == "not supported: linux-bridge connects VNFs by veth, but VMs and containers need vhost-user"


def test_a_hosting_that_is_not_installed_is_reported_before_anything_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(HOSTINGS["container"]), "find", lambda _: NotFound("apt-get install bubblewrap"))
    held = survey(QUICK, {"switch": "testpmd", "scenario": "loopback", "hosting": "container"})
    sentence = 'hosting "container" is not installed; to install: apt-get install bubblewrap'
    assert sentence in held.missing
    with pytest.raises(NotInstalledError, match=sentence):
        held.required()
    assert sentence not in survey(QUICK, {"switch": "testpmd", "scenario": "loopback"}).missing


def in_hostings(*hostings: str) -> Plan:
    plan = override(QUICK, switch="sim", scenario="loopback", frame_size="64", hosting=",".join(hostings))
    return replace(plan, missing_hostings="skip")


def test_a_hosting_that_may_be_missing_is_skipped_and_it_is_said_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(HOSTINGS["container"]), "find", lambda _: NotFound("apt-get install bubblewrap"))
    held = survey(in_hostings("process", "container"))
    assert {point.hosting for point in held.required().measured} == {"process"}
    assert "hosting container is not installed; to install: apt-get install bubblewrap" in held.absent.values()


@pytest.mark.parametrize("why", ["/dev/kvm does not exist", ""])
def test_vms_that_would_be_emulated_are_skipped_and_those_asked_for_are_not(
    monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    monkeypatch.setattr(type(HOSTINGS["vm"]), "find", lambda _: Found("7.2", Path("/bin/true")))
    monkeypatch.setattr("planebench.measure.survey.kvm_failure", lambda *_: why)
    plan = in_hostings("process", "vm")
    held = survey(plan)
    assert {point.hosting for point in held.measured} == {"process", *(() if why else ("vm",))}
    assert all(text.startswith("hosting vm would be emulated") for text in held.absent.values())
    assert all(why in text for text in held.absent.values()) and bool(held.absent) == bool(why)
    assert not survey(plan, {"hosting": "process,vm"}).absent
