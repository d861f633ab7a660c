# SPDX-License-Identifier: BSD-3-Clause
from __future__ import annotations

import json
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from planebench.host.planed_program import find_planed
from planebench.measure.live import LiveSettings, link_settings
from planebench.model.cpus import Cpus
from planebench.model.scenarios import build
from planebench.model.topology import Topology
from planebench.planed.document import Document, Memory, Port, Worker
from planebench.switches.registry import get_adapter
from planebench.testbed.chain import build_chain
from planebench.testbed.placement import place
from planebench.testbed.request import Ends, LinkSettings, memory
from planebench.testbed.tester_config import KERNEL_GAP_NS, assign_tasks, full_stage, switch_request, wire_stage
from planebench.testbed.wires.netmap import vale_ports

VIRTIO = LinkSettings(Path("/run/pb/x"))
VETH = LinkSettings(Path("/run/pb/x"), wire="veth", ends={"n0": Ends("pbt0", "pbs0"), "n1": Ends("pbt1", "pbs1")})
NETMAP = replace(VIRTIO, wire="netmap", vnf_interface="netmap")
TOPOLOGIES = [
    build("p2p"),
    build("p2v"),
    build("v2v"),
    build("v2v", echo=True),
    build("loopback", 1),
    build("loopback", 5),
]


def full(topology: Topology, links: LinkSettings = VIRTIO, cpus: int = 4) -> dict[str, Any]:
    placement = place(Cpus(tuple(range(cpus))), len(topology.vnfs))
    return full_stage(topology, assign_tasks(placement, topology), links).to_json()


def test_p2v_on_two_cores_whole() -> None:
    assert full(build("p2v"), cpus=2) == {
        "version": 1,
        "name": "tester",
        "memory": {"hugepages": False, "size_mb": 128, "mbuf_count": 4095, "mbuf_data_bytes": 2176},
        "ports": [
            {"name": "n0", "kind": "vhost-user", "path": "/run/pb/x/n0/sock", "ring_size": 256},
            {"name": "v0", "kind": "virtio-user", "path": "/run/pb/x/v0/sock", "ring_size": 256},
        ],
        "tasks": [
            {"name": "mon-n0", "kind": "monitor", "ports": ["n0"]},
            {"name": "mon-v0", "kind": "monitor", "ports": ["v0"]},
            {"name": "gen-n0", "kind": "generator", "ports": ["n0"], "stream": 0},
            {"name": "gen-v0", "kind": "generator", "ports": ["v0"], "stream": 1},
        ],
        "workers": [{"name": "w0", "cpu": 0, "tasks": ["mon-n0", "mon-v0", "gen-n0", "gen-v0"]}],
    }


@pytest.mark.parametrize("topology", TOPOLOGIES)
@pytest.mark.parametrize("links", [VIRTIO, VETH])
def test_first_stage_is_the_second_without_what_needs_the_switch(topology: Topology, links: LinkSettings) -> None:
    first, second = wire_stage(topology, links).to_json(), full(topology, links)
    assert (first["memory"], first["name"]) == (second["memory"], second["name"])  # config.apply must not change them
    assert first["tasks"] == first["workers"] == []
    assert [port["name"] for port in first["ports"]] == list(topology.wire_ports)
    assert [port for port in second["ports"] if port["name"] in topology.wire_ports] == first["ports"]


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_both_sides_of_a_port_fit_each_other(topology: Topology) -> None:
    placement = place(Cpus((0, 1)))
    request = switch_request(topology, placement, VIRTIO)
    tester = {port["name"]: port for port in full(topology)["ports"]}
    other = {"virtio-user": "vhost-user", "vhost-user": "virtio-user"}
    assert [port.name for port in request.ports] == list(tester)
    for port in request.ports:
        assert str(port.path) == tester[port.name]["path"]
        assert other[port.kind] == tester[port.name]["kind"]
        assert port.ring_size == tester[port.name]["ring_size"]
    assert request.cross_connects == topology.cross_connects
    assert (request.cpu, request.control_cpus, request.workdir) == (1, frozenset({0}), VIRTIO.workdir)


def test_where_the_switch_listens_the_tester_connects_once_it_is_up() -> None:
    topology, links = build("loopback", 1), LinkSettings(Path("/run/pb/x"), wire="vhost")
    early = wire_stage(topology, links).to_json()
    assert (early["ports"], early["memory"]) == ([], full(topology, links)["memory"])
    assert {port["kind"] for port in full(topology, links)["ports"]} == {"virtio-user"}
    request = switch_request(topology, place(Cpus((0, 1))), links)
    assert {port.kind for port in request.ports} == {"vhost-user"}
    assert [port.name for port in request.ports if port.of_vnf] == ["v0", "v1"]


