# SPDX-License-Identifier: BSD-3-Clause
"""The device's end of a vhost-user socket, by hand: one driver at a time, honest but for one answer, or for its rings.

It forwards nothing. Its rings are the driver's memory, mapped here: tests write into them what no device should.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import select
import socket
import struct
import threading
import time
from collections.abc import Callable
from pathlib import Path

from planebench.host.process import stretched

GET_FEATURES, SET_FEATURES, SET_OWNER, SET_MEM_TABLE = 1, 2, 3, 5
SET_VRING_NUM, SET_VRING_ADDR, SET_VRING_BASE, GET_VRING_BASE = 8, 9, 10, 11
SET_VRING_KICK, SET_VRING_CALL = 12, 13
GET_PROTOCOL_FEATURES, SET_PROTOCOL_FEATURES, GET_QUEUE_NUM, SET_VRING_ENABLE = 15, 16, 17, 18
VERSION, REPLY, NEED_REPLY = 1, 4, 8
VERSION_1, IN_ORDER, PROTOCOL_FEATURES = 1 << 32, 1 << 35, 1 << 30
MQ, REPLY_ACK = 1 << 0, 1 << 3
RECEIVEQ, TRANSMITQ = 0, 1
HEADER = struct.Struct("<III")

STEPS = (
    [SET_OWNER, GET_FEATURES, GET_PROTOCOL_FEATURES, SET_PROTOCOL_FEATURES, GET_QUEUE_NUM, SET_FEATURES, SET_MEM_TABLE]
    + [SET_VRING_NUM, SET_VRING_BASE, SET_VRING_ADDR, SET_VRING_CALL, SET_VRING_KICK] * 2
    + [SET_VRING_ENABLE] * 2
)
"""What a driver of one queue pair says, in this order."""

Answer = Callable[[socket.socket, int, int], None]
"""Instead of the honest answer: connection, request, the number that the honest answer has."""


def reply(connection: socket.socket, request: int, number: int) -> None:
    """The honest answer."""
    connection.sendall(HEADER.pack(request, VERSION | REPLY, 8) + struct.pack("<Q", number))


class VhostDevice:
    """Listens, in a thread of its own. ``dishonest``: which message, counted from 0, is answered by ``answer``."""

    def __init__(
        self,
        path: Path,
        *,
        dishonest: int = -1,
        answer: Answer = reply,
        features: int = VERSION_1 | IN_ORDER | PROTOCOL_FEATURES,
        protocol_features: int = MQ | REPLY_ACK,
    ) -> None:
        self.heard: list[int] = []
        self.rings: dict[int, Ring] = {}
        self._numbers = {GET_FEATURES: features, GET_PROTOCOL_FEATURES: protocol_features, GET_QUEUE_NUM: 8}
        self.answered_badly = False
        self._dishonest, self._answer = dishonest, answer
        self._kicks: dict[int, int] = {}
        self._acknowledge = False
        self.connection: socket.socket | None = None
        self._memory: list[tuple[int, int, mmap.mmap]] = []
        self.files: list[int] = []
        """Behind the driver's memory, of all connections."""
        self._sizes: dict[int, int] = {}
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(str(path))
        self._listener.listen(1)
        self._path = path
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def __enter__(self) -> VhostDevice:
        return self

    def __exit__(self, *_: object) -> None:
        self._path.unlink()
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.hang_up()
        self._thread.join(10)
        for queue in list(self._kicks):
            self._close_kick(queue)
        for fd in self.files:
            os.close(fd)

    def answer_badly(self, step: int, answer: Answer) -> None:
        """Answer so to this message, counted from 0 over all connections."""
        self.answered_badly = False
        self._dishonest, self._answer = step, answer

    def kicked(self, queue: int) -> bool:
        """Whether the driver has kicked this ring."""
        return bool(select.select([self._kicks[queue]], [], [], 0)[0])

    def forget_kicks(self, queue: int) -> None:
        """As if the driver had not kicked it yet."""
        if self.kicked(queue):
            os.read(self._kicks[queue], 8)

    def hang_up(self) -> None:
        """End the connection, if there is one."""
        if self.connection is not None:
            with contextlib.suppress(OSError):
                self.connection.shutdown(socket.SHUT_RDWR)

    def say(self, data: bytes) -> None:
        """Say something that nobody has asked for."""
        assert self.connection is not None
        self.connection.sendall(data)

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                self.connection, self.rings, self._acknowledge = connection, {}, False
                with connection, contextlib.suppress(OSError, EOFError):
                    while True:
                        self._one(connection)
                self.connection = None

    def _one(self, connection: socket.socket) -> None:
        data, fds, _, _ = socket.recv_fds(connection, HEADER.size, 8)
        if len(data) < HEADER.size:
            raise EOFError
        request, flags, size = HEADER.unpack(data)
        payload = connection.recv(size, socket.MSG_WAITALL) if size else b""
        number = self._do(request, payload, fds)
        step, _ = len(self.heard), self.heard.append(request)
        if step == self._dishonest:
            self._answer(connection, request, number)
            self.answered_badly = True
        elif request == GET_VRING_BASE:
            connection.sendall(HEADER.pack(request, VERSION | REPLY, 8) + struct.pack("<II", payload[0], 0))
        elif request in self._numbers or flags & NEED_REPLY:
            reply(connection, request, number)

    def _do(self, request: int, payload: bytes, fds: list[int]) -> int:
        if request == SET_MEM_TABLE:
            self._map(payload, fds)
        elif request == SET_VRING_KICK:
            queue = payload[0]
            self._close_kick(queue)
            self._kicks[queue] = os.dup(fds[0])
        elif request == SET_VRING_NUM:
            index, size = struct.unpack("<II", payload)
            self._sizes[index] = size
        elif request == SET_VRING_ADDR:
            index, _, desc, used, avail, _ = struct.unpack("<IIQQQQ", payload)
            self.rings[index] = Ring(self, self._sizes[index], desc, used, avail)
        for fd in fds:
            os.close(fd)
        return self._numbers.get(request, 0)

    def _close_kick(self, queue: int) -> None:
        if queue in self._kicks:
            os.close(self._kicks.pop(queue))

    def _map(self, payload: bytes, fds: list[int]) -> None:
        (count,) = struct.unpack_from("<I", payload)
        assert count == len(fds)
        self._memory = []
        for index, fd in enumerate(fds):
            guest, size, _, offset = struct.unpack_from("<QQQQ", payload, 8 + 32 * index)
            self._memory.append((guest, size, mmap.mmap(fd, size, offset=offset)))
            self.files.append(os.dup(fd))

    def bytes_at(self, address: int, size: int) -> memoryview:
        """Memory of the driver."""
        for guest, region_size, region in self._memory:
            if guest <= address and address + size <= guest + region_size:
                return memoryview(region)[address - guest :][:size]
        raise AssertionError(f"0x{address:x} is not in the memory table")


