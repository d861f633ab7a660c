# SPDX-License-Identifier: BSD-3-Clause
"""ports.get: what driver and device have really negotiated, by both of our back ends and between ours and DPDK's."""

from __future__ import annotations

import pytest
from planed_rig import Document, Planed, ethdev, until, vhost, virtio
from vring_rig import LAYOUTS, connect, join

pytestmark = pytest.mark.dataplane
NAMES = {"packed_vq": "packed", "mrg_rxbuf": "mrg_rxbuf", "in_order": "in_order"}


def ports(planed: Planed) -> Document:
    return {port["name"]: port for port in planed.call("ports.get")["ports"]}


def asked(layout: str) -> set[str]:
    return {NAMES[key] for key, value in (part.split("=") for part in layout.split(",")) if value == "1"}


@pytest.mark.parametrize("backend", ["planed", "dpdk"])
def test_what_a_driver_asks_for_is_what_the_device_says(planed: Planed, other: Planed, backend: str) -> None:
    for number, layout in enumerate((LAYOUTS[0], LAYOUTS[-1], LAYOUTS[3])):
        if number:
            other.apply()
            join(planed, other, layout, 128)
        else:
            connect(planed, other, layout, (backend, backend), 128)
        for port in ports(planed).values():
            features = set(port["virtio"]["features"])
            assert {"version_1"} | asked(layout) == features & {"version_1", *NAMES.values()}
            assert not features & {"csum", "guest_csum", "host_tso4", "guest_tso4"}
            assert port["virtio"]["ring_sizes"] == [128, 128]
            assert (port["queues"], port["driver"]) == (1, "planed" if backend == "planed" else "net_vhost")
    assert all(port["virtio"] is None for port in ports(other).values()), "DPDK's virtio-user driver does not say"


@pytest.mark.parametrize("backend", ["planed", "dpdk"])
def test_our_driver_says_the_same_as_the_device(planed: Planed, other: Planed, backend: str) -> None:
    path = planed.workdir / f"negotiated-{backend}.sock"
    planed.apply([{**vhost("a", path), "queues": 2, "backend": backend}])
    assert ports(planed)["a"]["virtio"] is None, "nobody is there"
    other.apply([{**virtio("v0", path, 64), "queues": 2}])
    other.links_up()
    until(lambda: ports(planed)["a"]["link_up"], "the device sees the driver")
    device, driver = ports(planed)["a"], ports(other)["v0"]
    assert driver["virtio"]["features"] == device["virtio"]["features"]
    assert {"version_1", "mq"} <= set(driver["virtio"]["features"])
    assert driver["virtio"]["ring_sizes"] == [64] * 4
    until(lambda: ports(planed)["a"]["virtio"]["ring_sizes"] == [64] * 4, "all four rings run")
    other.apply()
    until(lambda: ports(planed)["a"]["virtio"] is None, "what was negotiated with a driver that is gone is not told")


def test_a_port_without_virtio_says_what_it_is(planed: Planed) -> None:
    planed.apply([ethdev("e0", "net_null7,size=64", ring_size=512)])
    port = ports(planed)["e0"]
    assert (port["driver"], port["queues"], port["ring_size"], port["virtio"]) == ("net_null", 1, 512, None)
