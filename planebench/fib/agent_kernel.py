# SPDX-License-Identifier: BSD-3-Clause
"""Routes and neighbours of the kernel of this network namespace, by netlink (rtnetlink(7)): dumps, and what changes.

Sockets are the standard library's, so that they can be waited for and an overrun is seen; messages are pyroute2's.
Raises OSError as the system calls do.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

from pyroute2.netlink import NLM_F_APPEND, NLM_F_CREATE, NLM_F_DUMP, NLM_F_REPLACE, NLM_F_REQUEST, NLMSG_DONE, rtnl
from pyroute2.netlink.rtnl.ifinfmsg import IFF_UP
from pyroute2.netlink.rtnl.marshal import MarshalRtnl
from pyroute2.netlink.rtnl.ndmsg import NTF_USE, ndmsg
from pyroute2.netlink.rtnl.rtmsg import RTNH_F_DEAD

from planebench.fib.agent_mirror import Leg, Path, RouteKind
from planebench.fib.messages import Prefix

MAIN_TABLE, LOCAL_TABLE = 254, 255
_TABLES = {"main": MAIN_TABLE, "default": 253, "local": LOCAL_TABLE}

_GROUPS = (
    rtnl.RTMGRP_LINK | rtnl.RTMGRP_NEIGH | rtnl.RTMGRP_IPV4_IFADDR | rtnl.RTMGRP_IPV4_ROUTE | rtnl.RTMGRP_IPV6_ROUTE
)
_RECEIVE_BYTES = 1 << 20
_EVENTS_BYTES = 32 << 20
"""Room for some 100,000 routes that change at once; beyond, the kernel drops some and says ENOBUFS."""
_SO_RCVBUFFORCE = 33
_RTM_F_CLONED = 0x200

_RESOLVED = 0x02 | 0x04 | 0x08 | 0x10 | 0x40 | 0x80
"""States of a neighbour whose MAC address may be used: reachable, stale, delay, probe, noarp, permanent."""
_FRESH = 0x02 | 0x08 | 0x10 | 0x40 | 0x80
"""The same without stale: the kernel knows it, or finds out at this moment."""

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


@dataclass(frozen=True, slots=True)
class RouteEvent:
    """A route is there now, or is gone."""

    prefix: Prefix
    path: Path
    there: bool
    replace: bool
    append: bool


@dataclass(frozen=True, slots=True)
class NeighbourEvent:
    """``mac`` empty: not resolved. ``fresh``: the kernel need not be asked to look again."""

    neighbour: Leg
    mac: bytes
    fresh: bool


@dataclass(frozen=True, slots=True)
class Unsure:
    """Something after which the kernel drops routes without a word: an interface went down, an address went."""


@dataclass(frozen=True, slots=True)
class InterfaceGone:
    """One of the VNF's interfaces to the forwarder was removed."""

    interface: int


Event = RouteEvent | NeighbourEvent | Unsure | InterfaceGone


def table_number(name: str) -> int:
    """``main``, ``default`` or a number. ValueError for another word."""
    return _TABLES[name] if name in _TABLES else int(name)


