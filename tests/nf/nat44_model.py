# SPDX-License-Identifier: BSD-3-Clause
"""What a NAT of UDP, TCP and ICMP may do with a frame, by RFC 3022, 4787, 5382, 5508, 7857: a judge of nat44.

Which free port a mapping gets is the NAT's own affair. So the judge takes it from the first frame that leaves by a new
mapping, holds it against the rules (in the range, nobody else's, preserved, of the same parity, at the host's address),
and from then on knows every byte. Checksums are sums over all that they cover, before and after.

A NAT need not notice at once that a mapping is over: until a second later its port and its place in the table may be
taken (``lingering``). That, too, is the NAT's own affair: then both answers are right.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from nf.nat44_packet import (
    FIN,
    ICMP,
    RST,
    SYN,
    TCP,
    UDP,
    Endpoint,
    Packet,
    parse,
    parse_embedded,
    rewrite,
    rewrite_error,
)

_QUERIES = {8: 0, 13: 14}
_ERRORS = (3, 11, 12)


@dataclass(slots=True)
class Mapping:
    """An inside endpoint and its outside one. ``state`` and ``fins`` are TCP's, of the connection to ``remote``."""

    protocol: int
    inside: Endpoint
    outside: Endpoint
    last: int
    static: bool = False
    remote: Endpoint | None = None
    state: str = ""
    fins: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Rules:
    """The settings of a NAT, times in cycles."""

    outside: tuple[bytes, ...]
    inside: tuple[tuple[int, int], ...]
    ports: range
    sessions_max: int
    per_host: int
    udp: int
    established: int
    transitory: int
    icmp: int
    second: int
    hairpin: bool = True
    loose: bool = True


_CLOSED = ("closing", "reset")


