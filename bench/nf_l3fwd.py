# SPDX-License-Identifier: BSD-3-Clause
"""l3fwd in the micro-benchmark of network functions: the ten default routes, and tables as large as the Internet's.

The large tables are random, of the lengths that the Internet's have: 60 % of a million IPv4 prefixes are /24, 1 % are
longer, the others /8 to /23; of 200,000 IPv6 prefixes half are /48. Every frame goes to an address of its own, below
a prefix drawn from the table: 2^19 of them, so that no cache holds what was looked up before. A million random host
routes are looked up both ways, by prefix match and by cuckoo.
"""

from __future__ import annotations

import ipaddress
from pathlib import Path

import numpy as np
from nf_case import Case, FrameIn

FRAMES = 1 << 19
ROUTES = 1_000_000
ROUTES_IPV6 = 200_000
_LENGTHS = {
    **dict.fromkeys(range(8, 16), 0.001),
    16: 0.015,
    17: 0.01,
    18: 0.015,
    19: 0.025,
    20: 0.045,
    21: 0.055,
    22: 0.12,
    23: 0.097,
}
_LENGTHS |= {24: 0.60, **dict.fromkeys(range(25, 33), 0.01 / 8)}
_LENGTHS_IPV6 = {29: 0.03, 32: 0.15, 36: 0.05, 40: 0.10, 44: 0.10, 46: 0.04, 47: 0.03, 48: 0.49, 56: 0.005, 64: 0.005}


def cases(folder: Path) -> list[Case]:
    """The cases; files that they need go to ``folder``."""
    rng = np.random.default_rng(5)
    return [_ten_routes(), _internet(folder, rng), _internet_ipv6(folder, rng), *_hosts(folder, rng)]


def _ten_routes() -> Case:
    sources = np.full(4096, 0xC6120001, dtype=np.uint64)
    destinations = 0xC6130001 + (np.arange(4096, dtype=np.uint64) % 8 << np.uint64(8))
    return Case("l3fwd, 10 routes", {"kind": "l3fwd"}, _frames(sources, destinations), 25e6)


def _internet(folder: Path, rng: np.random.Generator) -> Case:
    lengths = _draw(rng, _LENGTHS, ROUTES * 11 // 10)
    addresses = rng.integers(1 << 24, 224 << 24, len(lengths), dtype=np.uint64)
    first = addresses >> np.uint64(24)
    good = (first != 127) & (first != 169)
    lengths, addresses = lengths[good], addresses[good]
    addresses &= ~((np.uint64(1) << (np.uint64(32) - lengths)) - np.uint64(1))
    keys = rng.permutation(np.unique(addresses << np.uint64(8) | lengths))[:ROUTES]
    lengths, addresses = keys & np.uint64(255), keys >> np.uint64(8)
    file = folder / "internet.txt"
    file.write_text("".join(f"{ipaddress.IPv4Address(int(a))}/{n}\n" for a, n in zip(addresses, lengths, strict=True)))
    to = rng.integers(0, len(keys), FRAMES)
    below = rng.integers(0, 1 << 32, FRAMES, dtype=np.uint64) & (
        (np.uint64(1) << (np.uint64(32) - lengths[to])) - np.uint64(1)
    )
    frames = _frames(rng.integers(1 << 24, 100 << 24, FRAMES, dtype=np.uint64), addresses[to] | below)
    return Case(f"l3fwd, {len(keys)} routes", _task(file), frames, 15e6, size_mb=768)


def _internet_ipv6(folder: Path, rng: np.random.Generator) -> Case:
    lengths = _draw(rng, _LENGTHS_IPV6, ROUTES_IPV6)
    upper = (np.uint64(1) << np.uint64(61)) | rng.integers(0, 1 << 61, ROUTES_IPV6, dtype=np.uint64)  # 2000::/3
    upper &= ~((np.uint64(1) << (np.uint64(64) - lengths)) - np.uint64(1))
    routes = sorted({(int(a) << 64, int(n)) for a, n in zip(upper, lengths, strict=True)})
    file = folder / "internet6.txt"
    file.write_text("".join(f"{ipaddress.IPv6Address(a)}/{n}\n" for a, n in routes))
    source = ipaddress.IPv6Address("2001:db8::1").packed
    head = bytes.fromhex("020000000100 020000000000 86dd 60000000 0008 11 40") + source
    tail = bytes.fromhex("0001 0002 0008 0000")
    hosts = rng.bytes(16 * FRAMES)
    frames = []
    for i, to in enumerate(rng.integers(0, len(routes), FRAMES)):
        address, length = routes[to]
        below = int.from_bytes(hosts[16 * i : 16 * i + 16]) >> length
        frames.append(FrameIn(head + (address | below).to_bytes(16) + tail))
    return Case(f"l3fwd, {len(routes)} routes of IPv6", _task(file), frames, size_mb=1024)


def _hosts(folder: Path, rng: np.random.Generator) -> list[Case]:
    addresses = rng.permutation(np.unique(rng.integers(1 << 24, 100 << 24, ROUTES * 11 // 10, dtype=np.uint64)))[
        :ROUTES
    ]
    file = folder / "hosts.txt"
    file.write_text("".join(f"{ipaddress.IPv4Address(int(a))}\n" for a in addresses))
    to = addresses[rng.integers(0, ROUTES, FRAMES)]
    frames = _frames(rng.integers(1 << 24, 100 << 24, FRAMES, dtype=np.uint64), to)
    return [
        Case(f"l3fwd, {ROUTES} host routes, {fib}", _task(file, fib=fib), frames, size_mb=768)
        for fib in ("lpm", "cuckoo")
    ]


def _task(file: Path, **settings: object) -> dict[str, object]:
    return {"kind": "l3fwd", "settings": {"routes_file": str(file), **settings}}


def _draw(rng: np.random.Generator, shares: dict[int, float], count: int) -> np.ndarray:
    values = np.array(list(shares.values()))
    return rng.choice(np.array(list(shares), dtype=np.uint64), count, p=values / values.sum())


def _frames(sources: np.ndarray, destinations: np.ndarray) -> list[FrameIn]:
    """64 B frames (60 without FCS): UDP over IPv4, header checksums right."""
    head = np.frombuffer(bytes.fromhex("020000000100020000000000 0800 4500002e0000000040110000"), dtype=np.uint8)
    tail = np.frombuffer(bytes.fromhex("00010002001a0000") + bytes(18), dtype=np.uint8)
    frames = np.zeros((len(sources), 60), dtype=np.uint8)
    frames[:, : len(head)], frames[:, 34:] = head, tail
    frames[:, 26:30] = sources.astype(">u4").view(np.uint8).reshape(-1, 4)
    frames[:, 30:34] = destinations.astype(">u4").view(np.uint8).reshape(-1, 4)
    words = frames[:, 14:34].copy().view(">u2").astype(np.uint64).sum(axis=1)
    words = (words & np.uint64(0xFFFF)) + (words >> np.uint64(16))
    words = (words & np.uint64(0xFFFF)) + (words >> np.uint64(16))
    frames[:, 24:26] = (np.uint64(0xFFFF) - words).astype(">u2").view(np.uint8).reshape(-1, 2)
    return [FrameIn(frame.tobytes()) for frame in frames]
