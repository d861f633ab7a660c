# SPDX-License-Identifier: BSD-3-Clause
"""The kernel's route messages (rtnetlink(7)), decoded into prefix and path.

Written by hand: there may be a million, and pyroute2 takes 70 us for each, this 6.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from pyroute2.netlink import rtnl
from pyroute2.netlink.rtnl.rtmsg import RTNH_F_DEAD

from planebench_fib.agent_mirror import Leg, Path, RouteKind
from planebench_fib.messages import Prefix

ROUTE = struct.Struct("8BI")  # family, lengths of destination and source, TOS, table, protocol, scope, type, flags
_ATTRIBUTE = struct.Struct("HH")
_LEG = struct.Struct("HBBi")  # length, flags, hops, interface
_NUMBER = struct.Struct("I")
_ALIGN = 3
_KIND_MASK = 0x3FFF
_RTM_F_CLONED = 0x200
_DST, _OIF, _GATEWAY, _PRIORITY, _MULTIPATH, _TABLE, _VIA, _ENCAP = 1, 4, 5, 6, 9, 15, 18, 22

_DESTINATION4, _DESTINATION6 = _ATTRIBUTE.pack(8, _DST), _ATTRIBUTE.pack(20, _DST)
_KNOWN_MAX = 1 << 16

_KINDS = {
    rtnl.rt_type["unicast"]: RouteKind.UNICAST,
    rtnl.rt_type["local"]: RouteKind.LOCAL,
    rtnl.rt_type["broadcast"]: RouteKind.LOCAL,
    rtnl.rt_type["anycast"]: RouteKind.LOCAL,
    rtnl.rt_type["blackhole"]: RouteKind.BLACKHOLE,
    # The VNF answers these with an ICMP error, or goes on in another table.
    rtnl.rt_type["unreachable"]: RouteKind.LOCAL,
    rtnl.rt_type["prohibit"]: RouteKind.LOCAL,
    rtnl.rt_type["throw"]: RouteKind.LOCAL,
}
_BYTES: Mapping[int, int] = {socket.AF_INET: 4, socket.AF_INET6: 16}


def parse_route(
    data: bytes, at: int, end: int, tables: Mapping[int, int], *, alive: bool
) -> tuple[Prefix, Path] | None:
    """Return the route whose header is at ``at``; None if it is not mirrored.

    ``tables`` maps tables to their ranks. Not mirrored: other tables, caches, multicast, link-local networks, routes by
    TOS or source. ``alive``: a route without a working leg does not exist; a route that was removed has its legs all
    the same.
    """
    family, length, source_length, tos, table, _, _, kind_number, flags = ROUTE.unpack_from(data, at)
    found = attributes(data, at + ROUTE.size, end)
    rank = tables.get(_number(found.get(_TABLE)) or table)
    kind = _KINDS.get(kind_number)
    if rank is None or kind is None or flags & _RTM_F_CLONED or tos or source_length or family not in _BYTES:
        return None
    prefix = Prefix(found.get(_DST) or bytes(_BYTES[family]), length)
    if _stays_on_link(prefix, kind):
        return None
    ways: list[tuple[Leg, int]] = []
    if kind is RouteKind.UNICAST:
        ways = list(_legs(found, flags, alive))
        if not ways:
            return None
        if family == socket.AF_INET6:
            ways.sort()  # a dump and an event have them in another order
    legs, weights = tuple(leg for leg, _ in ways), tuple(weight for _, weight in ways)
    return prefix, Path(
        rank, _number(found.get(_PRIORITY)), kind, legs, weights if any(weight > 1 for weight in weights) else ()
    )


class RouteParser:
    """:func:`parse_route` for many routes: most differ in their destinations alone, so the rest is parsed once.

    ``destination_at``: where in a message the address is, if it is there. ``accept`` may refuse a message.
    """

    def __init__(
        self,
        tables: Mapping[int, int],
        *,
        destination_at: int,
        alive: bool,
        accept: Callable[[bytes], bool] | None = None,
    ) -> None:
        self._tables, self._alive, self._accept = tables, alive, accept
        self._at = destination_at
        self._known: dict[bytes, Path | None] = {}

    def parse(self, data: bytes, at: int, end: int) -> tuple[Prefix, Path] | None:
        """Return the route whose header is at ``at``; None if it is not mirrored."""
        first = at + self._at
        if end <= first:
            return self._parse(data[at:end])
        four = data[at] == socket.AF_INET
        octet = data[first]
        if not (0 < octet < 224 and octet != 127 if four else 0x20 <= octet < 0x40):
            return self._parse(data[at:end])  # whether it is mirrored may depend on the address
        last = first + (4 if four else 16)
        rest = data[at:first] + data[last:end]
        try:
            path = self._known[rest]
        except KeyError:
            found = self._parse(data[at:end])
            path = found[1] if found else None
            if data[first - _ATTRIBUTE.size : first] == (_DESTINATION4 if four else _DESTINATION6):
                if len(self._known) >= _KNOWN_MAX:
                    self._known.clear()
                self._known[rest] = path
            return found
        return (Prefix(data[first:last], data[at + 1]), path) if path else None

    def _parse(self, message: bytes) -> tuple[Prefix, Path] | None:
        if self._accept and not self._accept(message):
            return None
        return parse_route(message, 0, len(message), self._tables, alive=self._alive)


def attributes(data: bytes, at: int, end: int) -> dict[int, bytes]:
    """Return the attributes of a message, or of a part of it, by their kinds."""
    found = {}
    while at + 4 <= end:
        length, kind = _ATTRIBUTE.unpack_from(data, at)
        if length < 4:
            break
        found[kind & _KIND_MASK] = data[at + 4 : at + length]
        at += length + _ALIGN & ~_ALIGN
    return found


def _number(value: bytes | None) -> int:
    return int(_NUMBER.unpack(value)[0]) if value else 0


def _legs(found: dict[int, bytes], flags: int, alive: bool) -> Iterator[tuple[Leg, int]]:
    """Return legs and weights, with ``alive`` of the working ones. A leg with encapsulation leads nowhere: the VNF does
    it."""
    several = found.get(_MULTIPATH)
    if several is None:
        if not (alive and flags & RTNH_F_DEAD):
            yield _leg(_number(found.get(_OIF)), found), 1
        return
    at = 0
    while at + _LEG.size <= len(several):
        length, leg_flags, more, interface = _LEG.unpack_from(several, at)
        if length < _LEG.size:
            break
        if not (alive and leg_flags & RTNH_F_DEAD):
            yield _leg(interface, attributes(several, at + _LEG.size, at + length)), more + 1
        at += length + _ALIGN & ~_ALIGN


def _leg(interface: int, found: dict[int, Any]) -> Leg:
    """Return a leg, whose gateway is of the same IP version, or of the other one behind its family (RFC 5549)."""
    if _ENCAP in found:
        return Leg(0, b"")
    via = found.get(_VIA)
    return Leg(interface, via[2:] if via else found.get(_GATEWAY, b""))


def _stays_on_link(prefix: Prefix, kind: RouteKind) -> bool:
    """Return whether a prefix is loopback, multicast, or link-local and not the VNF's own address."""
    first, second = prefix.address[:2]
    if len(prefix.address) == 4:
        return prefix.length >= 4 and (first == 127 or first >= 224)
    if first == 0xFF and prefix.length >= 8:
        return True
    if first == 0xFE and second & 0xC0 == 0x80 and prefix.length >= 10:
        return kind is not RouteKind.LOCAL
    return prefix.length == 128 and prefix.address == bytes(15) + b"\x01"
