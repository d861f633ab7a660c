# SPDX-License-Identifier: BSD-3-Clause
"""The client in Python against the forwarder's side in C, over links that lose and reorder; and over packet sockets."""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import threading
from collections.abc import Iterator

import pytest
from fib_rig import GATEWAY, MAC, Forwarder, Installed, Link
from nf_rig import program

from planebench_fib.client import FibClient
from planebench_fib.errors import FibSessionLost, FibTimeout, FibUpdateError
from planebench_fib.exceptions import UsageError
from planebench_fib.messages import (
    Ack,
    Code,
    GroupRecord,
    HopRecord,
    MessageType,
    Op,
    Record,
    RouteRecord,
    decode_message,
    prefix_of,
)
from planebench_fib.transport import FrameTooLongError, PacketTransport, TransportError

pytestmark = pytest.mark.dataplane


@pytest.fixture
def forwarder() -> Iterator[Forwarder]:
    with Forwarder() as one:
        yield one


def client_of(link: Link, **more: object) -> FibClient:
    return FibClient(link, session=100, clock=link.clock, **more)  # type: ignore[arg-type]


def test_many_routes_at_once(forwarder: Forwarder) -> None:
    link = Link(forwarder)
    many = [(prefix_of(f"20.{i >> 8}.{i & 255}.0/24"), 1 + i % 2) for i in range(1000)]
    with client_of(link) as fib:
        fib.hop_local(1)
        fib.hop_blackhole(2)
        fib.replace_all([*many, (prefix_of("2001:db8::/32"), 1)])
        with pytest.raises(UsageError, match="next hop 4096"):
            fib.replace_all([(many[0][0], 4096)])
        fib.end_of_rib()
        fib.drain()
        assert fib.routes == 1001
    assert {to: one.hop for to, one in forwarder.routes().items()} == {str(to): hop for to, hop in many} | {
        "2001:db8::/32": 1
    }
    assert len(link.sent) == 10, "messages are full"


def test_what_is_announced_is_there(forwarder: Forwarder) -> None:
    link = Link(forwarder)
    with client_of(link) as fib:
        fib.hop(1, destination=GATEWAY, wire=1)
        fib.hop_local(2)
        fib.hop_blackhole(3)
        fib.add("198.51.100.0/24", 1)
        fib.add("198.51.100.1/32", 2)
        fib.replace("2001:db8::/32", 3)
        fib.replace("0.0.0.0/0", 1)
        fib.delete("0.0.0.0/0")
        fib.end_of_rib()
        fib.drain()
        assert (fib.routes, fib.quota, fib.unanswered, fib.retransmitted) == (3, 10000, 0, 0)
    assert link.closed
    assert forwarder.routes() == {
        "198.51.100.0/24": Installed(1, 1, 1, "2:0:0:0:1:1", False),
        "198.51.100.1/32": Installed(2, 2, 0, "0:0:0:0:0:0", False),
        "2001:db8::/32": Installed(3, 3, 0, "0:0:0:0:0:0", False),
    }
    types = [decode_message(frame).type.name for frame in link.sent]
    assert types == ["HELLO", "NEXT_HOPS", "ROUTES", "ROUTES", "ROUTES", "END_OF_RIB"]


@pytest.mark.parametrize(("loss", "delay_s"), [(0.0, 0.0), (0.2, 0.0), (0.0, 0.005), (0.15, 0.005)])
def test_the_last_word_on_each_route_holds(forwarder: Forwarder, loss: float, delay_s: float) -> None:
    rng = random.Random(7)
    link = Link(forwarder, loss=loss, delay_s=delay_s)
    fib = client_of(link, frame_bytes=200)
    last: dict[str, int] = {}
    for number in range(4):
        fib.hop(number, destination=GATEWAY)
    for _ in range(2000):
        i = rng.randrange(500)
        prefix = f"2001:db8:{i + 1:x}::/48" if i % 5 == 0 else f"10.{i // 250}.{i % 250}.0/24"
        if prefix in last and rng.random() < 0.3:
            fib.delete(prefix)
            del last[prefix]
        else:
            hop = rng.randrange(4)
            (fib.replace if prefix in last else fib.add)(prefix, hop)
            last[prefix] = hop
    fib.drain()
    assert {prefix: installed.hop for prefix, installed in forwarder.routes().items()} == last
    assert (fib.retransmitted > 0) == (loss > 0 or delay_s > 0)
    assert fib.session == 100


