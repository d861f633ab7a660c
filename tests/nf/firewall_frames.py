# SPDX-License-Identifier: BSD-3-Clause
"""Random rules, and random frames at their edges: the first and last address and port of a rule and those beside them;
tags, options, extension headers, fragments; and frames that something is wrong with.
"""

from __future__ import annotations

import ipaddress
import random

from nf.firewall_model import End, Network, Rule
from nf.packet_model import PORTED, checksum

_PROTOCOLS = (6, 6, 6, 17, 17, 17, 1, 58, 132, 33, 136, 50, 0, 255)
_PORTS_EDGES = (0, 1, 255, 256, 1023, 1024, 32767, 32768, 65534, 65535)


def _network(rng: random.Random, version: int) -> Network | None:
    if rng.random() < 0.2:
        return None
    if version == 4:
        base, prefix = 0xC6120000 | rng.getrandbits(17), rng.choice((0, 1, 7, 8, 15, 16, 17, 23, 24, 25, 30, 31, 32))
        return ipaddress.IPv4Network((base, prefix), strict=False)
    wide = 0x20010DB8 << 96 | rng.getrandbits(3) << 94 | rng.getrandbits(3) << 62 | rng.getrandbits(3) << 30
    prefix = rng.choice((0, 1, 31, 32, 33, 48, 63, 64, 65, 95, 96, 97, 127, 128))
    return ipaddress.IPv6Network((wide | rng.getrandbits(3), prefix), strict=False)


def _port(rng: random.Random) -> int:
    return rng.choice(_PORTS_EDGES) if rng.random() < 0.5 else rng.randrange(65536)


def _ports(rng: random.Random) -> tuple[int, int] | None:
    if rng.random() < 0.4:
        return None
    low = _port(rng)
    return (low, low) if rng.random() < 0.3 else (min(low, high := _port(rng)), max(low, high))


def rule(rng: random.Random) -> Rule:
    """Any valid rule; rules of a list overlap often."""
    version = rng.choice((4, 4, 6))
    source, target = _network(rng, version), _network(rng, version)
    both = source or target
    protocol = None if rng.random() < 0.25 else rng.choice(_PROTOCOLS)
    if both is not None and protocol == (58 if both.version == 4 else 1):
        protocol = None
    ported = protocol is None or protocol in PORTED
    return Rule(
        rng.random() < 0.5,
        protocol,
        End(source, _ports(rng) if ported else None),
        End(target, _ports(rng) if ported else None),
    )


def narrow_rule(rng: random.Random) -> Rule:
    """IPv4, as one of many that seldom overlap."""
    source, target = (ipaddress.IPv4Network((rng.getrandbits(32), prefix), strict=False) for prefix in (24, 28))
    return Rule(rng.random() < 0.5, rng.choice((6, 17)), End(source), End(target, _ports(rng)))


def _edge(rng: random.Random, low: int, high: int, most: int) -> int:
    choice = rng.randrange(6)
    value = (low, high, low - 1, high + 1, rng.randint(low, high), rng.randint(low, high))[choice]
    return min(max(value, 0), most)


