# SPDX-License-Identifier: BSD-3-Clause
"""Routes over FPM, as zebra of FRR 8.4 sends them, as nobody should, and as an attacker would."""

from __future__ import annotations

import ipaddress
import random
import socket
import struct
from collections.abc import Iterator
from typing import Any

import pytest

from planebench_fib import agent_fpm
from planebench_fib.agent_fpm import QUIET_S, Fpm, fpm_address
from planebench_fib.agent_kernel import MAIN_TABLE, RouteEvent
from planebench_fib.agent_mirror import Leg, Path, RouteKind
from planebench_fib.exceptions import UsageError
from planebench_fib.messages import Prefix

NEW, DELETE, NEXT_HOP = 24, 25, 104
BGP, KERNEL = 186, 2
OURS = 7
A_ROUTE = ("192.0.2.0/24", "10.0.0.1")


def prefix(text: str) -> Prefix:
    network = ipaddress.ip_network(text)
    return Prefix(network.network_address.packed, network.prefixlen)


def attribute(kind: int, value: bytes) -> bytes:
    return (struct.pack("HH", 4 + len(value), kind) + value).ljust(4 + len(value) + 3 & ~3, b"\0")


def route(
    to: str, gateway: str = "", *, kind: int = NEW, protocol: int = BGP, type_: int = 1, more: bytes = b""
) -> bytes:
    """A netlink message, its attributes in zebra's order."""
    address, length = prefix(to)
    body = header(length, 2 if len(address) == 4 else 10, protocol, 0 if kind == DELETE else type_)
    body += attribute(1, address) + attribute(6, struct.pack("I", 20))
    if gateway:
        body += attribute(5, ipaddress.ip_address(gateway).packed) + attribute(4, struct.pack("i", OURS))
    return message(kind, body + more)


def header(length: int, family: int = 2, protocol: int = BGP, type_: int = 1) -> bytes:
    return struct.pack("8BI", family, length, 0, 0, MAIN_TABLE, protocol, 0, type_, 0)


def message(kind: int, body: bytes) -> bytes:
    return struct.pack("IHHII", 16 + len(body), kind, 0x501, 0, 77) + body


def frame(*messages: bytes) -> bytes:
    body = b"".join(messages)
    return struct.pack("!BBH", 1, 1, 4 + len(body)) + body


def path(*gateways: str) -> Path:
    return Path(1, 20, RouteKind.UNICAST, tuple(Leg(OURS, ipaddress.ip_address(to).packed) for to in gateways))


class Rig:
    """A server, clients of it, and its own time."""

    def __init__(self, **more: Any) -> None:
        self.now = 100.0
        self.told: list[str] = []
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.address = free.getsockname()
        self.fpm = Fpm(
            ("vnf0",),
            MAIN_TABLE,
            self.address,
            lambda _, facts: self.told.append(facts["what"]),
            clock=lambda: self.now,
            **more,
        )

    def client(self) -> socket.socket:
        made = socket.create_connection(self.address)
        self.events()
        return made

    def events(self) -> list[RouteEvent]:
        return [event for event in self.fpm.events() if isinstance(event, RouteEvent)]

    def say(self, client: socket.socket, data: bytes) -> list[RouteEvent]:
        client.sendall(data)
        return self.events()

    def quiet(self) -> list[RouteEvent]:
        """Time passes without a word."""
        self.now += QUIET_S
        return self.events()

    def routes(self) -> dict[Prefix, Path]:
        """Those of zebra."""
        return {to: way for to, way in self.fpm.routes() if way.metric == 20}


@pytest.fixture
def rig() -> Iterator[Rig]:
    made = Rig()
    yield made
    made.fpm.close()