class Nat:
    """The judge. ``frame()`` takes what went in and what came out, and raises AssertionError where that is wrong."""

    def __init__(self, rules: Rules, forwards: dict[tuple[int, Endpoint], Endpoint] | None = None) -> None:
        self.rules = rules
        self.by_inside: dict[tuple[int, Endpoint], Mapping] = {}
        self.by_outside: dict[tuple[int, Endpoint], Mapping] = {}
        self.drops: Counter[str] = Counter()
        self.passed: Counter[tuple[int | str, int, int]] = Counter()  # what, from, to
        self.created = 0
        self.learned: Endpoint | None = None  # what the frame at hand left by
        self.now = 0
        for (protocol, outside), inside in (forwards or {}).items():
            self._add(Mapping(protocol, inside, outside, 0, static=True))
        self.addresses = {*rules.outside, *(outside[0] for _, outside in self.by_outside)}

    # --- Mappings

    def _add(self, mapping: Mapping) -> None:
        self.by_inside[mapping.protocol, mapping.inside] = mapping
        self.by_outside[mapping.protocol, mapping.outside] = mapping

    def _timeout(self, m: Mapping) -> int:
        if m.protocol == TCP:
            return self.rules.established if m.state in ("established", "shared") else self.rules.transitory
        return self.rules.udp if m.protocol == UDP else self.rules.icmp

    def _alive(self, m: Mapping) -> bool:
        return m.static or self.now < m.last + self._timeout(m)

    def _lingers(self, m: Mapping) -> bool:
        """In the table for sure, or perhaps."""
        return m.static or self.now < m.last + self._timeout(m) + self.rules.second

    def _forget(self) -> None:
        """Drop what cannot matter any more."""
        for m in [m for m in self.by_inside.values() if not self._lingers(m)]:
            del self.by_inside[m.protocol, m.inside]
            if self.by_outside.get((m.protocol, m.outside)) is m:
                del self.by_outside[m.protocol, m.outside]

    def find_inside(self, protocol: int, inside: Endpoint) -> Mapping | None:
        m = self.by_inside.get((protocol, inside))
        return m if m and self._alive(m) else None

    def find_outside(self, protocol: int, outside: Endpoint) -> Mapping | None:
        m = self.by_outside.get((protocol, outside))
        return m if m and self._alive(m) else None

    def dynamic(self) -> list[Mapping]:
        return [m for m in self.by_inside.values() if not m.static and self._alive(m)]

    # --- A new mapping: is what the NAT did one of the right things?

    def _ports_used(self, protocol: int, ip: bytes) -> tuple[set[int], set[int]]:
        """For sure, and with what lingers."""
        at = [m for m in self.by_outside.values() if m.protocol == protocol and m.outside[0] == ip]
        return {m.outside[1] for m in at if self._alive(m)}, {m.outside[1] for m in at if self._lingers(m)}

    def _may_create(self, protocol: int, inside: Endpoint, drop: str | None) -> Mapping | str:
        ip = inside[0]
        number = int.from_bytes(ip, "big")
        if not any(number & mask == prefix for prefix, mask in self.rules.inside):
            return "not_inside"
        self._forget()
        perhaps = [m for m in self.by_inside.values() if not m.static]
        alive = [m for m in perhaps if self._alive(m)]
        mine, mine_perhaps = ([m for m in some if m.inside[0] == ip] for some in (alive, perhaps))
        limit = self.rules.per_host or self.rules.sessions_max + 1
        if len(mine) >= limit or (drop == "host_full" and len(mine_perhaps) >= limit):
            return "host_full"
        if len(alive) >= self.rules.sessions_max or (drop == "table_full" and len(perhaps) >= self.rules.sessions_max):
            return "table_full"
        addresses = {m.outside[0] for m in mine} or set(self.rules.outside)
        if drop == "no_port":
            for address in {m.outside[0] for m in mine_perhaps} if mine_perhaps and not mine else addresses:
                assert set(self.rules.ports) <= self._ports_used(protocol, address)[1], "no_port, and there is one"
            return "no_port"
        assert drop is None and self.learned, f"dropped as {drop}, and there is room"
        self._check_choice(protocol, inside, self.learned, addresses)
        mapping = Mapping(protocol, inside, self.learned, self.now)
        self._add(mapping)
        self.created += 1
        return mapping

    def _check_choice(self, protocol: int, inside: Endpoint, outside: Endpoint, addresses: set[bytes]) -> None:
        ip, port = outside
        used, used_perhaps = self._ports_used(protocol, ip)
        assert ip in addresses, "not paired with the host's other mappings"
        assert port in self.rules.ports, "out of the range"
        assert port not in used, "two mappings at one outside endpoint"
        if port == inside[1]:
            return
        assert inside[1] not in self.rules.ports or inside[1] in used_perhaps, "port not preserved"
        same = {n for n in self.rules.ports if n % 2 == inside[1] % 2}
        assert port in same or same <= used_perhaps, "parity not preserved"

    # --- TCP

    def _tcp(self, m: Mapping, flags: int, remote: Endpoint, direction: str) -> None:
        if m.static or m.state == "shared":
            return
        opens = flags & SYN and not flags & RST and direction == "out"
        if opens and m.state in ("", *_CLOSED):
            m.state, m.remote, m.fins, m.last = "opening", remote, set(), self.now
        elif not m.state:
            m.state, m.remote = "opening", remote
        if remote != m.remote:
            if opens:
                m.state, m.last = "shared", self.now
            return
        before = m.state
        if m.state != "closing":
            if flags & RST:
                m.state = "reset"
            else:
                if m.state == "reset" or (m.state == "opening" and direction == "in"):
                    m.state = "established"
                m.fins |= {direction} if flags & FIN else set()
                if len(m.fins) == 2:
                    m.state = "closing"
        m.last = self.now if m.state != before else m.last

    # --- Frames

    def _outbound(self, p: Packet, data: bytes, drop: str | None) -> Mapping | str:
        inside = (p.src, p.ports[0])
        m = self.find_inside(p.protocol, inside)
        flags = data[p.l4 + 13] if p.protocol == TCP else 0
        if not m:
            begins = p.protocol != TCP or (not flags & RST and (flags & SYN or (self.rules.loose and not flags & FIN)))
            made = self._may_create(p.protocol, inside, drop) if begins else "no_session"
            if isinstance(made, str):
                return made
            m = made
        if p.protocol == TCP:
            self._tcp(m, flags, (p.dst, p.ports[1]), "out")
        if m.state != "closing":
            m.last = self.now
        return m

    def _inbound_tcp(self, m: Mapping, p: Packet, data: bytes, remote: Endpoint) -> None:
        if p.protocol == TCP:
            self._tcp(m, data[p.l4 + 13], remote, "in")

    def _flow_out(self, p: Packet, data: bytes, drop: str | None) -> tuple[int, bytes] | str:
        if p.dst not in self.addresses:
            m = self._outbound(p, data, drop)
            return m if isinstance(m, str) else (1, rewrite(data, p, m.outside, None))
        if not self.rules.hairpin:
            return "hairpin"
        to = self.find_outside(p.protocol, (p.dst, p.ports[1]))
        if not to:
            return "no_mapping"
        m = self._outbound(p, data, drop)
        if isinstance(m, str):
            return m
        self._inbound_tcp(to, p, data, m.outside)
        return 0, rewrite(data, p, m.outside, to.inside)

    def _flow_in(self, p: Packet, data: bytes) -> tuple[int, bytes] | str:
        if p.dst not in self.addresses:
            return "not_ours"
        m = self.find_outside(p.protocol, (p.dst, p.ports[1]))
        if not m:
            return "no_mapping"
        self._inbound_tcp(m, p, data, (p.src, p.ports[0]))
        return 0, rewrite(data, p, None, m.inside)

    def _error_out(self, p: Packet, data: bytes) -> tuple[int, bytes] | str:
        e = parse_embedded(data, p)
        if not e or (e.protocol == ICMP and data[e.l4] not in _QUERIES.values()):
            return "icmp_error"
        m = self.find_inside(e.protocol, (e.dst, e.ports[1]))
        if not m:
            return "no_session"
        return 1, rewrite_error(data, p, e, (m.outside[0], None), dst=m.outside)

    def _error_in(self, p: Packet, data: bytes) -> tuple[int, bytes] | str:
        e = parse_embedded(data, p)
        if not e or e.src != p.dst or (e.protocol == ICMP and data[e.l4] not in _QUERIES):
            return "icmp_error"
        m = self.find_outside(e.protocol, (e.src, e.ports[0]))
        if not m:
            return "no_mapping"
        return 0, rewrite_error(data, p, e, (None, m.inside[0]), src=m.inside)

    def _icmp_out(self, p: Packet, data: bytes, drop: str | None) -> tuple[int, bytes] | str:
        ours = p.dst in self.addresses
        if data[p.l4] in _QUERIES:
            return "no_mapping" if ours else self._flow_out(p, data, drop)
        if data[p.l4] not in _ERRORS:
            return "icmp_type"
        if ours and not self.rules.hairpin:
            return "hairpin"
        done = self._error_out(p, data)
        if isinstance(done, str) or not ours:
            return done
        again = parse(done[1])
        assert isinstance(again, Packet)
        return self._error_in(again, done[1])

    def _icmp_in(self, p: Packet, data: bytes) -> tuple[int, bytes] | str:
        if p.dst not in self.addresses:
            return "not_ours"
        if data[p.l4] in _QUERIES.values():
            return self._flow_in(p, data)
        return self._error_in(p, data) if data[p.l4] in _ERRORS else "icmp_type"

    def frame(self, data: bytes, port: int, now: int, out: bytes, drop: str | None) -> tuple[int, bytes] | str:
        """What must come of a frame: a port and bytes from the EtherType on, or the reason of its drop."""
        self.now = now
        p = parse(data)
        if isinstance(p, str):
            result: tuple[int, bytes] | str = p
        else:
            left = parse(out) if drop is None else None
            self.learned = (left.src, left.ports[0]) if isinstance(left, Packet) else None
            if p.protocol == ICMP:
                result = self._icmp_in(p, data) if port else self._icmp_out(p, data, drop)
            else:
                result = self._flow_in(p, data) if port else self._flow_out(p, data, drop)
        if isinstance(result, str):
            self.drops[result] += 1
        elif isinstance(p, Packet):
            error = p.protocol == ICMP and data[p.l4] in _ERRORS
            self.passed["error" if error else p.protocol, port, result[0]] += 1
        return result
