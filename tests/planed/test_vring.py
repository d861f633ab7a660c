# SPDX-License-Identifier: BSD-3-Clause
"""Our own vhost-user data path between real processes: every frame is accounted for, whoever comes, goes or dies."""

from __future__ import annotations

import itertools
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from planed_rig import CPU, OTHER_CPU, PATIENCE_S, Document, Planed, ethdev, load, stream, task, until
from vhost_driver import BUFFERS, GUEST_ADDRESS, MEMORY_BYTES, RING_SIZE, TRANSMITQ, VhostDriver

from planebench.host.process import Supervisor
from planebench.planed import RpcError

pytestmark = pytest.mark.dataplane

PACED: Document = {"rate_pps": 20_000}
FLAT_OUT: Document = {"flat_out": True}
DRIVER_RECONNECTS = 20
DEVICE_RECONNECTS = 5
"""DPDK's vhost library needs a second to notice a new listening socket; twenty were tried."""
_NAMES = itertools.count()

LAYOUTS = [
    f"packed_vq={packed},mrg_rxbuf={merge},in_order={order}"
    for packed in (0, 1)
    for merge in (0, 1)
    for order in (0, 1)
]
"""What a virtio driver can choose; each takes other functions in DPDK's driver."""


def device(name: str, path: Path, backend: str = "vring") -> Document:
    return {"name": name, "kind": "vhost-user", "path": str(path), "backend": backend}


def driver(name: str, path: Path, layout: str, queue_size: int) -> Document:
    devargs = f"net_virtio_user{next(_NAMES)},path={path},queues=1,queue_size={queue_size},{layout}"
    return ethdev(name, devargs)


def connect(
    switch: Planed,
    guest: Planed,
    layout: str,
    backends: tuple[str, str] = ("vring", "vring"),
    queue_size: int = 256,
) -> None:
    """A patch between a and b; the guest calls them v0 and v1."""
    paths = [switch.workdir / f"{name}.sock" for name in "ab"]
    switch.wires = tuple(device(name, path, backend) for name, path, backend in zip("ab", paths, backends, strict=True))
    switch.apply(switch.wires, [task("sw", "patch", "a", "b")], cpu=CPU)
    join(switch, guest, layout, queue_size)


def join(switch: Planed, guest: Planed, layout: str, queue_size: int = 256) -> None:
    paths = [Path(wire["path"]) for wire in switch.wires]
    guest.wires = tuple(driver(f"v{index}", path, layout, queue_size) for index, path in enumerate(paths))
    ends = [
        task(f"{kind[:3]}{index}", kind, f"v{index}", **({"stream": index} if kind == "generator" else {}))
        for index in (0, 1)
        for kind in ("monitor", "generator")
    ]
    guest.apply(guest.wires, ends, cpu=OTHER_CPU)
    guest.links_up()
    until(lambda: ports_up(switch), "the switch sees both drivers")


def ports_up(planed: Planed) -> bool:
    return all(port["link_up"] for port in planed.call("ports.get")["ports"])


def ports(planed: Planed) -> Document:
    return {port["name"]: port for port in planed.call("stats.get")["ports"]}


def both_ways(guest: Planed, epoch: int = 1, frame_bytes: int = 64, **rate: Any) -> Document:
    return guest.send(*(load(f"gen{index}", frame_bytes, **rate) for index in (0, 1)), epoch=epoch)


def assert_conserved(switch: Planed, guest: Planed, epoch: int = 1, frame_bytes: int = 64, **rate: Any) -> None:
    """What was sent is what the patch received; what it forwarded is what came: once, intact, in order."""
    switch.call("stats.clear")
    there = both_ways(guest, epoch, frame_bytes, **rate)
    middle = switch.settled()["sw"]
    there = guest.settled()
    dropped = middle["drops"]["tx_full"]
    assert middle["rx_packets"] == middle["tx_packets"] + dropped
    assert middle["rx_packets"] == sum(there[f"gen{index}"]["tx_packets"] for index in (0, 1)) > 0
    assert middle["tx_packets"] == sum(there[f"mon{index}"]["rx_packets"] for index in (0, 1))
    for sender, receiver in ((0, 1), (1, 0)):
        came = stream(there[f"mon{receiver}"], sender)
        lost = middle["drops_by_port"]["ab"[receiver]]["tx_full"]
        assert came["forwarded_packets"] == there[f"gen{sender}"]["tx_packets"] - lost
        assert (came["duplicate_packets"], came["reordered_packets"], came["corrupt_packets"]) == (0, 0, 0)
        assert came["forwarded_bytes"] == came["forwarded_packets"] * frame_bytes
    if rate == PACED:
        assert dropped == 0
    counted = ports(switch)
    assert sum(port["rx_packets"] for port in counted.values()) == middle["rx_packets"]
    assert sum(port["tx_packets"] for port in counted.values()) == middle["tx_packets"]
    odd = ("rx_missed", "rx_errors", "tx_errors", "rx_nombuf")
    assert all(port[key] == 0 for port in counted.values() for key in odd)


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