def test_refusals_name_route_and_reason(forwarder: Forwarder) -> None:
    link = Link(forwarder, loss=0.1, delay_s=0.002)
    refused: list[FibUpdateError] = []
    fib = client_of(link, refused=refused.append)
    fib.hop(1, destination=GATEWAY)
    for i in range(100):
        fib.add(f"10.0.0.{i}/32", 1)
        if i % 10 == 0:
            fib.add(f"10.0.0.{i}/32", 1)
        if i % 10 == 1:
            fib.replace(f"10.0.0.{i}/32", 9)
        if i % 10 == 2:
            fib.delete(f"10.0.0.{i}/32")
            fib.delete(f"10.0.0.{i}/32")
    fib.hop_delete(1)
    fib.drain()
    assert len(forwarder.routes()) == 90
    assert [error.code for error in refused] == [Code.EXISTS, Code.NO_NEXT_HOP, Code.ABSENT] * 10 + [Code.BUSY_HOP]
    assert str(refused[0]) == "ADD of route 10.0.0.0/32 by next hop 1: it already exists; use replace()"
    assert str(refused[1]).startswith("REPLACE of route 10.0.0.1/32 by next hop 9: unknown next hop in this session")
    assert str(refused[2]) == "DELETE of route 10.0.0.2/32: it does not exist"
    assert str(refused[-1]).startswith("DELETE of next hop 1: routes or groups still use this next hop")
    assert refused[0].record and refused[0].record.op is Op.ADD


def test_a_refusal_is_raised_where_nobody_listens() -> None:
    with Forwarder(quota_routes=2) as forwarder:
        fib = client_of(Link(forwarder))
        fib.hop(1, destination=GATEWAY)
        for i in range(4):
            fib.add(f"10.0.0.{i}/32", 1)
        for i in (2, 3):
            with pytest.raises(FibUpdateError, match=rf"10\.0\.0\.{i}/32 .* quota .* exhausted \(2 of 2 routes\)"):
                fib.drain()
        fib.drain()
        assert set(forwarder.routes()) == {"10.0.0.0/32", "10.0.0.1/32"}


def test_a_forwarder_that_starts_anew(forwarder: Forwarder) -> None:
    link = Link(forwarder)
    fib = client_of(link)
    fib.hop(1, destination=GATEWAY)
    fib.add("10.0.0.0/8", 1)
    fib.drain()
    with Forwarder() as another:
        link.forwarder = another
        fib.add("11.0.0.0/8", 1)
        with pytest.raises(FibSessionLost, match="session 0x64 is lost: the forwarder has restarted"):
            fib.drain()
        assert fib.session not in (0, 100)
        fib.hop(1, destination=GATEWAY)
        fib.add("10.0.0.0/8", 1)
        fib.drain()
        assert set(another.routes()) == {"10.0.0.0/8"}


def test_a_restart_takes_routes_over(forwarder: Forwarder) -> None:
    fib = client_of(Link(forwarder))
    fib.hop(1, destination=GATEWAY)
    for i in range(4):
        fib.add(f"10.0.0.{i}/32", 1)
    fib.drain()
    link = Link(forwarder)
    again = FibClient(link, session=101, clock=link.clock)
    again.hop(7, destination=GATEWAY)
    again.add("10.0.0.1/32", 7)
    again.drain()
    assert {prefix: (one.hop, one.stale) for prefix, one in forwarder.routes().items()} == {
        "10.0.0.0/32": (1, True),
        "10.0.0.1/32": (7, False),
        "10.0.0.2/32": (1, True),
        "10.0.0.3/32": (1, True),
    }
    again.end_of_rib()
    again.drain()
    assert set(forwarder.routes()) == {"10.0.0.1/32"}
    again.flush()
    again.drain()
    assert forwarder.routes() == {}


def test_two_clients_of_one_vnf_do_not_end_each_others_sessions_without_rest(forwarder: Forwarder) -> None:
    """Each HELLO ends the session of the other. Time is that of the links: both move on together."""
    links = [Link(forwarder), Link(forwarder)]
    fibs = [FibClient(link, clock=link.clock) for link in links]
    lost = [0, 0]
    for _ in range(3000):
        for which, fib in enumerate(fibs):
            try:
                fib.replace("10.0.0.0/8", 1) if fib.unanswered < 2 else None
                fib.poll(0.01)
            except FibSessionLost:
                lost[which] += 1
                fib.hop(1, destination=GATEWAY)
            except FibUpdateError:
                pass
        links[0].now = links[1].now = max(link.now for link in links)
    assert min(lost) >= 1, "they do end each other's sessions"
    assert max(lost) <= 10 + links[0].now, "but for the first few at most once a second"
    fibs[0].drain(1000.0)


