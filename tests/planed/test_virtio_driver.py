# SPDX-License-Identifier: BSD-3-Clause
"""Our own virtio driver between real processes: every frame is accounted for, whatever the device is and does."""

from __future__ import annotations

import itertools
import os
import signal
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from planed_rig import CPU, OTHER_CPU, PATIENCE_S, Document, Planed, load, stream, task, until, vhost, virtio
from vhost_device import (
    GET_FEATURES,
    GET_PROTOCOL_FEATURES,
    GET_QUEUE_NUM,
    HEADER,
    IN_ORDER,
    PROTOCOL_FEATURES,
    RECEIVEQ,
    REPLY,
    SET_OWNER,
    SET_PROTOCOL_FEATURES,
    STEPS,
    TRANSMITQ,
    VERSION,
    VERSION_1,
    Ring,
    VhostDevice,
    reply,
    wait_for,
)

from planebench.host.process import Supervisor
from planebench.planed import RpcError
from planebench.switches.base import NotFound, SwitchPort, SwitchRequest
from planebench.switches.registry import ADAPTERS

pytestmark = pytest.mark.dataplane

PACED: Document = {"rate_pps": 20_000}
FLAT_OUT: Document = {"flat_out": True}
RESTARTS = 20
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


def drive(guest: Planed, sockets: list[Path], ring_size: int = 256) -> None:
    """A generator and a monitor behind each; ours unless the document says otherwise."""
    guest.wires = tuple(virtio(f"v{index}", path, ring_size) for index, path in enumerate(sockets))
    ends = [
        task(f"{kind[:3]}{index}", kind, f"v{index}", **({"stream": index} if kind == "generator" else {}))
        for index in (0, 1)
        for kind in ("monitor", "generator")
    ]
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
    return tuple(sum(there[f"{kind}{index}"][f"{way}_packets"] for index in (0, 1)) for kind, way in (("gen", "tx"), ("mon", "rx")))  # type: ignore[return-value]  # fmt: skip


def assert_conserved(switch: Planed, guest: Planed, epoch: int = 1, frame_bytes: int = 64, **rate: Any) -> None:
    switch.call("stats.clear")
    sent, came = assert_intact(both_ways(guest, epoch, frame_bytes, **rate))
    middle = switch.settled()["sw"]
    assert middle["rx_packets"] == sent > 0
    assert middle["tx_packets"] == came == sent - middle["drops"]["tx_full"]
    for counted in (ports(switch), ports(guest)):
        assert all(port[key] == 0 for port in counted.values() for key in ("rx_errors", "tx_errors", "rx_nombuf"))
    assert sum(port["rx_packets"] for port in ports(guest).values()) == came
    assert sum(port["tx_packets"] for port in ports(guest).values()) == sent


@pytest.mark.parametrize("backend", ["vring", "dpdk"])
@pytest.mark.parametrize("ring_size", [16, 64, 256, 1024])
def test_every_frame_through_a_switch(
    planed: Planed, other: Planed, sockets: list[Path], backend: str, ring_size: int
) -> None:
    """Our device, and DPDK's."""
    serve(planed, sockets, backend=backend)
    drive(other, sockets, ring_size)
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
    wires[0]["backend"] = "vring"
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
        before = running.counters()
        sent, came = assert_intact(both_ways(other, 2, 64, **PACED))
        sent, came = assert_intact(both_ways(other, 3, 1518, **PACED))
        assert sent == came + sum(running.counters().drops.values()) - sum(before.drops.values())
        both_ways(other, 4, 64, **FLAT_OUT)
        assert_intact(other.settled())
    finally:
        other.apply()
        running.stop()


def forwards(guest: Planed) -> bool:
    """Open vSwitch has to reconfigure a port whose driver has connected."""
    sent, came = (sum(there) for there in zip(*(_counts(both_ways(guest, 1, 64), index) for index in (0, 1)), strict=True))
    return sent == came


