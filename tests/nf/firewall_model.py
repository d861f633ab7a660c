# SPDX-License-Identifier: BSD-3-Clause
"""What the firewall has to do, in Python: a parser written from the RFCs and a walk down the list of rules.

It knows nothing of tries, keys or bursts. Where a frame has several faults, the outermost header's comes first, and in
an IPv4 header the version, its length, the datagram's length, the checksum, the fragment: docs/nf/firewall.md.
"""

from __future__ import annotations

import ipaddress
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field

Network = ipaddress.IPv4Network | ipaddress.IPv6Network

PORTED = {6: 20, 17: 8, 136: 8, 132: 12, 33: 12}  # protocols with ports, and their shortest headers
PORTLESS = {1: 8, 58: 8}
_OPTION_LIKE = {0, 43, 60, 135, 139, 140}  # extension headers whose length is in eights, less one (RFC 8200 s4)


class FaultError(Exception):
    """Why a frame is no packet; the text is the drop's name."""


@dataclass(frozen=True, slots=True)
class Packet:
    """What rules are asked about. ``ports`` is None where there are none to see."""

    version: int
    protocol: int
    source: int
    target: int
    ports: tuple[int, int] | None
    fragment: bool
    fragment_at: int


@dataclass(frozen=True, slots=True)
class End:
    """One side of a rule: None for any."""

    network: Network | None = None
    ports: tuple[int, int] | None = None

    def text(self) -> str:
        """As in a rule file."""
        where = "any" if self.network is None else str(self.network)
        if self.ports is None:
            return where
        low, high = self.ports
        return f"{where} port {low}" if low == high else f"{where} port {low}-{high}"


@dataclass(frozen=True, slots=True)
class Rule:
    """``protocol`` is None for any."""

    permit: bool
    protocol: int | None = None
    source: End = End()
    target: End = End()

    def text(self) -> str:
        """As in a rule file."""
        protocol = "ip" if self.protocol is None else str(self.protocol)
        return f"{'permit' if self.permit else 'drop'} {protocol} from {self.source.text()} to {self.target.text()}"


def be(data: bytes) -> int:
    """A number in network order."""
    return int.from_bytes(data, "big")


def checksum(data: bytes) -> int:
    """RFC 1071, of an even number of bytes: 0 if a right checksum is in them."""
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return 0xFFFF - total


def _need(good: bool, fault: str) -> None:
    if not good:
        raise FaultError(fault)


def _transport(protocol: int, data: bytes, first: bool) -> tuple[int, int] | None:
    """The ports at the head of what IP carries."""
    if not first:
        return None
    shortest = PORTED.get(protocol) or PORTLESS.get(protocol) or 0
    _need(len(data) >= shortest, "truncated")
    return (be(data[:2]), be(data[2:4])) if protocol in PORTED else None


def _ipv4(data: bytes) -> Packet:
    _need(len(data) >= 20, "header_length")
    _need(data[0] >> 4 == 4, "version")
    words = data[0] & 15
    _need(words >= 5 and len(data) >= words * 4, "header_length")
    header, length = data[: words * 4], be(data[2:4])
    _need(len(header) <= length <= len(data), "length")
    _need(checksum(header) == 0, "checksum")
    flags = be(data[6:8])
    at, more = (flags & 0x1FFF) << 3, bool(flags & 0x2000)
    _need(at + length <= 65535, "length")
    ports = _transport(data[9], data[len(header) : length], at == 0)
    return Packet(4, data[9], be(data[12:16]), be(data[16:20]), ports, more or at > 0, at)


def _extensions(protocol: int, data: bytes) -> Iterator[tuple[int, bytes, bytes]]:
    """Each extension header: its number, itself, and what follows it. RFC 8200 s4, RFC 4302 s2.2."""
    while protocol in _OPTION_LIKE or protocol in (44, 51):
        _need(len(data) >= 8, "extensions")
        if protocol == 51:
            size = data[1] * 4 + 8
            _need(size >= 12 and size % 8 == 0, "extensions")
        else:
            size = 8 if protocol == 44 else data[1] * 8 + 8
        _need(len(data) >= size, "extensions")
        yield protocol, data[:size], data[size:]
        protocol, data = data[0], data[size:]


