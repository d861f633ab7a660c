# SPDX-License-Identifier: BSD-3-Clause
"""nat44 in the micro-benchmark of network functions: established UDP sessions of 64 B frames, from one to a million.

Frames come from inside in a shuffled order; the million needs the addresses that it is spread over. "in" is the default
forward, from outside.
"""

from __future__ import annotations

import random
import socket
import struct
from pathlib import Path

from nf_case import Case, FrameIn

_TABLE = {"sessions_max": 1 << 21, "outside": [f"203.0.113.{i}" for i in range(1, 65)]}


def _checksum(data: bytes) -> int:
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def _frame(src: str, src_port: int, dst: str, dst_port: int, protocol: int = 17) -> bytes:
    """A frame of 64 B with its FCS. A transport checksum that is wrong costs what one that is right does."""
    head = struct.pack("!BBHHHBBH", 0x45, 0, 46, 0, 0x4000, 64, protocol, 0)
    head += socket.inet_aton(src) + socket.inet_aton(dst)
    head = head[:10] + struct.pack("!H", _checksum(head)) + head[12:]
    ports = struct.pack("!HH", src_port, dst_port)
    transport = struct.pack("!HH", 26, 0x1234) if protocol == 17 else struct.pack("!IIHHHH", 1, 1, 0x5010, 1, 0x1234, 0)
    return (bytes(12) + b"\x08\x00" + head + ports + transport).ljust(60, b"\0")


def _inside(sessions: int, protocol: int = 17) -> list[FrameIn]:
    """A frame of each session, shuffled; of one session 4096."""
    rng = random.Random(44)
    flows = [
        (f"10.{n >> 16}.{n >> 8 & 255}.{n >> 4 & 15}", rng.randrange(64) * 1000 + 1024 + n % 16)
        for n in range(sessions)
    ]
    rng.shuffle(flows)
    frames = [FrameIn(_frame(ip, port, "192.0.2.1", 53, protocol)) for ip, port in flows]
    return frames * max(1, 4096 // sessions)


def cases(folder: Path) -> list[Case]:
    """The cases; files that they need go to ``folder``."""
    task = {"kind": "nat44", "settings": _TABLE}
    default = FrameIn(_frame("198.18.1.1", 49153, "198.19.1.1", 28770), port=1)
    return [
        Case("nat44 UDP out, 1 session", task, _inside(1)),
        Case("nat44 UDP out, 1,000 sessions", task, _inside(1000)),
        Case("nat44 UDP out, 1,000,000 sessions", task, _inside(1_000_000)),
        Case("nat44 TCP out, 1,000 sessions", task, _inside(1000, 6)),
        Case("nat44 UDP in, default forward", {"kind": "nat44"}, [default] * 4096),
    ]
