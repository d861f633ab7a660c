# SPDX-License-Identifier: BSD-3-Clause
"""Routes of several VNFs change at random, and after each change a packet to every probe address of each is where a
plain model says: by the longest prefix, of IPv4 and IPv6; the last to set a route has it; what is flushed is gone.
"""

from __future__ import annotations

import random
import socket
import struct
from collections import Counter
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_network
from pathlib import Path

import pytest
from nf.nat44_frames import udp
from planed.test_fib_offload import FAR, HOST, NEAR, WIRES, Guest, Switch, raw, settings, vnf_mac
from planed_rig import Document, Planed, until

from planebench_fib.client import FibClient
from planebench_fib.errors import FibUpdateError
from planebench_fib.messages import Code

pytestmark = pytest.mark.dataplane

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network
HopKey = tuple[int, int]
"""Session and number; session 0 is the operator's."""

VNFS = (1, 2, 3)
PLAIN, GROUPS = range(5), range(5, 7)
LENGTHS = {4: (0, 1, 8, 15, 16, 17, 23, 24, 25, 32, 32, 32), 6: (0, 3, 16, 17, 32, 47, 48, 49, 64, 127, 128, 128)}
STEPS = 80
AT_ONCE = 8
"""Frames: half a ring."""
MANY = 64
"""Routes of one change at most; of hosts twice as many: the forwarder looks a few up in another way."""


def address_of(rng: random.Random, version: int) -> Address:
    """Return one of few addresses, so that prefixes lie in each other and come again."""
    if version == 4:
        return IPv4Address(bytes((10, *rng.choices((0, 1, 128, 255), k=3))))
    return IPv6Address(bytes.fromhex("20010db8") + bytes(rng.choices((0, 1, 128), k=12)))


PROBES = tuple(address_of(random.Random(seed), version) for version in (4, 6) for seed in range(16))


@dataclass
class Model:
    """What one VNF announced. Where a hop leads: one outcome; of a group, the numbers of its members."""

    session: int = 0
    hops: dict[HopKey, str | frozenset[int]] = field(default_factory=dict)
    routes: dict[Network, HopKey] = field(default_factory=dict)

    def outcomes(self, address: Address, up: set[str]) -> set[str]:
        """Return what may become of a packet; more than one only by a group."""
        over = [network for network in self.routes if network.version == address.version and address in network]
        if not over:
            return {"no_route"}
        return self._led(self.routes[max(over, key=lambda network: network.prefixlen)], up)

    def _led(self, hop: HopKey, up: set[str]) -> set[str]:
        to = self.hops[hop]
        if isinstance(to, frozenset):
            return set().union(*(self._led((hop[0], member), up) for member in to)) - {"wire_down"} or {"wire_down"}
        return {to} if to in ("vnf", "blackhole") or to.split()[0] in up else {"wire_down"}

    def numbers(self, of: range) -> list[int]:
        """Return the present session's hops."""
        return [number for number in of if (self.session, number) in self.hops]

    def is_used(self, number: int) -> bool:
        hop = (self.session, number)
        groups = (to for (session, _), to in self.hops.items() if session == self.session)
        return hop in self.routes.values() or any(isinstance(to, frozenset) and number in to for to in groups)

    def keep(self, *sessions: int) -> None:
        self.routes = {network: hop for network, hop in self.routes.items() if hop[0] in sessions}
        self.hops = {hop: to for hop, to in self.hops.items() if hop[0] in sessions}


