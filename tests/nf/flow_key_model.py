# SPDX-License-Identifier: BSD-3-Clause
"""The flow of a packet, for the model of load_balancer; and random frames."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address
from itertools import pairwise

from nf.packet_model import (
    AH,
    DCCP,
    DESTINATION,
    FRAGMENT,
    HIP,
    HOP_BY_HOP,
    ICMP,
    ICMPV6,
    MOBILITY,
    PORTED,
    ROUTING,
    SCTP,
    SHIM6,
    TCP,
    UDP,
    UDPLITE,
    Packet,
    checksum,
)

Address = IPv4Address | IPv6Address


@dataclass(frozen=True, slots=True)
class Key:
    """A flow. ``raw`` are the 40 bytes that docs/network-functions.md specifies."""

    source: bytes
    destination: bytes
    protocol: int
    source_port: int
    destination_port: int

    @property
    def version(self) -> int:
        """4 or 6."""
        return 4 if len(self.source) == 4 else 6

    def raw(self) -> bytes:
        """As bytes, to hash and to order."""
        ports = struct.pack("!HHBBH", self.source_port, self.destination_port, self.protocol, self.version, 0)
        return self.source.ljust(16, b"\0") + self.destination.ljust(16, b"\0") + ports


def key_of(packet: Packet) -> Key:
    """The flow that a packet belongs to; no ports where there are none to see."""
    return Key(packet.source, packet.destination, packet.protocol, *(packet.ports or (0, 0)))


# --- Random frames ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Flow:
    """What a random frame is made of."""

    source: Address
    destination: Address
    protocol: int
    source_port: int = 0
    destination_port: int = 0

    def key(self) -> Key:
        """The flow as the functions see it."""
        ports = (self.source_port, self.destination_port) if self.protocol in PORTED else (0, 0)
        return Key(self.source.packed, self.destination.packed, self.protocol, *ports)


def flow(
    source: str, destination: str, protocol: int = UDP, source_port: int = 1024, destination_port: int = 28770
) -> Flow:
    """A flow from text."""
    return Flow(ip_address(source), ip_address(destination), protocol, source_port, destination_port)


def segment(rng: random.Random, of: Flow, payload: bytes) -> bytes:
    """A transport header and its payload."""
    ports = struct.pack("!HH", of.source_port, of.destination_port)
    if of.protocol == TCP:
        return ports + rng.randbytes(8) + b"\x50" + bytes([rng.randrange(256)]) + rng.randbytes(6) + payload
    if of.protocol in (UDP, UDPLITE):
        return ports + struct.pack("!HH", 8 + len(payload), 0) + payload
    if of.protocol in (SCTP, DCCP):
        return ports + rng.randbytes(8) + payload
    if of.protocol in (ICMP, ICMPV6):
        return b"\x08\0\0\0" + ports + payload
    return payload


def ethernet(kind: int, body: bytes, tags: int = 0, padding: int = 0) -> bytes:
    """A frame without FCS."""
    vlan = b"".join(b"\x81\x00" + struct.pack("!H", 10 + i) for i in range(tags))
    return b"\x02\0\0\0\x01\0\x02\0\0\0\0\0" + vlan + struct.pack("!H", kind) + body + bytes(padding)


def ipv4(of: Flow, body: bytes, options: bytes = b"", offset: int = 0, more: bool = False) -> bytes:
    """A datagram, or a fragment of one (offset in units of 8 bytes)."""
    header = struct.pack(
        "!BBHHHBBH4s4s",
        0x45 + len(options) // 4,
        0,
        20 + len(options) + len(body),
        7,
        offset | more << 13,
        64,
        of.protocol,
        0,
        of.source.packed,
        of.destination.packed,
    )
    header += options
    return header[:10] + struct.pack("!H", checksum(header)) + header[12:] + body


def ipv6(of: Flow, body: bytes, extensions: tuple[int, ...] = (), offset: int = 0, more: bool = False) -> bytes:
    """A datagram with extension headers; offset and more are of every Fragment header among them."""
    chain = (*extensions, of.protocol)
    headers = b""
    for kind, following in pairwise(chain):
        if kind == FRAGMENT:
            headers += struct.pack("!BBHI", following, 0, offset << 3 | more, 9)
        else:  # AH of 16 bytes, others of 8
            headers += bytes([following, 2]) + bytes(14) if kind == AH else bytes([following, 0]) + bytes(6)
    body = headers + body
    fixed = struct.pack("!IHBB", 6 << 28, len(body), chain[0], 64)
    return fixed + of.source.packed + of.destination.packed + body


def random_frame(rng: random.Random, flows: list[Flow]) -> bytes:
    """A frame of one of the flows: mostly plain, often odd, sometimes broken."""
    of = rng.choice(flows)
    frame = _random_ipv4(rng, of) if of.source.version == 4 else _random_ipv6(rng, of)
    return rng.choice(_DAMAGES)(rng, frame) if rng.random() < 0.1 else frame


def _random_ipv4(rng: random.Random, of: Flow) -> bytes:
    body = segment(rng, of, bytes(rng.choice((0, 6, 18, 300))))
    if rng.random() < 0.02:
        body = body[: rng.randrange(24)]
    if rng.random() < 0.7:
        return ethernet(0x0800, ipv4(of, body), padding=rng.choice((0, 0, 6)))
    options = b"\x01" * rng.choice((0, 4, 40))
    offset, more = rng.choice(((0, False), (0, True), (3, True), (185, False)))
    return ethernet(0x0800, ipv4(of, body, options, offset, more), tags=rng.choice((0, 1, 2, 2, 3)))


def _random_ipv6(rng: random.Random, of: Flow) -> bytes:
    body = segment(rng, of, bytes(rng.choice((0, 6, 18, 300))))
    if rng.random() < 0.02:
        body = body[: rng.randrange(24)]
    if rng.random() < 0.6:
        return ethernet(0x86DD, ipv6(of, body))
    extensions = rng.choice(
        (
            (HOP_BY_HOP,),
            (FRAGMENT,),
            (FRAGMENT,),
            (HOP_BY_HOP, AH, FRAGMENT),
            (AH, FRAGMENT, DESTINATION),
            (DESTINATION, HOP_BY_HOP),
            (ROUTING, MOBILITY),
            (HIP, SHIM6),
            (FRAGMENT, FRAGMENT),
            (DESTINATION,) * 8,
            (DESTINATION,) * 9,
        )
    )
    offset, more = rng.choice(((0, False), (0, True), (3, True), (185, False)))
    return ethernet(0x86DD, ipv6(of, body, extensions, offset, more), tags=rng.choice((0, 0, 1, 2)))


def _cut(rng: random.Random, frame: bytes) -> bytes:
    return frame[: rng.randrange(len(frame))]


def _flip(rng: random.Random, frame: bytes) -> bytes:
    at = rng.randrange(12, min(len(frame), 80))
    return frame[:at] + bytes([frame[at] ^ 1 << rng.randrange(8)]) + frame[at + 1 :]


def _arp(rng: random.Random, frame: bytes) -> bytes:
    return ethernet(0x0806, rng.randbytes(46))


def _noise(rng: random.Random, frame: bytes) -> bytes:
    return frame[:14] + rng.randbytes(rng.randrange(80))


_DAMAGES: tuple[Callable[[random.Random, bytes], bytes], ...] = (_cut, _cut, _flip, _flip, _arp, _noise)
