# SPDX-License-Identifier: BSD-3-Clause
"""flow_monitor as docs/network-functions.md specifies it."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Any

from nf.flow_key_model import Key, key_of
from nf.packet_model import TCP, FaultError, parse


@dataclass
class Record:
    """What is known of a flow."""

    first_tsc: int
    last_tsc: int
    packets: int = 0
    bytes: int = 0
    tcp_flags: int = 0


@dataclass
class Sum:
    """Packets and bytes."""

    packets: int = 0
    bytes: int = 0

    def add(self, packets: int, size: int) -> None:
        """Count more."""
        self.packets += packets
        self.bytes += size

    def json(self) -> dict[str, int]:
        """As in the report."""
        return {"packets": self.packets, "bytes": self.bytes}


@dataclass
class FlowMonitor:
    """``flows`` is in the order in which flows were last seen."""

    flows_max: int
    timeout_tsc: int
    flows: OrderedDict[Key, Record] = field(default_factory=OrderedDict)
    all: Sum = field(default_factory=Sum)
    expired: Sum = field(default_factory=Sum)
    expired_flows: int = 0
    untracked: Sum = field(default_factory=Sum)
    other: Sum = field(default_factory=Sum)

    def frame(self, data: bytes, now: int) -> bool:
        """Count a frame; False if it is dropped as a runt."""
        size = len(data) + 4
        try:
            packet = parse(data)
        except FaultError as fault:
            if str(fault) == "runt":
                return False
            self.all.add(1, size)
            self.other.add(1, size)
            return True
        self.all.add(1, size)
        self._expire(now)
        key = key_of(packet)
        record = self.flows.get(key)
        if record is None:
            if len(self.flows) == self.flows_max:
                self.untracked.add(1, size)
                return True
            record = self.flows[key] = Record(now, now)
        self.flows.move_to_end(key)
        record.last_tsc = now
        record.packets += 1
        record.bytes += size
        if packet.protocol == TCP and not packet.fragment_at:
            record.tcp_flags |= packet.body[13]
        return True

    def _expire(self, now: int) -> None:
        while self.flows:
            oldest = next(iter(self.flows))
            if now - self.flows[oldest].last_tsc < self.timeout_tsc:
                return
            self._over(self.flows.pop(oldest))

    def _over(self, record: Record) -> None:
        self.expired.add(record.packets, record.bytes)
        self.expired_flows += 1

    def flush(self) -> int:
        """Forget every flow."""
        count = len(self.flows)
        for record in self.flows.values():
            self._over(record)
        self.flows.clear()
        return count

    def shrink(self, flows_max: int) -> None:
        """Another flows_max: what was seen longest ago goes."""
        self.flows_max = flows_max
        while len(self.flows) > flows_max:
            self._over(self.flows.popitem(last=False)[1])

    def listed(self, now: int) -> list[dict[str, Any]]:
        """Every flow as a method lists it."""
        self._expire(now)
        return [_listed(key, record) for key, record in self.flows.items()]

    def top(self, by: str, limit: int, now: int) -> list[dict[str, Any]]:
        """The most first; then by the other count, then by key."""
        self._expire(now)
        other = "bytes" if by == "packets" else "packets"
        order = sorted(
            self.flows.items(), key=lambda item: (-getattr(item[1], by), -getattr(item[1], other), item[0].raw())
        )
        return [_listed(key, record) for key, record in order[:limit]]

    def report(self, now: int) -> dict[str, Any]:
        """As in stats.get."""
        self._expire(now)
        tracked = Sum(
            sum(record.packets for record in self.flows.values()), sum(record.bytes for record in self.flows.values())
        )
        return {
            "flows": len(self.flows),
            "all": self.all.json(),
            "tracked": tracked.json(),
            "expired": {**self.expired.json(), "flows": self.expired_flows},
            "untracked": self.untracked.json(),
            "other": self.other.json(),
        }


def _listed(key: Key, record: Record) -> dict[str, Any]:
    return {
        "source": str(ip_address(key.source)),
        "destination": str(ip_address(key.destination)),
        "protocol": key.protocol,
        "source_port": key.source_port,
        "destination_port": key.destination_port,
        "packets": record.packets,
        "bytes": record.bytes,
        "first_tsc": record.first_tsc,
        "last_tsc": record.last_tsc,
        "tcp_flags": record.tcp_flags,
    }
