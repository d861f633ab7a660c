# SPDX-License-Identifier: BSD-3-Clause
"""The FIB of a forwarder that forwards as this kernel would: kernel routes and neighbours become FIB routes and next
hops, and changes since the last message. Pure: no sockets, no clock.

Each gateway has one next hop: when its MAC address changes, one message moves all its routes. Without a MAC the next
hop is LOCAL: packets go to the VNF, whose kernel resolves the gateway and forwards meanwhile. Several gateways of a
route are a group of the resolved ones.
"""

from __future__ import annotations

import enum
import functools
import itertools
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from planebench_fib.messages import HOP_NUMBERS, MEMBERS_MAX, Prefix

LOCAL, BLACKHOLE = 0, 1
"""Numbers of the two next hops that every session has; gateways and neighbours have the numbers behind them."""
_FIRST = 2
_WEIGHT_MAX = 255


class RouteKind(enum.Enum):
    """The use of a route: by ``legs``; by the kernel itself (its own addresses, refusals); or dropped."""

    UNICAST, LOCAL, BLACKHOLE = range(3)


class Leg(NamedTuple):
    """A way out, and so a neighbour. ``gateway``: 4 or 16 bytes; empty for a network on the link."""

    interface: int
    gateway: bytes


class Path(NamedTuple):
    """A kernel route without its prefix. The lowest ``rank`` is used (0: the table of local addresses), then the lowest
    metric, then the first."""

    rank: int
    metric: int
    kind: RouteKind
    legs: tuple[Leg, ...] = ()
    weights: tuple[int, ...] = ()
    """Of the legs; empty: 1 each."""

    @property
    def has_gateways(self) -> bool:
        """Return whether every leg has a gateway: IPv6 groups routes with gateways into one multipath route."""
        return bool(self.legs) and all(leg.gateway for leg in self.legs)

    def without(self, legs: tuple[Leg, ...]) -> Path:
        """Return the path without some of its legs."""
        weights = self.weights or (1,) * len(self.legs)
        left = [(leg, weight) for leg, weight in zip(self.legs, weights, strict=True) if leg not in legs]
        return self._replace(
            legs=tuple(leg for leg, _ in left), weights=tuple(weight for _, weight in left) if self.weights else ()
        )


class Vlan(NamedTuple):
    """A VLAN interface: the interface that it is on, and its VLAN."""

    link: int
    id: int


class Spread(NamedTuple):
    """Several gateways with weights, over which flows are spread."""

    ways: tuple[tuple[Leg, int], ...]


class Hop(NamedTuple):
    """A next hop: by ``wire``, in ``vlan``, to ``mac``, or a group of ``members``, pairs of a number and a weight.
    Without either it is LOCAL, or BLACKHOLE by its number."""

    number: int
    mac: bytes = b""
    wire: int = 0
    members: tuple[tuple[int, int], ...] = ()
    vlan: int = 0


@dataclass(frozen=True, slots=True)
class Changes:
    """Changes in the order in which to send them: a hop exists before routes lead to it, and goes after them."""

    hops: tuple[Hop, ...] = ()
    routes: tuple[tuple[Prefix, int], ...] = ()
    routes_gone: tuple[Prefix, ...] = ()
    hops_gone: tuple[int, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.hops or self.routes or self.routes_gone or self.hops_gone)


def _host(address: bytes) -> Prefix:
    return Prefix(address, len(address) * 8)


def _family(route: tuple[Prefix, int]) -> int:
    return len(route[0].address)


@functools.lru_cache(maxsize=1 << 16)
def shared(path: Path) -> tuple[Path, ...]:
    """Return a tuple of one path, the same object for equal paths: a million routes lead to few places."""
    return (path,)


