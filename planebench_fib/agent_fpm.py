# SPDX-License-Identifier: BSD-3-Clause
"""Routes of FRR's zebra over FPM (``zebra -M dplane_fpm_nl``), in place of those that zebra puts into the kernel.

zebra connects, sends all its routes, then every change: netlink messages behind a header of four bytes. Nothing marks
the end of "all", so silence does. Neighbours, own addresses and every route that zebra does not own are the kernel's.
Bytes from the socket are not trusted: any local process may connect.
"""

from __future__ import annotations

import ipaddress
import select
import socket
import struct
import sys
import time
from collections.abc import Callable, Collection, Iterator
from typing import Any

from pyroute2.netlink import rtnl

from planebench_fib.agent_kernel import Event, Kernel, Links, RouteEvent, messages
from planebench_fib.agent_mirror import Leg, Path
from planebench_fib.agent_route import ROUTE, RouteParser, attributes
from planebench_fib.exceptions import Error, UsageError
from planebench_fib.messages import Prefix

FPM_PORT = 2620
ROUTES_MAX = 4_000_000
"""Of a client; beyond, it is not a router but an attack on memory."""
QUIET_S, QUIET_BYTES = 3.0, 1 << 18
"""zebra has sent all when it sends less in this time: as long as it has more, it fills a buffer of 1 MB each second."""
_HEADER = struct.Struct("!BBH")  # version, 1: netlink, length with this header
_MESSAGE_BYTES_MIN = 16
_RECEIVE_BYTES = 1 << 18
_READS = 8
"""Of one call of events(): the forwarder hears nothing of this VNF meanwhile."""
_RTPROT_KERNEL = 2
_SOURCE_AT, _TABLE_AT, _PROTOCOL_AT = 2, 4, 5
_RTA_DST, _RTA_TABLE, _RTA_NH_ID = 1, 15, 30
_RTM_NEWNEXTHOP = 104
_BYTES = {int(socket.AF_INET): 4, int(socket.AF_INET6): 16}

FRR_PROTOCOLS = frozenset({11, 42, *range(186, 200)})
"""Of routes that zebra puts into the kernel (zebra2proto() of FRR): zebra, Babel, and from BGP to SRTE."""

Tell = Callable[[str, dict[str, Any]], None]


class FpmError(Error):
    """The client sent what is not FPM, or what is not supported."""


def fpm_address(text: str) -> tuple[str, int]:
    """Parse ``ADDRESS:PORT``, an address or a port; IPv6 addresses with a port are in brackets. Raises UsageError."""
    host, port = text, str(FPM_PORT)
    if text.isdecimal():
        host, port = "127.0.0.1", text
    elif text.startswith("[") or text.count(":") == 1:
        host, _, port = text.rpartition(":")
    try:
        address = ipaddress.ip_address(host.removeprefix("[").removesuffix("]"))
        if not 0 < int(port) < 1 << 16:
            raise ValueError
    except ValueError:
        raise UsageError(
            f'FPM address "{text}" is not valid; give ADDRESS:PORT, e.g. 127.0.0.1:{FPM_PORT} or [::1]:{FPM_PORT}'
        ) from None
    return str(address), int(port)


