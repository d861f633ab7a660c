# SPDX-License-Identifier: BSD-3-Clause
"""VNFs side by side: the topology, where everything runs, and the documents that follow from it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from planebench.measure.hosted import control_planes
from planebench.model.cpus import Cpus
from planebench.model.errors import UsageError
from planebench.model.scenarios import Flow, all_flows, build, flows
from planebench.model.topology import MONITOR_MAC
from planebench.testbed.chain import build_chain
from planebench.testbed.placement import off_the_switch, place
from planebench.testbed.request import LinkSettings
from planebench.testbed.tester_config import (
    assign_tasks,
    full_stage,
    switch_request,
    tester_tasks,
    vnf_documents,
    wire_stage,
)

ROUTER = "l3fwd:fib=cuckoo:synthetic=1000"
TWO = Cpus((0, 1))
LINKS = LinkSettings(Path("/run/x"), name="pb-abcdefgh-t1-planed", nice=-20)


def test_each_vnf_has_one_port_a_mac_of_its_own_and_no_cross_connect() -> None:
    topology = build("parallel", 63)
    assert (len(topology.vnfs), len(topology.ports), topology.cross_connects) == (63, 65, ())
    assert topology.wire_ports == ("n0", "n1")
    assert topology.vnf_ports == tuple(f"v{k}" for k in range(63))
    assert len({vnf.mac for vnf in topology.vnfs}) == 63
    assert {vnf.kind for vnf in topology.vnfs} == {"l2fwd"}


def test_a_synthetic_fib_is_known_to_the_topology() -> None:
    topology = build_chain("parallel", 2, chain=ROUTER)
    assert [(vnf.kind, vnf.routes) for vnf in topology.vnfs] == [("l3fwd", 1000)] * 2


@pytest.mark.parametrize(
    ("count", "chain", "words"),
    [
        (64, "", "1..63"),
        (0, "", "1..63"),
        (2, "firewall", "firewall needs two ports"),
        (2, "l2fwd,l2fwd", "the same function"),
    ],
)
def test_what_cannot_be_built_is_told(count: int, chain: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        build_chain("parallel", count, chain=chain)


def test_everything_goes_one_way() -> None:
    topology = build("parallel", 3)
    assert all_flows(topology) == flows(topology, "unidirectional") == (Flow("n0", "n1", 0),)
    assert len(all_flows(build("p2p"))) == 2


def test_processes_share_the_core_of_the_switch_not_that_of_the_tester() -> None:
    assert place(TWO, 3).vnf_cpus == (0, 0, 0)
    placement = place(TWO, 3, hosted=range(3))
    assert (placement.switch_cpu, placement.tester_cpus, placement.vnf_cpus) == (1, (0,), (1, 1, 1))
    assert set(place(Cpus(tuple(range(8))), 3, hosted=range(3)).vnf_cpus).isdisjoint({7, 0})


def test_the_tester_has_the_wires_and_their_tasks_only() -> None:
    topology = build("parallel", 63)
    placement = place(TWO, 63, hosted=range(63))
    assert [task.name for task in tester_tasks(topology)] == ["mon-n0", "mon-n1", "gen-n0", "gen-n1"]
    document = full_stage(topology, assign_tasks(placement, topology), LINKS).to_json()
    assert [port["name"] for port in document["ports"]] == ["n0", "n1"]
    pair = full_stage(build("p2p"), assign_tasks(place(TWO), build("p2p")), LINKS).to_json()
    assert document["memory"] == pair["memory"]
    assert wire_stage(topology, LINKS).to_json()["memory"] == document["memory"]


def test_a_vnf_whose_forwarding_the_switch_has_is_a_control_plane_that_sleeps_beside_it() -> None:
    topology = build_chain("parallel", 2, chain=ROUTER)
    placement = off_the_switch(place(TWO, 2, hosted=range(2)), 2)
    assert placement.vnf_cpus == (0, 0)
    (first, _) = vnf_documents(topology, placement, replace(LINKS, controls="alive"))
    assert first is not None
    document = first.to_json()
    (port,), (task,), (worker,) = document["ports"], document["tasks"], document["workers"]
    assert (port["kind"], port["path"], port["mac"]) == ("virtio-user", "/run/x/v0/sock", topology.vnfs[0].mac)
    assert task["kind"] == "fib_source"
    assert task["settings"] == {"routes": 1000, "wire": 1, "mac": MONITOR_MAC, "address": "198.18.4.1"}
    assert worker == {"name": "w-vnf0", "cpu": 0, "tasks": ["vnf0"], "idle": "nap"}
    assert document["nice"] == 0


def test_beside_bare_metal_as_many_are_idle() -> None:
    bare = build_chain("bare", 3, chain=ROUTER)
    placement = off_the_switch(place(TWO), 3)
    documents = vnf_documents(control_planes(bare), placement, replace(LINKS, controls="idle"))
    assert [it.to_json()["ports"][0]["device"] for it in documents if it is not None] == ["net_null0,no-rx=1"] * 3


def test_control_planes_have_cores_that_the_switch_does_not_have() -> None:
    many = place(Cpus(tuple(range(8))), 3, hosted=range(3))
    assert off_the_switch(many, 3).vnf_cpus == many.vnf_cpus
    few = off_the_switch(place(Cpus(tuple(range(4))), 5, hosted=range(5)), 5)
    assert few.switch_cpu not in few.vnf_cpus and len(few.vnf_cpus) == 5


def test_a_vnf_is_a_small_process() -> None:
    topology = build_chain("parallel", 63, chain=ROUTER)
    documents = [
        it.to_json() for it in vnf_documents(topology, place(TWO, 63, hosted=range(63)), LINKS) if it is not None
    ]
    assert len({document["name"] for document in documents}) == 63
    assert max(len(document["name"]) for document in documents) <= 31
    last = documents[62]
    assert last["ports"] == [
        {"name": "v62", "kind": "virtio-user", "path": "/run/x/v62/sock", "ring_size": 256, "mac": "02:00:00:00:02:3f"}
    ]
    assert last["tasks"][0]["peer_macs"] == [MONITOR_MAC, MONITOR_MAC]
    assert last["tasks"][0]["settings"] == {"fib": "cuckoo", "synthetic": 1000}
    assert last["workers"] == [{"name": "w-vnf62", "cpu": 1, "tasks": ["vnf62"]}]
    assert last["memory"]["mbuf_count"] < 1024


def test_the_switch_is_asked_for_stations() -> None:
    topology = build_chain("parallel", 2, chain=ROUTER)
    request = switch_request(topology, place(TWO, 2, hosted=range(2)), LINKS)
    assert [(s.port, s.mac, s.routes) for s in request.stations] == [
        ("v0", "02:00:00:00:02:01", 1000),
        ("v1", "02:00:00:00:02:02", 1000),
    ]
    assert (request.monitor_mac, request.cross_connects) == (MONITOR_MAC, ())
    assert not switch_request(build("p2p"), place(TWO), LINKS).stations
