# SPDX-License-Identifier: BSD-3-Clause
"""Every network function in a real planed: at vhost and virtio ports of both backends, in mbufs and in place; and what
a new configuration and a bad one do to a running one.

What is right for a kind is told by the models of tests/nf.
"""

from __future__ import annotations

import ipaddress
import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from nf.l3fwd_model import Route, Router
from nf.nat44_frames import frame, udp
from nf.packet_model import parse
from planed_rig import (
    CPU,
    OTHER_CPU,
    Document,
    Planed,
    load,
    stream,
    task,
    until,
    virtio,
)
from station import Station

from planebench.host.process import Supervisor
from planebench.planed.client import RpcError

pytestmark = pytest.mark.dataplane

KINDS = ("l2fwd", "l3fwd", "firewall", "nat44", "load_balancer")
MODES = ("vhost", "vhost-dpdk", "virtio", "virtio-dpdk")
"""Frames are handled in place with ``virtio``, and in mbufs with the others."""

PEERS = ["02:00:00:00:aa:00", "02:00:00:00:aa:01"]
_NAMES = itertools.count()


@pytest.fixture(scope="module")
def switch(supervisor: Supervisor) -> Planed:
    return Planed(supervisor, f"switch{next(_NAMES)}")


@dataclass
class Rig:
    """A planed for functions, with ports v0, v1, ...; whoever attaches to ``ends[i]`` is at the other end of port i."""

    planed: Planed
    switch: Planed | None
    wires: list[Document]
    ends: list[Path]

    def apply(self, *tasks: Document, more: tuple[Document, ...] = ()) -> None:
        """Other tasks at the same ports."""
        self.planed.apply([*self.wires, *more], tasks, cpu=CPU)

    def counted(self) -> Document:
        """The task ``vnf``."""
        return dict(self.planed.tasks()["vnf"])

    def lost_between(self) -> int:
        """What the switch between had no room for, since its counters were cleared."""
        return sum(task["drops"]["tx_full"] for task in self.switch.settled().values()) if self.switch else 0

    def clear(self) -> None:
        self.planed.call("stats.clear")
        if self.switch:
            self.switch.call("stats.clear")


def make_rig(mode: str, count: int, planed: Planed, switch: Planed) -> Rig:
    """A virtio port is the driver of a device, so there is a switch in between: one patch a port."""
    kind, _, backend = mode.partition("-")
    number = next(_NAMES)
    ends = [planed.workdir / f"end{number}.{i}" for i in range(count)]
    with_backend = {"backend": backend or "planed"}
    if kind == "vhost":
        wires = [{"name": f"v{i}", "kind": "vhost-user", "path": str(ends[i]), **with_backend} for i in range(count)]
        return Rig(planed, None, wires, ends)
    inner = [planed.workdir / f"in{number}.{i}" for i in range(count)]
    devices = [
        {"name": f"{name}{i}", "kind": "vhost-user", "path": str(paths[i])}
        for name, paths in (("e", ends), ("i", inner))
        for i in range(count)
    ]
    switch.apply(devices, [task(f"p{i}", "patch", f"e{i}", f"i{i}") for i in range(count)], cpu=CPU)
    return Rig(planed, switch, [{**virtio(f"v{i}", inner[i]), **with_backend} for i in range(count)], ends)


@pytest.fixture
def rig(request: pytest.FixtureRequest, planed: Planed, switch: Planed) -> Iterator[Rig]:
    mode, count = request.param
    yield make_rig(mode, count, planed, switch)
    planed.apply()
    switch.apply()


def in_modes(ports: int, *modes: str) -> Any:
    """A rig of so many ports."""
    return pytest.mark.parametrize("rig", [(mode, ports) for mode in modes], indirect=True, ids=list(modes))


def no_drops(counted: Document) -> None:
    """But where the next one is slow."""
    assert {reason: count for reason, count in counted["drops"].items() if count and reason != "tx_full"} == {}


# --- The tester's traffic, with what each kind does by default