def test_routes_come_change_and_go(rig: Rig) -> None:
    client, there = rig.client(), prefix("192.0.2.0/24")
    assert rig.say(client, frame(route(*A_ROUTE))) == [RouteEvent(there, path("10.0.0.1"), True, False, False)]
    assert rig.routes() == {there: path("10.0.0.1")}
    assert rig.say(client, frame(route(*A_ROUTE))) == [], "the same again"
    changed = frame(route("192.0.2.0/24", kind=DELETE), route("192.0.2.0/24", "10.0.0.3"))
    assert [(event.path, event.there) for event in rig.say(client, changed)] == [
        (path("10.0.0.1"), False),
        (path("10.0.0.3"), True),
    ]
    replaced = rig.say(client, frame(route(*A_ROUTE)))
    assert [(event.path, event.there) for event in replaced] == [(path("10.0.0.3"), False), (path("10.0.0.1"), True)]
    (gone,) = rig.say(client, frame(route("192.0.2.0/24", kind=DELETE)))
    assert (gone.prefix, gone.there, rig.routes()) == (there, False, {})
    assert rig.say(client, frame(route("192.0.2.0/24", kind=DELETE))) == []


def test_kinds_of_routes(rig: Rig) -> None:
    legs = b"".join(
        struct.pack("HBBi", 16, 0, 0, OURS) + attribute(5, ipaddress.ip_address(to).packed)
        for to in ("10.0.0.1", "10.0.0.3")
    )
    rig.say(
        rig.client(),
        frame(route("0.0.0.0/0", "10.0.0.1"), route("2001:db8:1::/48", "2001:db8::1"))
        + frame(route("203.0.113.0/24", type_=6), route("100.64.0.0/10", more=attribute(9, legs)))
        + frame(route("10.0.0.0/24", protocol=KERNEL, more=attribute(4, struct.pack("i", OURS))))
        + frame(message(28, b"of a bridge")),
    )
    assert rig.routes() == {
        prefix("0.0.0.0/0"): path("10.0.0.1"),
        prefix("2001:db8:1::/48"): path("2001:db8::1"),
        prefix("203.0.113.0/24"): Path(1, 20, RouteKind.BLACKHOLE),
        prefix("100.64.0.0/10"): path("10.0.0.1", "10.0.0.3"),
    }


def test_bytes_come_in_any_pieces(rig: Rig) -> None:
    rng, client = random.Random(1), rig.client()
    texts = [f"20.{i >> 8}.{i & 255}.0/24" for i in range(1000)]
    stream = b"".join(frame(route(text, "10.0.0.1")) for text in texts)
    got: list[RouteEvent] = []
    while stream:
        size = rng.randint(1, 3000)
        got += rig.say(client, stream[:size])
        stream = stream[size:]
    assert [event.prefix for event in got] == [prefix(text) for text in texts]


def test_what_zebra_does_not_send_again_goes_when_it_has_sent_all(rig: Rig) -> None:
    client = rig.client()
    rig.say(client, frame(route(*A_ROUTE), route("198.51.100.0/24", "10.0.0.1")))
    assert not rig.fpm.complete
    assert rig.quiet() == [] and rig.fpm.complete
    client.close()
    assert rig.events() == [] and len(rig.routes()) == 2, "its routes stay"
    again = rig.client()
    assert rig.say(again, frame(route(*A_ROUTE))) == []
    assert len(rig.routes()) == 2
    (gone,) = rig.quiet()
    assert (gone.prefix, gone.there) == (prefix("198.51.100.0/24"), False)
    assert rig.told == [
        "zebra has sent 2 routes; 0 earlier ones are gone",
        "zebra is gone; its routes stay until it is back",
        "zebra has sent 1 routes; 1 earlier ones are gone",
    ]


def test_a_full_table_is_not_taken_for_silence(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent_fpm, "QUIET_BYTES", 1000)
    client = rig.client()
    for i in range(5):
        rig.say(client, b"".join(frame(route(f"20.{i}.{j}.0/24", "10.0.0.1")) for j in range(20)))
        rig.quiet()
        assert not rig.fpm.complete
    rig.say(client, frame(route(*A_ROUTE)))
    rig.quiet()
    assert rig.fpm.complete, "now and then a change is silence"


def test_settling_gives_the_routing_daemon_time() -> None:
    rig = Rig(settle_s=60.0)
    first = rig.client()
    rig.say(first, frame(route(*A_ROUTE)))
    for _ in range(int(60 / QUIET_S) - 1):
        rig.quiet()
        assert not rig.fpm.complete
    rig.quiet()
    assert rig.fpm.complete
    first.close()
    rig.events()
    second = rig.client()
    rig.quiet()
    assert len(rig.routes()) == 1
    second.close()
    rig.fpm.close()


