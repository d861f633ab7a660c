# SPDX-License-Identifier: BSD-3-Clause
"""The learning switch between real guests: which frame comes out where, bit by bit, with frames in place and in mbufs;
then generators and monitors at full speed, and everything adds up."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from planed_rig import CPU, OTHER_CPU, Document, Planed, ethdev, load, stream, task, until
from station import BROADCAST, Station, frame, mac

from planebench.planed.client import RpcError

pytestmark = pytest.mark.dataplane

FRAME_DROPS = ("hairpin", "reserved", "runt", "vlan", "no_member", "oversize", "locked", "station_limit")
COPY_DROPS = ("tx_full", "no_mbuf", "no_headroom")
Came = dict[str, list[bytes]]


def wire(planed: Planed, name: str, backend: str = "planed") -> Document:
    return {"name": name, "kind": "vhost-user", "path": str(planed.workdir / f"{name}.sock"), "backend": backend}


def assert_adds_up(bridge: Mapping[str, Any]) -> None:
    """Each frame received has one fate; each copy is sent or has a reason."""
    drops, did = bridge["drops"], bridge["bridge"]
    assert bridge["rx_packets"] == did["forwarded"] + did["flooded"] + sum(drops[reason] for reason in FRAME_DROPS)
    copies = did["forwarded"] + did["flood_copies"] + did["segments_added"]
    assert copies == bridge["tx_packets"] + sum(drops[reason] for reason in COPY_DROPS)


class Bridge:
    """A bridge with a station at each of its ports."""

    def __init__(self, planed: Planed, backend: str, ports: str, **bridge: Any) -> None:
        self.planed = planed
        wires = [wire(planed, name, backend) for name in ports]
        planed.apply(wires, [task("br", "bridge", *ports, bridge=bridge)], cpu=CPU)
        self.stations = {name: Station(Path(wire["path"])) for name, wire in zip(ports, wires, strict=True)}
        planed.links_up()

    def send(self, port: str, *frames: bytes, **how: Any) -> Came:
        """Send frames into a port; what came out of the others, by port."""
        self.stations[port].send(*frames, **how)
        total = sum(station.sent for station in self.stations.values())
        until(lambda: self.counted()["rx_packets"] == total, "the bridge has seen them")
        return {name: came for name, station in self.stations.items() if (came := station.received())}

    def counted(self) -> Document:
        return dict(self.planed.tasks()["br"])

    def table(self) -> dict[tuple[str, int], str]:
        page = self.planed.call("bridge.table", {"task": "br"})
        entries = page["entries"]
        assert page["next"] is None
        assert all(0 <= entry["age_s"] < 100 for entry in entries)
        return {(entry["mac"], entry["vlan"]): entry["port"] for entry in entries}

    def close(self) -> None:
        for station in self.stations.values():
            station.close()


Make = Callable[..., Bridge]


@pytest.fixture(params=["planed", "dpdk"])
def make(request: pytest.FixtureRequest, planed: Planed) -> Iterator[Make]:
    """With frames in place, and with mbufs."""
    made: list[Bridge] = []

    def make_one(ports: str, **bridge: Any) -> Bridge:
        made.append(Bridge(planed, request.param, ports, **bridge))
        return made[-1]

    yield make_one
    for bridge in made:
        assert_adds_up(bridge.counted())
        bridge.close()


def test_it_floods_and_learns(make: Make) -> None:
    bridge = make("abcd")
    first, answer = frame(mac(2), mac(1), fill=1), frame(mac(1), mac(2), fill=2)
    assert bridge.send("a", first) == {"b": [first], "c": [first], "d": [first]}
    assert bridge.send("b", answer) == {"a": [answer]}
    assert bridge.send("a", first, first) == {"b": [first, first]}
    to_all = frame(BROADCAST, mac(1), length=1500, fill=3)
    assert bridge.send("a", to_all) == {"b": [to_all], "c": [to_all], "d": [to_all]}
    assert bridge.table() == {(mac(1), 0): "a", (mac(2), 0): "b"}
    did = bridge.counted()["bridge"]
    wanted = {"entries": 2, "learned": 2, "moved": 0, "aged": 0, "table_full": 0}
    assert did == {**wanted, "forwarded": 3, "flooded": 2, "flood_copies": 6, "segments_added": 0}


def test_a_station_that_moves_is_followed(make: Make) -> None:
    bridge = make("abc")
    hello, to_it = frame(BROADCAST, mac(1)), frame(mac(1), mac(2))
    bridge.send("a", hello)
    assert bridge.send("b", to_it) == {"a": [to_it]}
    bridge.send("c", hello)
    assert bridge.send("b", to_it) == {"c": [to_it]}
    assert bridge.send("c", to_it) == {}, "it is where the frame came from"
    counted = bridge.counted()
    assert counted["drops"]["hairpin"] == 1
    assert counted["bridge"]["moved"] == 2, "the second has moved to c too"


def test_what_is_not_forwarded_has_a_reason(make: Make) -> None:
    bridge = make("ab")
    assert bridge.send("a", frame("01:80:c2:00:00:00", mac(1)), frame("01:80:c2:00:00:0f", mac(1))) == {}
    assert bridge.send("a", b"\x02" * 13, frame(mac(2), mac(1), tci=5)[:17]) == {}
    drops = bridge.counted()["drops"]
    assert {reason: count for reason, count in drops.items() if count} == {"reserved": 2, "runt": 2}
    assert bridge.table() == {}


def test_frames_in_pieces_cross_whole(make: Make) -> None:
    bridge = make("abc")
    for cuts in ([], [0], [1], [6, 12], [13], [14, 15, 16], [20, 40]):
        whole = frame(mac(2), mac(1), length=300, fill=len(cuts))
        assert bridge.send("a", whole, pieces=cuts) == {"b": [whole], "c": [whole]}


def test_stations_age(make: Make) -> None:
    bridge = make("abc", ageing_s=1)
    to_it = frame(mac(1), mac(2))
    bridge.send("a", frame(BROADCAST, mac(1)))
    until(lambda: bridge.table() == {}, "it is forgotten")
    assert bridge.counted()["bridge"]["entries"] == 0
    assert bridge.send("b", to_it) == {"a": [to_it], "c": [to_it]}
    assert bridge.counted()["bridge"]["aged"] == 1


def test_a_flush_forgets_and_a_bad_question_is_refused(make: Make) -> None:
    bridge = make("abc")
    for number, port in enumerate("abc"):
        bridge.send(port, frame(BROADCAST, mac(number)))
    assert bridge.planed.call("bridge.flush", {"task": "br"}) == {"flushed": 3}
    assert bridge.table() == {}
    for params, words in (
        ({}, 'there is no task "" of kind bridge'),
        ({"task": "x"}, 'no task "x" of kind bridge'),
        ({"task": 7}, 'there is no task "" of kind bridge'),
        ({"task": "br", "limit": 3}, "params.limit: 3 is not valid: expected a whole number from 4 to 65536"),
    ):
        with pytest.raises(RpcError, match=words):
            bridge.planed.call("bridge.table", params)


def test_a_full_table_forgets_the_oldest(make: Make) -> None:
    bridge = make("ab", table_size=16)
    for number in range(200):
        bridge.send("a", frame(BROADCAST, mac(number)))
    did = bridge.counted()["bridge"]
    assert (did["learned"], did["entries"], did["table_full"]) == (200, 16, 184)
    assert (mac(199), 0) in bridge.table()
    stations, where = set[str](), 0
    for page in range(4):
        got = bridge.planed.call("bridge.table", {"task": "br", "from": where, "limit": 4})
        stations |= {entry["mac"] for entry in got["entries"]}
        assert (len(got["entries"]), got["next"]) == (4, page + 1 if page < 3 else None)
        where = got["next"]
    assert len(stations) == 16


def test_vlans_are_kept_apart_and_tags_come_and_go(make: Make) -> None:
    """a, b: VLAN 10. c: VLAN 20. t: both with tags, u: 10 with a tag and 20 without."""
    trunks = [{"trunk": [10, 20]}, {"trunk": [10], "native": 20}]
    bridge = make("abctu", vlan=True, port_vlans=[{"access": 10}, {"access": 10}, {"access": 20}, *trunks])

    def sent(tci: int | None = None) -> bytes:
        return frame(BROADCAST, mac(1), tci=tci, length=200, fill=7)

    assert bridge.send("a", sent()) == {"b": [sent()], "t": [sent(10)], "u": [sent(10)]}
    assert bridge.send("c", sent()) == {"t": [sent(20)], "u": [sent()]}
    assert bridge.send("t", sent(0x6000 | 10)) == {"a": [sent()], "b": [sent()], "u": [sent(0x6000 | 10)]}
    assert bridge.send("t", sent(20), pieces=[3, 13, 17]) == {"c": [sent()], "u": [sent()]}
    assert bridge.send("u", sent()) == {"c": [sent()], "t": [sent(20)]}
    assert bridge.send("u", sent(0xE000)) == {"c": [sent()], "t": [sent(0xE000 | 20)]}
    assert bridge.send("a", sent(10), sent(20)) == {}
    assert bridge.send("t", sent(), sent(30)) == {}
    assert bridge.counted()["drops"]["vlan"] == 4
    assert bridge.table() == {(mac(1), 10): "t", (mac(1), 20): "u"}
    answer = frame(mac(1), mac(2), length=200)
    assert bridge.send("b", answer) == {"t": [frame(mac(1), mac(2), tci=10, length=200)]}


def test_a_named_table_outlives_a_new_configuration(planed: Planed) -> None:
    wires = [wire(planed, name) for name in "ab"]
    tasks = [task("br", "bridge", "a", "b", bridge={"table": "t", "ageing_s": 0})]
    planed.apply(wires, tasks)
    station = Station(Path(wires[0]["path"]))
    planed_sees = {"task": "br"}
    until(lambda: planed.call("ports.get")["ports"][0]["link_up"], "it is connected")
    station.send(frame(BROADCAST, mac(1)))
    for settings, entries in (({}, 1), ({"ageing_s": 5}, 0), ({}, 0)):
        planed.apply(wires, [task("br", "bridge", "a", "b", bridge={**tasks[0]["bridge"], **settings})])
        assert len(planed.call("bridge.table", planed_sees)["entries"]) == entries
    station.close()


# --- Generators and monitors ---------------------------------------------------------------------------------------


def driver(planed: Planed, name: str) -> Document:
    return ethdev(f"v{name}", f"net_virtio_user_{name},path={planed.workdir / name}.sock,queues=1")


def ends(names: str, to: Mapping[str, str]) -> list[Document]:
    """Monitor and generator at each; streams are numbered in order. Addresses are those of :func:`address`."""
    monitors = [task(f"mon-{name}", "monitor", f"v{name}") for name in names]
    generators = [
        task(f"gen-{name}", "generator", f"v{name}", stream=number, src_mac=address(name), dst_mac=address(to[name]))
        for number, name in enumerate(names)
    ]
    return monitors + generators


def address(name: str) -> str:
    return mac(ord(name))


@pytest.mark.parametrize("flat_out", [False, True])
def test_generators_at_three_ports_add_up(planed: Planed, other: Planed, flat_out: bool) -> None:
    """Each sends to the next; c to one that is not there, so that a and b get it."""
    names, to = "abc", {"a": "b", "b": "a", "c": "z"}
    planed.apply([wire(planed, name) for name in names], [task("br", "bridge", *names)], cpu=CPU)
    other.apply([driver(planed, name) for name in names], ends(names, to), cpu=OTHER_CPU)
    other.links_up()
    planed.links_up()
    rate = {"flat_out": True} if flat_out else {"rate_pps": 5_000}  # 100 each, 200 to a port: they fit in its ring
    other.send(*(load(f"gen-{name}", **rate) for name in names))  # who is where is known from here on
    other.send(*(load(f"gen-{name}", **rate) for name in names), epoch=2, clear=planed)
    bridge, there = planed.settled()["br"], other.settled()
    assert_adds_up(bridge)
    sent = {name: there[f"gen-{name}"]["tx_packets"] for name in names}
    assert bridge["rx_packets"] == sum(sent.values()) > 0
    assert bridge["tx_packets"] == sum(there[f"mon-{name}"]["rx_packets"] for name in names)
    assert (bridge["bridge"]["flooded"], bridge["bridge"]["flood_copies"]) == (sent["c"], 2 * sent["c"])
    assert there["mon-c"]["rx_packets"] == 0
    for name, sources in (("a", "bc"), ("b", "ac")):
        came = [stream(there[f"mon-{name}"], names.index(source)) for source in sources]
        lost = bridge["drops_by_port"][name]["tx_full"]
        assert sum(one["forwarded_packets"] for one in came) == sum(sent[source] for source in sources) - lost
        assert not any(
            one[odd] for one in came for odd in ("corrupt_packets", "duplicate_packets", "reordered_packets")
        )
        assert flat_out or lost == 0


@pytest.mark.parametrize("backend", ["planed", "dpdk"])
def test_two_bridges_and_a_trunk_between(planed: Planed, other: Planed, backend: str) -> None:
    """VLAN 10 at a and c, 20 at b and d: tags are put on before the trunk and taken off behind it, in full flight."""
    names, to = "abcd", {"a": "c", "b": "d", "c": "a", "d": "b"}
    vlans = {"vlan": True, "port_vlans": [{"access": 10}, {"access": 20}, {"trunk": [10, 20]}]}
    bridges = [
        task("left", "bridge", "a", "b", "s", bridge=vlans),
        task("right", "bridge", "c", "d", "t", bridge=vlans),
    ]
    planed.apply([wire(planed, name, backend) for name in (*names, "s", "t")], bridges, cpu=CPU)
    trunk = task("trunk", "patch", "vs", "vt")
    other.apply([driver(planed, name) for name in (*names, "s", "t")], [*ends(names, to), trunk], cpu=OTHER_CPU)
    other.links_up()
    planed.links_up()
    other.send(*(load(f"gen-{name}", rate_pps=5_000) for name in names))
    there, switches = other.settled(), planed.settled()
    for name in names:
        sent = there[f"gen-{name}"]["tx_packets"]
        came = stream(there[f"mon-{to[name]}"], names.index(name))
        assert (came["forwarded_packets"], came["corrupt_packets"]) == (sent, 0)
        assert there[f"mon-{to[name]}"]["rx_packets"] == sent
    for switch in ("left", "right"):
        assert_adds_up(switches[switch])
        assert switches[switch]["bridge"]["entries"] == 4
        assert not any(switches[switch]["drops"].values())