@in_modes(2, *MODES)
def test_the_testers_traffic_passes_every_kind(rig: Rig, other: Planed) -> None:
    """Both ways at once; each frame is received, or counted as dropped; each that is received is intact."""
    ends = [task(f"mon{i}", "monitor", f"t{i}") for i in range(2)]
    ends += [task(f"gen{i}", "generator", f"t{i}", stream=i) for i in range(2)]
    rig.apply(task("vnf", "l2fwd", "v0", "v1"))
    other.apply([virtio(f"t{i}", path) for i, path in enumerate(rig.ends)], ends, cpu=OTHER_CPU)
    other.links_up()
    rig.planed.links_up()
    for epoch, kind in enumerate(KINDS, start=1):
        rig.apply(task("vnf", kind, "v0", "v1"))
        rig.clear()
        there = other.send(load("gen0", rate_pps=10_000), load("gen1", 512, rate_pps=10_000), epoch=epoch)
        inner, lost = rig.planed.settled()["vnf"], rig.lost_between()
        there = other.settled()
        sent = [there[f"gen{i}"]["tx_packets"] for i in range(2)]
        came = [there[f"mon{i}"]["rx_packets"] for i in range(2)]
        assert min(sent) > 0
        no_drops(inner)
        assert inner["rx_packets"] == inner["tx_packets"] + inner["drops"]["tx_full"], kind
        assert sum(sent) == sum(came) + inner["drops"]["tx_full"] + lost, kind
        for receiver, sender in ((0, 1), (1, 0)):
            seen = stream(there[f"mon{receiver}"], sender)
            assert seen["forwarded_packets"] == came[receiver], kind
            assert not any(seen[odd] for odd in ("duplicate_packets", "reordered_packets", "corrupt_packets")), kind
    other.apply()


# --- Verdicts that differ within one burst


BURST = 8
"""Frames that a station's rings have room for, and those of another beside them."""


class Stations:
    """One at each end of a rig."""

    def __init__(self, rig: Rig) -> None:
        self.rig = rig
        self.all = [Station(path) for path in rig.ends]
        self.came: list[list[bytes]] = [[] for _ in self.all]
        rig.planed.links_up()

    def send(self, port: int, *frames: bytes) -> None:
        """Send frames, a ring's worth at a time, and wait until the task ``vnf`` has seen them."""
        for at in range(0, len(frames), BURST):
            self._send_burst(port, frames[at : at + BURST])
            self._collect()

    def _send_burst(self, port: int, burst: tuple[bytes, ...]) -> None:
        wanted = self.rig.counted()["rx_packets"] + len(burst)
        self.all[port].send(*burst)
        until(lambda: self.rig.counted()["rx_packets"] == wanted, "the function has seen them")

    def _collect(self) -> None:
        for came, station in zip(self.came, self.all, strict=True):
            came += station.received()

    def expect(self, port: int, count: int) -> list[bytes]:
        """The next frames that come to a station; there are no more."""

        def are_here() -> bool:
            self._collect()
            return len(self.came[port]) >= count

        until(are_here, f"{count} frames come to {port}")
        got, self.came[port] = self.came[port], []
        assert len(got) == count
        return got

    def close(self) -> None:
        for station in self.all:
            station.close()


@pytest.fixture
def stations(rig: Rig) -> Iterator[Stations]:
    rig.apply(task("vnf", "l2fwd", "v0", "v1"))
    made = Stations(rig)
    yield made
    made.close()


def packet4(to: str, ttl: int = 64, port: int = 53) -> bytes:
    """UDP from 192.0.2.1; the frame's checksums are right."""
    data = bytearray(udp((bytes((192, 0, 2, 1)), 1024), (ipaddress.IPv4Address(to).packed, port), b"x" * 18))
    data[8:12] = bytes((ttl, 17, 0, 0))
    total = -int.from_bytes(data[:20]) % 0xFFFF
    data[10:12] = total.to_bytes(2)
    return frame(bytes(data))