def test_of_a_memif_the_tester_is_the_server_and_receives_where_the_switch_sends() -> None:
    links = LinkSettings(Path("/run/pb/x"), wire="memif", memif_receive_queue=1)
    document = full(build("p2v"), links)
    wire = {"name": "n0", "ring_size": 256, "kind": "memif-server", "path": "/run/pb/x/n0/sock", "queues": 2}
    assert document["ports"][0] == wire
    assert document["ports"][1]["kind"] == "virtio-user" and "queues" not in document["ports"][1]
    assert [task.get("queue", 0) for task in document["tasks"]] == [1, 0, 0, 0], "only the monitor of the wire"
    usual = full(build("p2v"), LinkSettings(Path("/run/pb/x"), wire="memif"))
    assert not any("queue" in task for task in usual["tasks"]) and "queues" not in usual["ports"][0]
    switch = switch_request(build("p2p"), place(Cpus((0, 1))), links).ports[0]
    assert (switch.kind, switch.path) == ("memif", Path("/run/pb/x/n0/sock"))


def test_veth_ports_use_the_two_ends_of_the_pair() -> None:
    topology = build("p2v")
    n0, v0 = full(topology, VETH)["ports"]
    assert n0["kind"] == "ethdev" and n0["device"].startswith("net_af_packet_n0,iface=pbt0,")
    assert v0["kind"] == "virtio-user"
    request = switch_request(topology, place(Cpus((0, 1))), VETH, netns_pid=77)
    assert (request.ports[0].kind, request.ports[0].interface) == ("af_packet", "pbs0")
    assert (request.ports[1].kind, request.netns_pid) == ("vhost-user", 77)