def test_one_client_at_a_time(rig: Rig) -> None:
    first = rig.client()
    second = rig.client()
    assert second.recv(1) == b""
    assert len(rig.say(first, frame(route(*A_ROUTE)))) == 1


GOOD = frame(route(*A_ROUTE))
BAD = {
    "version 2": b"\2" + GOOD[1:],
    "protobuf": b"\1\2" + GOOD[2:],
    "of no length": struct.pack("!BBH", 1, 1, 4),
    "longer than its frame": frame(struct.pack("IHHII", 5000, NEW, 0, 0, 0) + bytes(60)),
    "a header that is cut": frame(message(NEW, bytes(8))),
    "a deletion that is cut": frame(message(DELETE, bytes(8))),
    "a prefix of 3 bytes": frame(message(NEW, header(24) + attribute(1, bytes(3)))),
    "a prefix of 33 bits": frame(message(NEW, header(33) + attribute(1, bytes(4)))),
    "a gateway of 5 bytes": frame(route("192.0.2.0/24", more=attribute(5, bytes(5)))),
    "an interface of 2 bytes": frame(route("192.0.2.0/24", more=attribute(4, bytes(2)))),
    "next-hop groups": frame(message(NEXT_HOP, bytes(8))),
    "a route by a group": frame(route("192.0.2.0/24", more=attribute(30, struct.pack("I", 5)))),
}


@pytest.mark.parametrize("what", BAD)
def test_who_sends_such_bytes_is_sent_away(rig: Rig, what: str) -> None:
    client = rig.client()
    rig.say(client, frame(route("198.51.100.0/24", "10.0.0.1")))
    assert rig.say(client, BAD[what]) == []
    assert client.recv(1) == b"" and len(rig.told) == 1
    again = rig.client()
    rig.say(again, BAD[what])
    assert len(rig.told) == 1, "zebra comes again every three seconds"
    assert prefix("198.51.100.0/24") in rig.routes()
    assert len(rig.say(rig.client(), GOOD)) == 1


def test_damaged_streams_do_no_harm(rig: Rig) -> None:
    rng = random.Random(2)
    whole = b"".join(
        frame(route(f"20.0.{i}.0/24", "10.0.0.1"), route(f"2001:db8:{i}::/48", "2001:db8::1")) for i in range(20)
    )
    for _ in range(300):
        damaged = bytearray(whole)
        for _ in range(rng.randint(1, 8)):
            damaged[rng.randrange(len(damaged))] = rng.randrange(256)
        client = rig.client()
        client.sendall(bytes(damaged))
        rig.events()
        client.close()
        rig.events()
    assert all(len(to.address) in (4, 16) and to.length <= len(to.address) * 8 for to in rig.routes())
    assert all(len(leg.gateway) in (0, 4, 16) for way in rig.routes().values() for leg in way.legs)


def test_a_client_with_too_many_routes_is_sent_away(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent_fpm, "ROUTES_MAX", 10)
    client = rig.client()
    rig.say(client, b"".join(frame(route(f"20.0.{i}.0/24", "10.0.0.1")) for i in range(20)))
    assert client.recv(1) == b"" and len(rig.routes()) <= 11


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("127.0.0.1:2621", ("127.0.0.1", 2621)),
        ("127.0.0.1", ("127.0.0.1", 2620)),
        ("2622", ("127.0.0.1", 2622)),
        ("::1", ("::1", 2620)),
        ("[::1]:2621", ("::1", 2621)),
    ],
)
def test_addresses(text: str, address: tuple[str, int]) -> None:
    assert fpm_address(text) == address


@pytest.mark.parametrize("text", ["zebra", "127.0.0.1:0", "127.0.0.1:65536", "[::1", "127.0.0.1:", "0", "::1:x"])
def test_other_addresses_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"e\.g\. 127\.0\.0\.1:2620"):
        fpm_address(text)


def test_an_address_that_is_in_use_is_an_error(rig: Rig) -> None:
    with pytest.raises(UsageError, match="in use"):
        Fpm(("vnf0",), MAIN_TABLE, rig.address, lambda *_: None)