class Ring:
    """A split ring of the driver; the device's half of it, by hand."""

    def __init__(self, device: VhostDevice, size: int, desc: int, used: int, avail: int) -> None:
        self.size = size
        self._device = device
        self._desc, self._used, self._avail = desc, used, avail
        self.at = desc

    @property
    def available(self) -> int:
        """How many buffers the driver has ever made available, modulo 65536."""
        return int(self._device.bytes_at(self._avail + 2, 2).cast("H")[0])

    def descriptor(self, slot: int) -> tuple[int, int, int, int]:
        """Address, length, flags and next."""
        return struct.unpack("<QIHH", self._device.bytes_at(self._desc + 16 * slot, 16))  # type: ignore[return-value]

    def frame(self, slot: int) -> bytes:
        """The bytes of a buffer behind the header."""
        address, length, _, _ = self.descriptor(slot)
        return bytes(self._device.bytes_at(address, length))[12:]

    def use(self, index: int, slot: int, length: int) -> None:
        """Write a used element; nobody sees it before :meth:`publish`."""
        at = self._device.bytes_at(self._used + 4 + index % self.size * 8, 8).cast("I")
        at[1], at[0] = length, slot

    def publish(self, index: int) -> None:
        """Say how many buffers were ever used, in one store."""
        self._device.bytes_at(self._used + 2, 2).cast("H")[0] = index & 0xFFFF

    def be_silent(self, silent: bool = True) -> None:
        """Say that this device polls and wants no kicks; or that it sleeps."""
        self._device.bytes_at(self._used, 2).cast("H")[0] = silent


def wait_for(condition: Callable[[], bool], what: str, seconds: float = 30) -> None:
    """Until it is so."""
    end = time.monotonic() + stretched(seconds)
    while not condition():
        assert time.monotonic() < end, f"waited in vain until {what}"
        time.sleep(0.005)
