# SPDX-License-Identifier: BSD-3-Clause
"""What a packet is, in Python from the RFCs: what every model of a network function asks first.

IEEE 802.1Q, RFC 791, 1812 (s5.2.2), 8200, 4302, 6275, 7401, 5533, 6946, 768, 792, 9293, 9260, 4340, 3828. It knows
nothing of dataplane/base/packet.c. Where a frame has several faults, the outermost header's comes first, and in an IPv4
header the version, its length, the datagram's length, the checksum, the fragment: docs/network-functions.md.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

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
"""Why a frame is no packet, in the order of every kind's drop reasons."""

ICMP, TCP, UDP, GRE, ICMPV6, DCCP, SCTP, UDPLITE = 1, 6, 17, 47, 58, 33, 132, 136
HOP_BY_HOP, ROUTING, FRAGMENT, AH, DESTINATION, MOBILITY, HIP, SHIM6 = 0, 43, 44, 51, 60, 135, 139, 140
PORTED = {TCP: 20, UDP: 8, UDPLITE: 8, SCTP: 12, DCCP: 12}
"""Protocols with ports, and their shortest headers."""
SHORTEST = {**PORTED, ICMP: 8, ICMPV6: 8}
EXTENSIONS_MAX = 8

_IN_EIGHTS = {HOP_BY_HOP, ROUTING, DESTINATION, MOBILITY, HIP, SHIM6}  # less one (RFC 8200 s4)
_EXTENSIONS = {*_IN_EIGHTS, FRAGMENT, AH}
_DATAGRAM_MAX = 65535


class FaultError(Exception):
    """The frame is no packet; the text is one of FAULTS."""


@dataclass(frozen=True, slots=True)
class Packet:
    """A sound packet: its IP header at ``l3`` of the frame, what is behind all IP headers from ``l4`` to ``end``.

    ``datagram_protocol`` is what the fragments of one datagram have in common: IPv4's protocol, or the next header of
    the Fragment header. ``fragment_at`` is in bytes.
    """

    frame: bytes
    l3: int
    l4: int
    end: int
    version: int
    protocol: int
    datagram_protocol: int
    fragment_at: int
    more: bool

    @property
    def fragment(self) -> bool:
        """Not the whole datagram."""
        return self.more or self.fragment_at > 0

    @property
    def header(self) -> bytes:
        """IPv4's with its options; IPv6's without extensions."""
        return self.frame[self.l3 : self.l4 if self.version == 4 else self.l3 + 40]

    @property
    def body(self) -> bytes:
        """What is behind all IP headers, without the frame's padding."""
        return self.frame[self.l4 : self.end]

    @property
    def source(self) -> bytes:
        """4 or 16 bytes."""
        return self.frame[self.l3 + 12 : self.l3 + 16] if self.version == 4 else self.frame[self.l3 + 8 : self.l3 + 24]

    @property
    def destination(self) -> bytes:
        """4 or 16 bytes."""
        return self.frame[self.l3 + 16 : self.l3 + 20] if self.version == 4 else self.frame[self.l3 + 24 : self.l3 + 40]

    @property
    def ports(self) -> tuple[int, int] | None:
        """Source and destination; None where there are none to see."""
        if self.fragment_at or self.protocol not in PORTED:
            return None
        return be(self.frame[self.l4 : self.l4 + 2]), be(self.frame[self.l4 + 2 : self.l4 + 4])


def be(data: bytes) -> int:
    """A number in network order."""
    return int.from_bytes(data, "big")


def checksum(data: bytes | bytearray) -> int:
    """RFC 1071, of an even number of bytes: what belongs into a field that is 0, and 0 if the right one is in it."""
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return 0xFFFF - total


def parse(frame: bytes) -> Packet:
    """Take a frame apart; FaultError if it is not what it says."""
    _need(len(frame) >= 14, "runt")
    at, tags = 14, 0
    while (kind := frame[at - 2 : at]) in (b"\x81\x00", b"\x88\xa8"):
        _need(tags < 2, "tags")
        at, tags = at + 4, tags + 1
        _need(len(frame) >= at, "runt")
    if kind == b"\x08\x00":
        return _whole(_ipv4(frame, at))
    _need(kind == b"\x86\xdd", "not_ip")
    return _whole(_ipv6(frame, at))


def _need(good: bool, fault: str) -> None:
    if not good:
        raise FaultError(fault)


def _whole(packet: Packet) -> Packet:
    """With its transport header, where it has one."""
    if packet.fragment_at == 0:
        _need(packet.end - packet.l4 >= SHORTEST.get(packet.protocol, 0), "truncated")
    return packet


def _ipv4(frame: bytes, at: int) -> Packet:
    data = frame[at:]
    _need(len(data) >= 20, "header_length")
    _need(data[0] >> 4 == 4, "version")
    header, length, flags, protocol = data[: (data[0] & 15) * 4], be(data[2:4]), be(data[6:8]), data[9]
    _need(20 <= len(header) == (data[0] & 15) * 4, "header_length")
    _need(len(header) <= length <= len(data), "length")
    _need(checksum(header) == 0, "checksum")
    fragment_at = (flags & 0x1FFF) << 3
    _need(fragment_at + length <= _DATAGRAM_MAX, "length")
    more = bool(flags & 0x2000)
    return Packet(frame, at, at + len(header), at + length, 4, protocol, protocol, fragment_at, more)


def _extensions(protocol: int, data: bytes) -> Iterator[tuple[int, bytes, bytes]]:
    """Each extension header: its number, itself, and what follows it. RFC 8200 s4, RFC 4302 s2.2."""
    while protocol in _EXTENSIONS:
        _need(len(data) >= 8, "extensions")
        if protocol == AH:
            size = data[1] * 4 + 8
            _need(size >= 12 and size % 8 == 0, "extensions")
        else:
            size = 8 if protocol == FRAGMENT else data[1] * 8 + 8
        _need(len(data) >= size, "extensions")
        yield protocol, data[:size], data[size:]
        protocol, data = data[0], data[size:]


def _ipv6(frame: bytes, at: int) -> Packet:
    data = frame[at:]
    _need(len(data) >= 40, "header_length")
    _need(data[0] >> 4 == 6, "version")
    end, protocol = 40 + be(data[4:6]), data[6]
    _need(end <= len(data), "length")
    fragment_at, more, before, common = 0, False, 0, None
    for place, (kind, header, behind) in enumerate(_extensions(protocol, data[40:end])):
        _need(place < EXTENSIONS_MAX and (kind != HOP_BY_HOP or place == 0), "extensions")
        if kind == FRAGMENT:
            _need(common is None, "extensions")
            common, fragment_at, more = header[0], be(header[2:4]) & 0xFFF8, bool(header[3] & 1)
            _need(before + fragment_at + len(behind) <= _DATAGRAM_MAX, "length")
        protocol, before = header[0], before + len(header)
        if fragment_at:
            break
    common = protocol if common is None else common
    return Packet(frame, at, at + 40 + before, at + end, 6, protocol, common, fragment_at, more)
