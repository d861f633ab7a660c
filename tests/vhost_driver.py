# SPDX-License-Identifier: BSD-3-Clause
"""The driver's end of a vhost-user socket, by hand: enough to set up pairs of split rings, and to lie in them."""

from __future__ import annotations

import mmap
import os
import select
import socket
import struct
import sys
from contextlib import suppress
from pathlib import Path

GET_FEATURES, SET_FEATURES, SET_OWNER, SET_MEM_TABLE = 1, 2, 3, 5
SET_VRING_NUM, SET_VRING_ADDR, SET_VRING_BASE, GET_VRING_BASE = 8, 9, 10, 11
SET_VRING_KICK, SET_VRING_CALL = 12, 13
GET_PROTOCOL_FEATURES, GET_QUEUE_NUM = 15, 17
VERSION = 1
VERSION_1 = 1 << 32
MQ = 1 << 22
PROTOCOL_MQ = 1 << 0
RECEIVEQ, TRANSMITQ = 0, 1
RING_SIZE = 16
MEMORY_BYTES = 1 << 20
GUEST_ADDRESS = 0x100000
WRITABLE = 2
HEADER_BYTES, BUFFER_BYTES = 12, 2048
AVAIL, USED, RING_BYTES, BUFFERS = 0x1000, 0x2000, 0x4000, 0x10000
TABLE = GUEST_ADDRESS + 0x8000
"""Room for an indirect table."""


