# SPDX-License-Identifier: BSD-3-Clause
"""Our own virtio driver and a device by hand (tests/vhost_device.py): what is said, and what is answered to it."""

from __future__ import annotations

import itertools
import os
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from planed_rig import OTHER_CPU, Document, Planed, load, task, until, virtio
from vhost_device import (
    GET_FEATURES,
    GET_PROTOCOL_FEATURES,
    GET_QUEUE_NUM,
    GET_VRING_BASE,
    HEADER,
    IN_ORDER,
    MQ,
    PROTOCOL_FEATURES,
    RECEIVEQ,
    REPLY,
    REPLY_ACK,
    SET_MEM_TABLE,
    SET_OWNER,
    SET_PROTOCOL_FEATURES,
    SET_VRING_ENABLE,
    STEPS,
    TRANSMITQ,
    VERSION,
    VERSION_1,
    Ring,
    VhostDevice,
    reply,
    wait_for,
)

from planebench.planed.client import RpcError

pytestmark = pytest.mark.dataplane

FLAT_OUT: Document = {"flat_out": True}
_NAMES = itertools.count()


@pytest.fixture
def path(other: Planed) -> Path:
    return other.workdir / f"v{next(_NAMES)}.sock"


def port(planed: Planed) -> Document:
    return dict(planed.call("stats.get")["ports"][0])


def handles(planed: Planed) -> tuple[int, int]:
    """Open files and threads."""
    process = Path("/proc") / str(planed.process.pid)
    return len(list((process / "fd").iterdir())), len(list((process / "task").iterdir()))


def sending(guest: Planed, path: Path, ring_size: int = 16) -> None:
    ends = [task("mon0", "monitor", "v0"), task("gen0", "generator", "v0")]
    guest.apply([virtio("v0", path, ring_size)], ends, cpu=OTHER_CPU)


def handshake(guest: Planed, path: Path) -> None:
    sending(guest, path)
    guest.apply()


_SHARED = STEPS.index(SET_MEM_TABLE) + 1
WITHOUT_ASKING = [step for step in (*STEPS[:_SHARED], GET_FEATURES, *STEPS[_SHARED:]) if step != GET_QUEUE_NUM]
"""Without acknowledgements a question tells when the memory table is in force."""
PROTOCOL_STEPS = (GET_PROTOCOL_FEATURES, SET_PROTOCOL_FEATURES, SET_VRING_ENABLE)
DIALECTS = {
    "everything": (VERSION_1 | IN_ORDER | PROTOCOL_FEATURES, MQ | REPLY_ACK, STEPS),
    "no acknowledgements": (VERSION_1 | PROTOCOL_FEATURES, 0, WITHOUT_ASKING),
    "no protocol features": (VERSION_1, 0, [step for step in WITHOUT_ASKING if step not in PROTOCOL_STEPS]),
}


@pytest.mark.parametrize("dialect", DIALECTS)
def test_what_is_said_and_in_which_order(other: Planed, path: Path, dialect: str) -> None:
    features, protocol_features, heard = DIALECTS[dialect]
    with VhostDevice(path, features=features, protocol_features=protocol_features) as device:
        sending(other, path)
        wait_for(lambda: device.heard == heard, f"{device.heard} is {heard}")
        device.rings[TRANSMITQ].be_silent()
        other.apply()
        enables = [SET_VRING_ENABLE] * 2 if features & PROTOCOL_FEATURES else []
        assert device.heard[len(heard) :] == enables + [GET_VRING_BASE] * 2


def test_the_device_cannot_truncate_our_memory(other: Planed, path: Path) -> None:
    with VhostDevice(path) as device:
        sending(other, path)
        wait_for(lambda: TRANSMITQ in device.rings, "the rings are there")
        assert len(device.files) == 2, "its rings and its buffers, and nothing else of the process"
        for fd in device.files:
            with pytest.raises(PermissionError):
                os.ftruncate(fd, 0)
        assert other.call("stats.get")
        other.apply()


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
def test_a_device_that_answers_badly_at_each_step(other: Planed, path: Path, name: str) -> None:
    """An error that names socket and message, at once; the process goes on; then an honest device is driven."""
    answer, words = ANSWERS[name]
    before = handles(other)
    for step, request in enumerate(STEPS):
        if request in SILENT and answer is not _hang_up:
            continue
        with (
            VhostDevice(path, dishonest=step, answer=answer),
            pytest.raises(RpcError, match="port v0 cannot be opened"),
        ):
            handshake(other, path)
        said = other.process.log_tail()
        assert str(path) in said
        assert any(word in said for word in words.split("|")), said
    with VhostDevice(path):
        handshake(other, path)
    assert handles(other)[:2] == before[:2]


def test_a_device_that_refuses_a_step(other: Planed, path: Path) -> None:
    for step, request in enumerate(STEPS):
        if request in (*SILENT, GET_FEATURES, GET_PROTOCOL_FEATURES, GET_QUEUE_NUM):
            continue
        with VhostDevice(path, dishonest=step, answer=_refusal), pytest.raises(RpcError, match="cannot be opened"):
            handshake(other, path)
        assert "the device refused it (0x1)" in other.process.log_tail()


