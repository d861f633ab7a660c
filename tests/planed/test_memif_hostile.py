# SPDX-License-Identifier: BSD-3-Clause
"""A memif server of planed and clients that lie: each harms its own connection only, and the next one is served."""

from __future__ import annotations

import mmap
import os
import socket
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from planed_rig import Document, Planed, task, until

pytestmark = pytest.mark.dataplane

MESSAGE_BYTES = 128
ACK, HELLO, INIT, ADD_REGION, ADD_RING, CONNECT, CONNECTED, DISCONNECT = range(1, 9)
VERSION, COOKIE, TO_SERVER = 2 << 8, 0x3E31F20, 1
LOG2_SIZE, MEMORY_BYTES, BUFFERS, STRIDE, BACK = 4, 1 << 17, 1 << 14, 2048, 4096
HEAD, TAIL, DESCRIPTORS, DESCRIPTOR_BYTES = 6, 64, 128, 16
FRAME_BYTES = 60
PAGE, MB, SPARSE_BYTES = 4096, 1 << 20, 1 << 31
DEADLINE_S = 5
"""Of a handshake, in dataplane/port/memif_session.c."""


class MemifClient:
    """A client with one ring each way, of which each step is made by hand."""

    def __init__(self, path: Path) -> None:
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.settimeout(10)
        self.socket.connect(str(path))
        self.file = os.memfd_create("memif")
        os.ftruncate(self.file, MEMORY_BYTES)
        self.memory = mmap.mmap(self.file, MEMORY_BYTES)
        self.bells = [os.eventfd(0) for _ in range(2)]
        self.sent = 0
        assert self.heard() == HELLO

    def heard(self) -> int:
        """Return the type of the next message; 0 where the server has hung up."""
        message = self.socket.recv(MESSAGE_BYTES)
        return int.from_bytes(message[:2], "little")

    def say(self, kind: int, payload: bytes = b"", *files: int) -> int:
        """Return the type of the answer."""
        socket.send_fds(self.socket, [struct.pack("<H", kind) + payload.ljust(MESSAGE_BYTES - 2, b"\0")], files)
        return self.heard()

    def greet(self) -> None:
        assert self.say(INIT, struct.pack("<HIB", VERSION, 0, 0)) == ACK

    def share(self) -> int:
        return self.say(ADD_REGION, struct.pack("<HQ", 0, MEMORY_BYTES), self.file)

    def add_ring(self, flags: int, bell: int) -> int:
        offset = 0 if flags else BACK
        struct.pack_into("<I", self.memory, offset, COOKIE)
        return self.say(ADD_RING, struct.pack("<HHHIBH", flags, 0, 0, offset, LOG2_SIZE, 0), bell)

    def connect(self) -> None:
        self.greet()
        assert self.share() == ACK
        self.finish()

    def finish(self) -> None:
        """The rest, after the regions."""
        assert [self.add_ring(flags, bell) for flags, bell in zip((TO_SERVER, 0), self.bells, strict=True)] == [ACK] * 2
        assert self.say(CONNECT) == CONNECTED

    def send(self, offset: int | None = None) -> None:
        """Send a frame, whose descriptor has the offset of its buffer or another one."""
        slot = self.sent % (1 << LOG2_SIZE)
        place = BUFFERS + slot * STRIDE if offset is None else offset
        struct.pack_into("<HHIII", self.memory, DESCRIPTORS + slot * DESCRIPTOR_BYTES, 0, 0, FRAME_BYTES, place, 0)
        self.sent += 1
        self.set_head(self.sent)

    def set_head(self, head: int) -> None:
        """Say how many buffers were ever sent, in one store: struct.pack_into() would write zeros first."""
        memoryview(self.memory)[HEAD : HEAD + 2].cast("H")[0] = head

    def tail(self) -> int:
        """How many buffers the server has ever taken."""
        return int(struct.unpack_from("<H", self.memory, TAIL)[0])

    def close(self) -> None:
        self.socket.close()
        self.memory.close()
        for file in (self.file, *self.bells):
            os.close(file)


def listen(planed: Planed, **limits: int) -> None:
    """Have a memif server, and somebody who receives from it."""
    wire = {"name": "m", "kind": "memif-server", "path": str(planed.workdir / "m.sock"), **limits}
    planed.apply([wire], [task("mon", "monitor", "m")])


@pytest.fixture
def server(planed: Planed) -> Iterator[Planed]:
    listen(planed)
    yield planed
    planed.apply()


