# SPDX-License-Identifier: BSD-3-Clause
"""Generators and monitors of p2v and v2v in processes of their own: what the tester keeps, and what they get."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from planebench.measure.hosted import functional_reasons, hosted_requests
from planebench.model.cpus import Cpus
from planebench.model.records import Point
from planebench.plan.expand import expand, skipped
from planebench.plan.override import override
from planebench.plan.passes import group_points, latency_steps
from planebench.plan.schema import load_plan
from planebench.testbed.chain import build_chain
from planebench.testbed.placement import Placement, place
from planebench.testbed.request import LinkSettings
from planebench.testbed.tester_config import assign_tasks, full_stage, switch_request

TWO, EIGHT = Cpus((0, 1)), Cpus(tuple(range(8)))
LINKS = LinkSettings(Path("/run/x"), name="pb-t1")


def placement_of(topology: Any, cpus: Cpus) -> Placement:
    hosted, idle = topology.hosted_numbers, topology.idle_tester
    return place(cpus, len(topology.vnfs), hosted=hosted, idle_tester=idle)


@pytest.mark.parametrize(
    ("scenario", "own", "hosted"),
    [
        ("p2v", ["mon-n0", "gen-n0"], {"vnf0": [("mon-v0", None), ("gen-v0", 1)]}),
        ("v2v", [], {"vnf0": [("mon-v0", None), ("gen-v0", 0)], "vnf1": [("mon-v1", None), ("gen-v1", 1)]}),
    ],
)
def test_each_end_has_the_tasks_that_the_tester_has_of_others(scenario: str, own: list[str], hosted: Any) -> None:
    topology = build_chain(scenario, hosting="container")
    placement = placement_of(topology, EIGHT)
    tester = full_stage(topology, assign_tasks(placement, topology), LINKS)
    assert [task.name for task in tester.tasks] == own
    assert [port.name for port in tester.ports] == [port for port in topology.ends if port.startswith("n")]
    requests = hosted_requests(topology, placement, LINKS, Path("planed"))
    documents = {it.name: it.document for it in requests if it.document}
    assert {name: [(task.name, task.stream) for task in end.tasks] for name, end in documents.items()} == hosted
    assert [(len(request.ports), request.name) for request in requests] == [(1, name) for name in hosted]
    assert len({port.mac for request in requests for port in request.ports}) == len(requests)
    # The switch has the ports that it has with any other ends.
    request = switch_request(topology, placement, LINKS)
    assert request.ports == switch_request(build_chain(scenario), place(EIGHT), LINKS).ports


def test_generator_and_monitor_of_the_echo_are_in_one_vm_and_what_sends_back_in_the_other() -> None:
    usual = {"send_burst": 32, "drain_us": 100}
    topology = build_chain("v2v", hosting="vm", sending=usual, echo=True)
    placement = placement_of(topology, EIGHT)
    first, second = (it.document for it in hosted_requests(topology, placement, LINKS, Path("planed")))
    assert first is not None and second is not None
    assert [task.name for task in first.tasks] == ["mon-v0", "mon-v3", "gen-v0", "gen-v3"]
    assert [(it.name, it.kind, it.ports, it.sending) for it in second.tasks] == [("echo", "l2fwd", ("v1", "v2"), usual)]
    assert [[port.name for port in it.ports] for it in (first, second)] == [["v0", "v3"], ["v1", "v2"]]
    assert topology.idle_tester and not full_stage(topology, assign_tasks(placement, topology), LINKS).tasks


def test_a_shared_core_makes_trials_functional_and_other_scenarios_have_no_such_ends() -> None:
    topology = build_chain("p2v", hosting="container")
    assert functional_reasons(topology, placement_of(topology, TWO), ())
    assert not functional_reasons(topology, placement_of(topology, EIGHT), ())
    # In v2v the tester polls nothing, so its core is free for an end.
    both, three = build_chain("v2v", hosting="container"), Cpus((0, 1, 2))
    assert (placement_of(both, TWO).vnf_cpus, placement_of(both, TWO).switch_cpu) == ((0, 0), 1)
    assert functional_reasons(both, placement_of(both, TWO), ())
    assert sorted((*placement_of(both, three).vnf_cpus, placement_of(both, three).switch_cpu)) == [0, 1, 2]
    assert not functional_reasons(both, placement_of(both, three), ())
    assert not build_chain("p2p", hosting="container").vnfs
    assert not build_chain("loopback", 1, hosting="container").hosted_ends


def test_hosting_is_a_dimension_of_paths_with_an_end_in_a_vnf() -> None:
    plan = override(load_plan("quick"), switch="sim", hosting="process,vm", frame_size="64")
    points = expand(plan)
    labels = [point.scenario_label for point in points if point.direction == "unidirectional"]
    assert labels == ["p2p", "p2v", "p2v in VMs", "v2v", "v2v in VMs", "loopback-1", "loopback-1 in VMs"]
    assert [entry.what for entry in skipped(plan)] == ["latency of p2v in VMs"]
    for group in group_points(points):
        assert bool(latency_steps(plan, group)) == (group.points[0].scenario_label != "p2v in VMs")


def test_a_point_names_its_ends() -> None:
    point = Point("x", "v2v", "unidirectional", 0, 64, hosting="vm")
    assert (point.hosted, point.chain_label, point.scenario_slug) == ((0, 1), "ends in VMs", "v2v-vm")
    usual = Point("x", "v2v", "unidirectional", 0, 64)
    assert (usual.hosted, usual.chain_label, usual.named) == ((), "", False)
    assert Point("x", "p2v", "unidirectional", 0, 64, hosting="separate").hosted == (0,)
