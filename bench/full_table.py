# SPDX-License-Identifier: BSD-3-Clause
"""A full table of the Internet as to its size and the lengths of its prefixes, drawn from a seed: the prefixes are none
of anybody's."""

from __future__ import annotations

import random
import socket
import struct
from collections.abc import Iterator

LENGTHS4 = {
    24: 60.0, 23: 10.0, 22: 10.5, 21: 4.7, 20: 4.6, 19: 2.6, 18: 1.4, 17: 0.8, 16: 1.35, 15: 0.2, 14: 0.12, 13: 0.06,
    12: 0.03, 11: 0.01, 10: 0.004, 9: 0.0013, 8: 0.0016,
}  # fmt: skip
LENGTHS6 = {
    48: 45.0, 32: 15.0, 44: 9.0, 40: 8.0, 36: 5.0, 46: 4.5, 47: 3.0, 29: 3.0, 45: 2.0, 42: 1.6, 33: 1.2, 34: 0.9,
    43: 0.6, 38: 0.5, 35: 0.3, 39: 0.2, 41: 0.15, 30: 0.1, 28: 0.05,
}  # fmt: skip
"""Shares in percent, rounded; of what is missing in 100 the most frequent length has its part."""

Route = tuple[bytes, int]
"""Address and length."""


def full_table(routes4: int, routes6: int, seed: int) -> list[Route]:
    """Return that many different prefixes of IPv4, then of IPv6, each in random order."""
    rng = random.Random(seed)
    return [*_drawn(rng, routes4, LENGTHS4, 32), *_drawn(rng, routes6, LENGTHS6, 128)]


def _drawn(rng: random.Random, count: int, shares: dict[int, float], bits: int) -> Iterator[Route]:
    seen: set[tuple[int, int]] = set()
    lengths = list(shares)
    weights = list(shares.values())
    while len(seen) < count:
        for length in rng.choices(lengths, weights, k=count - len(seen)):
            address = rng.getrandbits(length) << bits - length
            if bits == 128:
                address = address & (1 << 125) - 1 | 1 << 125  # 2000::/3
            if _is_public(address, bits) and (address, length) not in seen:
                seen.add((address, length))
                yield address.to_bytes(bits // 8), length


def _is_public(address: int, bits: int) -> bool:
    """Return whether an address is not of the networks of the bench itself, of this host, or of groups."""
    if bits == 128:
        return address >> 96 != 0x20010DB8
    return address >> 24 not in (0, 10, 127) and address >> 24 < 224


def text(route: Route) -> str:
    """Return a prefix as people write it."""
    address, length = route
    return f"{socket.inet_ntop(socket.AF_INET if len(address) == 4 else socket.AF_INET6, address)}/{length}"


def packed(route: Route) -> bytes:
    """Return 18 bytes: family, length, address; the input of fib_client_bench."""
    address, length = route
    return struct.pack("BB16s", 4 if len(address) == 4 else 6, length, address)
