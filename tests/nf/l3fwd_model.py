# SPDX-License-Identifier: BSD-3-Clause
"""A router written from its RFCs, to compare l3fwd with. Addresses and prefixes are those of ``ipaddress``.

Longest-prefix match is a dictionary for each length, longest first. Checksums are computed from nothing.
"""

from __future__ import annotations

import ipaddress
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from nf.packet_model import FaultError, Packet, checksum, parse

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
Address = ipaddress.IPv4Address | ipaddress.IPv6Address

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


def datagram(frame: bytes) -> Packet:
    """Take a frame apart, or say why it has no sound datagram."""
    try:
        return parse(frame)
    except FaultError as fault:
        raise Refused(str(fault)) from None


def _source_routed(packet: Packet) -> None:
    """RFC 791 s3.1, RFC 7126 s4.3 and s4.4."""
    options = packet.header[20:]
    while options and options[0] != 0:
        if options[0] in (131, 137):
            raise Refused("source_route")
        size = 1 if options[0] == 1 else options[1] if len(options) > 1 else 0
        if size > len(options) or size < (1 if options[0] == 1 else 2):
            raise Refused("bad_options", "parameter_problem")
        options = options[size:]


def _silent(packet: Packet) -> bool:
    """RFC 1812 s4.3.2.7 and RFC 4443 s2.4 (e): no ICMP error for these."""
    kind = packet.body[0] if not packet.fragment_at and packet.body else None
    if packet.version == 4:
        return packet.fragment_at > 0 or (packet.protocol == 1 and kind in _ICMP_ERRORS)
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

    def _permit(self, frame: bytes, port: int, packet: Packet) -> Route:
        if frame[0] & 1:
            raise Refused("l2_group")  # RFC 1812 s5.3.4
        if self.own_mac_only and frame[:6] != self.macs[port][1]:
            raise Refused("l2_other")
        source, destination = ipaddress.ip_address(packet.source), ipaddress.ip_address(packet.destination)
        self._addresses(source, destination)
        if packet.version == 4:
            _source_routed(packet)
        route = self.longest(destination)
        if route is None:
            raise Refused("no_route", "net_unreachable")
        self.hits[route.network] += 1
        if route.drop:
            raise Refused("blackhole")
        self._fits(packet)
        return route

    @staticmethod
    def _addresses(source: Address, destination: Address) -> None:
        if _in_any(source, _MARTIANS):
            raise Refused("martian_source")
        if _in_any(destination, _MARTIANS):
            raise Refused("martian_destination")
        if _in_any(destination, _LINK_LOCAL):
            raise Refused("link_local")
        if _in_any(source, _LINK_LOCAL):
            raise Refused("link_local", "beyond_scope" if source.version == 6 else None)

    def _fits(self, packet: Packet) -> None:
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

    def _rewrite(self, frame: bytes, packet: Packet, route: Route, out: int) -> bytes:
        peer, own = self.macs[out]
        header = bytearray(packet.header)
        header[8 if packet.version == 4 else 7] -= 1
        if packet.version == 4:
            header[10:12] = bytes(2)
            header[10:12] = checksum(header).to_bytes(2)
        return (route.mac or peer) + own + frame[12 : packet.l3] + bytes(header) + frame[packet.l3 + len(header) :]


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