def _counts(tasks: Document, index: int) -> tuple[int, int]:
    return tasks[f"gen{index}"]["tx_packets"], tasks[f"mon{1 - index}"]["rx_packets"]


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
    planed.apply(
        [virtio("n", sockets[0]), vhost("v", sockets[1])], [task("sw", "patch", "n", "v")], cpu=CPU
    )
    ends = [task(f"{kind[:3]}{i}", kind, port, **({"stream": i} if kind == "generator" else {})) for i, port in enumerate(("n0", "v1")) for kind in ("monitor", "generator")]  # fmt: skip
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
        other.start_traffic(*(load(f"gen{index}", **FLAT_OUT) for index in (0, 1)), duration_s=PATIENCE_S)
        until(lambda: switch.tasks()["sw"]["tx_packets"] > 1000, "frames flow")
        os.kill(switch.process.pid, signal.SIGKILL)
        until(lambda: not any(port["link_up"] for port in ports(other).values()), "the driver sees it go")
        other.call("traffic.stop")
        for path in sockets:
            path.unlink()
    assert len(left) == 1, left
    other.apply()


def test_a_port_that_waits_for_a_device_can_be_closed(planed: Planed, other: Planed, sockets: list[Path]) -> None:
    before = handles(other)
    serve(planed, sockets)
    drive(other, sockets)
    planed.apply()
    until(lambda: not any(port["link_up"] for port in ports(other).values()), "the driver sees it go")
    other.apply()
    assert handles(other)[:2] == before[:2]


# --- A device that is written by hand ------------------------------------------------------------------------------


def sending(guest: Planed, path: Path, ring_size: int = 16) -> None:
    ends = [task("mon0", "monitor", "v0"), task("gen0", "generator", "v0")]
    guest.apply([virtio("v0", path, ring_size)], ends, cpu=OTHER_CPU)


def handshake(guest: Planed, path: Path) -> None:
    sending(guest, path)
    guest.apply()


@pytest.mark.parametrize(
    ("features", "protocol_features", "heard"),
    [
        (VERSION_1 | IN_ORDER | PROTOCOL_FEATURES, 0b1001, STEPS),
        (VERSION_1 | PROTOCOL_FEATURES, 0, [step for step in STEPS if step != GET_QUEUE_NUM]),
        (VERSION_1, 0, [step for step in STEPS if step not in (GET_PROTOCOL_FEATURES, SET_PROTOCOL_FEATURES, GET_QUEUE_NUM, 18)]),
    ],
    ids=["everything", "no acknowledgements", "no protocol features"],
)  # fmt: skip
def test_what_is_said_and_in_which_order(
    other: Planed, sockets: list[Path], features: int, protocol_features: int, heard: list[int]
) -> None:
    with VhostDevice(sockets[0], features=features, protocol_features=protocol_features) as device:
        sending(other, sockets[0])
        wait_for(lambda: device.heard == heard, f"{device.heard} is {heard}")
        device.rings[TRANSMITQ].be_silent()
        other.apply()
        assert device.heard[-1] == 11 and set(device.heard[len(heard) :]) <= {18, 11}


def _hang_up(connection: socket.socket, request: int, number: int) -> None:
    connection.shutdown(socket.SHUT_RDWR)


def _other_message(connection: socket.socket, request: int, number: int) -> None:
    connection.sendall(HEADER.pack(request + 1, VERSION | REPLY, 8) + bytes(8))


def _no_reply_flag(connection: socket.socket, request: int, number: int) -> None:
    connection.sendall(HEADER.pack(request, VERSION, 8) + bytes(8))


def _huge(connection: socket.socket, request: int, number: int) -> None:
    connection.sendall(HEADER.pack(request, VERSION | REPLY, 0xFFFFFFFF) + bytes(4096))


def _empty(connection: socket.socket, request: int, number: int) -> None:
    connection.sendall(HEADER.pack(request, VERSION | REPLY, 0))


def _half(connection: socket.socket, request: int, number: int) -> None:
    connection.sendall(HEADER.pack(request, VERSION | REPLY, 8)[:7])
    connection.shutdown(socket.SHUT_RDWR)


