# SPDX-License-Identifier: BSD-3-Clause
"""Our own vhost-user data path between real processes: every frame is accounted for."""

from __future__ import annotations

import pytest
from planed_rig import CPU, Planed, ethdev, task
from vring_rig import FLAT_OUT, LAYOUTS, PACED, assert_conserved, both_ways, connect, join

from planebench.planed.client import RpcError

pytestmark = pytest.mark.dataplane


def test_every_frame_between_two_guests(planed: Planed, other: Planed) -> None:
    """With each layout of rings; the device's ports stay."""
    connect(planed, other, LAYOUTS[0])
    for number, layout in enumerate(LAYOUTS):
        if number:
            other.apply()
            join(planed, other, layout)
        for epoch, (frame_bytes, rate) in enumerate([(64, FLAT_OUT), (65, PACED), (1518, FLAT_OUT)], start=1):
            assert_conserved(planed, other, epoch, frame_bytes, **rate)


@pytest.mark.parametrize("queue_size", [64, 1024])
def test_rings_of_other_sizes(planed: Planed, other: Planed, queue_size: int) -> None:
    connect(planed, other, "packed_vq=0,mrg_rxbuf=1", queue_size=queue_size)
    assert_conserved(planed, other, **FLAT_OUT)


@pytest.mark.parametrize("backends", [("planed", "dpdk"), ("dpdk", "planed"), ("dpdk", "dpdk")])
def test_a_patch_with_mbufs_between(planed: Planed, other: Planed, backends: tuple[str, str]) -> None:
    connect(planed, other, "packed_vq=0,mrg_rxbuf=1", backends)
    for epoch, rate in enumerate((PACED, FLAT_OUT), start=1):
        assert_conserved(planed, other, epoch, **rate)


def test_a_fault_drops_its_share_between_two_guests(planed: Planed, other: Planed) -> None:
    connect(planed, other, "packed_vq=0,mrg_rxbuf=1")
    planed.apply(planed.wires, [task("sw", "patch", "a", "b", fault={"drop_one_in": 10})], cpu=CPU)
    both_ways(other, **PACED)
    middle = planed.settled()["sw"]
    there = other.settled()
    assert middle["rx_packets"] == sum(there[f"gen{index}"]["tx_packets"] for index in (0, 1))
    assert middle["drops"] == {"tx_full": 0, "fault": middle["rx_packets"] // 10}
    assert middle["tx_packets"] == sum(there[f"mon{index}"]["rx_packets"] for index in (0, 1))


def test_l2fwd_has_a_mac_address_there(planed: Planed, other: Planed) -> None:
    connect(planed, other, "packed_vq=0,mrg_rxbuf=1")
    macs = [port["mac"] for port in planed.call("ports.get")["ports"]]
    assert len(set(macs)) == 2 and all(mac.startswith("56:48:4f:53:") and int(mac[12:14], 16) >= 0x80 for mac in macs)
    planed.apply(planed.wires, [task("vnf", "l2fwd", "a", "b")], cpu=CPU)
    both_ways(other, **PACED)
    middle, there = planed.settled()["vnf"], other.settled()
    assert middle["rx_packets"] == middle["tx_packets"] == sum(there[f"mon{i}"]["rx_packets"] for i in (0, 1)) > 0


def test_a_port_keeps_its_back_end(planed: Planed, other: Planed) -> None:
    connect(planed, other, "packed_vq=0,mrg_rxbuf=1")
    changed = [{**wire, "backend": "dpdk"} for wire in planed.wires]
    with pytest.raises(RpcError, match="another kind, backend, path"):
        planed.apply(changed)


def test_a_socket_path_has_one_port(planed: Planed, other: Planed) -> None:
    """A port is not renamed while it runs: the refusal names the port that has the path, not another process."""
    connect(planed, other, "packed_vq=0,mrg_rxbuf=1")
    renamed = [{**wire, "name": f"{wire['name']}2"} for wire in planed.wires]
    with pytest.raises(RpcError, match="port a2: port a has its path or device; keep that name"):
        planed.apply(renamed)
    planed.apply()
    planed.apply(renamed)


def test_a_device_has_one_port(planed: Planed) -> None:
    planed.apply([ethdev("n", "net_null0,size=64")])
    with pytest.raises(RpcError, match="port m: port n has its path or device"):
        planed.apply([ethdev("m", "net_null0")])
