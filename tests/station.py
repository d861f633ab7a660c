# SPDX-License-Identifier: BSD-3-Clause
"""A guest that sends the frames it is told to and keeps those that come, by hand: which frame went where, exactly."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path

from planed_rig import until
from vhost_driver import BUFFERS, GUEST_ADDRESS, RECEIVEQ, RING_BYTES, RING_SIZE, TRANSMITQ, USED, VhostDriver

HEADER_BYTES = 12
ROOM_BYTES = 2048
NEXT, WRITE = 1, 2
RECEIVE_BUFFERS = BUFFERS + RING_SIZE * ROOM_BYTES
BROADCAST = "ff:ff:ff:ff:ff:ff"


def mac(number: int) -> str:
    """The address of a station."""
    return f"02:00:00:00:00:{number:02x}"


def frame(to: str, source: str, *, tci: int | None = None, length: int = 64, fill: int = 0) -> bytes:
    """A frame of ``length`` bytes without its tag."""
    tag = b"" if tci is None else struct.pack("!HH", 0x8100, tci)
    addresses = bytes.fromhex((to + source).replace(":", ""))
    return addresses + tag + b"\x08\x00" + bytes([fill]) * (length - 14)


class Station:
    """A driver with a full receive ring."""

    def __init__(self, path: Path) -> None:
        self.driver = VhostDriver(path)
        self.sent = self._seen = self._slots = 0
        for slot in range(RING_SIZE):
            self._lend(slot)

    def send(self, *frames: bytes, pieces: Sequence[int] = ()) -> None:
        """Send frames, each as a chain of descriptors cut behind these bytes of it; wait until they are taken."""
        for data in frames:
            self._send_chain(bytes(HEADER_BYTES) + data, [HEADER_BYTES + cut for cut in pieces])
        until(lambda: self.driver.used(TRANSMITQ) == self.sent & 0xFFFF, "the frames are taken")

    def received(self) -> list[bytes]:
        """The frames that came since last time."""
        frames, count = [], (self.driver.used(RECEIVEQ) - self._seen) & 0xFFFF
        for _ in range(count):
            at = RECEIVEQ * RING_BYTES + USED + 4 + self._seen % RING_SIZE * 8
            slot, length = struct.unpack_from("<II", self.driver.memory, at)
            start = RECEIVE_BUFFERS + slot * ROOM_BYTES
            frames.append(bytes(self.driver.memory[start + HEADER_BYTES : start + length]))
            self._lend(slot)
            self._seen += 1
        return frames

    def close(self) -> None:
        """Disconnect."""
        self.driver.__exit__()

    def _lend(self, slot: int) -> None:
        address = GUEST_ADDRESS + RECEIVE_BUFFERS + slot * ROOM_BYTES
        self.driver.offer(RECEIVEQ, slot, address, ROOM_BYTES, flags=WRITE)

    def _send_chain(self, data: bytes, cuts: Sequence[int]) -> None:
        """The head of a chain is made available last: its descriptors are written before."""
        edges = [0, *cuts, len(data)]
        slots = [(self._slots + number) % RING_SIZE for number in range(len(edges) - 1)]
        self._slots += len(slots)
        start = BUFFERS + slots[0] * ROOM_BYTES
        self.driver.memory[start : start + len(data)] = data
        for number in reversed(range(len(slots))):
            last = number == len(slots) - 1
            address, length = GUEST_ADDRESS + start + edges[number], edges[number + 1] - edges[number]
            flags, following = (0, 0) if last else (NEXT, slots[number + 1])
            if number:
                at = TRANSMITQ * RING_BYTES + slots[number] * 16
                struct.pack_into("<QIHH", self.driver.memory, at, address, length, flags, following)
            else:
                self.driver.offer(TRANSMITQ, slots[0], address, length, flags, following)
        self.sent += 1