def test_a_device_that_says_nothing(other: Planed, path: Path) -> None:
    with (
        VhostDevice(path, dishonest=6, answer=lambda *_: None),
        pytest.raises(RpcError, match="port v0 cannot be opened: Connection timed out"),
    ):
        handshake(other, path)
    assert "SET_MEM_TABLE: no answer in time; milliseconds (0x1388)" in other.process.log_tail()


@pytest.mark.parametrize(
    ("features", "words"), [(PROTOCOL_FEATURES, "does not offer VIRTIO_F_VERSION_1"), (0, "VIRTIO_F_VERSION_1")]
)
def test_a_device_of_another_time(other: Planed, path: Path, features: int, words: str) -> None:
    with VhostDevice(path, features=features), pytest.raises(RpcError, match="cannot be opened"):
        handshake(other, path)
    assert words in other.process.log_tail()


def test_nobody_is_there(other: Planed, path: Path) -> None:
    with pytest.raises(RpcError, match="port v0 cannot be opened: No such file"):
        handshake(other, path)
    assert f"port v0: no device to drive: {path}: No such file" in other.process.log_tail()


@pytest.fixture
def device(other: Planed, path: Path) -> Iterator[VhostDevice]:
    """Connected: 16 buffers to receive into, and a generator that can send."""
    with VhostDevice(path) as it:
        sending(other, path)
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
    wait_for(lambda: port(other)["rx_packets"] == 3, "three frames came")
    assert other.tasks()["mon0"]["monitor"]["foreign_packets"] == 3


def test_a_first_kick_starts_each_ring(other: Planed, device: VhostDevice) -> None:
    """vhost-user, "Ring states": a device may wait for it (VPP does), also one that polls and wants no kicks."""
    wait_for(lambda: all(queue in device.rings and device.kicked(queue) for queue in (RECEIVEQ, TRANSMITQ)), "kicks")


def test_the_device_is_kicked_if_it_wants_to_be(other: Planed, device: VhostDevice) -> None:
    """Its flags are zero: it sleeps. A kick comes with the next use of the ring, or as soon as nothing is sent."""
    device.forget_kicks(TRANSMITQ)
    other.send(load("gen0", 64, **FLAT_OUT))
    wait_for(lambda: device.kicked(TRANSMITQ), "the device is kicked")


def test_the_last_burst_is_kicked(other: Planed, path: Path) -> None:
    """Nobody uses the port again after the end of the traffic."""
    with VhostDevice(path) as device:
        other.apply([virtio("v0", path, 1024)], [task("gen0", "generator", "v0")], cpu=OTHER_CPU)
        device.forget_kicks(TRANSMITQ)
        sent = other.send(load("gen0", 64, **FLAT_OUT), duration_s=1e-6)["gen0"]["tx_packets"]
        assert sent in range(1, 1025)
        wait_for(lambda: device.kicked(TRANSMITQ), "the device is kicked")
        device.rings[TRANSMITQ].be_silent()
        device.forget_kicks(TRANSMITQ)
        other.send(load("gen0", 64, **FLAT_OUT))
        assert not device.kicked(TRANSMITQ), "it polls"
        other.apply()


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
    until(lambda: not port(other)["link_up"], "the lie is found")
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


def _memory(device: VhostDevice) -> set[int]:
    """Where the driver's rings and buffers are. Both rings are full of buffers."""
    rings = device.rings.values()
    assert all(ring.size == ring.available for ring in rings)
    return {ring.descriptor(slot)[0] for ring in rings for slot in range(ring.size)} | {ring.at for ring in rings}


def _filled(guest: Planed, path: Path, device: VhostDevice) -> set[int]:
    sending(guest, path)
    device.rings[TRANSMITQ].be_silent()
    guest.send(load("gen0", 64, **FLAT_OUT))
    return _memory(device)


@pytest.mark.all
def test_memory_of_a_device_that_hangs_is_nobody_elses_until_it_hangs_up(other: Planed, path: Path) -> None:
    """It may go on at any time, and write before it sees that nobody is there."""
    awake = threading.Event()
    stop = len(STEPS) + 2  # after it has disabled both rings
    second, third = (path.with_name(f"{name}-{path.name}") for name in ("second", "third"))
    with VhostDevice(path, dishonest=stop, answer=lambda *_: awake.wait(60) and None) as hung:
        first = _filled(other, path, hung)
        other.apply()
        assert "its device has not stopped and may still write" in other.process.log_tail()
        with VhostDevice(second) as honest:
            assert not _filled(other, second, honest) & first
            other.apply()
        awake.set()
        wait_for(lambda: hung.connection is None, "it has hung up")
    with VhostDevice(third) as honest:
        assert _filled(other, third, honest) & first, "there for all again"
        other.apply()


def test_it_is_set_up_again_at_whatever_step_the_device_hangs_up(other: Planed, path: Path) -> None:
    """While a worker polls: no half-built ring is ever seen, nothing is left behind."""
    with VhostDevice(path) as device:
        sending(other, path)
        before = handles(other)
        for step in range(len(STEPS)):
            device.answer_badly(len(device.heard) + step, _hang_up)
            device.hang_up()
            wait_for(lambda: device.answered_badly, "it hangs up")
            other.start_traffic(load("gen0", 64, **FLAT_OUT), duration_s=0.001)
            other.links_up()
        assert handles(other) == before
        other.apply()
