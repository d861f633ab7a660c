# SPDX-License-Identifier: BSD-3-Clause
"""Wire af_xdp: its arguments, its ports at both ends, and what it refuses."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from types import SimpleNamespace

import pytest

from planebench.host import interfaces
from planebench.host.interfaces import refusal
from planebench.model.errors import UsageError
from planebench.model.scenarios import build
from planebench.model.wire import parse_wire
from planebench.planed.document import Port
from planebench.switches import common, testpmd, vpp
from planebench.switches.planed import switch_document
from planebench.testbed.request import Ends, LinkSettings, SwitchPort, SwitchRequest
from planebench.testbed.tester_config import wire_stage
from planebench.testbed.wires.base import named_ends, wire_kind

PORTS = tuple(SwitchPort(name, "af_xdp", interface=f"{name}-switch", ring_size=2048) for name in ("n0", "n1"))
REQUEST = SwitchRequest(PORTS, (("n0", "n1"),), 1, frozenset({0}), Path("/run/pb/x"), hugepages=False)
LINKS = LinkSettings(
    Path("/run/pb/x"), wire="af_xdp", ends={name: Ends(f"{name}-tester", f"{name}-switch") for name in ("n0", "n1")}
)


def test_the_interfaces_of_the_user_replace_the_veth_pairs() -> None:
    assert wire_kind("af_xdp").makes_veth_pairs("")
    assert not wire_kind("af_xdp").makes_veth_pairs("eth0=eth1")
    assert named_ends(("n0", "n1"), "af_xdp:e0=e2,e1=e3") == {"n0": Ends("e0", "e2"), "n1": Ends("e1", "e3")}


@pytest.mark.parametrize("arguments", ["e0", "e0=", "=e0", "e0=e1,e2", "e0=e1,e0=e2", "e0=e2,e1=e2"])
def test_arguments_are_pairs_of_interfaces_each_named_once_at_its_side(arguments: str) -> None:
    with pytest.raises(UsageError, match=r"interface|named twice"):
        parse_wire(f"af_xdp:{arguments}")


@pytest.mark.parametrize("arguments", ["e0=e0", "e0=e1,e1=e2"])
def test_the_ends_may_have_the_same_names_on_two_hosts_only(arguments: str) -> None:
    parse_wire(f"af_xdp:{arguments}")
    assert wire_kind("af_xdp").devices(arguments, "tester") == [pair.split("=")[0] for pair in arguments.split(",")]
    with pytest.raises(UsageError, match="named twice"):
        wire_kind("af_xdp").devices(arguments, None)


def test_the_rings_of_both_ends_hold_as_much_as_the_driver_gives_the_kernel() -> None:
    stage = wire_stage(build("p2p"), LINKS)
    assert [(port.device, port.ring_size) for port in stage.ports] == [
        (f"net_af_xdp_{name},iface={name}-tester", 2048) for name in ("n0", "n1")
    ]
    assert stage.memory.mbuf_count >= 2 * 2 * 2048
    port = wire_kind("af_xdp").switch_port(SwitchPort("n0", "vhost-user"), "n0", LINKS)
    assert port == PORTS[0]
    far = wire_kind("af_xdp").planed_port(Port("b", "ethdev", 4096), "n0", LINKS, "switch")
    assert (far.device, far.ring_size) == ("net_af_xdp_b,iface=n0-switch", 4096)


def test_the_ports_of_the_switches() -> None:
    vdev = "net_af_xdp0,iface=n0-switch"
    assert common.devices(PORTS, REQUEST)[:2] == ["--no-pci", f"--vdev={vdev}"]
    assert f"--vdev={vdev}" in testpmd._arguments(Path("testpmd"), REQUEST, PORTS, "x")
    assert switch_document(REQUEST, "x").ports[0].device == vdev
    assert common.nic_driver(REQUEST) == "DPDK's AF_XDP"
    assert vpp.commands(REQUEST)[0] == (
        "create interface af_xdp host-if n0-switch name xdp-n0-switch rx-queue-size 2048 tx-queue-size 2048 "
        "num-rx-queues 1"
    )
    assert "test l2patch rx xdp-n0-switch tx xdp-n1-switch" in vpp.commands(REQUEST)


def test_interfaces_that_cannot_be_taken_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(socket, "socket", lambda *_: SimpleNamespace(close=lambda: None))
    monkeypatch.setattr(interfaces, "ssh_connection", lambda: None)
    for name, carrier in (("up", "1"), ("down", "0"), ("way", "1"), ("ssh", "1")):
        folder = tmp_path / "sys/class/net" / name
        folder.mkdir(parents=True)
        (folder / "operstate").write_text("up\n")
        (folder / "carrier").write_text(f"{carrier}\n")
    route = tmp_path / "proc/net/route"
    route.parent.mkdir(parents=True)
    columns = "Iface Destination Gateway Flags RefCnt Use Metric Mask MTU Window IRTT"
    route.write_text(
        "\t".join(columns.split()) + "\nway\t00000000\t01000A0A\t0003\t0\t0\t0\t00000000\t0\t0\t0\n"
        "ssh\t0000000A\t00000000\t0001\t0\t0\t0\t000000FF\t0\t0\t0\n"
    )
    assert refusal(["up"], tmp_path) == ""
    assert "interface none does not exist" in refusal(["up", "none"], tmp_path)
    assert "interface down is down or has no link" in refusal(["down"], tmp_path)
    assert "interface way carries the default route" in refusal(["way"], tmp_path)
    monkeypatch.setattr(interfaces, "ssh_connection", lambda: "10.0.0.2 1 10.0.0.1 22")
    assert "interface ssh carries the ssh connection" in refusal(["ssh"], tmp_path), "also where sudo hides it"


def test_without_root_nothing_is_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(UsageError, match="require root"), wire_kind("af_xdp").hold(""):
        pass
