# SPDX-License-Identifier: BSD-3-Clause
"""Several queue pairs and workers of the switches: command lines and configurations, without any of them running."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from planebench.model.errors import UsageError
from planebench.switches import bess, common, fastclick, ovs, snabb, t4p4s, testpmd, vale, vpp
from planebench.switches.adapter import Situation, refusal_of
from planebench.switches.registry import ADAPTERS, get_adapter
from planebench.testbed.request import SwitchPort, SwitchRequest

SEVERAL = {"bess", "fastclick", "ovs-dpdk", "planed", "t4p4s", "testpmd", "vpp"}


def request(wire: str = "virtio-user", *, queues: int = 2, cpus: tuple[int, ...] = (3, 4)) -> SwitchRequest:
    return SwitchRequest(
        ports=(
            SwitchPort("n0", wire, path=Path("/w/n0")),  # type: ignore[arg-type]
            SwitchPort("v0", "vhost-user", path=Path("/w/v0")),
        ),
        cross_connects=(("n0", "v0"),),
        cpu=cpus[0],
        control_cpus=frozenset({0}),
        workdir=Path("/w"),
        hugepages=False,
        queues=queues,
        more_cpus=cpus[1:],
    )


def test_testpmd_has_a_core_and_a_queue_pair_for_each_worker() -> None:
    arguments = testpmd._arguments(Path("/bin/t"), request(), common.paired_ports(request()), "pb-x")
    assert "--lcores=0@(0),1@3,2@4" in arguments and "--nb-cores=2" in arguments
    assert "--rxq=2" in arguments and "--txq=2" in arguments
    assert [it for it in arguments if it.startswith("--vdev=")] == [
        "--vdev=net_virtio_user0,path=/w/n0,queue_size=256,queues=2",
        "--vdev=net_vhost1,iface=/w/v0,queues=2",
    ]
    alone = testpmd._arguments(Path("/bin/t"), request(cpus=(3,)), common.paired_ports(request()), "pb-x")
    assert "--lcores=0@(0),1@3" in alone and "--nb-cores=1" in alone and "--rxq=2" in alone


def test_open_vswitch_has_a_pmd_thread_for_each_worker() -> None:
    commands = ovs.configuration(request(), "pb-x")
    assert "other_config:pmd-cpu-mask=0x18" in commands[0]
    settings = {command[2]: command for command in commands if command[:2] == ["set", "Interface"]}
    assert "options:n_rxq=2" in settings["n0"] and not any("n_rxq=" in text for text in settings["v0"])
    assert "options:dpdk-devargs=net_virtio_user1,path=/w/n0,queue_size=256,queues=2" in settings["n0"]
    one = ovs.configuration(request(queues=1), "pb-x")
    assert "other_config:pmd-cpu-mask=0x8" in one[0] and not any(
        "n_rxq=" in text for command in one for text in command
    )


def test_vpp_has_workers_and_queues_of_its_memifs() -> None:
    wanted = request("memif")
    paths = vpp.VppPaths(Path("/w"), "pb-x")
    assert "cpu { main-core 0 corelist-workers 3,4 }" in vpp.startup_conf(wanted, paths, Path("/p"))
    assert "create interface memif id 0 socket-id 1 slave ring-size 256 rx-queues 2 tx-queues 2" in vpp.commands(wanted)


def test_fastclick_has_a_thread_for_each_queue_of_every_port() -> None:
    wanted = request()
    graph = fastclick.ADAPTER.graph(wanted, common.paired_ports(wanted), Path("/w/c")).splitlines()
    assert graph[1:3] == [
        "n0_in :: FromDPDKDevice(0, N_QUEUES 2, MAXTHREADS 2, THREADOFFSET 0, MODE none, BURST 32, NDESC 256);",
        "n0_out :: ToDPDKDevice(0, N_QUEUES 2, BLOCKING false, IQUEUE 1024, NDESC 256);",
    ]
    assert "--lcores=0@3,1@4" in fastclick.ADAPTER.eal_arguments(wanted, common.paired_ports(wanted), "pb-x")


@pytest.mark.parametrize(("cpus", "second"), [((3, 4), "rr-q1"), ((3,), "rr")])
def test_bess_serves_each_queue_by_a_worker(cpus: tuple[int, ...], second: str) -> None:
    calls: list[tuple[str, Mapping[str, Any]]] = []
    client: Any = SimpleNamespace(call=lambda name, arguments=None: calls.append((name, arguments or {})))
    process: Any = SimpleNamespace(pid=1)
    bess.RunningBess(process, client, request("memif", cpus=cpus)).configure()
    assert [it["core"] for name, it in calls if name == "AddWorker"] == list(cpus)
    ports = [it for name, it in calls if name == "CreatePort"]
    assert [(it["num_inc_q"], it["num_out_q"]) for it in ports] == [(2, 2), (2, 2)]
    modules = [(it["name"], it["arg"]["qid"]) for name, it in calls if name == "CreateModule"]
    assert modules[:4] == [("in_n0", 0), ("in_n0-q1", 1), ("out_n0", 0), ("out_n0-q1", 1)]
    assert [(it["m1"], it["m2"]) for name, it in calls if name == "ConnectModules"] == [
        ("in_n0", "out_v0"),
        ("in_v0", "out_n0"),
        ("in_n0-q1", "out_v0-q1"),
        ("in_v0-q1", "out_n0-q1"),
    ]
    leaves = [(it["class"]["parent"], it["class"]["leaf_module_name"]) for n, it in calls if n == "UpdateTcParent"]
    assert leaves == [("rr", "in_n0"), ("rr", "in_v0"), (second, "in_n0-q1"), (second, "in_v0-q1")]


@pytest.mark.parametrize(("cpus", "second"), [((3, 4), "rr-q1"), ((3,), "rr"), ((3, 4, 5), "rr-q1")])
def test_bess_has_a_worker_for_each_hop_where_there_are_cores(cpus: tuple[int, ...], second: str) -> None:
    calls: list[tuple[str, Mapping[str, Any]]] = []
    client: Any = SimpleNamespace(call=lambda name, arguments=None: calls.append((name, arguments or {})))
    process: Any = SimpleNamespace(pid=1)
    ports = tuple(SwitchPort(name, "vhost-user", path=Path(f"/w/{name}")) for name in ("v0", "v1", "v2", "v3"))
    asked = replace(request(queues=1, cpus=cpus), ports=ports, cross_connects=(("v0", "v1"), ("v2", "v3")))
    bess.RunningBess(process, client, asked, by_hop=True).configure()
    assert [it["core"] for name, it in calls if name == "AddWorker"] == list(cpus[:2])
    leaves = [(it["class"]["parent"], it["class"]["leaf_module_name"]) for n, it in calls if n == "UpdateTcParent"]
    assert leaves == [("rr", "in_v0"), ("rr", "in_v1"), (second, "in_v2"), (second, "in_v3")]
    settings = bess.ADAPTER.with_options({"serve": "hops"}).settings(asked)
    assert settings["scheduling"] == "round robin over the hops of a worker"


def test_t4p4s_has_an_lcore_with_a_queue_of_every_port_for_each_worker() -> None:
    wanted = request("vhost-user")
    arguments = t4p4s.arguments(wanted, common.paired_ports(wanted), "pb-x")
    assert "--lcores=0@3,1@4" in arguments and "--vdev=net_vhost1,iface=/w/v0,queues=2" in arguments
    assert arguments[arguments.index("--config") + 1] == "(0,0,0),(0,1,1),(1,0,0),(1,1,1)"
    one = t4p4s.arguments(request("vhost-user", queues=1), common.paired_ports(wanted), "pb-x")
    assert "--lcores=0@3" in one and one[one.index("--config") + 1] == "(0,0,0),(1,0,0)"


@pytest.mark.parametrize("hugepages", [False, True])
def test_without_hugepages_memory_has_no_nodes_for_dpdk(hugepages: bool) -> None:
    wanted = replace(request(), hugepages=hugepages)
    ports = common.paired_ports(wanted)
    for arguments in (t4p4s.arguments(wanted, ports, "x"), testpmd._arguments(Path("/t"), wanted, ports, "x")):
        own = arguments[arguments.index("--") + 1 :]
        assert ("--no-numa" in own) is not hugepages


def chain(kind: str = "vhost-user", cpus: tuple[int, ...] = (3, 4)) -> SwitchRequest:
    """A request of three hops."""
    hops = (("n0", "v0"), ("v1", "v2"), ("v3", "n1"))
    ports = [
        SwitchPort(name, kind, path=Path(f"/w/{name}"), interface=f"{name}-switch")  # type: ignore[arg-type]
        for hop in hops
        for name in hop
    ]
    return replace(request(queues=1, cpus=cpus), ports=tuple(ports), cross_connects=hops)


def test_snabb_has_a_process_for_each_core_with_hops_in_turn() -> None:
    wanted = chain()
    assert snabb.script_arguments(wanted) == [
        ["n0=vhost:/w/n0", "v0=vhost:/w/v0", "v3=vhost:/w/v3", "n1=vhost:/w/n1", "n0-v0", "v3-n1"],
        ["v1=vhost:/w/v1", "v2=vhost:/w/v2", "v1-v2"],
    ]
    assert snabb.ADAPTER.settings(wanted)["cores"] == "3,4"
    alone = replace(wanted, more_cpus=())
    assert [words[-3:] for words in snabb.script_arguments(alone)] == [["n0-v0", "v1-v2", "v3-n1"]]
    more_cores_than_hops = replace(request(cpus=(3, 4)), queues=1)
    assert snabb.ADAPTER.settings(more_cores_than_hops)["cores"] == "3"


def test_a_switch_in_the_kernel_has_its_ports_on_its_cores_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("planebench.switches.kernel.has_core", lambda: True)
    for adapter in (vale.ADAPTER, ADAPTERS["linux-bridge"], ADAPTERS["xdp"]):
        for cpus, cores in (((3, 4), "3,4"), ((3,), "3")):
            wanted = replace(chain("af_packet", cpus), netns_pid=1)
            assert adapter.settings(wanted)["cores"] == cores


def test_a_switch_with_one_worker_says_so() -> None:
    assert {name for name, adapter in ADAPTERS.items() if adapter.has_workers} == SEVERAL
    for name, why in (("snabb", "a process has a whole"), ("vale", "a veth has one"), ("xdp", "a veth has one")):
        with pytest.raises(UsageError, match=f"{name} forwards with one queue pair per port: {why}.*; remove workers"):
            get_adapter(f"{name}:workers=2")
    two = Situation("v2v", "virtio", vnf_cores=2)
    assert refusal_of(ADAPTERS["snabb"], two) == "snabb has one queue pair per port; a VNF of 2 cores needs as many"
    assert not refusal_of(ADAPTERS["testpmd"], two)


def test_only_some_wires_have_several_queues() -> None:
    adapter = get_adapter("ovs-dpdk:workers=2")
    assert refusal_of(adapter, Situation("p2p", "memif")).endswith("several need --wire vhost, virtio")
    assert not refusal_of(adapter, Situation("v2v", "memif")), "no wire"
    assert refusal_of(get_adapter("planed"), Situation("loopback", "veth", 1, vnf_cores=2)) == (
        "planed has one queue pair on the veth wire; several need --wire memif, vhost, virtio"
    )


@pytest.mark.parametrize(
    ("switch", "vnf_cores", "cores", "refused"),
    [
        ("vpp:workers=2", 1, 1, True),
        ("vpp:workers=2", 1, 2, False),
        ("vpp:workers=2", 1, None, False),
        ("vpp", 2, 1, True),
        ("vpp", 1, 1, False),
        ("testpmd:workers=2", 1, 1, False),
        ("ovs-dpdk:workers=2", 1, 1, False),
    ],
)
def test_a_worker_that_sends_on_one_queue_has_no_second(
    switch: str, vnf_cores: int, cores: int | None, refused: bool
) -> None:
    """One worker of VPP sends what came on two queues on one ring: a half of the frames would be lost."""
    why = refusal_of(get_adapter(switch), Situation("p2v", "vhost", vnf_cores=vnf_cores, switch_cores=cores))
    assert why == (
        "a worker of vpp sends on one queue, so with 2 queues on 1 core frames are lost that it has no ring for; give "
        "--switch-cores 2, or one queue"
        if refused
        else ""
    )


def test_a_request_without_cores_for_all_workers_has_fewer_of_them() -> None:
    assert request().worker_cpus == (3, 4) and request(cpus=(3,)).worker_cpus == (3,)
    assert replace(request(), queues=1).worker_cpus == (3,)
