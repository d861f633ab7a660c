# SPDX-License-Identifier: BSD-3-Clause
"""A router written from its RFCs, to compare l3fwd with. Addresses and prefixes are those of ``ipaddress``.

Longest-prefix match is a dictionary for each length, longest first. Checksums are computed from nothing.
"""

from __future__ import annotations

import ipaddress
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_TAGS = (0x8100, 0x88A8)
_EXTENSIONS = {0, 43, 44, 51, 60, 135}  # RFC 8200 s4, RFC 4302, RFC 6275
_TRANSPORT_BYTES = {1: 8, 6: 20, 17: 8, 33: 12, 58: 8, 132: 12, 136: 8}
_ICMP_ERRORS = {3, 4, 5, 11, 12}  # RFC 1812 s4.3.2.7, RFC 792
_MARTIANS = [ipaddress.ip_network(text) for text in ("0.0.0.0/8", "127.0.0.0/8", "224.0.0.0/4", "240.0.0.0/4")]
_MARTIANS += [ipaddress.ip_network(text) for text in ("::/128", "::1/128", "ff00::/8")]
_LINK_LOCAL = [ipaddress.ip_network(text) for text in ("169.254.0.0/16", "fe80::/10")]


class Refused(Exception):
    """A packet that is not forwarded, and why; ``icmp`` is the error that its sender is owed, if any."""

    def __init__(self, reason: str, icmp: str | None = None) -> None:
        super().__init__(reason)
        self.reason, self.icmp = reason, icmp


@dataclass(frozen=True, slots=True)
class Route:
    """What a route says; ``port`` None is the other port, ``mac`` None the peer of the port."""

    network: Network
    port: int | None = None
    mac: bytes | None = None
    drop: bool = False


@dataclass(frozen=True, slots=True)
class Datagram:
    """What a router looks at: ``at`` is where the IP header is in the frame."""

    at: int
    version: int
    header: bytes
    payload: bytes
    protocol: int
    first: bool

    @property
    def source(self) -> Address:
        """Where it says it is from."""
        return ipaddress.ip_address(self.header[12:16] if self.version == 4 else self.header[8:24])

    @property
    def destination(self) -> Address:
        """Where it goes."""
        return ipaddress.ip_address(self.header[16:20] if self.version == 4 else self.header[24:40])


def checksum(header: bytes | bytearray) -> int:
    """RFC 1071, of an even number of bytes."""
    total = sum(int.from_bytes(header[i : i + 2]) for i in range(0, len(header), 2))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return 0xFFFF - total


def datagram(frame: bytes) -> Datagram:
    """Take a frame apart, or say why it has no sound datagram."""
    at, tags = 14, 0
    while True:
        if len(frame) < at:
            raise Refused("runt")
        kind = int.from_bytes(frame[at - 2 : at])
        if kind not in _TAGS:
            break
        tags += 1
        if tags > 2:
            raise Refused("tags")
        at += 4
    if kind == 0x0800:
        return _sound(_ipv4(frame, at))
    if kind == 0x86DD:
        return _sound(_ipv6(frame, at))
    raise Refused("not_ip")


def _ipv4(frame: bytes, at: int) -> Datagram:
    rest = frame[at:]
    if len(rest) < 20:
        raise Refused("header_length")
    if rest[0] >> 4 != 4:
        raise Refused("version")
    header, total = rest[: 4 * (rest[0] & 15)], int.from_bytes(rest[2:4])
    if not 20 <= 4 * (rest[0] & 15) == len(header):
        raise Refused("header_length")
    if not len(header) <= total <= len(rest):
        raise Refused("length")
    if checksum(header):
        raise Refused("checksum")
    offset = int.from_bytes(header[6:8]) & 0x1FFF
    return Datagram(at, 4, header, rest[len(header) : total], header[9], offset == 0)


def _ipv6(frame: bytes, at: int) -> Datagram:
    rest = frame[at:]
    if len(rest) < 40:
        raise Refused("header_length")
    if rest[0] >> 4 != 6:
        raise Refused("version")
    length = int.from_bytes(rest[4:6])
    if length > len(rest) - 40:
        raise Refused("length")
    payload, kind, seen, first = rest[40 : 40 + length], rest[6], 0, True
    while first and kind in _EXTENSIONS:
        if seen == 8 or (kind == 0 and seen) or len(payload) < 8:
            raise Refused("extensions")
        size = {44: 8, 51: 4 * (payload[1] + 2)}.get(kind, 8 * (payload[1] + 1))
        if size > len(payload):
            raise Refused("extensions")
        first = kind != 44 or int.from_bytes(payload[2:4]) < 8
        kind, payload, seen = payload[0], payload[size:], seen + 1
    return Datagram(at, 6, rest[:40], payload, kind, first)


def _sound(packet: Datagram) -> Datagram:
    if packet.first and len(packet.payload) < _TRANSPORT_BYTES.get(packet.protocol, 0):
        raise Refused("truncated")
    return packet


def _source_routed(packet: Datagram) -> None:
    """RFC 791 s3.1, RFC 7126 s4.3 and s4.4."""
    options = packet.header[20:]
    while options and options[0] != 0:
        if options[0] in (131, 137):
            raise Refused("source_route")
        size = 1 if options[0] == 1 else options[1] if len(options) > 1 else 0
        if size > len(options) or size < (1 if options[0] == 1 else 2):
            raise Refused("bad_options", "parameter_problem")
        options = options[size:]