@pytest.mark.parametrize("backends", [("vring", "dpdk"), ("dpdk", "vring"), ("dpdk", "dpdk")])
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
    assert len(set(macs)) == 2 and all(mac.startswith("56:48:4F:53:54:") for mac in macs)
    planed.apply(planed.wires, [task("vnf", "l2fwd", "a", "b")], cpu=CPU)
    both_ways(other, **PACED)
    middle, there = planed.settled()["vnf"], other.settled()
    assert middle["rx_packets"] == middle["tx_packets"] == sum(there[f"mon{i}"]["rx_packets"] for i in (0, 1)) > 0


def test_a_port_keeps_its_back_end(planed: Planed, other: Planed) -> None:
    connect(planed, other, "packed_vq=0,mrg_rxbuf=1")
    changed = [{**wire, "backend": "dpdk"} for wire in planed.wires]
    with pytest.raises(RpcError, match="another kind, backend, path"):
        planed.apply(changed)


def handles(planed: Planed) -> tuple[int, int]:
    """Open files and shared mappings of the process: what a connection that is gone must not leave behind."""
    process = Path("/proc") / str(planed.process.pid)
    return len(list((process / "fd").iterdir())), (process / "maps").read_text().count("memfd:")


def without_drivers(switch: Planed) -> tuple[int, int]:
    """A patch between a and b, and nobody there: its handles."""
    switch.wires = tuple(device(name, switch.workdir / f"{name}.sock") for name in "ab")
    switch.apply(switch.wires, [task("sw", "patch", "a", "b")], cpu=CPU)
    return handles(switch)


def leave(planed: Planed, before: tuple[int, int]) -> None:
    """The switch has seen the drivers go, and is as it was without any."""
    until(lambda: not any(port["link_up"] for port in ports(planed).values()), "the switch sees them go")
    until(lambda: handles(planed) == before, f"it has {before} handles again")


def flood(switch: Planed, guest: Planed) -> None:
    """Traffic both ways for longer than anybody waits; returns while it flows."""
    switch.call("stats.clear")
    guest.start_traffic(*(load(f"gen{index}", **FLAT_OUT) for index in (0, 1)), duration_s=PATIENCE_S)
    until(lambda: switch.tasks()["sw"]["tx_packets"] > 1000, "frames flow")


@pytest.mark.parametrize("packed", [0, 1])
def test_a_driver_that_comes_and_goes(planed: Planed, other: Planed, packed: int) -> None:
    """Every other time in full flight."""
    layout = f"packed_vq={packed},mrg_rxbuf=1"
    before = without_drivers(planed)
    for number in range(DRIVER_RECONNECTS):
        join(planed, other, layout)
        if number % 2:
            flood(planed, other)
        other.apply()
        leave(planed, before)
    join(planed, other, layout)
    assert_conserved(planed, other, **FLAT_OUT)


def test_a_device_that_comes_and_goes(planed: Planed, other: Planed) -> None:
    left = set()
    for _ in range(DEVICE_RECONNECTS):
        connect(planed, other, "packed_vq=0,mrg_rxbuf=1")
        flood(planed, other)
        planed.apply()
        left.add(handles(planed))
        other.apply()
    assert len(left) == 1, left
    connect(planed, other, "packed_vq=0,mrg_rxbuf=1")
    assert_conserved(planed, other, **FLAT_OUT)


@pytest.mark.parametrize("packed", [0, 1])
def test_a_guest_that_is_killed_in_full_flight(
    planed: Planed, other: Planed, supervisor: Supervisor, packed: int
) -> None:
    """Again and again, under traffic both ways; who comes next finds ports that work."""
    layout = f"packed_vq={packed},mrg_rxbuf=1"
    before = without_drivers(planed)
    for _ in range(3):
        victim = Planed(supervisor, f"victim{next(_NAMES)}")
        join(planed, victim, layout)
        flood(planed, victim)
        os.kill(victim.process.pid, signal.SIGKILL)
        leave(planed, before)
    join(planed, other, layout)
    assert_conserved(planed, other, **FLAT_OUT)


def taken(guest: VhostDriver, count: int) -> None:
    until(lambda: guest.used(TRANSMITQ) == count, f"the device has given back {count} buffers")


LIES: dict[str, Callable[[VhostDriver], None]] = {
    "more buffers available than": lambda guest: guest.set_index(TRANSMITQ, 1 + RING_SIZE + 1),
    "outside of the shared memory": lambda guest: guest.offer(TRANSMITQ, 0, GUEST_ADDRESS + MEMORY_BYTES - 63, 64),
    "loops or is too long": lambda guest: guest.offer(TRANSMITQ, 0, GUEST_ADDRESS, 64, flags=1, following=0),
    "writable where it must be": lambda guest: guest.offer(TRANSMITQ, 0, GUEST_ADDRESS, 64, flags=2),
}


