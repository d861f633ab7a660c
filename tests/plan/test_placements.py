# SPDX-License-Identifier: BSD-3-Clause
"""Placements as a dimension of a plan: points, topologies, parts, options, and what a machine cannot have."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from planebench.cli.lists import show_plan
from planebench.host.facts import HostFacts
from planebench.measure.survey import survey
from planebench.model.errors import UsageError
from planebench.plan.expand import expand
from planebench.plan.override import override
from planebench.plan.passes import group_points
from planebench.plan.schema import load_plan, plan_from_document

QUICK = override(load_plan("quick"), frame_size="64", direction="unidirectional", loads="none", switch="planed")
SERVER = """<topology><object type="Machine">{packages}</object></topology>"""


def server(folder: Path, packages: int, cores: int) -> str:
    """Write the XML of hwloc of a server; return its path."""
    text = ""
    for package in range(packages):
        inside = "".join(
            f'<object type="Core"><object type="PU" os_index="{cpu}" complete_nodeset="{1 << package:#x}"/></object>'
            for cpu in range(package * cores, (package + 1) * cores)
        )
        node = f'<object type="NUMANode" os_index="{package}"/>'
        text += f'<object type="Package" os_index="{package}">{node}{inside}</object>'
    file = folder / "server.xml"
    file.write_text(SERVER.format(packages=text))
    return str(file)


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


def test_plan_show_places_the_points_on_another_machine(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = {
        "switch": "planed", "scenario": "loopback", "chain_length": "2", "hosting": "separate", "placement": ALL,
        "frame_size": "64", "direction": "unidirectional",
    }  # fmt: skip
    show_plan("quick", options, False, None, server(tmp_path, 2, 8))
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("CPUs of")]
    assert lines == [
        "CPUs of loopback-2 in processes: switch 15 (node 1); tester 8, 11 (node 1); VNFs 9, 10 (node 1); "
        "other threads 0-7,12-14",
        "CPUs of loopback-2 in processes, placed random: switch 15 (node 1); tester 8, 9 (node 1); VNFs all on CPU "
        "1-7,10-14; other threads 0",
        "CPUs of loopback-2 in processes, placed far: switch 15 (node 1); tester 8, 9 (node 1); VNFs 1, 2 (node 0); "
        "other threads 0,3-7,10-14",
        "CPUs of loopback-2 in processes, placed split:1: switch 15 (node 1); tester 8, 10 (node 1); VNFs 9 (node 1), "
        "1 (node 0); other threads 0,2-7,11-14",
    ]
    show_plan("quick", {**options, "tester": "other-node"}, True, None, server(tmp_path, 2, 8))
    rows = json.loads(capsys.readouterr().out)["placements"]
    first = rows[0]
    assert (first["placement"], first["switch_cpus"], first["tester_cpus"][:1]) == ("near", [15], [1])
    assert rows[0]["numa_node"]["1"] == 0 and rows[0]["numa_node"]["15"] == 1
