# SPDX-License-Identifier: BSD-3-Clause
"""Capture files for tests, as in their specification (draft-ietf-opsawg-pcap)."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from pathlib import Path

ETHERNET = 1
FCS_OF_4_BYTES = 0x24000000
"""Bits of the link type: frames have an FCS of two 16-bit words."""

MACS = bytes.fromhex("020000000001020000000002")
UDP = bytes.fromhex("4500002e0000400040110000c6120001c6130001") + bytes.fromhex("03e807d0001a0000") + bytes(18)
UDP_FRAME = MACS + b"\x08\x00" + UDP
"""60 bytes: 64 with FCS."""
ARP_FRAME = MACS + b"\x08\x06" + bytes(46)

Record = tuple[float, bytes, int]
"""Seconds, bytes, length on the wire."""


def tagged(*tags: int) -> bytes:
    """A frame with these tag protocol identifiers."""
    return MACS + b"".join(struct.pack("!HH", tag, 5) for tag in tags) + b"\x08\x00" + UDP


def frames(*times_s: float, data: bytes = UDP_FRAME, length: int = 0) -> list[Record]:
    return [(time_s, data, length or len(data)) for time_s in times_s]


def save(
    path: Path,
    records: Iterable[Record],
    *,
    order: str = "<",
    nano: bool = False,
    link: int = ETHERNET,
    snaplen: int = 65535,
) -> Path:
    magic, units = (0xA1B23C4D, 1e9) if nano else (0xA1B2C3D4, 1e6)
    text = struct.pack(f"{order}IHHIIII", magic, 2, 4, 0, 0, snaplen, link)
    for time_s, data, length in records:
        text += struct.pack(f"{order}IIII", int(time_s), round(time_s % 1 * units), len(data), length) + data
    path.write_bytes(text)
    return path