def packet6(to: str) -> bytes:
    """UDP without a checksum that anybody looks at."""
    ends = ipaddress.IPv6Address("2001:db8::1").packed + ipaddress.IPv6Address(to).packed
    head = b"\x60" + bytes(3) + (26).to_bytes(2) + bytes((17, 64)) + ends
    return frame(head + b"\x04\0\0\x35" + (26).to_bytes(2) + b"\x12\x34" + b"y" * 18, ether_type=0x86DD)


@in_modes(3, *MODES)
def test_a_router_of_three_ports_sends_each_packet_of_a_burst_its_way(rig: Rig, stations: Stations) -> None:
    """To every port from every port, back to where it came from too, and some to nowhere: the model says which."""
    routes: list[Document] = [
        {"prefix": "10.0.0.0/8", "port": 0},
        {"prefix": "10.1.0.0/16", "port": 1},
        {"prefix": "10.2.0.0/16", "port": 2, "mac": "02:00:00:00:bb:02"},
        {"prefix": "10.3.0.0/16", "drop": True},
        {"prefix": "2001:db8:1::/48", "port": 1},
        {"prefix": "2001:db8:2::/48", "port": 2},
    ]
    rig.apply(task("vnf", "l3fwd", "v0", "v1", "v2", peer_macs=PEERS, settings={"routes": routes}))
    own = {port["name"]: bytes.fromhex(port["mac"].replace(":", "")) for port in rig.planed.call("ports.get")["ports"]}
    peers = [*(bytes.fromhex(text.replace(":", "")) for text in PEERS), bytes((2, 0, 0, 0, 1, 2))]
    model = Router(
        [
            Route(
                ipaddress.ip_network(one["prefix"]),
                one.get("port"),
                bytes.fromhex(one["mac"].replace(":", "")) if "mac" in one else None,
                one.get("drop", False),
            )
            for one in routes
        ],
        [(peers[i], own[f"v{i}"]) for i in range(3)],
    )
    mixed = [packet4("10.0.0.1"), packet4("10.1.0.1"), packet4("10.2.0.1"), packet6("2001:db8:2::9")]
    mixed += [packet4("10.3.0.1"), packet4("10.1.0.2"), packet4("11.0.0.1"), packet6("2001:db8:1::9")]
    mixed += [packet4("10.2.9.9", ttl=1), packet4("10.2.9.9", ttl=2), b"\x02" * 60]
    wanted: list[list[bytes]] = [[], [], []]
    for port in range(3):
        for data in mixed * 5:
            out, _, left = model.handle(data, port)
            if out is not None:
                wanted[out].append(left)
        stations.send(port, *mixed * 5)
    for port in range(3):
        assert stations.expect(port, len(wanted[port])) == wanted[port]
    counted = rig.counted()
    assert {reason: count for reason, count in counted["drops"].items() if count} == dict(model.drops)
    assert counted["rx_packets"] == 3 * 55 == counted["tx_packets"] + model.drops.total()


# --- New configurations


HOST, REMOTE, OUTSIDE = (bytes((10, 0, 0, 1)), 5000), (bytes((192, 0, 2, 1)), 53), bytes((203, 0, 113, 1))