class Fpm:
    """The routes of one zebra, and the kernel's other ones; used as agent_kernel.Kernel is.

    While zebra is away its routes stay. When it is back and has sent all, but not before ``settle_s``, those that it
    has not sent again are removed. ``tell`` learns of ``source`` events.
    """

    def __init__(
        self,
        interfaces: Collection[str],
        table: int,
        address: tuple[str, int],
        tell: Tell,
        *,
        settle_s: float = 0.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.complete = False
        """Whether zebra has sent all routes once."""
        self._kernel = Kernel(interfaces, table, without=FRR_PROTOCOLS)
        self._table = table
        self._parser = RouteParser({table: 1}, destination_at=ROUTE.size + 4, alive=True, accept=_accept)
        self._tell, self._settle_s, self._clock = tell, settle_s, clock
        self._routes: dict[Prefix, Path] = {}
        self._old: dict[Prefix, Path] = {}
        self._client: socket.socket | None = None
        self._rest = b""
        self._sweeping = False
        self._heard_bytes = 0
        self._looked_at = self._settled_at = 0.0
        self._complained = ""
        self._ready = select.epoll()
        try:
            self._listener = _listen(address)
        except OSError as error:
            self._kernel.close()
            self._ready.close()
            raise UsageError(f"FPM address {address[0]} port {address[1]}: {error.strerror}") from None
        self._ready.register(self._kernel.fileno(), select.EPOLLIN)
        self._ready.register(self._listener.fileno(), select.EPOLLIN)

    def fileno(self) -> int:
        """Return the file descriptor to wait for events."""
        return self._ready.fileno()

    def links(self) -> Links:
        """Return what there is of the interfaces."""
        return self._kernel.links()

    def set_dormant(self, interface: int, dormant: bool) -> None:
        """Show that an interface has no wire, or has one again, as the kernel's does."""
        self._kernel.set_dormant(interface, dormant)

    def close(self) -> None:
        """Close all sockets."""
        self._hang_up()
        self._listener.close()
        self._ready.close()
        self._kernel.close()

    def neighbours(self) -> dict[Leg, bytes]:
        """Return all resolved neighbours with their MAC addresses."""
        return self._kernel.neighbours()

    def resolve(self, neighbour: Leg) -> None:
        """Ask the kernel to find a neighbour."""
        self._kernel.resolve(neighbour)

    def routes(self) -> Iterator[tuple[Prefix, Path]]:
        """Yield all routes that the kernel and zebra have told."""
        yield from self._kernel.routes()
        yield from self._old.items()
        yield from self._routes.items()

    def events(self) -> Iterator[Event]:
        """Yield the changes since the last call. Raises OSError with ENOBUFS as the kernel's do."""
        yield from self._kernel.events()
        self._answer()
        for _ in range(_READS):
            data = self._receive()
            if not data:
                break
            try:
                yield from self._read(data)
            except FpmError as error:
                self._complain(str(error))
                self._hang_up()
        yield from self._sweep()

    # The connection

    def _answer(self) -> None:
        """Take a client, one at a time: a second is turned away."""
        while True:
            try:
                client, _ = self._listener.accept()
            except (BlockingIOError, ConnectionAbortedError):
                return
            if self._client:
                client.close()
                continue
            client.setblocking(False)
            self._client, self._rest = client, b""
            self._ready.register(client.fileno(), select.EPOLLIN)
            self._old.update(self._routes)
            self._routes = {}
            self._sweeping, self._heard_bytes = True, 0
            self._looked_at = self._clock()
            self._settled_at = self._looked_at + self._settle_s

    def _receive(self) -> bytes:
        """Return the bytes that are there; none if there are none, or nobody any more."""
        if self._client is None:
            return b""
        try:
            data = self._client.recv(_RECEIVE_BYTES)
        except BlockingIOError:
            return b""
        except OSError:
            data = b""
        if not data:
            self._hang_up()
            self._say("zebra is gone; its routes stay until it is back")
        return data

    def _hang_up(self) -> None:
        if self._client:
            self._ready.unregister(self._client.fileno())
            self._client.close()
        self._client, self._sweeping = None, False

    def _complain(self, reason: str) -> None:
        """Tell why a client was sent away; once, as zebra comes again every three seconds."""
        if reason != self._complained:
            self._complained = reason
            self._say(f"the FPM client is sent away: {reason}")

    def _say(self, what: str) -> None:
        self._tell("source", {"what": what})

    # Messages

    def _read(self, data: bytes) -> Iterator[RouteEvent]:
        """Yield what follows from the whole frames; the rest waits for more. Raises FpmError."""
        data = self._rest + data
        at = 0
        while at + _HEADER.size <= len(data):
            version, kind, length = _HEADER.unpack_from(data, at)
            if (version, kind) != (1, 1) or length < _HEADER.size + _MESSAGE_BYTES_MIN:
                raise FpmError(f"FPM version {version}, type {kind}, {length} bytes; supported: version 1, netlink")
            if at + length > len(data):
                break
            yield from self._frame(data, at + _HEADER.size, at + length)
            at += length
        self._rest = data[at:]
        self._heard_bytes += at

    def _frame(self, data: bytes, at: int, end: int) -> Iterator[RouteEvent]:
        for kind, _, first, last in messages(data, at, end):
            if last > end:
                raise FpmError("a netlink message is longer than its frame")
            try:
                if kind == rtnl.RTM_NEWROUTE:
                    yield from self._new(data, first, last)
                elif kind == rtnl.RTM_DELROUTE:
                    yield from self._gone(_deleted(data[first:last], self._table))
                elif kind == _RTM_NEWNEXTHOP:
                    raise FpmError(_NO_GROUPS)
            except struct.error:
                raise FpmError("a route has an attribute of another length") from None

    def _new(self, data: bytes, at: int, end: int) -> Iterator[RouteEvent]:
        """Take a route. It replaces the one of its prefix, as zebra has one of each."""
        found = self._parser.parse(data, at, end)
        if found is None:
            return
        prefix, path = found
        if any(len(leg.gateway) not in (0, 4, 16) for leg in path.legs):
            raise FpmError("a gateway is not an address")
        had = self._routes.get(prefix) or self._old.pop(prefix, None)
        self._routes[prefix] = path
        if had == path:
            return
        if had:
            yield RouteEvent(prefix, had, False, False, False)
        elif len(self._routes) > ROUTES_MAX:
            raise FpmError(f"more than {ROUTES_MAX} routes")
        yield RouteEvent(prefix, path, True, False, False)

    def _gone(self, prefix: Prefix | None) -> Iterator[RouteEvent]:
        if prefix and (path := self._routes.pop(prefix, None) or self._old.pop(prefix, None)):
            yield RouteEvent(prefix, path, False, False, False)

    def _sweep(self) -> Iterator[RouteEvent]:
        """Drop what zebra had before and has not sent again, once it has sent all."""
        now = self._clock()
        if not self._sweeping or now < self._looked_at + QUIET_S:
            return
        quiet = self._heard_bytes < QUIET_BYTES
        self._looked_at, self._heard_bytes = now, 0
        if not quiet or now < self._settled_at:
            return
        self._sweeping, self._complained = False, ""
        self.complete = True
        old, self._old = self._old, {}
        self._say(f"zebra has sent {len(self._routes)} routes; {len(old)} earlier ones are gone")
        for prefix, path in old.items():
            yield RouteEvent(prefix, path, False, False, False)


def source(interfaces: Collection[str], table: int, fpm: str, tell: Tell, *, settle_s: float) -> Kernel | Fpm:
    """Return where an agent has its routes from: the kernel, or if ``fpm`` is an address, zebra. Raises UsageError."""
    if not fpm:
        return Kernel(interfaces, table)
    return Fpm(interfaces, table, fpm_address(fpm), tell, settle_s=settle_s)


_NO_GROUPS = "zebra sends next-hop groups, which are not supported: configure `no fpm use-next-hop-groups` in zebra"


def _listen(address: tuple[str, int]) -> socket.socket:
    family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
    made = socket.socket(family, socket.SOCK_STREAM)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(address)
        made.listen(1)
    except OSError:
        made.close()
        raise
    made.setblocking(False)
    return made


def _prefix(route: bytes, found: dict[int, bytes]) -> Prefix | None:
    """Return the prefix of a route; None if it is not of IP. Raises FpmError if it is none."""
    family, length = route[0], route[1]
    size = _BYTES.get(family)
    if size is None:
        return None
    address = found.get(_RTA_DST, bytes(size))
    if len(address) != size or length > size * 8:
        raise FpmError(f"{address.hex() or 'nothing'} is no prefix of {length} bits")
    return Prefix(address, length)


def _accept(route: bytes) -> bool:
    """Return whether a route is one of zebra's own. Raises FpmError if it is not sound or not supported.

    What zebra knows of the kernel's routes is left out: it sends them when it connects, but not when they go. That the
    bits behind a prefix are 0 is for the forwarder to check.
    """
    if len(route) < ROUTE.size:
        raise FpmError("a route is shorter than its header")
    found = attributes(route, ROUTE.size, len(route))
    if _RTA_NH_ID in found:
        raise FpmError(_NO_GROUPS)
    return _prefix(route, found) is not None and route[_PROTOCOL_AT] != _RTPROT_KERNEL


def _deleted(route: bytes, table: int) -> Prefix | None:
    """Return the prefix of a route that is deleted, which has neither type nor legs; None if it is not in the table."""
    if len(route) < ROUTE.size:
        raise FpmError("a route is shorter than its header")
    found = attributes(route, ROUTE.size, len(route))
    number = int.from_bytes(found[_RTA_TABLE], sys.byteorder) if _RTA_TABLE in found else route[_TABLE_AT]
    return _prefix(route, found) if number == table and not route[_SOURCE_AT] else None
