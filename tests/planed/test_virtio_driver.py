# SPDX-License-Identifier: BSD-3-Clause
"""Our own virtio driver between real processes: every frame is accounted for, whatever the device is and does."""

from __future__ import annotations

import itertools
import os
import signal
from pathlib import Path
from typing import Any

import pytest
from planed_rig import CPU, OTHER_CPU, PATIENCE_S, Document, Planed, load, often, stream, task, until, vhost, virtio

from planebench.host.process import Supervisor
from planebench.host.programs import NotFound
from planebench.planed.client import RpcError
from planebench.switches.registry import ADAPTERS
from planebench.testbed.request import SwitchPort, SwitchRequest

pytestmark = pytest.mark.dataplane

PACED: Document = {"rate_pps": 5_000}  # 100 frames in 20 ms, which any ring holds
FLAT_OUT: Document = {"flat_out": True}
RESTARTS = often(8, 20)
_NAMES = itertools.count()


@pytest.fixture
def sockets(planed: Planed) -> list[Path]:
    number = next(_NAMES)
    return [planed.workdir / f"{name}{number}.sock" for name in "ab"]


def ports(planed: Planed) -> Document:
    return {port["name"]: port for port in planed.call("stats.get")["ports"]}


def serve(switch: Planed, sockets: list[Path], **more: Any) -> None:
    """A patch between two devices."""
    wires = [{**vhost(name, path), **more} for name, path in zip("ab", sockets, strict=True)]
    switch.apply(wires, [task("sw", "patch", "a", "b")], cpu=CPU)


def generators_and_monitors(*names: str) -> list[Document]:
    return [
        task(f"{kind[:3]}{index}", kind, name, **({"stream": index} if kind == "generator" else {}))
        for index, name in enumerate(names)
        for kind in ("monitor", "generator")
    ]


def drive(guest: Planed, sockets: list[Path], ring_size: int = 256, **more: Any) -> None:
    """A generator and a monitor behind each; ours unless the document says otherwise."""
    guest.wires = tuple({**virtio(f"v{index}", path, ring_size), **more} for index, path in enumerate(sockets))
    ends = generators_and_monitors("v0", "v1")
    guest.apply(guest.wires, ends, cpu=OTHER_CPU)
    guest.links_up()


def both_ways(guest: Planed, epoch: int = 1, frame_bytes: int = 64, **rate: Any) -> Document:
    guest.send(*(load(f"gen{index}", frame_bytes, **rate) for index in (0, 1)), epoch=epoch)
    return guest.settled()


def assert_intact(there: Document) -> tuple[int, int]:
    """What arrived is in order, once and whole; how many were sent, and how many came."""
    for sender, receiver in ((0, 1), (1, 0)):
        came = stream(there[f"mon{receiver}"], sender)
        assert came["forwarded_packets"] == there[f"mon{receiver}"]["rx_packets"]
        assert (came["duplicate_packets"], came["reordered_packets"], came["corrupt_packets"]) == (0, 0, 0)
    return counts(there)


def counts(there: Document) -> tuple[int, int]:
    """Sent and received, by both."""
    sent = sum(there[f"gen{index}"]["tx_packets"] for index in (0, 1))
    return sent, sum(there[f"mon{index}"]["rx_packets"] for index in (0, 1))


def assert_conserved(switch: Planed, guest: Planed, epoch: int = 1, frame_bytes: int = 64, **rate: Any) -> None:
    guest.send(*(load(f"gen{index}", frame_bytes, **rate) for index in (0, 1)), epoch=epoch, clear=switch)
    sent, came = assert_intact(guest.settled())
    middle = switch.settled()["sw"]
    assert middle["rx_packets"] == sent > 0
    assert middle["tx_packets"] == came == sent - middle["drops"]["tx_full"]
    for counted in (ports(switch), ports(guest)):
        assert all(port[key] == 0 for port in counted.values() for key in ("rx_errors", "tx_errors", "rx_nombuf"))
    assert sum(port["rx_packets"] for port in ports(guest).values()) == came
    assert sum(port["tx_packets"] for port in ports(guest).values()) == sent


