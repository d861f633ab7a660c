# SPDX-License-Identifier: BSD-3-Clause
"""Placements as a dimension of a plan: points, topologies, parts, options, and what a machine cannot have."""

from __future__ import annotations

import pytest

from planebench.host.facts import HostFacts
from planebench.measure.survey import survey
from planebench.model.errors import UsageError
from planebench.plan.expand import expand
from planebench.plan.override import override
from planebench.plan.passes import group_points
from planebench.plan.schema import load_plan, plan_from_document

QUICK = override(load_plan("quick"), frame_size="64", direction="unidirectional", loads="none", switch="planed")
ALL = "near,random,far,split:1"


def test_each_placement_is_a_topology_of_its_own() -> None:
    plan = override(QUICK, scenario="p2p,loopback", chain_length="2", hosting="separate", placement=ALL)
    points = expand(plan)
    assert [(p.scenario_label, p.placement) for p in points] == [
        ("p2p", "near"),
        ("loopback-2 in processes", "near"),
        ("loopback-2 in processes, placed random", "random"),
        ("loopback-2 in processes, placed far", "far"),
        ("loopback-2 in processes, placed split:1", "split:1"),
    ]
    assert [group.first.placement for group in group_points(points)] == ["near", "near", "random", "far", "split:1"]
    assert len({point.point_id for point in points}) == len({point.scenario_slug for point in points}) == 5
    assert points[1].point_id == "planed/loopback-2/unidirectional/64/virtio/separate"
    assert points[-1].point_id.endswith("/virtio/separate/plain/split:1")


def test_placements_in_a_plan_file_and_in_its_parts() -> None:
    document = {
        "version": 1, "name": "p", "switches": ["planed"], "scenarios": ["parallel"], "frame_sizes_bytes": [64],
        "throughput": {"duration_s": 0.1, "repetitions": 1}, "latency": {"loads": [], "duration_s": 0.1},
        "tester": "other-node", "parts": [{"name": "a"}, {"name": "b", "placements": ["far", "far"]}],
    }  # fmt: skip
    plan = plan_from_document(document, "p")
    assert (plan.placements, plan.tester) == (("near", "far"), "other-node")
    assert [part.placements for part in plan.parts] == [("near",), ("far",)]
    assert [point.placement for point in expand(override(plan, placement="far"))] == ["far"]
    for key, value in (("placements", ["remote"]), ("placements", []), ("tester", "far")):
        with pytest.raises(UsageError, match=key.removesuffix("s")):
            plan_from_document({**document, key: value}, "p")
    with pytest.raises(UsageError, match='--placement: placement "split:0" is not valid'):
        override(QUICK, placement="split:0")


def test_what_a_machine_cannot_have_is_left_out_with_the_reason() -> None:
    options = {"scenario": "loopback", "chain_length": "1,2", "hosting": "process,separate", "placement": ALL}
    one_node = HostFacts(cpus_online=tuple(range(8)), cpus_allowed=tuple(range(8)))
    held = survey(QUICK, options, facts=one_node)
    assert {(p.chain_length, p.hosting, p.placement) for p in held.measured} == {
        *((n, hosting, "near") for n in (1, 2) for hosting in ("process", "separate")),
        *((n, "separate", "random") for n in (1, 2)),
    }
    reasons = set(held.absent.values())
    assert any("add --hosting separate" in reason for reason in reasons)
    assert any("needs CPUs on two NUMA nodes" in reason for reason in reasons)
    assert any("placement split:1 needs 2 VNFs or more, here are 1" in reason for reason in reasons)
    with pytest.raises(UsageError, match="tester other-node needs CPUs on two NUMA nodes"):
        survey(QUICK, {"tester": "other-node"}, facts=one_node)


@pytest.mark.parametrize(
    ("suite", "placed"), [("ic16", {"near", "random", "far"}), ("can17", {"near", "split:1", "split:2"})]
)
def test_the_suites_have_the_placements_of_their_papers(suite: str, placed: set[str]) -> None:
    assert set(load_plan(suite).placements) == placed