def _ipv6(data: bytes) -> Packet:
    _need(len(data) >= 40, "header_length")
    _need(data[0] >> 4 == 6, "version")
    length = be(data[4:6])
    _need(40 + length <= len(data), "length")
    payload, protocol = data[40 : 40 + length], data[6]
    at, more, fragmented, before = 0, False, False, 0
    rest = payload
    for place, (kind, header, behind) in enumerate(_extensions(protocol, payload)):
        _need(place < 8 and (kind != 0 or place == 0), "extensions")
        if kind == 44:
            _need(not fragmented, "extensions")
            fragmented, at, more = True, be(header[2:4]) & 0xFFF8, bool(header[3] & 1)
            _need(before + at + len(behind) <= 65535, "length")
        protocol, rest = header[0], behind
        before += len(header)
        if at:
            break
    ports = _transport(protocol, rest, at == 0)
    return Packet(6, protocol, be(data[8:24]), be(data[24:40]), ports, more or at > 0, at)


def parse(frame: bytes) -> Packet:
    """Take a frame apart; FaultError if it is not what it says."""
    _need(len(frame) >= 14, "runt")
    kind, data, tags = frame[12:14], frame[14:], 0
    while kind in (b"\x81\x00", b"\x88\xa8"):
        _need(tags < 2, "tags")
        _need(len(data) >= 4, "runt")
        kind, data, tags = data[2:4], data[4:], tags + 1
    if kind == b"\x08\x00":
        return _ipv4(data)
    _need(kind == b"\x86\xdd", "not_ip")
    return _ipv6(data)


@dataclass(slots=True)
class _Bounds:
    """A rule with its networks as numbers, taken from ipaddress once."""

    permit: bool
    protocol: int | None
    version: int | None
    source: tuple[int, int]
    target: tuple[int, int]
    source_ports: tuple[int, int] | None
    target_ports: tuple[int, int] | None


def _bounds(rule: Rule) -> _Bounds:
    def whole(network: Network | None) -> tuple[int, int]:
        if network is None:
            return 0, (1 << 128) - 1
        return int(network.network_address), int(network.broadcast_address)

    network = rule.source.network or rule.target.network
    return _Bounds(
        rule.permit,
        rule.protocol,
        network.version if network else None,
        whole(rule.source.network),
        whole(rule.target.network),
        rule.source.ports,
        rule.target.ports,
    )


def _matches(rule: _Bounds, packet: Packet) -> bool:
    if rule.protocol is not None and rule.protocol != packet.protocol:
        return False
    if rule.version is not None and rule.version != packet.version:
        return False
    if not rule.source[0] <= packet.source <= rule.source[1]:
        return False
    if not rule.target[0] <= packet.target <= rule.target[1]:
        return False
    for side, ports in enumerate((rule.source_ports, rule.target_ports)):
        if ports is not None and (packet.ports is None or not ports[0] <= packet.ports[side] <= ports[1]):
            return False
    return True


@dataclass(slots=True)
class Firewall:
    """A list of rules; :meth:`decide` says what becomes of a frame, and counts."""

    rules: list[Rule]
    default_permit: bool = False
    not_ip_permit: bool = False
    fragments_drop: bool = False
    counters: list[list[int]] = field(default_factory=list)
    """Packets and bytes; the first is the default's."""
    _walk: list[_Bounds] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._walk = [_bounds(rule) for rule in self.rules]
        self.counters = [[0, 0] for _ in range(len(self.rules) + 1)]

    def _count(self, which: int, frame: bytes) -> None:
        self.counters[which][0] += 1
        self.counters[which][1] += len(frame)

    def decide(self, frame: bytes) -> str | None:
        """The name of the drop, or None for a frame that leaves."""
        try:
            packet = parse(frame)
        except FaultError as fault:
            return None if str(fault) == "not_ip" and self.not_ip_permit else str(fault)
        if packet.fragment and self.fragments_drop:
            return "fragment"
        if packet.protocol == 6 and packet.fragment_at == 8:
            return "tiny_fragment"
        for place, rule in enumerate(self._walk, 1):
            if _matches(rule, packet):
                self._count(place, frame)
                return None if rule.permit else "rule"
        self._count(0, frame)
        return None if self.default_permit else "default"
