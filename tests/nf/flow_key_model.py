# SPDX-License-Identifier: BSD-3-Clause
"""What a frame is, by the RFCs, for the models of load_balancer, rate_limiter and flow_monitor; and random frames.

Written from RFC 791, 1812, 8200, 4302, 9293, 768, 792, 9260 and IEEE 802.1Q, not from dataplane/nf/packet.c.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address
from itertools import pairwise

Address = IPv4Address | IPv6Address

FAULTS = (
    "runt",
    "tags",
    "not_ip",
    "version",
    "header_length",
    "length",
    "checksum",
    "extensions",
    "truncated",
)
ICMP, TCP, UDP, GRE, ICMPV6, DCCP, SCTP, UDPLITE = 1, 6, 17, 47, 58, 33, 132, 136
HOP_BY_HOP, ROUTING, FRAGMENT, AH, DESTINATION, MOBILITY = 0, 43, 44, 51, 60, 135
_SMALLEST = {UDP: 8, UDPLITE: 8, ICMP: 8, ICMPV6: 8, TCP: 20, SCTP: 12, DCCP: 12}
_WITH_PORTS = {UDP, UDPLITE, TCP, SCTP, DCCP}
_EXTENSIONS = {HOP_BY_HOP, ROUTING, FRAGMENT, AH, DESTINATION, MOBILITY}


class FaultError(Exception):
    """The frame is no sound packet; the text is one of FAULTS."""


@dataclass(frozen=True, slots=True)
class Key:
    """A flow. ``raw`` are the 40 bytes that docs/nf/load_balancer.md specifies."""

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


@dataclass(frozen=True, slots=True)
class Packet:
    """A sound packet. ``fragment_protocol`` is what every fragment of the datagram has, None if it is whole."""

    key: Key
    fragment_protocol: int | None
    tcp_flags: int


def parse(frame: bytes) -> Packet:
    """Take a frame apart, or raise FaultError."""
    if len(frame) < 14:
        raise FaultError("runt")
    kind, rest, tags = frame[12:14], frame[14:], 0
    while kind in (b"\x81\x00", b"\x88\xa8"):
        tags += 1
        if tags > 2:
            raise FaultError("tags")
        if len(rest) < 4:
            raise FaultError("runt")
        kind, rest = rest[2:4], rest[4:]
    if kind == b"\x08\x00":
        return _ipv4(rest)
    if kind == b"\x86\xdd":
        return _ipv6(rest)
    raise FaultError("not_ip")


def _ipv4(ip: bytes) -> Packet:
    if len(ip) < 20:
        raise FaultError("header_length")
    if ip[0] >> 4 != 4:
        raise FaultError("version")
    header, total = ip[0] % 16 * 4, int.from_bytes(ip[2:4])
    if not 20 <= header <= len(ip):
        raise FaultError("header_length")
    if not header <= total <= len(ip):
        raise FaultError("length")
    if checksum(ip[:header]) != 0:
        raise FaultError("checksum")
    flags = int.from_bytes(ip[6:8])
    offset, more = flags & 0x1FFF, bool(flags & 0x2000)
    return _transport(ip[12:16], ip[16:20], ip[9], ip[header:total], offset, ip[9] if offset or more else None)


def _ipv6(ip: bytes) -> Packet:
    if len(ip) < 40:
        raise FaultError("header_length")
    if ip[0] >> 4 != 6:
        raise FaultError("version")
    length, following = int.from_bytes(ip[4:6]), ip[6]
    if length > len(ip) - 40:
        raise FaultError("length")
    body = ip[40 : 40 + length]
    offset, whole_protocol, seen = 0, None, 0
    while following in _EXTENSIONS and not offset:
        seen += 1
        if seen > 8 or (following == HOP_BY_HOP and seen > 1) or len(body) < 8:
            raise FaultError("extensions")
        size = 8 if following == FRAGMENT else (body[1] + 2) * 4 if following == AH else (body[1] + 1) * 8
        if size > len(body):
            raise FaultError("extensions")
        if following == FRAGMENT:
            word = int.from_bytes(body[2:4])
            offset = word >> 3
            whole_protocol = body[0] if offset or word & 1 else None
        following, body = body[0], body[size:]
    return _transport(ip[8:24], ip[24:40], following, body, offset, whole_protocol)


def _transport(
    source: bytes, destination: bytes, protocol: int, body: bytes, offset: int, whole_protocol: int | None
) -> Packet:
    ports, flags = (0, 0), 0
    if offset == 0:
        if len(body) < _SMALLEST.get(protocol, 0):
            raise FaultError("truncated")
        if protocol in _WITH_PORTS:
            ports = struct.unpack_from("!HH", body)
        if protocol == TCP:
            flags = body[13]
    return Packet(Key(source, destination, protocol, *ports), whole_protocol, flags)


def checksum(data: bytes) -> int:
    """RFC 1071, from scratch."""
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total ^ 0xFFFF


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
        ports = (self.source_port, self.destination_port) if self.protocol in _WITH_PORTS else (0, 0)
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
