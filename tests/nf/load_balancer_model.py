# SPDX-License-Identifier: BSD-3-Clause
"""load_balancer as docs/network-functions.md specifies it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Any

from nf.flow_key_model import Key, key_of
from nf.maglev_model import crc32c, populate
from nf.packet_model import TCP, UDP, FaultError, parse

_PROTOCOLS = {"udp": UDP, "tcp": TCP, "any": None}


class DropError(Exception):
    """A frame is dropped; the text is the reason."""


@dataclass
class Backend:
    """A backend and what it got."""

    name: str
    mac: bytes
    weight: int
    up: bool
    packets: int = 0
    bytes: int = 0


@dataclass
class Service:
    """A service and its table."""

    address: bytes
    protocol: int | None
    port: int
    backends: list[Backend]
    table: list[int | None] = field(default_factory=list)

    def fill(self, size: int) -> None:
        """The table anew."""
        self.table = populate([(b.name, b.weight * b.up) for b in self.backends], size)


@dataclass
class LoadBalancer:
    """``connections`` in the order in which they were last seen."""

    settings: Mapping[str, Any]
    tsc_hz: int
    services: list[Service] = field(default_factory=list)
    connections: OrderedDict[Key, tuple[Backend, int]] = field(default_factory=OrderedDict)
    counts: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for service in self.settings["services"]:
            backends = [
                Backend(b["name"], bytes.fromhex(b["mac"].replace(":", "")), b.get("weight", 1), b.get("up", True))
                for b in sorted(service["backends"], key=lambda b: str(b["name"]))
            ]
            address = ip_address(service["address"]).packed
            made = Service(address, _PROTOCOLS[service.get("protocol", "any")], service.get("port", 0), backends)
            made.fill(self.settings["table_size"])
            self.services.append(made)
        for name in ("new_connections", "moved_connections", "untracked_packets", "fragment_packets", "other_packets"):
            self.counts[name] = 0

    def frame(self, data: bytes, now: int) -> bytes | None:
        """The destination that a frame from the clients gets, None for the peer's; or DropError."""
        try:
            packet = parse(data)
        except FaultError as fault:
            if str(fault) != "not_ip":
                raise DropError(str(fault)) from None
            return self._other("not_ip")
        if packet.fragment:
            key = Key(packet.source, packet.destination, packet.datagram_protocol, 0, 0)
            found = [s for s in self.services if self._is_for(s, key)]
            if len(found) > 1:
                raise DropError("fragment")
        else:
            key = key_of(packet)
            found = [s for s in self.services if self._is_for(s, key) and s.port in (0, key.destination_port)]
        if not found:
            return self._other("other")
        if not any(backend.up for backend in found[0].backends):
            raise DropError("no_backend")
        if packet.fragment:
            self.counts["fragment_packets"] += 1
            backend = self._by_hash(found[0], key)
        else:
            backend = self._by_connection(found[0], key, now)
        backend.packets += 1
        backend.bytes += len(data) + 4
        return backend.mac

    @staticmethod
    def _is_for(service: Service, key: Key) -> bool:
        return service.address == key.destination and service.protocol in (None, key.protocol)

    def _other(self, reason: str) -> None:
        if self.settings.get("other") == "drop":
            raise DropError(reason)
        self.counts["other_packets"] += 1

    def _by_hash(self, service: Service, key: Key) -> Backend:
        number = service.table[crc32c(key.raw()) % len(service.table)]
        assert number is not None
        return service.backends[number]

    def _by_connection(self, service: Service, key: Key, now: int) -> Backend:
        self.expire(now)
        known = self.connections.get(key)
        if known is None and len(self.connections) >= self.settings["connections"]:
            self.counts["untracked_packets"] += self.settings["connections"] > 0
            return self._by_hash(service, key)
        if known is not None and known[0].up:
            backend = known[0]
        else:
            backend = self._by_hash(service, key)
            self.counts["new_connections" if known is None else "moved_connections"] += 1
        self.connections[key] = backend, now
        self.connections.move_to_end(key)
        return backend

    def expire(self, now: int) -> None:
        """Forget connections that are idle."""
        timeout = self.settings["connection_timeout_s"] * self.tsc_hz
        while self.connections and now - next(iter(self.connections.values()))[1] >= timeout:
            self.connections.popitem(last=False)

    def backend(self, service: int, name: str, up: bool) -> None:
        """A backend comes or goes."""
        for backend in self.services[service].backends:
            if backend.name == name:
                backend.up = up
        self.services[service].fill(self.settings["table_size"])

    def backends(self, now: int) -> list[list[dict[str, Any]]]:
        """The backends of each service, as load_balancer.backends lists them."""
        self.expire(now)
        holders = [id(backend) for backend, _ in self.connections.values()]
        return [
            [
                {
                    "name": backend.name,
                    "mac": backend.mac.hex(":"),
                    "weight": backend.weight,
                    "up": backend.up,
                    "packets": backend.packets,
                    "bytes": backend.bytes,
                    "slots": service.table.count(number),
                    "connections": holders.count(id(backend)),
                }
                for number, backend in enumerate(service.backends)
            ]
            for service in self.services
        ]