def _address(rng: random.Random, end: End, version: int) -> bytes:
    bits = 32 if version == 4 else 128
    most = (1 << bits) - 1
    network = end.network or _network(rng, version)
    if network is None or network.version != version:
        return rng.getrandbits(bits).to_bytes(bits // 8, "big")
    low, high = int(network.network_address), int(network.broadcast_address)
    return _edge(rng, low, high, most).to_bytes(bits // 8, "big")


def _port_of(rng: random.Random, end: End) -> bytes:
    low, high = end.ports or (0, 65535)
    return _edge(rng, low, high, 65535).to_bytes(2, "big")


def _options(rng: random.Random) -> bytes:
    return rng.randbytes(4 * rng.randint(1, 10)) if rng.random() < 0.1 else b""


def _flags(rng: random.Random) -> int:
    """Of IPv4: the offset in eights, more fragments, don't fragment."""
    if rng.random() < 0.88:
        return rng.choice((0, 0x4000))
    return rng.choice((0x2000, 0x2001, 0x0001, 0x0002, 0x2100, 0x1FFF, 0x8000, 0x1FF8, rng.getrandbits(16)))


def ipv4(rng: random.Random, protocol: int, source: bytes, target: bytes, payload: bytes) -> bytes:
    """A datagram that is right, but perhaps a fragment."""
    options = _options(rng)
    words = 5 + len(options) // 4
    length = 4 * words + len(payload)
    head = bytes([0x40 | words, 0, *length.to_bytes(2, "big"), 1, 2, *_flags(rng).to_bytes(2, "big")])
    head += bytes([rng.getrandbits(8), protocol, 0, 0]) + source + target + options
    return head[:10] + checksum(head).to_bytes(2, "big") + head[12:] + payload


def _extension(rng: random.Random, kind: int, following: int) -> bytes:
    if kind == 44:
        flags = rng.choice((0, 0, 1, 8, 9, 16, 0xFFF8, rng.getrandbits(16)))
        return bytes([following, rng.getrandbits(8), *flags.to_bytes(2, "big")]) + rng.randbytes(4)
    if kind == 51:
        size = rng.choice((0, 1, 2, 2, 3, 4, 4))
        return bytes([following, size]) + rng.randbytes(4 * (size + 2) - 2)
    size = rng.choice((0, 0, 0, 1, 2))
    return bytes([following, size]) + rng.randbytes(8 * (size + 1) - 2)


def ipv6(rng: random.Random, protocol: int, source: bytes, target: bytes, payload: bytes) -> bytes:
    """A packet with extension headers, in order and out of it."""
    kinds: list[int] = []
    if rng.random() < 0.35:
        count = rng.choice((1, 1, 1, 2, 2, 3, 7, 8, 9))
        kinds = [rng.choice((0, 43, 44, 44, 51, 60, 60, 135, 139, 140)) for _ in range(count)]
        if rng.random() < 0.7:
            kinds = [kind for place, kind in enumerate(kinds) if kind != 0 or place == 0]
    body, following = payload, protocol
    for kind in reversed(kinds):
        body = _extension(rng, kind, following) + body
        following = kind
    first = (6 << 28 | rng.getrandbits(28)).to_bytes(4, "big")
    return first + len(body).to_bytes(2, "big") + bytes([following, rng.getrandbits(8)]) + source + target + body


def _damage(rng: random.Random, frame: bytes) -> bytes:
    """Cut, turn a bit, or write a byte of a header anew."""
    data = bytearray(frame)
    match rng.randrange(4):
        case 0:
            del data[rng.randrange(len(data) + 1) :]
        case 1:
            data[rng.randrange(min(len(data), 90))] ^= 1 << rng.randrange(8)
        case 2:
            at = rng.choice((12, 13, 14, 16, 17, 18, 19, 20, 23, 40, 54, 55, 56, 57))
            data[min(at, len(data) - 1)] = rng.getrandbits(8)
        case _:
            del data[rng.choice((13, 14, 17, 18, 33, 34, 41, 42, 53, 54, 61, 62)) :]
    return bytes(data)


def frame(rng: random.Random, rules: list[Rule]) -> bytes:
    """A frame near one of the rules, most of them sound."""
    near = rng.choice(rules) if rules and rng.random() < 0.9 else Rule(True)
    both = near.source.network or near.target.network
    version = both.version if both else rng.choice((4, 6))
    protocol = rng.choice(_PROTOCOLS) if near.protocol is None or rng.random() < 0.05 else near.protocol
    size = rng.choice((20, 20, 20, 26, 40, 100)) if rng.random() < 0.9 else rng.randrange(22)
    payload = (_port_of(rng, near.source) + _port_of(rng, near.target) + bytes(size))[:size]
    build = ipv4 if version == 4 else ipv6
    packet = build(rng, protocol, _address(rng, near.source, version), _address(rng, near.target, version), payload)
    tags = rng.choice((0, 1, 1, 2, 2, 3)) if rng.random() < 0.1 else 0
    kind = b"\x08\x00" if version == 4 else b"\x86\xdd"
    if rng.random() < 0.01:
        kind = rng.choice((b"\x08\x06", b"\x86\xdd", b"\x08\x00", b"\x00\x2e"))
    head = rng.randbytes(12) + b"".join(rng.choice((b"\x81\x00", b"\x88\xa8")) + rng.randbytes(2) for _ in range(tags))
    padding = bytes(rng.choice((0, 0, 6, 18)))
    whole = head + kind + packet + padding
    return _damage(rng, whole) if rng.random() < 0.08 else whole