def _noise(connection: socket.socket, request: int, number: int) -> None:
    connection.sendall(bytes(range(256)))


def _refusal(connection: socket.socket, request: int, number: int) -> None:
    reply(connection, request, 1)


ANSWERS: dict[str, tuple[Callable[[socket.socket, int, int], None], str]] = {
    "hangs up": (_hang_up, "hung up|reset by peer|Broken pipe"),
    "another message": (_other_message, "the answer is to another message"),
    "not an answer": (_no_reply_flag, "the answer's flags are wrong"),
    "a huge answer": (_huge, "the answer's size is wrong"),
    "an empty answer": (_empty, "the answer's size is wrong"),
    "half an answer": (_half, "hung up|reset by peer"),
    "noise": (_noise, "the answer is to another message"),
}
SILENT = (SET_OWNER, SET_PROTOCOL_FEATURES)
"""Answered by nobody: an answer to these is taken for that to the next."""


@pytest.mark.parametrize("name", ANSWERS)
def test_a_device_that_answers_badly_at_each_step(other: Planed, sockets: list[Path], name: str) -> None:
    """An error that names socket and message, at once; the process goes on; then an honest device is driven."""
    answer, words = ANSWERS[name]
    before = handles(other)
    for step, request in enumerate(STEPS):
        if request in SILENT and answer is not _hang_up:
            continue
        with VhostDevice(sockets[0], dishonest=step, answer=answer):
            with pytest.raises(RpcError, match="port v0 cannot be opened"):
                handshake(other, sockets[0])
        said = other.process.log_tail()
        assert str(sockets[0]) in said
        assert any(word in said for word in words.split("|")), said
    with VhostDevice(sockets[0]):
        handshake(other, sockets[0])
    assert handles(other)[:2] == before[:2]


def test_a_device_that_refuses_a_step(other: Planed, sockets: list[Path]) -> None:
    for step, request in enumerate(STEPS):
        if request in (*SILENT, GET_FEATURES, GET_PROTOCOL_FEATURES, GET_QUEUE_NUM):
            continue
        with VhostDevice(sockets[0], dishonest=step, answer=_refusal):
            with pytest.raises(RpcError, match="port v0 cannot be opened"):
                handshake(other, sockets[0])
        assert "the device refused it (0x1)" in other.process.log_tail()


def test_a_device_that_says_nothing(other: Planed, sockets: list[Path]) -> None:
    with VhostDevice(sockets[0], dishonest=6, answer=lambda *_: None):
        with pytest.raises(RpcError, match="port v0 cannot be opened: Connection timed out"):
            handshake(other, sockets[0])
    assert "SET_MEM_TABLE: no answer in time; milliseconds (0x7d0)" in other.process.log_tail()


@pytest.mark.parametrize(
    ("features", "words"), [(PROTOCOL_FEATURES, "does not offer VIRTIO_F_VERSION_1"), (0, "VIRTIO_F_VERSION_1")]
)
def test_a_device_of_another_time(other: Planed, sockets: list[Path], features: int, words: str) -> None:
    with VhostDevice(sockets[0], features=features):
        with pytest.raises(RpcError, match="port v0 cannot be opened"):
            handshake(other, sockets[0])
    assert words in other.process.log_tail()


def test_nobody_is_there(other: Planed, sockets: list[Path]) -> None:
    with pytest.raises(RpcError, match="port v0 cannot be opened: No such file"):
        handshake(other, sockets[0])
    assert f"port v0: no device to drive: {sockets[0]}: No such file" in other.process.log_tail()


@pytest.fixture
def device(other: Planed, sockets: list[Path]) -> Iterator[VhostDevice]:
    """Connected: 16 buffers to receive into, and a generator that can send."""
    with VhostDevice(sockets[0]) as it:
        sending(other, sockets[0])
        yield it
        other.apply()