@in_modes(2, "vhost", "virtio")
def test_sessions_of_a_nat_outlive_a_new_configuration(rig: Rig, stations: Stations) -> None:
    settings: Document = {"outside": ["203.0.113.1"], "port_min": 6000, "port_max": 6999}
    rig.apply(task("vnf", "nat44", "v0", "v1", settings=settings))
    stations.send(0, *(frame(udp((HOST[0], HOST[1] + i), REMOTE, b"q" * 18)) for i in range(20)))
    outside = [(packet.source, packet.ports) for packet in map(parse, stations.expect(1, 20))]
    assert {ip for ip, _ in outside} == {OUTSIDE}
    answers = [frame(udp(REMOTE, (ip, ports[0] if ports else 0), b"a" * 18)) for ip, ports in outside]
    for changed in ({"udp_s": 17}, {"sessions_max": 100}, {}):
        rig.apply(task("vnf", "nat44", "v0", "v1", settings={**settings, **changed}))
        assert rig.counted()["nat44"]["sessions"] == 20
        stations.send(1, *answers)
        came = [parse(data) for data in stations.expect(0, 20)]
        assert [(packet.destination, packet.ports) for packet in came] == [
            (HOST[0], (REMOTE[1], HOST[1] + i)) for i in range(20)
        ]
        no_drops(rig.counted())
    listed = rig.planed.call("nat44.sessions", {"task": "vnf"})
    assert [one["inside"] for one in listed["sessions"]].count("10.0.0.1:5000") == len(listed["sessions"]) / 20 == 1
    rig.apply(task("vnf", "nat44", "v0", "v1", settings={**settings, "outside": ["203.0.113.2"]}))
    assert rig.counted()["nat44"]["sessions"] == 0
    before = rig.counted()["drops"]["not_ours"]
    stations.send(1, *answers)
    assert rig.counted()["drops"]["not_ours"] == before + 20


def still_polls(rig: Rig, polls: int) -> None:
    """The old task goes on."""
    until(lambda: rig.counted()["polls"] > polls, "it is polled")


GOOD_RULES = "drop udp from any to any port 53\npermit ip from any to any\n"


@in_modes(2, "vhost", "virtio")
def test_a_bad_list_leaves_everything_as_it_was(rig: Rig, stations: Stations, tmp_path: Path) -> None:
    """Refused whole: the old rules hold, counters go on, and nothing else of the document is there."""
    rules, routes = tmp_path / "site.rules", tmp_path / "routes.txt"
    rules.write_text(GOOD_RULES)
    routes.write_text("10.0.0.0/8\n")
    settings = {"rules_file": str(rules)}
    rig.apply(task("vnf", "firewall", "v0", "v1", settings=settings))
    paths = [rig.planed.workdir / f"new{next(_NAMES)}" for _ in range(2)]
    extra = tuple({"name": path.name, "kind": "vhost-user", "path": str(path)} for path in paths)
    bad = (
        ("site.rules:2", GOOD_RULES.replace("permit ip", "permit pi"), "10.0.0.0/8\n"),
        ("site.rules:1", "drop udp from any to any port 53-52\n", "10.0.0.0/8\n"),
        ("routes.txt:2", "drop ip from any to any\n", "11.0.0.0/8\n10.0.0.1/8\n"),
    )
    for turn, (words, bad_rules, bad_routes) in enumerate(bad):
        stations.send(0, *[packet4("10.0.0.1", port=53), packet4("10.0.0.1", port=54)] * 5)
        assert {parse(data).ports for data in stations.expect(1, 5)} == {(1024, 54)}
        before = rig.counted()
        assert (before["rx_packets"], before["drops"]["rule"]) == (10 * (turn + 1), 5 * (turn + 1))
        rules.write_text(bad_rules)
        routes.write_text(bad_routes)
        router = task("r", "l3fwd", *(path.name for path in paths), settings={"routes_file": str(routes)})
        with pytest.raises(RpcError, match=words):
            rig.apply(task("vnf", "firewall", "v0", "v1", settings=settings), router, more=extra)
        after = rig.counted()
        moving = ("polls", "idle_polls", "idle_cycles")
        assert {key: after[key] for key in after if key not in moving} == {
            key: before[key] for key in before if key not in moving
        }
        still_polls(rig, before["polls"])
        assert {port["name"] for port in rig.planed.call("ports.get")["ports"]} == {"v0", "v1"}
        assert not any(path.exists() for path in paths)
    rules.write_text("permit udp from any to any port 53\n")
    rig.apply(task("vnf", "firewall", "v0", "v1", settings=settings))
    stations.send(0, *[packet4("10.0.0.1", port=53), packet4("10.0.0.1", port=54)] * 5)
    assert {parse(data).ports for data in stations.expect(1, 5)} == {(1024, 53)}