class Speaker:
    """A VNF: its session, and the model that does the same. Each change returns the refusals that are expected."""

    def __init__(self, switch: Switch, number: int, rng: random.Random) -> None:
        self.switch, self.number, self.rng = switch, number, rng
        self.guest = switch.attach(f"vnf{number}", vnf_mac(number))
        self.model = Model()
        self.refused: list[FibUpdateError] = []
        self.again()

    def again(self) -> list[Code]:
        """What was announced is stale."""
        self.client = FibClient(self.guest, refused=self.refused.append)
        self.model.session = self.client.session
        for number in PLAIN:
            self.hop_of(number, self.rng.choice(WIRES), NEAR)
        return []

    def hop_of(self, number: int, wire: str, mac: str) -> None:
        self.client.hop(number, destination=mac, wire=WIRES.index(wire))
        self.model.hops[self.model.session, number] = f"{wire} {mac}"

    def change(self) -> None:
        changes = {
            self.announce: 10, self.withdraw: 6, self.hop: 6, self.group: 3, self.hop_delete: 2, self.operator: 2,
            self.again: 1, self.end_of_rib: 1, self.flush: 0.3, self.operator_flush: 0.3,
        }  # fmt: skip
        expected = self.rng.choices([*changes], [*changes.values()])[0]()
        self.client.drain()
        assert [error.code for error in self.refused] == expected
        self.refused.clear()

    def network(self, *, is_host: bool = False) -> Network:
        address = address_of(self.rng, self.rng.choice((4, 6)))
        length = address.max_prefixlen if is_host else self.rng.choice(LENGTHS[address.version])
        return ip_network((int(address), length), strict=False)

    def announce(self) -> list[Code]:
        expected = []
        count = self.rng.choice((1, 2, MANY, 2 * MANY))
        for _ in range(count):
            network, number = self.network(is_host=count > MANY), self.rng.choice((*PLAIN, *GROUPS))
            hop, is_add = (self.model.session, number), self.rng.random() < 0.5
            (self.client.add if is_add else self.client.replace)(network, number)
            owner = self.model.routes.get(network, (None, 0))[0]
            if hop not in self.model.hops:
                expected.append(Code.NO_NEXT_HOP)
            elif is_add and owner == self.model.session:
                expected.append(Code.EXISTS)
            else:
                self.model.routes[network] = hop
        return expected

    def withdraw(self) -> list[Code]:
        known = sorted(self.model.routes, key=str)
        count = min(len(known), self.rng.choice((1, 2, 3)))
        chosen = [*self.rng.sample(known, count), self.network()]
        for network in chosen:
            self.client.delete(network)
        return [Code.ABSENT for network in chosen if self.model.routes.pop(network, None) is None]

    def hop(self) -> list[Code]:
        number, kind = self.rng.choice(PLAIN), self.rng.choice(("forward", "forward", "forward", "vnf", "blackhole"))
        if kind == "forward":
            self.hop_of(number, self.rng.choice(WIRES), self.rng.choice((FAR, NEAR)))
            return []
        (self.client.hop_local if kind == "vnf" else self.client.hop_blackhole)(number)
        self.model.hops[self.model.session, number] = kind
        return []

    def group(self) -> list[Code]:
        there = self.model.numbers(PLAIN)
        if not there:
            return []
        members, number = self.rng.sample(there, self.rng.randint(1, len(there))), self.rng.choice(GROUPS)
        self.client.group(number, [(member, self.rng.randint(1, 255)) for member in members])
        self.model.hops[self.model.session, number] = frozenset(members)
        return []

    def hop_delete(self) -> list[Code]:
        number = self.rng.choice((*PLAIN, *GROUPS))
        self.client.hop_delete(number)
        if (self.model.session, number) not in self.model.hops:
            return [Code.ABSENT]
        if self.model.is_used(number):
            return [Code.BUSY_HOP]
        del self.model.hops[self.model.session, number]
        return []

    def end_of_rib(self) -> list[Code]:
        self.client.end_of_rib()
        self.model.keep(0, self.model.session)
        return []

    def flush(self) -> list[Code]:
        self.client.flush()
        self.model.keep(0)
        return []

    def operator(self) -> list[Code]:
        """The operator has hops of the same numbers."""
        number, wire, network = self.rng.choice(PLAIN), self.rng.choice(WIRES), self.network()
        self.switch.call("next_hop_set", vnf=self.number, hop=number, wire=wire, mac=NEAR)
        self.switch.call("route_set", vnf=self.number, prefix=str(network), hop=number)
        self.model.hops[0, number] = f"{wire} {NEAR}"
        self.model.routes[network] = (0, number)
        return []

    def operator_flush(self) -> list[Code]:
        """It ends the session."""
        assert self.switch.call("flush", vnf=self.number) == {"flushed": len(self.model.routes)}
        self.model.keep()
        return self.again()