def test_a_number_in_use_is_not_taken_over(forwarder: Forwarder) -> None:
    fib = client_of(Link(forwarder))
    fib.hop(1, destination=GATEWAY)
    fib.drain()
    other = client_of(Link(forwarder))
    with pytest.raises(FibSessionLost, match="its number was already in use"):
        other.drain()
    other.drain()
    assert other.session != 100


def test_nobody_answers(forwarder: Forwarder) -> None:
    link = Link(forwarder, loss=1.0)
    fib = client_of(link, timeout_s=3.0)
    with pytest.raises(FibTimeout, match="did not answer 1 messages within 3 s"):
        fib.drain()
    assert 3.0 < link.now < 4.5
    assert len(link.sent) < 12  # ever less often
    for i in range(63 * 185):
        fib.add(f"10.{i >> 16}.{i >> 8 & 255}.{i & 255}/32", 1)
    with pytest.raises(FibTimeout, match="did not answer 64 messages"):
        fib.add("11.0.0.0/8", 1)


def test_signs_of_life(forwarder: Forwarder) -> None:
    link = Link(forwarder)
    fib = client_of(link)
    fib.drain()
    while link.now < 10:
        fib.poll(0.1)
    types = [decode_message(frame).type for frame in link.sent]
    assert types[0] is MessageType.HELLO
    assert 9 <= types.count(MessageType.KEEPALIVE) <= 10
    assert len(types) == 1 + types.count(MessageType.KEEPALIVE)


def test_busy_comes_again_later(forwarder: Forwarder) -> None:
    link = Link(forwarder)
    fib = client_of(link)
    fib.drain()
    busy = 3
    handle = forwarder.handle

    def often_busy(frame: bytes) -> bytes:
        nonlocal busy
        if not busy or not frame:
            return handle(frame)
        busy -= 1
        message = decode_message(frame)
        ack = Ack(message.type, message.session, message.sequence, Code.BUSY, 3, 0, message.sequence, 64, 0, 0)
        return ack.encode(frame[:6], MAC)

    forwarder.handle = often_busy  # type: ignore[method-assign]
    start = link.now
    fib.hop_local(1)
    fib.add("10.0.0.0/8", 1)
    fib.drain()
    assert busy == 0
    assert link.now - start >= 0.02
    assert set(forwarder.routes()) == {"10.0.0.0/8"}


def test_what_cannot_be_said(forwarder: Forwarder) -> None:
    fib = client_of(Link(forwarder))
    with pytest.raises(UsageError, match=r"next hop 4096 is not valid. Valid: 0 to 4095"):
        fib.hop_local(4096)
    with pytest.raises(UsageError, match="wire 256 of next hop 1"):
        fib.hop(1, destination=GATEWAY, wire=256)
    with pytest.raises(UsageError, match="'ten' is not a prefix"):
        fib.add("ten", 1)


@pytest.mark.parametrize(
    ("record", "code", "words"),
    [
        (RouteRecord(Op.ADD, prefix_of("10.0.0.0/8"), 1), Code.QUOTA, r"7 of 7 routes\): .* raise quota_routes"),
        (HopRecord(Op.REPLACE, 5), Code.QUOTA, r"next hop 5, .* raise quota_next_hops"),
        (GroupRecord(5, ((1, 1),)), Code.QUOTA, "raise quota_next_hops"),
        (HopRecord(Op.REPLACE, 5, wire=1, vlan=100), Code.MALFORMED, "message: wire 1, VLAN 100 or the source"),
        (HopRecord(Op.REPLACE, 5, wire=1), Code.MALFORMED, "message: wire 1 or the source"),
        (RouteRecord(Op.ADD, prefix_of("10.0.0.0/8"), 1), Code.MALFORMED, "bits behind the length"),
        (None, Code.MALFORMED, "ROUTES: malformed message"),
        (RouteRecord(Op.ADD, prefix_of("10.0.0.0/8"), 1), Code.FULL, "the forwarder's table is full"),
    ],
)
def test_the_reason_is_that_of_the_record(record: Record | None, code: Code, words: str) -> None:
    error = FibUpdateError(str(record or "ROUTES"), record, Ack(MessageType.ROUTES, 1, 2, code, 1, 0, 3, 64, 7, 7))
    assert re.search(words, str(error))
    assert "routes)" not in str(error) or isinstance(record, RouteRecord) or record is None