def _silent(packet: Datagram) -> bool:
    """RFC 1812 s4.3.2.7 and RFC 4443 s2.4 (e): no ICMP error for these."""
    kind = packet.payload[0] if packet.first and packet.payload else None
    if packet.version == 4:
        return not packet.first or (packet.protocol == 1 and kind in _ICMP_ERRORS)
    return packet.protocol == 58 and (kind is None or kind < 128 or kind == 137)


def _in_any(address: Address, networks: list[Network]) -> bool:
    return any(network.version == address.version and address in network for network in networks)


@dataclass
class Router:
    """``macs``: for each port the address of its peer and its own."""

    routes: list[Route]
    macs: list[tuple[bytes, bytes]]
    mtu: int = 1 << 32
    own_mac_only: bool = False
    hits: Counter[Network] = field(default_factory=Counter)
    icmp: Counter[str] = field(default_factory=Counter)
    drops: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        """Sort the routes into a dictionary for each length."""
        self._tables: dict[tuple[int, int], dict[int, Route]] = {}
        for route in self.routes:
            network = route.network
            table = self._tables.setdefault((network.version, network.prefixlen), {})
            table[int(network.network_address) >> (network.max_prefixlen - network.prefixlen)] = route
        self._order = sorted(self._tables, reverse=True)

    def longest(self, address: Address) -> Route | None:
        """The route whose prefix is the longest that the address is in."""
        for version, length in self._order:
            if version == address.version:
                found = self._tables[version, length].get(int(address) >> (address.max_prefixlen - length))
                if found:
                    return found
        return None

    def handle(self, frame: bytes, port: int) -> tuple[int | None, str | None, bytes]:
        """The port that a frame leaves by, or why it does not, and the frame as it is then."""
        packet = None
        try:
            packet = datagram(frame)
            route = self._permit(frame, port, packet)
            out = (port + 1) % len(self.macs) if route.port is None else route.port
            return out, None, self._rewrite(frame, packet, route, out)
        except Refused as refusal:
            if refusal.icmp and packet:
                self.icmp["suppressed" if _silent(packet) else refusal.icmp] += 1
            self.drops[refusal.reason] += 1
            return None, refusal.reason, frame

    def _permit(self, frame: bytes, port: int, packet: Datagram) -> Route:
        if frame[0] & 1:
            raise Refused("l2_group")  # RFC 1812 s5.3.4
        if self.own_mac_only and frame[:6] != self.macs[port][1]:
            raise Refused("l2_other")
        self._addresses(packet)
        if packet.version == 4:
            _source_routed(packet)
        route = self.longest(packet.destination)
        if route is None:
            raise Refused("no_route", "net_unreachable")
        self.hits[route.network] += 1
        if route.drop:
            raise Refused("blackhole")
        self._fits(packet)
        return route

    @staticmethod
    def _addresses(packet: Datagram) -> None:
        if _in_any(packet.source, _MARTIANS):
            raise Refused("martian_source")
        if _in_any(packet.destination, _MARTIANS):
            raise Refused("martian_destination")
        if _in_any(packet.destination, _LINK_LOCAL):
            raise Refused("link_local")
        if _in_any(packet.source, _LINK_LOCAL):
            raise Refused("link_local", "beyond_scope" if packet.version == 6 else None)

    def _fits(self, packet: Datagram) -> None:
        if packet.version == 4:
            hops, size = packet.header[8], int.from_bytes(packet.header[2:4])
        else:
            hops, size = packet.header[7], 40 + int.from_bytes(packet.header[4:6])
        if hops < 2:
            raise Refused("ttl_expired", "time_exceeded")
        if size <= self.mtu:
            return
        if packet.version == 6:
            raise Refused("too_big", "packet_too_big")
        if packet.header[6] & 0x40:
            raise Refused("too_big", "fragmentation_needed")
        raise Refused("unfragmented")

    def _rewrite(self, frame: bytes, packet: Datagram, route: Route, out: int) -> bytes:
        peer, own = self.macs[out]
        header = bytearray(packet.header)
        header[8 if packet.version == 4 else 7] -= 1
        if packet.version == 4:
            header[10:12] = bytes(2)
            header[10:12] = checksum(header).to_bytes(2)
        return (route.mac or peer) + own + frame[12 : packet.at] + bytes(header) + frame[packet.at + len(header) :]


def resolve(
    routes: list[dict[str, object]], hops: list[dict[str, object]], mac_of: Callable[[str], bytes]
) -> list[Route]:
    """Routes as a document says them; those that name nothing take the next hops in turn."""
    made, turn = [], 0
    for route in routes:
        said = dict(route)
        if hops and not {"port", "mac", "drop", "via"} & set(said):
            said |= hops[turn % len(hops)]
            turn += 1
        elif "via" in said:
            via = said.pop("via")
            assert isinstance(via, int)
            said |= hops[via]
        port, mac = said.get("port"), said.get("mac")
        assert port is None or isinstance(port, int)
        network = ipaddress.ip_network(str(said["prefix"]))
        made.append(Route(network, port, mac_of(str(mac)) if mac else None, bool(said.get("drop"))))
    return made