def test_a_frame_from_a_device_by_hand_and_one_to_it(other: Planed, device: VhostDevice) -> None:
    receive, transmit = device.rings[RECEIVEQ], device.rings[TRANSMITQ]
    assert (receive.size, receive.available, transmit.available) == (16, 16, 0)
    other.send(load("gen0", 64, **FLAT_OUT))
    assert transmit.available == 16, "as many frames as there are buffers"
    address, length, flags, _ = transmit.descriptor(0)
    assert ((address + 12) % 64, length, flags) == (0, 12 + 60, 0)
    assert {transmit.frame(slot)[42:45] for slot in range(16)} == {b"\x70\x62\x00"}, "frames of stream 0"
    for index in range(3):
        receive.use(index, index, 12 + 60)
    receive.publish(3)
    wait_for(lambda: receive.available == 19, "the buffers come back")
    wait_for(lambda: ports(other)["v0"]["rx_packets"] == 3, "three frames came")
    assert other.tasks()["mon0"]["monitor"]["foreign_packets"] == 3


def test_the_device_is_kicked_if_it_wants_to_be(other: Planed, device: VhostDevice) -> None:
    """Its flags are zero: it sleeps. A kick comes with the next use of the ring, or from idle polls of the pair."""
    other.send(load("gen0", 64, **FLAT_OUT))
    wait_for(lambda: device.kicked(TRANSMITQ), "the device is kicked")


LIES: dict[str, tuple[str, Callable[[Ring, Ring], None]]] = {
    "index far": ("it has used more buffers", lambda rx, tx: rx.publish(17)),
    "index back": ("it has used more buffers", lambda rx, tx: rx.publish(0xFFFF)),
    "another buffer": ('use buffers in order; "backend": "dpdk"', lambda rx, tx: _use(rx, 3, 72)),
    "no such buffer": ("use buffers in order", lambda rx, tx: _use(rx, 70000, 72)),
    "too long": ("longer than its buffer", lambda rx, tx: _use(rx, 0, 12 + 2048 + 1)),
    "too short": ("shorter than its header", lambda rx, tx: _use(rx, 0, 11)),
    "transmit index": ("it has used more buffers", lambda rx, tx: tx.publish(17)),
}


def _use(ring: Ring, slot: int, length: int) -> None:
    ring.use(0, slot, length)
    ring.publish(1)


@pytest.mark.parametrize("name", LIES)
def test_a_device_that_lies_is_stopped(other: Planed, device: VhostDevice, name: str) -> None:
    """The link goes down, one line says why; the next device is served."""
    words, lie = LIES[name]
    said = other.process.log_tail().count(words)
    device.rings[TRANSMITQ].be_silent()
    lie(device.rings[RECEIVEQ], device.rings[TRANSMITQ])
    other.start_traffic(load("gen0", 64, **FLAT_OUT), duration_s=0.01)
    until(lambda: not ports(other)["v0"]["link_up"], "the lie is found")
    assert other.process.log_tail().count(words) >= min(said + 1, 2), "the tail is short"
    assert device.rings[RECEIVEQ].available == 16, "nothing is given back"
    device.hang_up()
    other.links_up()


def test_an_unasked_for_word_ends_the_connection(other: Planed, device: VhostDevice) -> None:
    heard = len(device.heard)
    device.say(b"hello")
    wait_for(lambda: len(device.heard) >= heard + len(STEPS), "it is set up again")
    other.links_up()
    assert "says something that it was not asked for" in other.process.log_tail()


def test_it_is_set_up_again_at_whatever_step_the_device_hangs_up(other: Planed, sockets: list[Path]) -> None:
    """While a worker polls: no half-built ring is ever seen, nothing is left behind."""
    with VhostDevice(sockets[0]) as device:
        sending(other, sockets[0])
        before = handles(other)
        for step in range(len(STEPS)):
            device.answer_badly(len(device.heard) + step, _hang_up)
            device.hang_up()
            wait_for(lambda: device.answered_badly, "it hangs up")
            other.start_traffic(load("gen0", 64, **FLAT_OUT), duration_s=0.001)
            other.links_up()
            wait_for(lambda: device.rings[TRANSMITQ].available > 0 or other.tasks()["gen0"]["tx_packets"] == 0, "it sends")
        assert handles(other) == before
        other.apply()