@pytest.mark.parametrize("max_frame", [1518, 9000])
@pytest.mark.parametrize("ring_size", [64, 256, 1024])
def test_af_packet_ring_is_one_the_kernel_takes(max_frame: int, ring_size: int) -> None:
    links = LinkSettings(
        Path("/x"), wire="veth", ring_size=ring_size, max_frame_bytes=max_frame, ends={"n0": Ends("a", "b")}
    )
    device = full(build("p2v"), links)["ports"][0]["device"]
    block, frame, count = (int(re.search(rf"{key}=(\d+)", device)[1]) for key in ("blocksz", "framesz", "framecnt"))  # type: ignore[index]
    assert block % 4096 == 0 and frame % 16 == 0  # PAGE_SIZE, TPACKET_ALIGNMENT
    assert block % frame == 0 and count % (block // frame) == 0
    assert frame >= max_frame + 66  # TPACKET2_HDRLEN and the reserved head
    assert count >= ring_size


def test_memory_grows_with_what_it_must_hold() -> None:
    small = memory(rings=[256] * 2, max_frame_bytes=1518, hugepages=False)
    chain = memory(rings=[256] * 12, max_frame_bytes=1518, hugepages=False)
    jumbo = memory(rings=[256] * 12, max_frame_bytes=9000, hugepages=True)
    assert small.mbuf_count < chain.mbuf_count == jumbo.mbuf_count
    assert small.size_mb <= chain.size_mb < jumbo.size_mb
    assert chain.mbuf_count >= 2 * 256 * 12
    for one in (small, chain, jumbo):
        assert one.mbuf_count & (one.mbuf_count + 1) == 0
        assert one.size_mb * 2**20 > one.mbuf_count * one.mbuf_data_bytes
    assert jumbo.mbuf_data_bytes >= 9000 + 128 and jumbo.hugepages


@pytest.mark.dataplane
@pytest.mark.parametrize("topology", TOPOLOGIES)
@pytest.mark.parametrize("links", [VIRTIO, VETH, NETMAP])
@pytest.mark.parametrize("stage", ["wire", "full"])
def test_planed_takes_the_document(topology: Topology, links: LinkSettings, stage: str, tmp_path: Path) -> None:
    planed = find_planed()
    if planed is None or not shutil.which(str(planed)):
        pytest.skip("planed is not built: make setup")
    ends = {**links.ends, **(vale_ports(topology.cross_connects) if links.wire == "netmap" else {})}
    links = replace(links, workdir=tmp_path, ends=ends)
    links.make_folders(port.name for port in topology.ports)  # planed asks for them
    document = wire_stage(topology, links).to_json() if stage == "wire" else full(topology, links, cpus=2)
    path = tmp_path / "tester.json"
    path.write_text(json.dumps(document))
    check = subprocess.run([planed, "--check", path], capture_output=True, text=True, check=False)
    assert check.returncode == 0, check.stderr


def test_a_chain_by_name_has_its_kinds_and_settings(tmp_path: Path) -> None:
    rules = tmp_path / "rules"
    rules.write_text("permit ip from any to any\n" * 10_000)
    plain, named = (
        full(build_chain("loopback", 3, chain=chain))
        for chain in ("", f"firewall:rules={rules},nat44:sessions_max=9,l2fwd")
    )
    vnfs = [task for task in named["tasks"] if task["name"].startswith("vnf")]
    assert vnfs == [
        {"name": "vnf0", "kind": "firewall", "ports": ["v0", "v1"], "settings": {"rules_file": str(rules)}},
        {"name": "vnf1", "kind": "nat44", "ports": ["v2", "v3"], "settings": {"sessions_max": 9}},
        {"name": "vnf2", "kind": "l2fwd", "ports": ["v4", "v5"]},
    ]
    assert (named["ports"], named["workers"]) == (plain["ports"], plain["workers"])
    assert named["memory"]["size_mb"] > plain["memory"]["size_mb"] + 500
    assert {**named["memory"], "size_mb": 0} == {**plain["memory"], "size_mb": 0}


def test_a_document_has_only_keys_that_planed_knows() -> None:
    """By the table of keys in planed, an object of a document that has every one of its own."""
    port = Port("p", "vhost-user", 256, 2, Path("p"), "d", "planed", "m", "c", True, True, 1)
    document: Any = Document(
        "x", Memory(True, 64, 64, 2048), (port,), (), (Worker("w", 0, (), "sleep", 50, 20_000),)
    ).to_json()
    objects = {
        "memory_fields": document["memory"],
        "port_fields": document["ports"][0],
        "worker_fields": document["workers"][0],
    }
    source = (Path(__file__).parents[2] / "dataplane/runtime/config.c").read_text(encoding="utf-8")
    for table, whole in objects.items():
        keys = re.findall(r'(?:\.key = |_FIELD\()"(\w+)"', source.split(f"{table}[] = {{")[1].split("};")[0])
        assert set(whole) <= set(keys), table


def test_the_switch_knows_the_memory_that_a_vnf_was_given() -> None:
    topology = build_chain("loopback", 3, chain="l2fwd,container:l2fwd:memory_mb=99,container:l2fwd")
    request = switch_request(topology, place(Cpus(tuple(range(8))), 3), VIRTIO)
    assert {port.name: port.vnf_memory_mb for port in request.ports if port.of_vnf} == {
        port: 99 if port in topology.vnfs[1].ports else None for port in topology.vnf_ports
    }


@pytest.mark.parametrize(("own", "wires"), [("fastclick", 4096), ("ovs-dpdk", 2048), ("vpp", 1024)])
def test_wires_have_the_ring_of_a_nic_and_vnfs_their_own(own: str, wires: int) -> None:
    settings = LiveSettings(Path("planed"), 256, False, 1518, "vhost", wire_ring_size="own")
    topology = build("loopback", 1)
    links = link_settings(get_adapter(own), topology, settings, Path("/run/pb/x"))
    rings = {"n0": wires, "v0": 256, "v1": 256, "n1": wires}
    request, document = switch_request(topology, place(Cpus((0, 1))), links), full(topology, links)
    assert {port.name: port.ring_size for port in request.ports} == rings
    assert {port["name"]: port["ring_size"] for port in document["ports"]} == rings
    assert document["memory"]["mbuf_count"] >= 2 * sum(rings.values())
    same = link_settings(get_adapter(own), topology, replace(settings, wire_ring_size=None), Path("/run/pb/x"))
    assert {port["ring_size"] for port in full(topology, same)["ports"]} == {256}


@pytest.mark.parametrize(
    ("topology", "links", "gap_ns"),
    [
        (build("p2p"), VIRTIO, None),
        (build("p2p"), VETH, KERNEL_GAP_NS),
        (build("v2v"), VETH, None),
        (
            build("v2v"),
            replace(VETH, vnf_interface="veth", ends={"v0": Ends("a", "b"), "v1": Ends("c", "d")}),
            KERNEL_GAP_NS,
        ),
        (build("p2p"), replace(VETH, wire="netmap"), KERNEL_GAP_NS),
    ],
)
def test_system_calls_of_the_tester_are_no_gaps_of_its_polls(
    topology: Topology, links: LinkSettings, gap_ns: int | None
) -> None:
    """A burst to an interface of the kernel takes longer than a turn between rings may: 0.44 Mpps were told as 20."""
    document = full_stage(topology, assign_tasks(place(Cpus((0, 1))), topology), links)
    assert {worker.gap_threshold_ns for worker in document.workers} == {gap_ns}