@pytest.mark.parametrize("backend", ["planed", "dpdk"])
@pytest.mark.parametrize(
    ("ring_size", "packed"),
    [
        (16, False),
        pytest.param(64, False, marks=pytest.mark.all),
        (256, False),
        pytest.param(1024, False, marks=pytest.mark.all),
        (256, True),
        (100, True),
    ],
)
def test_every_frame_through_a_switch(
    planed: Planed, other: Planed, sockets: list[Path], backend: str, ring_size: int, packed: bool
) -> None:
    """Our device, and DPDK's."""
    serve(planed, sockets, backend=backend)
    drive(other, sockets, ring_size, packed=packed)
    for port in other.call("ports.get")["ports"]:
        assert ("packed" in port["virtio"]["features"]) == packed
        assert set(port["virtio"]["ring_sizes"]) == {ring_size}
    assert {port["device"] for port in other.call("ports.get")["ports"]} == {"virtio"}
    assert len({port["mac"] for port in other.call("ports.get")["ports"]}) == 2
    for epoch, (frame_bytes, rate) in enumerate(
        [(64, FLAT_OUT), (65, PACED), (1518, FLAT_OUT), (132, FLAT_OUT)], start=1
    ):
        assert_conserved(planed, other, epoch, frame_bytes, **rate)


def test_the_pmd_is_still_there(planed: Planed, other: Planed, sockets: list[Path]) -> None:
    serve(planed, sockets)
    wires = [{**virtio(f"v{index}", path), "backend": "dpdk"} for index, path in enumerate(sockets)]
    other.apply(wires)
    assert all(port["device"].startswith("net_virtio_user_") for port in other.call("ports.get")["ports"])
    wires[0]["backend"] = "planed"
    with pytest.raises(RpcError, match="another kind, backend, path"):
        other.apply(wires)


@pytest.mark.parametrize("name", ["testpmd", "ovs-dpdk"])
def test_every_frame_through_another_switch(
    other: Planed, supervisor: Supervisor, sockets: list[Path], name: str
) -> None:
    adapter = ADAPTERS[name]
    found = adapter.find()
    if isinstance(found, NotFound):
        pytest.skip(f"{adapter.title} is not here: {found.remedy}")
    request = SwitchRequest(
        ports=tuple(SwitchPort(f"v{index}", "vhost-user", path=path) for index, path in enumerate(sockets)),
        cross_connects=(("v0", "v1"),),
        cpu=CPU,
        control_cpus=frozenset({OTHER_CPU}),
        workdir=sockets[0].parent,
        hugepages=False,
    )
    running = adapter.start(request, supervisor)
    try:
        drive(other, sockets)
        until(lambda: forwards(other), "the switch forwards")
        before = sum(running.counters().drops.values())

        def conserved() -> bool:
            sent, came = assert_intact(other.settled())
            return sent == came + sum(running.counters().drops.values()) - before

        for epoch, frame_bytes in ((2, 64), (3, 1518)):
            both_ways(other, epoch, frame_bytes, **PACED)
            until(conserved, "all frames came or were counted as dropped")
            before = sum(running.counters().drops.values())
        both_ways(other, 4, 64, **FLAT_OUT)
        assert_intact(other.settled())
    finally:
        other.apply()
        running.stop()


def forwards(guest: Planed) -> bool:
    """Open vSwitch has to reconfigure a port whose driver has connected."""
    sent, came = counts(both_ways(guest, 1, 64))
    return sent == came


# --- VNFs and chains: in place -------------------------------------------------------------------------------------