class VhostDriver:
    """A guest of one memory region with pairs of a receive and a transmit ring, all empty. Two pairs at most.

    ``multiqueue``: whether it says that it has several pairs (VIRTIO_NET_F_MQ); unsaid, it sets them up all the same.
    ``set_up``: whether it sends the messages of a start at all; if not, it only connects. ``accepts``: features that it
    accepts beside these.
    """

    def __init__(
        self, path: Path, pairs: int = 1, *, multiqueue: bool = True, set_up: bool = True, accepts: int = 0
    ) -> None:
        self.accepts = accepts
        self._fds: list[int] = []
        self.calls: list[int] = []
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.settimeout(10)
        self._socket.connect(str(path))
        self.memory_file = self._keep(os.memfd_create("guest"))
        os.ftruncate(self.memory_file, MEMORY_BYTES)
        self.memory = mmap.mmap(self.memory_file, MEMORY_BYTES)
        if set_up:
            self.begin(pairs, multiqueue=multiqueue)

    def begin(self, pairs: int, *, multiqueue: bool = True) -> None:
        """Send the messages of a start."""
        self._send(SET_OWNER)
        self.features = self._ask(GET_FEATURES)
        self._send(SET_FEATURES, struct.pack("<Q", VERSION_1 | self.accepts | (MQ if pairs > 1 and multiqueue else 0)))
        self.share_memory(MEMORY_BYTES)
        for queue in range(2 * pairs):
            self.set_up_ring(queue)

    def __enter__(self) -> VhostDriver:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def hang_up(self) -> None:
        """Close the connection, and keep the memory."""
        self._socket.close()

    def close(self) -> None:
        """Hang up, and give all away."""
        self.hang_up()
        self.memory.close()
        for fd in self._fds:
            os.close(fd)

    def share_memory(self, size_bytes: int) -> None:
        """Send the memory table: the first ``size_bytes`` of it are the guest's."""
        region = struct.pack("<IIQQQQ", 1, 0, GUEST_ADDRESS, size_bytes, 0, 0)
        self._send(SET_MEM_TABLE, region, self.memory_file)

    def resize_ring(self, queue: int, size: int) -> None:
        """Say that a ring is of another size, after its addresses were checked."""
        self._send(SET_VRING_NUM, struct.pack("<II", queue, size))

    def offer(self, queue: int, slot: int, address: int, length: int, flags: int = 0, following: int = 0) -> None:
        """Write descriptor ``slot`` and make it available."""
        self.write_descriptor(queue, slot, address, length, flags, following)
        (index,) = struct.unpack_from("<H", self.memory, queue * RING_BYTES + AVAIL + 2)
        self.write_entry(queue, index, slot)
        self.set_index(queue, index + 1)

    def write_descriptor(self, queue: int, slot: int, address: int, length: int, flags: int, following: int) -> None:
        struct.pack_into("<QIHH", self.memory, queue * RING_BYTES + slot * 16, address, length, flags, following)

    def write_entry(self, queue: int, index: int, slot: int) -> None:
        """Say which descriptor the buffer of an index begins with."""
        struct.pack_into("<H", self.memory, queue * RING_BYTES + AVAIL + 4 + index % RING_SIZE * 2, slot)

    def write(self, address: int, data: bytes) -> None:
        """Bytes into the guest's memory."""
        at = address - GUEST_ADDRESS
        self.memory[at : at + len(data)] = data

    def set_index(self, queue: int, index: int) -> None:
        """Say how many buffers were ever made available, in one store: struct.pack_into() would write zeros first."""
        at = queue * RING_BYTES + AVAIL + 2
        memoryview(self.memory)[at : at + 2].cast("H")[0] = index & 0xFFFF

    def used(self, queue: int) -> int:
        """How many buffers the device has ever given back."""
        (index,) = struct.unpack_from("<H", self.memory, queue * RING_BYTES + USED + 2)
        return int(index)

    def queue_num(self) -> int:
        """How many pairs the device says it has."""
        return self._ask(GET_QUEUE_NUM)

    def queue_num_with_a_file(self) -> None:
        """The same question with a descriptor attached that nobody asked for: the device hangs up."""
        self._send(GET_QUEUE_NUM, b"", self.memory_file)
        assert self._socket.recv(1) == b""

    def protocol_features(self) -> int:
        """What of the protocol the device offers."""
        return self._ask(GET_PROTOCOL_FEATURES)

    def fill_receiveq(self) -> None:
        """Make every receive buffer available, once."""
        for slot in range(RING_SIZE):
            self.offer(RECEIVEQ, slot, _buffer(RECEIVEQ, slot), BUFFER_BYTES, flags=WRITABLE)

    def flood(self) -> None:
        """Keep both rings full, for ever: frames as fast as the device takes them, whatever is in them."""
        self.fill_receiveq()
        for slot in range(RING_SIZE):
            self.offer(TRANSMITQ, slot, _buffer(TRANSMITQ, slot), HEADER_BYTES + 60)
        while True:
            for queue in (RECEIVEQ, TRANSMITQ):
                self.set_index(queue, self.used(queue) + RING_SIZE)

    def send_message(self, request: int, payload: bytes = b"", *fds: int) -> None:
        """Send a message of any kind, with descriptors."""
        self._send(request, payload, *fds)

    def send_bytes(self, data: bytes, *fds: int) -> None:
        """Send what is no message, or a part of one, or one that no driver sends; with descriptors."""
        socket.send_fds(self._socket, [data], fds)

    def hung_up(self) -> bool:
        """Whether the device has gone; waits for it."""
        try:
            return self._socket.recv(1) == b""
        except ConnectionResetError:
            return True

    def is_gone(self) -> bool:
        """Whether the device has gone by now, and there is no reply to be read."""
        return bool(select.select([self._socket], [], [], 0)[0]) and self.hung_up()

    def be_impatient(self) -> None:
        """Wait for the device a quarter of a second at most, from here on."""
        self._socket.settimeout(0.25)

    def settle(self) -> None:
        """Wait until the device has handled every message that was sent."""
        self._ask(GET_FEATURES)

    def set_up_ring(self, queue: int) -> None:
        """Send what a ring of RING_SIZE needs to be used."""
        self._send(SET_VRING_NUM, struct.pack("<II", queue, RING_SIZE))
        self._send(SET_VRING_BASE, struct.pack("<II", queue, 0))
        self.place_ring(queue)
        self.calls.append(self._keep(os.eventfd(0)))
        self._send(SET_VRING_CALL, struct.pack("<Q", queue), self.calls[-1])
        self._send(SET_VRING_KICK, struct.pack("<Q", queue), self._keep(os.eventfd(0)))

    def place_ring(self, queue: int) -> None:
        """Say where a ring is. Said again, the device takes it from its worker and gives it back."""
        base = queue * RING_BYTES
        self._send(SET_VRING_ADDR, struct.pack("<IIQQQQ", queue, 0, base, base + USED, base + AVAIL, 0))

    def make_calls_block(self, *queues: int) -> None:
        """Fill the eventfds of rings that are set up, and have writes to them wait."""
        for event in (self.calls[queue] for queue in queues):
            with suppress(BlockingIOError):
                os.eventfd_read(event)
            os.eventfd_write(event, 2**64 - 2)
            os.set_blocking(event, True)

    def stop_ring(self, queue: int) -> None:
        """Have the device stop using a ring, as a guest does that is reset."""
        self._send(GET_VRING_BASE, struct.pack("<II", queue, 0))
        self._reply()

    def _keep(self, fd: int) -> int:
        self._fds.append(fd)
        return fd

    def _send(self, request: int, payload: bytes = b"", *fds: int, flags: int = VERSION) -> None:
        socket.send_fds(self._socket, [struct.pack("<III", request, flags, len(payload)) + payload], fds)

    def _ask(self, request: int) -> int:
        self._send(request)
        return self._reply()

    def _reply(self) -> int:
        reply = self._socket.recv(12 + 8, socket.MSG_WAITALL)
        return int(struct.unpack("<IIIQ", reply)[3])


def _buffer(queue: int, slot: int) -> int:
    """The guest address of the buffer that belongs to a slot."""
    return GUEST_ADDRESS + BUFFERS + (queue * RING_SIZE + slot) * BUFFER_BYTES


if __name__ == "__main__":
    with VhostDriver(Path(sys.argv[1])) as guest:
        guest.flood()
