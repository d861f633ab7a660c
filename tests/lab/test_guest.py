# SPDX-License-Identifier: BSD-3-Clause
"""The short form of the lab, in one boot: the guest itself, and exact counts through two cables."""

from __future__ import annotations

from pathlib import Path

import pytest
from lab_rig import Lab, on

# QEMU 7.2 does not tell Linux's driver of e1000e that the link went down.
pytestmark = [pytest.mark.slow, pytest.mark.all, pytest.mark.timeout(900), on("vmxnet3")]


def test_exit_code_and_output_of_a_command_come_back(lab: Lab) -> None:
    done = lab.sh("echo out; echo err >&2; exit 3")
    assert (done.code, done.output) == (3, "out\nerr\n")
    assert lab.sh("head -c 300000 /dev/zero | tr '\\0' x").output == "x" * 300_000


def test_what_a_command_writes_stays_in_the_guest(lab: Lab) -> None:
    path = Path(__file__).with_name("written-in-the-lab")
    assert lab.sh(f"echo 1 > {path} && cat {path}").output == "1\n"
    assert not path.exists()


def test_the_guest_has_no_network_to_the_outside(lab: Lab) -> None:
    assert lab.sh("ip route; ip -6 route show default").output == ""


def test_each_nic_is_where_the_topology_says_and_alone_in_its_iommu_group(lab: Lab) -> None:
    for nic in lab.topology.nics:
        assert lab.driver(nic) == "vmxnet3"
        group = f"/sys/bus/pci/devices/{lab.address(nic)}/iommu_group/devices"
        assert lab.run("ls", group).output.split() == [lab.address(nic)]


def test_a_cable_ends_at_the_nics_that_the_topology_names_and_can_be_pulled(lab: Lab) -> None:
    interfaces = {nic: _interface(lab, nic) for nic in ("t0", "s0", "s1")}
    for interface in interfaces.values():
        assert lab.sh(f"ip link set {interface} up").code == 0
    _until_carrier(lab, interfaces["t0"], "1")
    _until_carrier(lab, interfaces["s0"], "1")
    assert _receives(lab, interfaces["t0"], interfaces["s0"])
    assert not _receives(lab, interfaces["t0"], interfaces["s1"])
    lab.set_link("t0", up=False)
    _until_carrier(lab, interfaces["t0"], "0")
    lab.set_link("t0", up=True)
    _until_carrier(lab, interfaces["t0"], "1")


def test_frames_cross_each_cable_once_intact_and_in_order(lab: Lab) -> None:
    lines = lab.cross_cables()
    assert len(lines) == 4
    for line in lines:
        assert line["sent"] == line["came"] > 0 and line["wrong"] == 0, line
    assert {lab.driver(nic) for nic in lab.topology.nics} == {"vmxnet3"}


def _interface(lab: Lab, nic: str) -> str:
    return lab.run("ls", f"/sys/bus/pci/devices/{lab.address(nic)}/net").output.strip()


def _until_carrier(lab: Lab, interface: str, wanted: str) -> None:
    path = f"/sys/class/net/{interface}/carrier"
    script = f"for _ in $(seq 300); do [ $(cat {path}) != {wanted} ] || exit 0; sleep 0.1; done; exit 1"
    assert lab.sh(script).code == 0, f"{interface} has no carrier {wanted}"


_SEND = """
import socket, sys
other = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x88B5))
other.bind((sys.argv[2], 0x88B5))
other.settimeout(3)
own = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
own.bind((sys.argv[1], 0))
own.send(b"\\xff" * 6 + bytes(6) + b"\\x88\\xb5" + b"lab".ljust(46, b"."))
other.recv(2048)
"""


def _receives(lab: Lab, sender: str, receiver: str) -> bool:
    return lab.run("/usr/bin/python3", "-c", _SEND, sender, receiver).code == 0