def test_a_vnf_passes_buffers_on(planed: Planed, other: Planed, supervisor: Supervisor, sockets: list[Path]) -> None:
    """wire, switch, l2fwd in place, switch, wire: frames of every size keep their bytes but for the addresses."""
    wires = [planed.workdir / f"w{next(_NAMES)}.sock" for _ in "ab"]
    devices = [vhost(name, path) for name, path in zip("abcd", [*wires, *sockets], strict=True)]
    planed.apply(devices, [task("sw", "patch", "a", "c"), task("sw2", "patch", "d", "b")], cpu=CPU)
    vnf = Planed(supervisor, f"vnf{next(_NAMES)}")
    drivers = [virtio(f"v{index}", path) for index, path in enumerate(sockets)]
    vnf.apply(drivers, [task("vnf", "l2fwd", "v0", "v1")], cpu=CPU)
    vnf.links_up()
    drive(other, wires)
    for epoch, frame_bytes in enumerate((64, 65, 68, 69, 132, 512, 1518), start=1):
        vnf.call("stats.clear")
        planed.call("stats.clear")
        sent, came = assert_intact(both_ways(other, epoch, frame_bytes, **FLAT_OUT))
        middle, inner = planed.settled(), vnf.settled()["vnf"]
        dropped = sum(middle[name]["drops"]["tx_full"] for name in ("sw", "sw2"))
        assert inner["rx_packets"] == inner["tx_packets"] + inner["drops"]["tx_full"] > 0
        assert sent == came + dropped + inner["drops"]["tx_full"]
    vnf.apply()
    other.apply()


def test_a_patch_between_a_driver_and_a_device(planed: Planed, other: Planed, sockets: list[Path]) -> None:
    """One planed listens on both ends; another drives one of them and is the switch: p2v."""
    other.apply([vhost("n0", sockets[0])], [])
    planed.apply([virtio("n", sockets[0]), vhost("v", sockets[1])], [task("sw", "patch", "n", "v")], cpu=CPU)
    ends = generators_and_monitors("n0", "v1")
    other.apply([vhost("n0", sockets[0]), virtio("v1", sockets[1])], ends, cpu=OTHER_CPU)
    other.links_up()
    for epoch, (frame_bytes, rate) in enumerate([(64, FLAT_OUT), (1518, FLAT_OUT), (64, PACED)], start=1):
        assert_conserved(planed, other, epoch, frame_bytes, **rate)
    planed.apply()


# --- Devices that go and come back ---------------------------------------------------------------------------------


def handles(planed: Planed) -> tuple[int, int, int]:
    """Open files, mappings and threads."""
    process = Path("/proc") / str(planed.process.pid)
    counted = (process / "fd", process / "task")
    return (*(len(list(path.iterdir())) for path in counted), (process / "maps").read_text().count("\n"))  # type: ignore[return-value]


def kill_in_full_flight(switch: Planed, guest: Planed) -> None:
    guest.start_traffic(*(load(f"gen{index}", **FLAT_OUT) for index in (0, 1)), duration_s=PATIENCE_S)
    until(lambda: switch.tasks()["sw"]["tx_packets"] > 1000, "frames flow")
    os.kill(switch.process.pid, signal.SIGKILL)
    until(lambda: not any(port["link_up"] for port in ports(guest).values()), "the driver sees it go")
    guest.call("traffic.stop")


def test_a_switch_that_is_killed_under_traffic(other: Planed, supervisor: Supervisor, sockets: list[Path]) -> None:
    """Each time the driver finds the next one by itself, nothing leaks, and every frame is accounted for again."""
    left = set()
    driving = False
    for number in range(RESTARTS):
        switch = Planed(supervisor, f"victim{next(_NAMES)}")
        serve(switch, sockets)
        if not driving:
            drive(other, sockets)
            driving = True
        other.links_up()
        assert_conserved(switch, other, number + 1, **(FLAT_OUT if number % 2 else PACED))
        left.add(handles(other))
        kill_in_full_flight(switch, other)
        assert all(path.is_socket() for path in sockets), "left behind, and in nobody's way"
    files, mappings = {life[:-1] for life in left}, [life[-1] for life in left]
    assert len(files) == 1, left
    assert max(mappings) - min(mappings) < RESTARTS // 4, left  # sanitizers map and unmap for themselves
    other.apply()


def test_a_port_that_waits_for_a_device_can_be_closed(planed: Planed, other: Planed, sockets: list[Path]) -> None:
    before = handles(other)
    serve(planed, sockets)
    drive(other, sockets)
    planed.apply()
    until(lambda: not any(port["link_up"] for port in ports(other).values()), "the driver sees it go")
    other.apply()
    assert handles(other)[:2] == before[:2]
