# SPDX-License-Identifier: BSD-3-Clause
"""Routes and neighbours of the kernel in this network namespace, by netlink (rtnetlink(7)): dumps and changes.

The sockets are those of the standard library, which can be waited for and report an overrun. Raises OSError as the
system calls do.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import os
import socket
import struct
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from pyroute2.netlink import (
    NLM_F_APPEND,
    NLM_F_CREATE,
    NLM_F_DUMP,
    NLM_F_REPLACE,
    NLM_F_REQUEST,
    NLMSG_DONE,
    NLMSG_ERROR,
    rtnl,
)
from pyroute2.netlink.rtnl.ifinfmsg import IFF_UP
from pyroute2.netlink.rtnl.ndmsg import NTF_USE, ndmsg

from planebench_fib.agent_mirror import Leg, Path, Vlan
from planebench_fib.agent_route import ROUTE, RouteParser, attributes
from planebench_fib.messages import Prefix

MAIN_TABLE, LOCAL_TABLE = 254, 255
_TABLES = {"main": MAIN_TABLE, "default": 253, "local": LOCAL_TABLE}

_GROUPS = (
    rtnl.RTMGRP_LINK | rtnl.RTMGRP_NEIGH | rtnl.RTMGRP_IPV4_IFADDR | rtnl.RTMGRP_IPV4_ROUTE | rtnl.RTMGRP_IPV6_ROUTE
)
_RECEIVE_BYTES, _EVENT_BYTES = 1 << 20, 1 << 15
"""For a part of a dump, and for one event."""
_EVENTS_BYTES = 32 << 20
"""Room for some 100,000 routes that change at once; beyond, the kernel drops some and says ENOBUFS."""
_SO_RCVBUFFORCE, _SO_ATTACH_FILTER = 33, 26
_SIOCGIFINDEX, _INTERFACE = 0x8933, struct.Struct("16si20x")
_HEADER = struct.Struct("IHHII")  # length, type, flags, sequence, port
_PROTOCOL_AT = 5  # of the header of a route
_NEIGHBOUR, _NEIGHBOUR_BYTES = struct.Struct("B3xiH"), 12
_NDA_DST, _NDA_LLADDR = 1, 2
_BYTE = struct.Struct("HHB3x")
_IFLA_LINK, _IFLA_OPERSTATE, _IFLA_LINKMODE, _IFLA_LINKINFO, _IFLA_LINK_NETNSID = 5, 16, 17, 18, 37
_INFO_KIND, _INFO_DATA, _VLAN_ID, _VLAN_PROTOCOL = 1, 2, 1, 5
_LINK_BYTES = 16
_DORMANT, _UP = 5, 6

_RESOLVED = 0x02 | 0x04 | 0x08 | 0x10 | 0x40 | 0x80
"""States of a neighbour whose MAC address may be used: reachable, stale, delay, probe, noarp, permanent."""
_FRESH = 0x02 | 0x08 | 0x10 | 0x40 | 0x80
"""The same without stale: the kernel knows it, or finds out at this moment."""


class RouteEvent(NamedTuple):
    """A route was added or changed (``there``), or removed."""

    prefix: Prefix
    path: Path
    there: bool
    replace: bool
    append: bool


@dataclass(frozen=True, slots=True)
class NeighbourEvent:
    """A neighbour changed. ``mac`` is empty if it is not resolved. ``fresh``: the kernel need not look for it again."""

    neighbour: Leg
    mac: bytes
    fresh: bool


@dataclass(frozen=True, slots=True)
class Unsure:
    """An event after which routes are others without a report: an address or an interface went, one of ours came, or
    went up (legs of multipath routes are alive again), or any down."""


class Links(NamedTuple):
    """Those of ``interfaces`` that are there, by name, and the VLAN interfaces on these and among them, by index."""

    interfaces: Mapping[str, int]
    vlans: Mapping[int, Vlan]


Event = RouteEvent | NeighbourEvent | Unsure


def table_number(name: str) -> int:
    """Return the number of ``main``, ``default``, ``local`` or a number. Raises ValueError for any other word."""
    return _TABLES[name] if name in _TABLES else int(name)


class Kernel:
    """The routes of ``table`` and of the table of local addresses, and the neighbours on ``interfaces``, by name.

    Routes whose protocol (rtnetlink(7), rtm_protocol) is one of ``without`` are left out.
    """

    complete = True
    """A dump has all routes that there are."""

    def __init__(self, interfaces: Collection[str], table: int, without: Collection[int] = ()) -> None:
        self._names, self._without = tuple(interfaces), without
        self._links = Links({}, {})
        self._ours: frozenset[int] = frozenset()
        self._up: set[int] = set()
        """Those of ours and of the VLAN interfaces that are up."""
        tables = {table: 1, LOCAL_TABLE: 0}
        self._alive, self._gone = (
            RouteParser(tables, destination_at=ROUTE.size + 12, alive=alive) for alive in (True, False)
        )
        self._events = _netlink_socket(_GROUPS)
        if without:
            _leave_out(self._events, without)
        self._events.setblocking(False)
        self._requests = _netlink_socket(0)
        self.links()

    def fileno(self) -> int:
        """Return the file descriptor to wait for events."""
        return self._events.fileno()

    def close(self) -> None:
        """Close both sockets."""
        self._events.close()
        self._requests.close()

    def events(self) -> Iterator[Event]:
        """Yield the changes since the last call. Raises OSError with ENOBUFS if there was no room for all: dump
        again."""
        while True:
            try:
                data = self._events.recv(_EVENT_BYTES)
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno == errno.ENOBUFS:
                    _drain(self._events)  # until then the kernel drops all others, too, and does not say so again
                raise
            for kind, flags, at, end in messages(data, 0, len(data)):
                if kind in (rtnl.RTM_NEWROUTE, rtnl.RTM_DELROUTE):
                    there = kind == rtnl.RTM_NEWROUTE
                    if found := (self._alive if there else self._gone).parse(data, at, end):
                        yield RouteEvent(*found, there, bool(flags & NLM_F_REPLACE), bool(flags & NLM_F_APPEND))
                else:
                    yield from self._event(kind, data, at, end)

    def routes(self) -> Iterator[tuple[Prefix, Path]]:
        """Yield all present routes."""
        for family in (socket.AF_INET, socket.AF_INET6):
            for data, at, end in self._dump(rtnl.RTM_GETROUTE, struct.pack("B11x", family)):
                if data[at + _PROTOCOL_AT] not in self._without and (found := self._alive.parse(data, at, end)):
                    yield found

    def links(self) -> Links:
        """Return what there is of the interfaces. An interface keeps its index when it gets another name."""
        found_links = list(self._dump(rtnl.RTM_GETLINK, bytes(_LINK_BYTES)))
        flags: dict[int, int] = dict(struct.unpack_from("4xiI", data, at) for data, at, _ in found_links)
        before = self._links.interfaces
        found = {name: before[name] if before.get(name) in flags else self._index(name) for name in self._names}
        interfaces = {name: index for name, index in found.items() if index in flags}
        self._ours = frozenset(interfaces.values())
        vlans = {struct.unpack_from("4xi", *link[:2])[0]: self._vlan(*link) for link in found_links}
        self._links = Links(interfaces, {index: vlan for index, vlan in vlans.items() if vlan})
        self._up = {index for index in (*self._ours, *self._links.vlans) if flags[index] & IFF_UP}
        return self._links

    def _index(self, name: str) -> int:
        """Return the index of an interface, which may be called by another of its names; 0 if it is not there."""
        with contextlib.suppress(OSError):
            asked = fcntl.ioctl(self._requests, _SIOCGIFINDEX, _INTERFACE.pack(os.fsencode(name), 0))
            return int(_INTERFACE.unpack(asked)[1])
        return 0

    def neighbours(self) -> dict[Leg, bytes]:
        """Return all resolved neighbours with their MAC addresses."""
        found = (self._neighbour(*message) for message in self._dump(rtnl.RTM_GETNEIGH, bytes(12)))
        return {event.neighbour: event.mac for event in found if event and event.mac}

    def resolve(self, neighbour: Leg) -> None:
        """Ask the kernel to find a neighbour, or to check that it is still there, as if a packet went to it."""
        message = ndmsg()
        message["family"] = _family(neighbour.gateway)
        message["ifindex"], message["flags"] = neighbour.interface, NTF_USE
        message["attrs"] = [("NDA_DST", socket.inet_ntop(_family(neighbour.gateway), neighbour.gateway))]
        message["header"]["type"] = rtnl.RTM_NEWNEIGH
        message["header"]["flags"] = NLM_F_REQUEST | NLM_F_CREATE | NLM_F_REPLACE
        message.encode()
        self._requests.send(message.data)

    def set_dormant(self, interface: int, dormant: bool) -> None:
        """Show at an interface whether the wire behind it is down (RFC 2863): it is not RUNNING then, but has its
        carrier, for the VNF still talks to the forwarder through it."""
        values = ((_IFLA_OPERSTATE, _DORMANT if dormant else _UP), (_IFLA_LINKMODE, int(dormant)))
        body = struct.pack("4xi8x", interface) + b"".join(_BYTE.pack(5, kind, value) for kind, value in values)
        self._requests.send(_HEADER.pack(_HEADER.size + len(body), rtnl.RTM_SETLINK, NLM_F_REQUEST, 1, 0) + body)

    def _dump(self, kind: int, body: bytes) -> Iterator[tuple[bytes, int, int]]:
        """Return where each message of the answer is: its bytes, first and last."""
        _drain(self._requests)
        header = _HEADER.pack(_HEADER.size + len(body), kind, NLM_F_REQUEST | NLM_F_DUMP, 1, 0)
        self._requests.send(header + body)
        while True:
            data = self._requests.recv(_RECEIVE_BYTES)
            for answer, _, at, end in messages(data, 0, len(data)):
                if answer == NLMSG_ERROR:
                    code = -struct.unpack_from("i", data, at)[0]
                    raise OSError(code, f"cannot read the kernel's routes: {os.strerror(code)}")
                if answer == NLMSG_DONE:
                    return
                yield data, at, end

    def _event(self, kind: int, data: bytes, at: int, end: int) -> Iterator[Event]:
        if kind in (rtnl.RTM_NEWNEIGH, rtnl.RTM_DELNEIGH):
            if event := self._neighbour(data, at, end):
                yield NeighbourEvent(event.neighbour, b"", False) if kind == rtnl.RTM_DELNEIGH else event
        elif kind in (rtnl.RTM_NEWLINK, rtnl.RTM_DELLINK):
            index, link_flags = struct.unpack_from("4xiI", data, at)
            if kind == rtnl.RTM_DELLINK or not link_flags & IFF_UP:
                self._up.discard(index)
                yield Unsure()
            elif self._is_news(index, self._vlan(data, at, end)):
                yield Unsure()
        elif kind == rtnl.RTM_DELADDR:
            yield Unsure()

    def _is_news(self, index: int, vlan: Vlan | None) -> bool:
        """Return whether an interface that is up is one of ours that was not, or was not there."""
        if self._links.vlans.get(index) != vlan:
            return True
        if index in self._ours or vlan:
            was_up = index in self._up
            self._up.add(index)
            return not was_up
        return any(self._index(name) == index for name in self._names if name not in self._links.interfaces)

    def _vlan(self, data: bytes, at: int, end: int) -> Vlan | None:
        """Return what kind of VLAN interface a link is; None if it is none of ours, or of 802.1ad."""
        (index,) = struct.unpack_from("4xi", data, at)
        found = attributes(data, at + _LINK_BYTES, end)
        info = _nested(found.get(_IFLA_LINKINFO))
        of = _nested(info.get(_INFO_DATA))
        if info.get(_INFO_KIND) != b"vlan\0" or of.get(_VLAN_PROTOCOL) != b"\x81\0" or _IFLA_LINK_NETNSID in found:
            return None
        vlan = Vlan(*struct.unpack("=iH", found[_IFLA_LINK] + of[_VLAN_ID]))
        return vlan if self._ours & {index, vlan.link} else None

    def _neighbour(self, data: bytes, at: int, end: int) -> NeighbourEvent | None:
        family, interface, state = _NEIGHBOUR.unpack_from(data, at)
        ours = interface in self._ours or interface in self._links.vlans
        if not ours or family not in (socket.AF_INET, socket.AF_INET6):
            return None
        found = attributes(data, at + _NEIGHBOUR_BYTES, end)
        address, mac = found[_NDA_DST], found.get(_NDA_LLADDR, b"") if state & _RESOLVED else b""
        if address[0] >= 0xE0 and (len(address) == 4 or address[0] == 0xFF):
            return None  # a group has an entry, but is no neighbour
        return NeighbourEvent(Leg(interface, address), mac, bool(state & _FRESH))


def messages(data: bytes, at: int, end: int) -> Iterator[tuple[int, int, int, int]]:
    """Yield type, flags, and the first and last position of the body of each message between two positions."""
    while at + _HEADER.size <= end:
        length, kind, flags, _, _ = _HEADER.unpack_from(data, at)
        if length < _HEADER.size:
            return
        yield kind, flags, at + _HEADER.size, at + length
        at += length + 3 & ~3


def _nested(value: bytes | None) -> dict[int, bytes]:
    return attributes(value, 0, len(value)) if value else {}


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


def _leave_out(events: socket.socket, protocols: Collection[int]) -> None:
    """Have the kernel not report routes of these protocols: a full table of them would be an overrun (socket(7), BPF).

    The program loads the type of a message, and of a route the protocol, and jumps to the end: the length to keep.
    """
    load_type, load_protocol, equal, keep = 0x28, 0x30, 0x15, 0x06
    protocol_at = _HEADER.size + _PROTOCOL_AT
    types = [socket.htons(kind) for kind in (rtnl.RTM_NEWROUTE, rtnl.RTM_DELROUTE)]
    program = [(load_type, 0, 0, 4), (equal, 1, 0, types[0]), (equal, 0, len(protocols) + 1, types[1])]
    program.append((load_protocol, 0, 0, protocol_at))
    program += [(equal, len(protocols) - place, 0, protocol) for place, protocol in enumerate(protocols)]
    program += [(keep, 0, 0, 0xFFFFFFFF), (keep, 0, 0, 0)]
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in program))
    events.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, struct.pack("HP", len(program), ctypes.addressof(code)))


def _drain(netlink: socket.socket) -> None:
    """Read what nobody waits for: answers to resolve(), and what is left after an overrun."""
    while True:
        try:
            netlink.recv(_EVENT_BYTES, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return
        except OSError as error:
            if error.errno != errno.ENOBUFS:
                raise
