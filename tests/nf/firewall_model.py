# SPDX-License-Identifier: BSD-3-Clause
"""What the firewall has to do, in Python: a walk down the list of rules. It knows nothing of tries, keys or bursts."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field

from nf.packet_model import TCP, FaultError, Packet, be, parse

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


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


def _matches(rule: _Bounds, packet: Packet, source: int, target: int, packet_ports: tuple[int, int] | None) -> bool:
    if rule.protocol is not None and rule.protocol != packet.protocol:
        return False
    if rule.version is not None and rule.version != packet.version:
        return False
    if not rule.source[0] <= source <= rule.source[1]:
        return False
    if not rule.target[0] <= target <= rule.target[1]:
        return False
    for side, ports in enumerate((rule.source_ports, rule.target_ports)):
        if ports is not None and (packet_ports is None or not ports[0] <= packet_ports[side] <= ports[1]):
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
        self.counters[which][1] += len(frame) + 4  # with FCS

    def decide(self, frame: bytes) -> str | None:
        """The name of the drop, or None for a frame that leaves."""
        try:
            packet = parse(frame)
        except FaultError as fault:
            return None if str(fault) == "not_ip" and self.not_ip_permit else str(fault)
        if packet.fragment and self.fragments_drop:
            return "fragment"
        if packet.protocol == TCP and packet.fragment_at == 8:
            return "tiny_fragment"
        source, target, ports = be(packet.source), be(packet.destination), packet.ports
        for place, rule in enumerate(self._walk, 1):
            if _matches(rule, packet, source, target, ports):
                self._count(place, frame)
                return None if rule.permit else "rule"
        self._count(0, frame)
        return None if self.default_permit else "default"