@dataclass
class Mirror:
    """The FIB that follows from the kernel's routes and neighbours.

    ``wires`` maps the VNF's interfaces to the forwarder to the numbers of their wires; ``vlans`` are VLAN interfaces.
    Routes by other interfaces are left to the VNF.
    """

    wires: Mapping[int, int]
    vlans: Mapping[int, Vlan] = field(default_factory=dict)
    _paths: dict[Prefix, tuple[Path, ...]] = field(default_factory=dict)
    _neighbours: dict[Leg, bytes] = field(default_factory=dict)
    _hosts: dict[Prefix, Leg] = field(default_factory=dict)
    """Neighbours on connected networks, which have routes of their own."""
    _numbers: dict[Leg | Spread, int] = field(default_factory=dict)
    _refused: dict[Leg | Spread, None] = field(default_factory=dict)
    """Neighbours that the forwarder grants no next hop: LOCAL; and groups, of which the first gateway serves."""
    _tried: set[Leg | Spread] = field(default_factory=set)
    """Those whose next hop is sent once more, as yet without routes: each of these would be refused, too."""
    _held: dict[Prefix, None] = field(default_factory=dict)
    """Routes that were sent, and refused."""
    _anew: set[Prefix] = field(default_factory=set)
    """Those of them that are to be sent again."""
    _users: Counter[int] = field(default_factory=Counter)
    _free: list[int] = field(default_factory=lambda: list(range(HOP_NUMBERS - 1, _FIRST - 1, -1)))
    _told: dict[Prefix, int] = field(default_factory=dict)
    _told_hops: dict[int, Hop] = field(default_factory=dict)
    _dirty: set[Prefix] = field(default_factory=set)
    _recent: tuple[Path, ...] = (Path(0, 0, RouteKind.LOCAL),)
    """Of the last new route: the next one has mostly the same."""
    _near: set[Prefix] = field(default_factory=set)
    """Own addresses and networks on the link as of the last dump: what control needs, and so what is sent first."""
    _hosts_due: bool = False

    @property
    def pending(self) -> bool:
        """Return whether there may be changes to send."""
        return self._hosts_due or bool(self._dirty)

    @property
    def routes(self) -> int:
        """Return the number of routes that were sent."""
        return len(self._told)

    @property
    def hops(self) -> int:
        """Return the number of next hops that were sent."""
        return len(self._told_hops)

    @property
    def multipath(self) -> int:
        """Return the number of prefixes whose route has several legs."""
        return sum(len(paths[0].legs) > 1 for paths in self._paths.values() if paths)

    def told(self) -> Mapping[Prefix, int]:
        """Return every route that was sent, with the number of its next hop."""
        return self._told

    def told_hops(self) -> Mapping[int, Hop]:
        """Return every next hop that was sent, by number."""
        return self._told_hops

    # What the kernel says

    def load(self, routes: Iterable[tuple[Prefix, Path]]) -> None:
        """Take all routes of a dump, in its order; routes that are not in it are gone."""
        before = self._paths
        self._paths, self._near = {}, set()
        for prefix, path in routes:
            have = self._paths.get(prefix)
            self._paths[prefix] = (*have, path) if have else shared(path)
            if not (path.rank and path.legs and path.legs[0].gateway):
                self._near.add(prefix)
        self._dirty.update(before, self._paths)
        self._hosts_due = True

    def add(self, prefix: Prefix, path: Path, *, replace: bool, append: bool) -> bool:
        """Add or change a route. Return False if it may have replaced an unnamed one; then dump again.

        IPv6 reports all legs each time and orders routes of equal metric in its own way; IPv4 reports how a route
        relates to others.
        """
        have = self._paths.get(prefix)
        if not have:
            if self._recent[0] is not path:
                self._recent = shared(path)
            self._paths[prefix] = self._recent
            self._dirty.add(prefix)
            self._hosts_due = True
            return True
        same = [one for one in have if (one.rank, one.metric) == (path.rank, path.metric)]
        others = tuple(one for one in have if one not in same)
        sure = True
        if len(prefix.address) == 16:
            sure = all(one.has_gateways and path.has_gateways for one in same)
            same = []
        elif replace:
            same = same[1:]
        elif path in same:
            same.remove(path)
        self._paths[prefix] = (*others, *same, path) if append else (path, *same, *others)
        self._dirty.add(prefix)
        self._hosts_due = True
        return sure

    def remove(self, prefix: Prefix, path: Path) -> None:
        """Remove a route, or one leg of it (IPv6)."""
        have = list(self._paths.get(prefix, ()))
        for number, one in enumerate(have):
            if (one.rank, one.metric, one.kind) != (path.rank, path.metric, path.kind):
                continue
            if set(one.legs) <= set(path.legs):
                del have[number]
                break
            if set(path.legs) < set(one.legs):
                have[number] = one.without(path.legs)
                break
        if have:
            self._paths[prefix] = tuple(have)
        else:
            self._paths.pop(prefix, None)
        self._dirty.add(prefix)
        self._hosts_due = True

    def load_neighbours(self, neighbours: Mapping[Leg, bytes]) -> None:
        """Take all resolved neighbours on our interfaces, with their MAC addresses."""
        self._dirty |= {_host(neighbour.gateway) for neighbour in self._neighbours.keys() ^ neighbours.keys()}
        self._neighbours = dict(neighbours)
        self._hosts_due = True

    def neighbour(self, neighbour: Leg, mac: bytes) -> None:
        """Take a neighbour on one of our interfaces that is resolved, or no longer (``mac`` empty)."""
        if mac:
            self._neighbours[neighbour] = mac
        else:
            self._neighbours.pop(neighbour, None)
        self._dirty.add(_host(neighbour.gateway))
        self._hosts_due = True

    # What follows from it

    def changes(self, most: int | None = None) -> Changes:
        """Return the changes to send now, of ``most`` prefixes, and consider them sent."""
        if self._hosts_due:
            self._find_hosts()
        routes: list[tuple[Prefix, int]] = []
        gone: list[Prefix] = []
        known: dict[int, int] = {}
        for prefix in self._take(most):
            old, new = self._told.get(prefix), self._wanted(prefix, known)
            if old == new and prefix not in self._anew:
                continue
            self._anew.discard(prefix)
            self._held.pop(prefix, None)
            if new is None:
                if self._told.pop(prefix, None) is not None:
                    gone.append(prefix)
            else:
                routes.append((prefix, new))
                self._told[prefix] = new
                self._users[new] += 1
            if old is not None:
                self._users[old] -= 1
        hops_gone = self._release()
        routes.sort(key=_family)  # a message has routes of one
        return Changes(self._hop_changes(), tuple(routes), tuple(gone), hops_gone)

    def forget(self) -> None:
        """Begin a new session: the forwarder has none of the earlier routes."""
        self._told.clear()
        self._told_hops.clear()
        self._users.clear()
        self._refused.clear()
        self._tried.clear()
        self._held.clear()
        self._anew.clear()
        self._dirty = self._paths.keys() | self._hosts.keys()

    def refuse(self, number: int) -> None:
        """Leave what leads to a refused next hop to the VNF (its quota is used up)."""
        neighbour = next((neighbour for neighbour, n in self._numbers.items() if n == number), None)
        if neighbour is None:
            return
        del self._numbers[neighbour]
        self._tried.discard(neighbour)
        self._refused[neighbour] = None
        self._free.append(number)
        self._told_hops.pop(number, None)
        self._dirty |= {prefix for prefix, n in self._told.items() if n == number}

    def hold(self, prefix: Prefix, number: int) -> None:
        """Remember that a route was refused, unless it is another by now."""
        if self._told.get(prefix) == number:
            self._held[prefix] = None

    @property
    def refused(self) -> bool:
        """Return whether the forwarder lacks anything that it refused."""
        return bool(self._held or self._refused or self._tried)

    def again(self, most: int, routes: int) -> bool:
        """Send again at most so much of what was refused, and so many routes, oldest first. Return whether there is
        any."""
        prefixes = list(itertools.islice(self._held, min(most, routes)))
        for prefix in prefixes:
            del self._held[prefix]
        self._anew.update(prefixes)
        self._dirty.update(prefixes)
        neighbours = list(itertools.islice(self._refused, min(most, len(self._free))))
        for neighbour in neighbours:
            del self._refused[neighbour]
            self._numbers[neighbour] = self._free.pop()
        self._tried.update(neighbours)
        return bool(prefixes or neighbours)

    def use_granted(self) -> bool:
        """Use the next hops that were sent again, and not refused. Return whether there are any."""
        granted, self._tried = self._tried, set()
        if granted:
            self._dirty |= self._led_to(granted)
        return bool(granted)

    def _led_to(self, neighbours: Collection[Leg | Spread]) -> set[Prefix]:
        """Return the prefixes that may lead to any of these, or to a group with any."""
        legs = {leg for to in neighbours for leg in ([to] if isinstance(to, Leg) else (leg for leg, _ in to.ways))}
        known: dict[int, bool] = {}  # by id(): many have the same paths

        def lead(paths: tuple[Path, ...]) -> bool:
            if (found := known.get(id(paths))) is None:
                found = known[id(paths)] = any(leg in legs for path in paths for leg in path.legs)
            return found

        hosts = {host for host, leg in self._hosts.items() if leg in legs}
        # A route to one address on the link leads to that neighbour, which its leg does not name.
        own = {_host(leg.gateway) for leg in legs} & self._paths.keys()
        return hosts | own | {prefix for prefix, paths in self._paths.items() if lead(paths)}

    def gateways(self) -> dict[Leg, bool]:
        """Return the neighbours that routes lead to, and whether each is resolved."""
        return {to: to in self._neighbours for to in self._numbers if isinstance(to, Leg)}

    def _take(self, most: int | None) -> Collection[Prefix]:
        """Return the prefixes whose turn it is: what is near before what is behind a gateway."""
        taken = self._dirty
        if most is None or len(taken) <= most:
            self._dirty = set()
            return taken
        near = set(itertools.islice((to for to in (*self._near, *self._hosts) if to in taken), most))
        self._dirty -= near
        return near or [taken.pop() for _ in range(most)]

    def _find_hosts(self) -> None:
        """Update the host routes: of resolved neighbours on connected networks without a longer prefix."""
        self._hosts_due = False
        hosts = {
            _host(neighbour.gateway): neighbour
            for neighbour in self._neighbours
            if _host(neighbour.gateway) not in self._paths
            and self._longest(neighbour.gateway) == Leg(neighbour.interface, b"")
        }
        self._dirty |= {host for host in hosts.keys() | self._hosts.keys() if hosts.get(host) != self._hosts.get(host)}
        self._hosts = hosts

    def _longest(self, address: bytes) -> Leg | None:
        """Return the leg of the longest prefix that matches an address."""
        bits, value = len(address) * 8, int.from_bytes(address)
        for length in range(bits, -1, -1):
            masked = value >> (bits - length) << (bits - length)
            paths = self._paths.get(Prefix(masked.to_bytes(len(address)), length))
            if paths:
                return self._leg(self._best(paths))
        return None

    @staticmethod
    def _best(paths: tuple[Path, ...]) -> Path:
        return min(paths, key=lambda path: (path.rank, path.metric))

    def _ways(self, path: Path) -> dict[Leg, int]:
        """Return the legs that leave by our interfaces, with weights: through gateways, or without any the first."""
        ways = [
            (leg, weight)
            for leg, weight in zip(path.legs, path.weights or (1,) * len(path.legs), strict=True)
            if self._wire(leg.interface) is not None and path.kind is RouteKind.UNICAST
        ]
        return {leg: min(weight, _WEIGHT_MAX) for leg, weight in ways if leg.gateway} or dict(ways[:1])

    def _wire(self, interface: int) -> int | None:
        """Return the wire of an interface, or of the one that it is on; None if it is neither's."""
        vlan = self.vlans.get(interface)
        return self.wires.get(interface, self.wires.get(vlan.link) if vlan else None)

    def _leg(self, path: Path) -> Leg | None:
        return next(iter(self._ways(path)), None)

    def _wanted(self, prefix: Prefix, known: dict[int, int]) -> int | None:
        """Return the next hop of a prefix; ``known`` remembers those of paths that need no prefix, by their id()."""
        paths = self._paths.get(prefix)
        if not paths:
            return self._number(self._hosts[prefix]) if prefix in self._hosts else None
        if (number := known.get(id(paths))) is not None:
            return number
        path = self._best(paths)
        if path.kind is RouteKind.BLACKHOLE:
            return BLACKHOLE
        ways = self._ways(path)
        if not ways:
            return LOCAL
        if len(ways) > 1:
            return known.setdefault(id(paths), self._group_number(Spread(tuple(ways.items())[:MEMBERS_MAX])))
        leg = next(iter(ways))
        if leg.gateway:
            return known.setdefault(id(paths), self._number(leg))
        # A network on the link; of one address, the neighbour itself.
        leg = Leg(leg.interface, prefix.address)
        return self._number(leg) if prefix == _host(prefix.address) and leg in self._neighbours else LOCAL

    def _number(self, neighbour: Leg | Spread) -> int:
        """Return the next hop of a neighbour or group; LOCAL if all numbers are in use or the forwarder refused it."""
        if neighbour in self._tried:
            return LOCAL
        if neighbour not in self._numbers:
            if not self._free or neighbour in self._refused:
                return LOCAL
            self._numbers[neighbour] = self._free.pop()
        return self._numbers[neighbour]

    def _group_number(self, spread: Spread) -> int:
        """Return the next hop of a group; without a number for it that of its first resolved gateway."""
        for leg, _ in spread.ways:
            self._number(leg)
        number = self._number(spread)
        if number != LOCAL:
            return number
        legs = [leg for leg, _ in spread.ways]
        return self._number(next((leg for leg in legs if leg in self._neighbours), legs[0]))

    def _release(self) -> tuple[int, ...]:
        """Free the numbers that no route or group uses, and return those that the forwarder has, groups first."""
        used = {to for to, n in self._numbers.items() if self._users[n]} | self._tried
        used |= {leg for to in used if isinstance(to, Spread) for leg, _ in to.ways}
        unused = sorted((to for to in self._numbers if to not in used), key=lambda to: isinstance(to, Leg))
        numbers = [self._numbers.pop(to) for to in unused]
        self._free += numbers
        return tuple(n for n in numbers if self._told_hops.pop(n, None) is not None)

    def _hop(self, number: int, neighbour: Leg) -> Hop:
        """Return the next hop of a neighbour: LOCAL until that is resolved."""
        mac, wire = self._neighbours.get(neighbour), self._wire(neighbour.interface)
        vlan = self.vlans.get(neighbour.interface)
        if not mac or wire is None:
            return Hop(number)
        return Hop(number, mac, wire, vlan=vlan.id if vlan else 0)

    def _hop_changes(self) -> tuple[Hop, ...]:
        """Return the next hops that differ from what was sent, groups behind their members."""
        now = {LOCAL: Hop(LOCAL), BLACKHOLE: Hop(BLACKHOLE)}
        for to, number in sorted(self._numbers.items(), key=lambda item: isinstance(item[0], Spread)):
            if isinstance(to, Leg):
                now[number] = self._hop(number, to)
            else:
                known = self._neighbours.keys() - self._tried
                ways = [(self._numbers.get(leg), weight) for leg, weight in to.ways if leg in known]
                now[number] = Hop(number, members=tuple((n, weight) for n, weight in ways if n is not None))
        changed = tuple(hop for hop in now.values() if self._told_hops.get(hop.number) != hop)
        self._told_hops = now
        return changed