def probe(vnf: int, address: Address, number: int) -> bytes:
    """Return a frame that says its number."""
    data = number.to_bytes(4, "big") + bytes(14)
    if address.version == 4:
        to = (address.packed, 2000)
        return raw(vnf_mac(vnf), HOST, 0x0800, udp((socket.inet_aton("192.0.2.1"), 1000), to, data))
    segment = struct.pack("!HHHH", 1000, 2000, 8 + len(data), 1) + data
    head = struct.pack("!IHBB", 0x60000000, len(segment), 17, 64)
    return raw(vnf_mac(vnf), HOST, 0x86DD, head + IPv6Address("2001:db8:ffff::1").packed + address.packed + segment)


def number_of(frame: bytes) -> int:
    at = 42 if frame[12:14] == b"\x08\x00" else 62
    return int.from_bytes(frame[at : at + 4], "big")


class Everything:
    """The switch, its wires and VNFs. Frames come by the first wire, which stays up."""

    def __init__(self, switch: Switch, seed: int) -> None:
        self.rng = random.Random(seed)
        self.switch = switch
        keys: Document = {"routes6": 10_000, "punt": {"rate_pps": 1_000_000, "burst": 1024}}
        switch.apply({**settings(len(VNFS), grace_s=600), **keys})
        self.wires = {name: switch.attach(name) for name in WIRES}
        self.speakers = {number: Speaker(switch, number, self.rng) for number in VNFS}
        self.probes = [(number, address) for number in VNFS for address in PROBES]

    def change(self) -> None:
        if self.rng.random() < 0.1:
            self.toggle(WIRES[1])
        else:
            self.rng.choice(list(self.speakers.values())).change()

    def toggle(self, name: str) -> None:
        """A wire that is up goes down, and the other way round; the VNFs are told."""
        if name in self.wires:
            self.wires.pop(name).close()
        else:
            self.wires[name] = self.switch.attach(name)
        bits = sum(1 << WIRES.index(wire) for wire in self.wires)

        def all_know() -> bool:
            for speaker in self.speakers.values():
                speaker.client.poll()
            return all(speaker.client.wires_up == bits for speaker in self.speakers.values())

        until(all_know, f"the VNFs know that wires {bits:#b} are up")

    def check(self) -> None:
        """Send a packet to each address of each VNF, and compare."""
        guests = {**self.wires, **{f"vnf{number}": one.guest for number, one in self.speakers.items()}}
        for guest in guests.values():
            guest.look()
            guest.others.clear()
        before = Counter(self.switch.counted()["drops"])
        frames = [probe(number, address, i) for i, (number, address) in enumerate(self.probes)]
        for first in range(0, len(frames), AT_ONCE):
            self.wires[WIRES[0]].station.send(*frames[first : first + AT_ONCE])
            for guest in guests.values():
                guest.look()
        until(lambda: self.arrived(guests) + self.dropped(before).total() == len(frames), "all frames are somewhere")
        seen = {number_of(frame): self.outcome(name, frame) for name in guests for frame in guests[name].others}
        self.compare(seen, self.dropped(before))

    def arrived(self, guests: dict[str, Guest]) -> int:
        return sum(len(guest.look()) for guest in guests.values())

    def dropped(self, before: Counter[str]) -> Counter[str]:
        return Counter(self.switch.counted()["drops"]) - before

    def outcome(self, name: str, frame: bytes) -> str:
        number, _ = self.probes[number_of(frame)]
        if name in WIRES:
            assert frame[6:12].hex(":") == vnf_mac(number)
            return f"{name} {frame[:6].hex(':')}"
        assert name == f"vnf{number}"
        return "vnf"

    def compare(self, seen: dict[int, str], dropped: Counter[str]) -> None:
        certain: Counter[str] = Counter()
        possible: Counter[str] = Counter()
        for i, (number, address) in enumerate(self.probes):
            expected = self.speakers[number].model.outcomes(address, set(self.wires))
            causes = expected & {"no_route", "blackhole", "wire_down"}
            if i in seen:
                assert seen[i] in expected, f"VNF {number}, {address}"
                continue
            assert causes, f"VNF {number}, {address}: not {expected}"
            possible.update(causes)
            certain.update(causes if len(causes) == 1 else ())
        assert certain <= dropped <= possible


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.all)])
def test_every_packet_is_where_a_plain_model_says_after_each_change(planed: Planed, tmp_path: Path, seed: int) -> None:
    everything = Everything(Switch(planed, len(VNFS), tmp_path), seed)
    for _ in range(STEPS):
        everything.change()
        everything.check()
