# SPDX-License-Identifier: BSD-3-Clause
"""The number, sizes and duration of the frames in a capture file, which a plan must know before a run.

Classic pcap, microseconds and nanoseconds, either byte order. Only frames that the generator sends count: IPv4 or IPv6
with UDP or TCP. It has rarer reasons to skip a frame, which its report lists.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path

from planebench.model.errors import UsageError

FRAMES_MAX = 4_000_000
"""planed's maximum in memory."""
FCS_BYTES, FRAME_MIN_BYTES, RECORD_MAX_BYTES = 4, 64, 1 << 18

_FRACTIONS = {0xA1B2C3D4: 1e6, 0xA1B23C4D: 1e9}
_ETHERNET = 1
_VLANS = frozenset({b"\x81\x00", b"\x88\xa8"})
_TRANSPORTS = frozenset({6, 17})
HEADERS_BYTES = 128


@dataclass(frozen=True, slots=True)
class CaptureFacts:
    """Frame sizes with FCS, as on the wire; ``period_s`` is the duration with a mean gap at the end of the file."""

    frames: int
    mean_frame_bytes: float
    max_frame_bytes: int
    period_s: float


def capture_facts(path: Path) -> CaptureFacts:
    """Return the facts of a pcap file. Raises UsageError, naming the file, for any other file."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from None
    order, fraction = _format(data, path)
    record = struct.Struct(f"{order}IIII")
    offset, sizes, largest, frames = 24, 0, 0, 0
    first = last = 0.0
    while offset + record.size <= len(data):
        seconds, part, captured, length = record.unpack_from(data, offset)
        if captured > RECORD_MAX_BYTES or offset + record.size + captured > len(data):
            raise UsageError(f"{path}: the frame at byte {offset} is cut off or damaged; repair the file with editcap")
        offset += record.size
        if _sent(data[offset : offset + min(captured, HEADERS_BYTES)]):
            last = seconds + part / fraction
            first = last if frames == 0 else first
            size = max(FRAME_MIN_BYTES, length + FCS_BYTES)
            sizes, largest, frames = sizes + size, max(largest, size), frames + 1
        offset += captured
    if not 1 <= frames <= FRAMES_MAX:
        raise UsageError(
            f"{path} has {frames} UDP or TCP frames over IP. Valid: 1 to {FRAMES_MAX}; shorten it with editcap"
        )
    period_s = (last - first) * frames / (frames - 1) if frames > 1 else 0.0
    return CaptureFacts(frames, sizes / frames, largest, max(0.0, period_s))


def _sent(frame: bytes) -> bool:
    """Return whether a frame is IPv4 or IPv6 with UDP or TCP, and not a fragment, by its first bytes."""
    at = 12
    while frame[at : at + 2] in _VLANS:
        at += 4
    kind, packet = frame[at : at + 2], frame[at + 2 :]
    if kind == b"\x08\x00" and len(packet) >= 20:
        return packet[9] in _TRANSPORTS and not int.from_bytes(packet[6:8], "big") & 0x3FFF
    return kind == b"\x86\xdd" and len(packet) >= 40 and packet[6] in _TRANSPORTS


def _format(data: bytes, path: Path) -> tuple[str, float]:
    """Return byte order and fractions of a second, from the magic number."""
    for order in "<>":
        magic = struct.unpack_from(f"{order}I", data)[0] if len(data) >= 24 else 0
        if magic in _FRACTIONS:
            if struct.unpack_from(f"{order}I", data, 20)[0] & 0xFFFF != _ETHERNET:
                raise UsageError(f"{path}: link type is not Ethernet; capture on an Ethernet interface")
            return order, _FRACTIONS[magic]
    raise UsageError(f"{path} is not a pcap file; convert pcapng with: editcap -F pcap IN OUT")