def heard_first(path: Path) -> tuple[int, str]:
    """The type of what a server says to who connects, and its reason if it hangs up."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as client:
        client.settimeout(10)
        client.connect(str(path))
        message = client.recv(MESSAGE_BYTES)
        return int.from_bytes(message[:2], "little"), message[6:].rstrip(b"\0").decode()


def port(server: Planed) -> Document:
    (found,) = server.call("stats.get")["ports"]
    return dict(found)


def clients(server: Planed) -> Iterator[MemifClient]:
    while True:
        client = MemifClient(server.workdir / "m.sock")
        yield client
        client.close()
        until(lambda: not port(server)["link_up"], "the server sees it go")


def assert_served(server: Planed, client: MemifClient) -> None:
    before = port(server)["rx_packets"]
    client.connect()
    until(lambda: bool(port(server)["link_up"]), "it is connected")
    for _ in range(5):
        client.send()
    until(lambda: port(server)["rx_packets"] == before + 5, "all frames have come")


RING_LIES: dict[str, Callable[[MemifClient], None]] = {
    "used more slots": lambda client: client.set_head(client.sent + (1 << LOG2_SIZE) + 1),
    "outside of the regions": lambda client: client.send(MEMORY_BYTES - FRAME_BYTES + 1),
}


def test_a_client_that_lies_is_stopped_and_the_next_is_served(server: Planed) -> None:
    own = clients(server)
    for count, (words, lie) in enumerate(RING_LIES.items(), start=1):
        liar = next(own)
        assert_served(server, liar)
        lie(liar)
        until(lambda: not port(server)["link_up"], "the lie is found")
        assert port(server)["broken_rings"] == count
        until(lambda words=words: words in server.process.log_tail(), f"the log has it: {words}")
    assert_served(server, next(own))


def test_messages_and_files_that_cannot_be_are_refused_by_name(server: Planed) -> None:
    own = clients(server)
    with Path("/dev/zero").open("rb") as zero:
        assert next(own).say(CONNECT) == DISCONNECT
        client = next(own)
        client.greet()
        assert client.say(ADD_REGION, struct.pack("<HQ", 0, MEMORY_BYTES), zero.fileno()) == DISCONNECT
        client = next(own)
        client.greet()
        assert client.say(ADD_RING, struct.pack("<HHHIBH", 1, 0, 0, 0, 4, 0), client.file) == DISCONNECT
    client = next(own)
    client.connect()
    os.ftruncate(client.file, 0)  # the server reads it all the time
    assert client.heard() == DISCONNECT
    assert_served(server, next(own))
    client = next(own)
    client.connect()
    os.set_blocking(client.bells[1], True)  # a worker would stand in it
    assert client.heard() == DISCONNECT
    refused = {key: count for key, count in port(server)["refused_messages"].items() if count}
    assert refused == {
        "not_negotiated": 1,
        "memory_file": 1,
        "no_eventfd": 1,
        "memory_gone": 1,
        "blocking_eventfd": 1,
    }


def test_a_second_client_is_refused_while_the_first_is_there(server: Planed) -> None:
    """Every frame of the first arrives meanwhile; when it has gone the next one is served."""
    own = clients(server)
    first = next(own)
    assert_served(server, first)
    before = port(server)["rx_packets"]
    for _ in range(20):
        said = heard_first(server.workdir / "m.sock")
        assert said == (DISCONNECT, "another one has the port, and is still connected")
        first.send()
        until(lambda: first.tail() == first.sent & 0xFFFF, "the frame is taken")
    assert port(server)["rx_packets"] == before + 20
    assert port(server)["refused_messages"] == {"taken": 20}
    assert_served(server, next(own))
    assert port(server)["refused_messages"] == {"taken": 20}


def test_half_a_handshake_makes_room_for_who_comes(server: Planed) -> None:
    with closing(MemifClient(server.workdir / "m.sock")) as half:
        half.greet()
        with closing(MemifClient(server.workdir / "m.sock")) as following:
            assert_served(server, following)
        assert half.heard() == DISCONNECT
    assert port(server)["refused_messages"] == {"idle": 1}


def test_a_handshake_goes_on_when_the_server_was_stopped_in_the_middle(server: Planed) -> None:
    with closing(MemifClient(server.workdir / "m.sock")) as client:
        client.greet()
        server.process.pause()
        time.sleep(DEADLINE_S + 0.5)
        server.process.resume()
        assert client.share() == ACK
        client.finish()
        until(lambda: bool(port(server)["link_up"]), "it is connected")
    assert port(server)["refused_messages"] == {}


def test_the_rate_of_new_connections(planed: Planed) -> None:
    """64 at once, then as many as the document says; who is connected keeps its connection, and its frames arrive."""
    listen(planed, connections_per_s=2)
    path, begin = planed.workdir / "m.sock", time.monotonic()
    with ExitStack() as stack:
        first = stack.enter_context(closing(MemifClient(path)))
        assert_served(planed, first)
        waiting = [stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)) for _ in range(63 + 5)]
        for client in waiting:
            client.settimeout(20)
            client.connect(str(path))
            assert client.recv(2) == struct.pack("<H", DISCONNECT)
        assert time.monotonic() - begin > 1
        for _ in range(5):
            first.send()
        until(lambda: port(planed)["rx_packets"] == 10, "all frames have come")
    assert port(planed)["refused_messages"] == {"taken": 63 + 5}


def exist_bytes(file: int) -> int:
    return os.fstat(file).st_blocks * 512


def test_pages_that_frames_make_have_a_limit(planed: Planed) -> None:
    """Those of a client's sparse memory that exist because the server touched them (test_vring_pages.py)."""
    wire = {"name": "m", "kind": "memif-server", "path": str(planed.workdir / "m.sock"), "max_charged_mb": 1}
    planed.apply([wire], [task("mon", "monitor", "m")])
    client = MemifClient(Path(wire["path"]))
    try:
        client.greet()
        os.ftruncate(client.file, SPARSE_BYTES)
        assert client.say(ADD_REGION, struct.pack("<HQ", 0, SPARSE_BYTES), client.file) == ACK
        client.finish()
        until(lambda: bool(port(planed)["link_up"]), "it is connected")
        for number in range(2 * MB // PAGE):
            until(
                lambda: client.sent - port(planed)["rx_packets"] < 1 << LOG2_SIZE or not port(planed)["link_up"],
                "the server takes frames, or has cut it off",
            )
            client.send(MEMORY_BYTES + number * PAGE)
        assert client.heard() == DISCONNECT
        assert exist_bytes(client.file) <= MB + MEMORY_BYTES
        assert port(planed)["refused_messages"] == {"memory_charged": 1}
        assert "max_charged_mb" in planed.process.log_tail()
    finally:
        client.close()