class Kernel:
    """Routes of ``table`` and of the table of local addresses; neighbours on ``interfaces``, which are indexes."""

    def __init__(self, interfaces: Collection[int], table: int) -> None:
        self._interfaces, self._tables = interfaces, {table: 1, LOCAL_TABLE: 0}
        self._marshal = MarshalRtnl()
        self._events = _netlink_socket(_GROUPS)
        self._events.setblocking(False)
        self._requests = _netlink_socket(0)

    def fileno(self) -> int:
        """To wait for events."""
        return self._events.fileno()

    def close(self) -> None:
        """Close both sockets."""
        self._events.close()
        self._requests.close()

    def events(self) -> Iterator[Event]:
        """What has changed since the last call. OSError with ENOBUFS: more than there was room for; dump again."""
        while True:
            try:
                data = self._events.recv(_RECEIVE_BYTES)
            except BlockingIOError:
                return
            for message in self._marshal.parse(data):
                yield from self._event(message)

    def routes(self) -> Iterator[tuple[Prefix, Path]]:
        """All there are now."""
        for family in (socket.AF_INET, socket.AF_INET6):
            for message in self._dump(rtnl.RTM_GETROUTE, struct.pack("B11x", family)):
                if found := self._route(message, True):
                    yield found

    def neighbours(self) -> dict[Leg, bytes]:
        """All that are resolved now, with their MAC addresses."""
        messages = self._dump(rtnl.RTM_GETNEIGH, bytes(12))
        found = (self._neighbour(message) for message in messages)
        return {event.neighbour: event.mac for event in found if event and event.mac}

    def resolve(self, neighbour: Leg) -> None:
        """Ask the kernel to find a neighbour, or to see whether it is there still (as if a packet went to it)."""
        message = ndmsg()
        message["family"] = _family(neighbour.gateway)
        message["ifindex"], message["flags"] = neighbour.interface, NTF_USE
        message["attrs"] = [("NDA_DST", socket.inet_ntop(_family(neighbour.gateway), neighbour.gateway))]
        message["header"]["type"] = rtnl.RTM_NEWNEIGH
        message["header"]["flags"] = NLM_F_REQUEST | NLM_F_CREATE | NLM_F_REPLACE
        message.encode()
        self._requests.send(message.data)

    def _dump(self, kind: int, body: bytes) -> Iterator[Any]:
        _drain(self._requests)
        header = struct.pack("IHHII", 16 + len(body), kind, NLM_F_REQUEST | NLM_F_DUMP, 1, 0)
        self._requests.send(header + body)
        while True:
            for message in self._marshal.parse(self._requests.recv(_RECEIVE_BYTES)):
                if message["header"]["error"] is not None:
                    raise OSError(str(message["header"]["error"]))
                if message["header"]["type"] == NLMSG_DONE:
                    return
                yield message

    def _event(self, message: Any) -> Iterator[Event]:
        kind, flags = message["header"]["type"], message["header"]["flags"]
        if kind in (rtnl.RTM_NEWROUTE, rtnl.RTM_DELROUTE):
            there = kind == rtnl.RTM_NEWROUTE
            if found := self._route(message, there):
                yield RouteEvent(*found, there, bool(flags & NLM_F_REPLACE), bool(flags & NLM_F_APPEND))
        elif kind in (rtnl.RTM_NEWNEIGH, rtnl.RTM_DELNEIGH):
            if event := self._neighbour(message):
                yield NeighbourEvent(event.neighbour, b"", False) if kind == rtnl.RTM_DELNEIGH else event
        elif kind == rtnl.RTM_DELLINK and message["index"] in self._interfaces:
            yield InterfaceGone(message["index"])
        elif kind in (rtnl.RTM_DELADDR, rtnl.RTM_DELLINK) or (
            kind == rtnl.RTM_NEWLINK and not message["flags"] & IFF_UP
        ):
            yield Unsure()

    def _neighbour(self, message: Any) -> NeighbourEvent | None:
        address = message.get_attr("NDA_DST")
        if message["ifindex"] not in self._interfaces or message["family"] not in (socket.AF_INET, socket.AF_INET6):
            return None
        mac = message.get_attr("NDA_LLADDR") if message["state"] & _RESOLVED else None
        packed = socket.inet_pton(message["family"], address)
        if packed[0] >= 0xE0 and (len(packed) == 4 or packed[0] == 0xFF):
            return None  # a group has an entry, but is no neighbour
        packed_mac = bytes.fromhex(mac.replace(":", "")) if mac else b""
        return NeighbourEvent(Leg(message["ifindex"], packed), packed_mac, bool(message["state"] & _FRESH))

    def _route(self, message: Any, alive: bool) -> tuple[Prefix, Path] | None:
        """None for what is not mirrored: other tables, caches, multicast, link-local networks, routes by TOS.

        ``alive``: a route without a leg that works is none. One that is gone has legs all the same.
        """
        rank = self._tables.get(message.get_attr("RTA_TABLE") or message["table"])
        kind = _KINDS.get(message["type"])
        if rank is None or kind is None or message["flags"] & _RTM_F_CLONED or message["tos"] or message["src_len"]:
            return None
        family: int = message["family"]
        if family not in (socket.AF_INET, socket.AF_INET6):
            return None
        to = message.get_attr("RTA_DST")
        address = socket.inet_pton(family, to) if to else bytes(4 if family == socket.AF_INET else 16)
        prefix = Prefix(address, message["dst_len"])
        if _stays_on_link(prefix, kind):
            return None
        legs = tuple(_legs(message, alive)) if kind is RouteKind.UNICAST else ()
        if family == socket.AF_INET6:
            legs = tuple(sorted(legs))  # a dump and an event have them in another order
        if kind is RouteKind.UNICAST and not legs:
            return None
        return prefix, Path(rank, message.get_attr("RTA_PRIORITY") or 0, kind, legs)


def _stays_on_link(prefix: Prefix, kind: RouteKind) -> bool:
    """Loopback and groups never come by a wire; link-local addresses are never forwarded, only its own is the VNF's."""
    first, second = prefix.address[:2]
    if len(prefix.address) == 4:
        return prefix.length >= 4 and (first == 127 or first >= 224)
    if first == 0xFF and prefix.length >= 8:
        return True
    if first == 0xFE and second & 0xC0 == 0x80 and prefix.length >= 10:
        return kind is not RouteKind.LOCAL
    return prefix.length == 128 and prefix.address == bytes(15) + b"\x01"


def _legs(message: Any, alive: bool) -> Iterator[Leg]:
    """Without dead ones if ``alive``. What has to be encapsulated has a leg to nowhere: it is left to the VNF."""
    several = message.get_attr("RTA_MULTIPATH")
    for leg in several or (message,):
        if alive and leg["flags"] & RTNH_F_DEAD:
            continue
        if leg.get_attr("RTA_ENCAP"):
            yield Leg(0, b"")
            continue
        yield Leg(leg["oif"] if several else leg.get_attr("RTA_OIF") or 0, _gateway(leg))


def _gateway(leg: Any) -> bytes:
    """Of the same version, or of the other one (RFC 5549)."""
    via = leg.get_attr("RTA_VIA")
    text = via["addr"] if via else leg.get_attr("RTA_GATEWAY")
    return socket.inet_pton(socket.AF_INET6 if ":" in text else socket.AF_INET, text) if text else b""


def _family(address: bytes) -> socket.AddressFamily:
    return socket.AF_INET if len(address) == 4 else socket.AF_INET6


def _netlink_socket(groups: int) -> socket.socket:
    made = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
    try:
        made.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, _EVENTS_BYTES)
    except PermissionError:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _EVENTS_BYTES)
    made.bind((0, groups))
    return made


def _drain(requests: socket.socket) -> None:
    """Answers to what needed none (an error of resolve())."""
    requests.setblocking(False)
    try:
        while requests.recv(_RECEIVE_BYTES):
            pass
    except BlockingIOError:
        requests.setblocking(True)
