# SPDX-License-Identifier: BSD-3-Clause
"""load_balancer in the micro-benchmark of network functions, by the number of connections, and without any."""

from __future__ import annotations

import random
import struct
from pathlib import Path

from nf_case import Case, FrameIn

FLOWS = (1, 1000, 100_000)


def _flow_frames(flows: int) -> list[FrameIn]:
    """64 B UDP frames to a service of the defaults, of so many sources, in a random order."""
    rng = random.Random(flows)
    numbers = list(range(flows)) * max(1, 8192 // flows)
    rng.shuffle(numbers)
    return [FrameIn(_frame(number)) for number in numbers]


def _frame(number: int) -> bytes:
    words = [0x4500, 46, 0, 0, 0x4011, 0, 0xC612 + number // 65536, number % 65536, 0xC613, 1]
    total = sum(words)
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    words[5] = total ^ 0xFFFF
    udp = struct.pack("!HHHH", 1024 + number % 7, 28770, 26, 0) + bytes(18)
    return b"\x02\0\0\0\x01\0\x02\0\0\0\0\0\x08\0" + struct.pack("!10H", *words) + udp


def cases(folder: Path) -> list[Case]:
    """The cases; files that they need go to ``folder``."""
    tables = {"": 131_072, ", no connections kept": 0}
    return [
        Case(
            f"load_balancer, {flows} flows{name}",
            {"kind": "load_balancer", "settings": {"connections": connections}},
            _flow_frames(flows),
        )
        for name, connections in tables.items()
        for flows in FLOWS
    ]