def test_a_guest_that_lies_is_stopped_alone(planed: Planed, other: Planed) -> None:
    """Its port goes down, one line says why; guests beside it notice nothing; restarted, it may try again."""
    connect(planed, other, "packed_vq=0,mrg_rxbuf=1")
    wires = [device(name, planed.workdir / f"{name}.sock") for name in "cd"]
    switches = [task("sw", "patch", "a", "b"), task("sw2", "patch", "c", "d")]
    planed.apply([*planed.wires, *wires], switches, cpu=CPU)
    for epoch, (words, lie) in enumerate(LIES.items(), start=1):
        with VhostDriver(Path(wires[0]["path"])) as liar:
            until(lambda: ports(planed)["c"]["link_up"], "the liar is connected")
            liar.offer(TRANSMITQ, 5, GUEST_ADDRESS + BUFFERS, 72)
            taken(liar, 1)
            lie(liar)
            until(lambda: not ports(planed)["c"]["link_up"], "the lie is found")
            assert planed.process.log_tail().count(words) == 1
            assert liar.used(TRANSMITQ) == 1
            assert_conserved_between(planed, other, epoch)
    assert all(port["link_up"] == (name in "ab") for name, port in ports(planed).items())


def assert_conserved_between(switch: Planed, guest: Planed, epoch: int) -> None:
    switch.call("stats.clear")
    both_ways(guest, epoch, **FLAT_OUT)
    middle, there = switch.settled()["sw"], guest.settled()
    assert middle["rx_packets"] == sum(there[f"gen{index}"]["tx_packets"] for index in (0, 1)) > 0
    assert middle["tx_packets"] == sum(there[f"mon{index}"]["rx_packets"] for index in (0, 1))


def test_memory_that_changes_while_frames_flow(planed: Planed) -> None:
    """The table is sent anew, larger and smaller, and the rings go on where they were."""
    wires = [device(name, planed.workdir / f"{name}.sock") for name in "ab"]
    planed.apply(wires, [task("sw", "patch", "a", "b")], cpu=CPU)
    with VhostDriver(Path(wires[0]["path"])) as guest:
        until(lambda: ports(planed)["a"]["link_up"], "the guest is connected")
        for number in range(200):
            guest.offer(TRANSMITQ, number % RING_SIZE, GUEST_ADDRESS + BUFFERS, 72)
            if number % 3 == 0:
                guest.share_memory(MEMORY_BYTES // (1 + number % 2))
            if number % RING_SIZE == RING_SIZE - 1:
                guest.settle()
                taken(guest, number + 1)
        taken(guest, 200)
        counted = planed.tasks()["sw"]
        assert counted["rx_packets"] == counted["drops"]["tx_full"] == 200, "nobody is at b"
        assert ports(planed)["a"]["link_up"]


def test_a_second_driver_takes_over(planed: Planed) -> None:
    wires = [device(name, planed.workdir / f"{name}.sock") for name in "ab"]
    planed.apply(wires, [task("sw", "patch", "a", "b")], cpu=CPU)
    with VhostDriver(Path(wires[0]["path"])) as first:
        until(lambda: ports(planed)["a"]["link_up"], "the first is connected")
        with VhostDriver(Path(wires[0]["path"])) as second:
            second.settle()
            for guest in (first, second):
                guest.offer(TRANSMITQ, 0, GUEST_ADDRESS + BUFFERS, 72)
            until(lambda: second.used(TRANSMITQ) == 1, "the second is served")
            first.settle()
            assert first.used(TRANSMITQ) == 0
        assert planed.process.log_tail().count("a second driver has connected") == 1


def _grow_ring(guest: VhostDriver) -> None:
    guest.share_memory(MEMORY_BYTES // 8)
    guest.resize_ring(TRANSMITQ, 32768)


LIES_TO_THE_LIBRARY: dict[str, Callable[[VhostDriver], None]] = {
    "no memory": VhostDriver.share_too_much,
    "a ring that runs out of the memory": _grow_ring,
}


@pytest.mark.parametrize("lie", LIES_TO_THE_LIBRARY.values(), ids=LIES_TO_THE_LIBRARY)
def test_what_the_library_lets_through_is_found(planed: Planed, lie: Callable[[VhostDriver], None]) -> None:
    """DPDK's library keeps such a connection: the port does not; the next driver is served."""
    without_drivers(planed)
    path = Path(planed.wires[0]["path"])
    for liar in (True, False):
        with VhostDriver(path) as guest:
            until(lambda: ports(planed)["a"]["link_up"], "the guest is connected")
            guest.offer(TRANSMITQ, 0, GUEST_ADDRESS + BUFFERS, 72)
            taken(guest, 1)
            if liar:
                lie(guest)
                guest.settle()
                until(lambda: not ports(planed)["a"]["link_up"], "it is found out")
        until(lambda: not ports(planed)["a"]["link_up"], "the switch sees it go")
    assert planed.tasks()["sw"]["rx_packets"] == 2