class Narrow(Link):
    """A link whose MTU changes."""

    mtu = 1400

    def frame_bytes(self) -> int:
        return self.mtu + 14

    def send(self, frame: bytes) -> None:
        if len(frame) > self.frame_bytes():
            raise FrameTooLongError("too long")
        super().send(frame)


def test_frames_are_as_long_as_the_interface_takes(forwarder: Forwarder) -> None:
    """As of the session's begin; a smaller MTU begins another."""
    link = Narrow(forwarder)
    many = [(prefix_of(f"20.{i >> 8}.{i & 255}.0/24"), 1) for i in range(400)]

    def announce() -> None:
        fib.hop_local(1)
        fib.replace_all(many)
        fib.drain()

    fib = client_of(link)
    announce()
    assert max(map(len, link.sent)) == 30 + 8 * 173
    link.mtu = 1280
    with pytest.raises(FibSessionLost, match="too long"):
        announce()
    del link.sent[:]
    announce()
    assert max(map(len, link.sent)) == 30 + 8 * 158
    assert len(forwarder.routes()) == 400


@pytest.mark.skipif(os.geteuid() != 0, reason="packet sockets need root")
@pytest.mark.root
class TestPacketSockets:
    """On the loopback interface, where both ends are: the address of either is all zero."""

    @pytest.fixture
    def wire(self) -> Iterator[Forwarder]:
        with Forwarder(mac=bytes(6)) as forwarder, PacketTransport("lo") as transport:
            stop = threading.Event()

            def serve() -> None:
                while not stop.is_set():
                    frame = transport.receive(0.1)
                    if frame and not frame[17] & 0x80:
                        transport.send(forwarder.handle(frame))

            thread = threading.Thread(target=serve)
            thread.start()
            self.stop = lambda: (stop.set(), thread.join())
            yield forwarder

    def test_python(self, wire: Forwarder) -> None:
        with FibClient(PacketTransport("lo")) as fib:
            fib.hop(1, destination=GATEWAY)
            for i in range(1000):
                fib.add(f"10.0.{i >> 8}.{i & 255}/32", 1)
            fib.drain()
            assert fib.routes == 1000
        self.stop()
        assert len(wire.routes()) == 1000

    def test_the_example_in_c(self, wire: Forwarder) -> None:
        command = [
            str(program("fib_announce")),
            "lo",
            "1",
            GATEWAY.hex(":"),
            "10.0.0.0/8",
            "2001:db8::/32",
            "192.0.2.1",
        ]
        with subprocess.Popen([*command, "10.0.0.1/8"], stderr=subprocess.PIPE, text=True) as process:
            assert process.stderr
            line = process.stderr.readline()
            process.send_signal(signal.SIGINT)
            assert process.wait(timeout=60) == 0
        self.stop()
        assert line == "fib_announce: 10.0.0.1/8: malformed message\n"
        assert set(wire.routes()) == {"10.0.0.0/8", "2001:db8::/32", "192.0.2.1/32"}


@pytest.mark.parametrize("prefix", ["0.0.0.0/256", "10.0.0.0/33", "10.0.0.0/", "10.0.0.0/+8", "2001:db8::/129", "x/8"])
def test_the_example_in_c_refuses_what_is_no_prefix(prefix: str) -> None:
    done = subprocess.run(
        [str(program("fib_announce")), "nowhere0", "0", GATEWAY.hex(":"), prefix], capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (2, f"fib_announce: {prefix}: expected ADDRESS or ADDRESS/LENGTH\n")


@pytest.mark.parametrize("wire", ["256", "-1", "one", ""])
def test_the_example_in_c_refuses_what_is_no_wire(wire: str) -> None:
    done = subprocess.run(
        [str(program("fib_announce")), "nowhere0", wire, GATEWAY.hex(":"), "10.0.0.0/8"], capture_output=True, text=True
    )
    assert done.returncode == 2
    assert done.stderr.startswith("usage: fib_announce ")


@pytest.mark.skipif(os.geteuid() != 0, reason="packet sockets need root")
@pytest.mark.root
def test_no_such_interface() -> None:
    with pytest.raises(TransportError, match="interface 'nowhere0': No such device; 'ip link' lists"):
        PacketTransport("nowhere0")
