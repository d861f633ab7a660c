# SPDX-License-Identifier: BSD-3-Clause
"""A guest with offloads, by hand: frames with the virtio-net headers that it is told to send, and those that come."""

from __future__ import annotations

import struct
from pathlib import Path

from planed_rig import until
from vhost_driver import GUEST_ADDRESS, RECEIVEQ, RING_BYTES, RING_SIZE, TRANSMITQ, USED, WRITABLE, VhostDriver

CSUM, GUEST_CSUM, GUEST_TSO4, HOST_TSO4 = (1 << bit for bit in (0, 1, 7, 11))
ALL = CSUM | GUEST_CSUM | GUEST_TSO4 | HOST_TSO4
HEADER = struct.Struct("<BBHHHHH")
"""flags, gso_type, hdr_len, gso_size, csum_start, csum_offset, num_buffers"""
NOTHING = (0, 0, 0, 0, 0, 0, 1)
TCP4 = (1, 1, 0, 1000, 34, 16, 0)
ROOM, ROOMS, FRAME = 0x5000, 0x40000, 0x90000
PAYLOAD = bytes(number * 7 & 0xFF for number in range(10_000))


def checksum(data: bytes) -> int:
    """RFC 1071."""
    total = sum(struct.unpack(f"!{(len(data) + 1) // 2}H", data + bytes(len(data) % 2)))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def tcp_frame(to: int, source: int, payload: bytes = PAYLOAD) -> bytes:
    """IPv4 and TCP, whose checksum field has the sum of the pseudo header."""
    addresses = bytes([2, 0, 0, 0, 0, to, 2, 0, 0, 0, 0, source])
    ip = struct.pack("!BBHHHBBH", 0x45, 0, 40 + len(payload), 7, 0x4000, 64, 6, 0) + bytes([10, 0, 0, 1, 10, 0, 0, 2])
    ip = ip[:10] + struct.pack("!H", checksum(ip)) + ip[12:]
    pseudo = ~checksum(ip[12:20] + struct.pack("!HH", 6, 20 + len(payload))) & 0xFFFF
    return addresses + b"\x08\x00" + ip + struct.pack("!HHIIBBHHH", 1, 2, 5, 6, 0x50, 0x19, 9, pseudo, 0) + payload


class Guest:
    """A driver with offloads: it sends one frame at a time and keeps those that come, with their headers."""

    def __init__(self, path: Path, accepts: int) -> None:
        self.driver = VhostDriver(path, accepts=accepts)
        self.sent = self.seen = 0
        for slot in range(RING_SIZE):
            self._lend(slot)

    def send(self, frame: bytes, header: tuple[int, ...] = NOTHING) -> None:
        """Wait until it is taken, too."""
        data = HEADER.pack(*header) + frame
        self.driver.memory[FRAME : FRAME + len(data)] = data
        self.driver.offer(TRANSMITQ, self.sent % RING_SIZE, GUEST_ADDRESS + FRAME, len(data))
        self.sent += 1
        until(lambda: self.driver.used(TRANSMITQ) == self.sent, "the frame is taken")

    def received(self, count: int) -> list[tuple[tuple[int, ...], bytes]]:
        """The next ``count`` frames."""
        until(lambda: self.driver.used(RECEIVEQ) >= self.seen + count, f"{count} frames come")
        assert self.driver.used(RECEIVEQ) == self.seen + count
        frames = []
        for _ in range(count):
            at = RECEIVEQ * RING_BYTES + USED + 4 + self.seen % RING_SIZE * 8
            slot, length = struct.unpack_from("<II", self.driver.memory, at)
            data = bytes(self.driver.memory[ROOMS + slot * ROOM :][:length])
            frames.append((HEADER.unpack_from(data), data[HEADER.size :]))
            self._lend(slot)
            self.seen += 1
        return frames

    def _lend(self, slot: int) -> None:
        self.driver.offer(RECEIVEQ, slot, GUEST_ADDRESS + ROOMS + slot * ROOM, ROOM, flags=WRITABLE)
