# SPDX-License-Identifier: BSD-3-Clause
"""Switches between the network and many VNFs: what they are told to do, and what is said of those that cannot."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from planebench.model.cpus import Cpus
from planebench.switches import planed
from planebench.switches.adapter import Situation, refusal_of
from planebench.switches.ovs import _memory_mb, flows_of
from planebench.switches.planed import PlanedAdapter, switch_document
from planebench.switches.registry import ADAPTERS, get_adapter
from planebench.testbed.chain import build_chain
from planebench.testbed.placement import place
from planebench.testbed.request import LinkSettings, SwitchRequest
from planebench.testbed.tester_config import assign_tasks, full_stage, switch_request, wire_stage

ROUTER = "l3fwd:fib=cuckoo:synthetic=1M"
OFFLOAD = {"offload": "fib"}


def request_of(count: int, wire: str = "virtio", chain: str = ROUTER) -> SwitchRequest:
    topology = build_chain("parallel", count, chain=chain)
    return switch_request(topology, place(Cpus((0, 1)), count, hosted=range(count)), LinkSettings(Path("/run/x"), wire))


@pytest.mark.parametrize(("options", "offload"), [({}, False), (OFFLOAD, True)])
def test_planed_is_one_task_with_every_port(options: dict[str, str], offload: bool) -> None:
    document = switch_document(request_of(63), "it", options).to_json()
    (task,) = document["tasks"]
    assert (task["kind"], len(task["ports"]), len(document["ports"])) == ("fib_offload", 65, 65)
    vnfs = task["settings"]["vnfs"]
    assert [vnf["vnf"] for vnf in vnfs] == list(range(1, 64))
    assert {vnf["offload"] for vnf in vnfs} == {offload}
    assert vnfs[62]["port"] == "v62" and vnfs[62]["mac"] == "02:00:00:00:02:3f"
    assert task["settings"]["wires"] == ["n0", "n1"]
    assert task["settings"]["routes4"] == (63_000_063 if offload else 1024)  # and the address of each
    assert document["workers"] == [{"name": document["workers"][0]["name"], "cpu": 1, "tasks": ["fib_offload"]}]


def test_the_fibs_are_loaded_where_the_switch_forwards_and_only_there() -> None:
    asked: list[tuple[str, dict[str, Any]]] = []
    assert planed.station_task(request_of(3, "vhost"), "fib").settings["wires"] == ["n0", "n1"]

    def call(method: str, params: dict[str, Any], **_: Any) -> dict[str, Any]:
        asked.append((method, params))
        return {}

    planed.load(call, request_of(3), None)
    assert asked == []
    planed.load(call, request_of(3), "fib")
    assert [method for method, _ in asked] == ["fib_offload.load_synthetic"] * 3
    assert [(params["vnf"], params["routes"]) for _, params in asked] == [(1, 10**6), (2, 10**6), (3, 10**6)]
    assert (asked[0][1]["wire"], asked[0][1]["mac"]) == ("n1", "02:00:00:00:03:01")


@pytest.mark.parametrize("wire", ["virtio", "vhost"])
def test_open_vswitch_finds_vnfs_by_mac_and_the_monitor_by_its(wire: str) -> None:
    assert flows_of(request_of(2, wire)) == [
        "in_port=1,dl_dst=02:00:00:00:02:01,actions=output:3",
        "in_port=1,dl_dst=02:00:00:00:02:02,actions=output:4",
        "dl_dst=02:00:00:00:03:01,actions=output:2",
    ]


def test_in_the_place_of_vnfs_without_routes_frames_are_reflected() -> None:
    request = request_of(2, chain="")
    vnfs: Any = planed.station_task(request, "fib").settings["vnfs"]
    assert [(vnf["offload"], vnf["reflect"]) for vnf in vnfs] == [(False, "02:00:00:00:03:01")] * 2
    planed.load(lambda *_, **__: pytest.fail("there is nothing to load"), request, "fib")


def test_open_vswitch_has_one_pool_for_many_ports() -> None:
    assert _memory_mb(request_of(63)) == _memory_mb(request_of(1)) < 3000


def test_the_two_ways_differ_in_the_manifest_by_name() -> None:
    ways = [PlanedAdapter(options).settings(request_of(8))["function"] for options in ({}, OFFLOAD)]
    assert "each forwards in a process of its own" in ways[0]
    assert "whose processes are control planes" in ways[1]
    assert all("8 VNFs" in way for way in ways)


def test_who_has_no_stations_says_so_and_who_has_is_asked() -> None:
    able = {name for name, it in ADAPTERS.items() if not refusal_of(it, Situation("parallel", "virtio", 8))}
    assert {"planed", "ovs-dpdk", "sim"} == able
    assert "several VNFs" in refusal_of(ADAPTERS["testpmd"], Situation("parallel", "virtio", 8))
    assert get_adapter("planed:offload=fib").offloads
    assert not get_adapter("planed").offloads


@pytest.mark.parametrize(
    ("options", "situation", "words"),
    [
        ("offload=fib", Situation("p2p", "virtio"), "in scenario p2p; remove offload"),
        ("offload=fib", Situation("parallel", "virtio", 2), ""),
        ("offload=fib", Situation("parallel", "virtio", 2, chain="l3fwd"), "routers"),
        ("workers=2", Situation("parallel", "virtio", 2, chain=ROUTER), "remove workers"),
        ("drop_one_in=9", Situation("parallel", "virtio", 2, chain=ROUTER), "remove drop_one_in"),
        ("offload=fib", Situation("parallel", "virtio", 2, chain=ROUTER), ""),
    ],
)
def test_planed_says_what_offloading_is_not_for(options: str, situation: Situation, words: str) -> None:
    refusal = refusal_of(get_adapter(f"planed:{options}"), situation)
    assert words in refusal if words else refusal == ""


def bare_request(count: int, chain: str = ROUTER) -> SwitchRequest:
    topology = build_chain("bare", count, chain=chain)
    return switch_request(topology, place(Cpus((0, 1)), 0), LinkSettings(Path("/run/x")))


@pytest.mark.parametrize("count", [1, 16, 63])
def test_bare_is_one_function_on_the_wires_with_the_sum_of_all_tables(count: int) -> None:
    document = switch_document(bare_request(count), "it").to_json()
    (task,) = document["tasks"]
    assert (task["kind"], task["ports"]) == ("l3fwd", ["n0", "n1"])
    assert task["settings"]["synthetic"] == count * 10**6
    assert [port["name"] for port in document["ports"]] == ["n0", "n1"]
    assert f"{count}000000 routes straight on the wires" in PlanedAdapter().settings(bare_request(count))["function"]


def test_open_vswitch_sends_frames_straight_back_in_the_place_of_l2_vnfs() -> None:
    assert flows_of(bare_request(2, "")) == [
        "in_port=1,dl_dst=02:00:00:00:02:01,actions=output:2",
        "in_port=1,dl_dst=02:00:00:00:02:02,actions=output:2",
    ]


@pytest.mark.parametrize(
    ("switch", "chain", "why"),
    [
        ("planed", ROUTER, ""),
        ("planed", "", ""),
        ("ovs-dpdk", "", ""),
        ("ovs-dpdk", ROUTER, "L2 functions"),
        ("testpmd", "", "bare has none"),
        ("planed:offload=fib", ROUTER, "remove offload"),
        ("planed:nic=veb", ROUTER, "remove nic"),
    ],
)
def test_who_can_be_in_the_place_of_vnfs(switch: str, chain: str, why: str) -> None:
    found = refusal_of(get_adapter(switch), Situation("bare", "virtio", 3, chain=chain))
    assert why in found and bool(found) == bool(why)


def test_an_emulated_nic_is_a_task_of_the_tester_on_one_wire() -> None:
    """63 virtual functions, which the VNFs connect to; what they send back leaves by the port by which it came."""
    topology, links = build_chain("parallel", 63, chain=ROUTER), LinkSettings(Path("/run/x"), wire="memif")
    placement = place(Cpus((0, 1)), 63, hosted=range(63))
    inside = get_adapter("planed:nic=veb").inside(switch_request(topology, placement, links))
    assert inside is not None and get_adapter("planed").inside(switch_request(topology, placement, links)) is None
    links = replace(links, inside=inside)
    workers = assign_tasks(placement, topology, inside=inside.tasks)
    whole, first = full_stage(topology, workers, links).to_json(), wire_stage(topology, links).to_json()
    assert [task["name"] for task in whole["tasks"]] == ["mon-n1", "veb", "gen-n0"]
    assert [task["ports"][:2] for task in whole["tasks"]] == [["n0"], ["nic", "vf0"], ["n0"]]
    assert [worker["cpu"] for worker in whole["workers"]] == [0], "none on the core of the VNFs"
    assert [port["name"] for port in first["ports"]] == ["n0"]
    assert len(whole["ports"]) == 65 and whole["ports"][64]["path"] == "/run/x/v62/sock"
    assert whole["memory"] == first["memory"]
    assert {vnf["port"] for vnf in whole["tasks"][1]["settings"]["vnfs"]} == {f"vf{n}" for n in range(63)}
