# SPDX-License-Identifier: BSD-3-Clause
"""The agent between a kernel that says what the test wants and a forwarder in Python: sessions, losses, refusals."""

from __future__ import annotations

import errno
import ipaddress
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from planed_rig import PATIENCE_S

from planebench.fib.agent import Agent, AgentSettings, InterfaceGoneError
from planebench.fib.agent_kernel import Event, InterfaceGone, NeighbourEvent, RouteEvent, Unsure
from planebench.fib.agent_mirror import BLACKHOLE, LOCAL, Leg, Path, RouteKind
from planebench.fib.messages import (
    WINDOW,
    Ack,
    Code,
    HopKind,
    HopRecord,
    Message,
    MessageType,
    Op,
    Prefix,
    RouteRecord,
    decode_message,
)

OURS = 7
VNF_MAC, FORWARDER_MAC = bytes.fromhex("020000000201"), bytes.fromhex("02f1b0000000")
GATEWAY = Leg(OURS, bytes([10, 0, 0, 1]))
MAC = bytes.fromhex("020000000101")


def prefix(text: str) -> Prefix:
    network = ipaddress.ip_network(text)
    return Prefix(network.network_address.packed, network.prefixlen)


def via(leg: Leg = GATEWAY) -> Path:
    return Path(1, 0, RouteKind.UNICAST, (leg,))


class Kernel:
    """Routes and neighbours, and events that the test puts there; an OSError among them is raised."""

    def __init__(self) -> None:
        self.there: dict[Prefix, Path] = {prefix("192.0.2.0/24"): via(), prefix("10.0.0.2/32"): local()}
        self.resolved: dict[Leg, bytes] = {GATEWAY: MAC}
        self.asked: list[Leg] = []
        self.queue: list[Event | OSError] = []
        self._readable, self._far = socket.socketpair()

    def fileno(self) -> int:
        return self._readable.fileno()

    def routes(self) -> Iterator[tuple[Prefix, Path]]:
        return iter(self.there.items())

    def neighbours(self) -> dict[Leg, bytes]:
        return dict(self.resolved)

    def resolve(self, neighbour: Leg) -> None:
        self.asked.append(neighbour)

    def events(self) -> Iterator[Event]:
        while self.queue:
            event = self.queue.pop(0)
            if isinstance(event, OSError):
                raise event
            yield event

    def put(self, to: str, path: Path | None) -> None:
        """A route is new or gone, and the kernel says so."""
        event = RouteEvent(prefix(to), path or self.there.pop(prefix(to)), path is not None, False, False)
        if path:
            self.there[prefix(to)] = path
        self.queue.append(event)


def local() -> Path:
    return Path(0, 0, RouteKind.LOCAL)


class Forwarder:
    """A transport whose other end applies what it is told, as docs/fib-messages.md has it."""

    mac = VNF_MAC

    def __init__(self) -> None:
        self.deaf = False
        self.hops_max = 4096
        self.sessions: list[int] = []
        self.said: list[MessageType] = []
        self.forget()
        self._answers: list[bytes] = []
        self._readable, self._far = socket.socketpair()
        self._far.send(b"always")

    def forget(self) -> None:
        """As if it had started anew."""
        self.session, self.expected = 0, 1
        self.hops: dict[int, HopRecord] = {}
        self.routes: dict[Prefix, int] = {}

    def fileno(self) -> int:
        return self._readable.fileno()

    def send(self, frame: bytes) -> None:
        if not self.deaf:
            self._answers.append(self._answer(decode_message(frame)).encode(FORWARDER_MAC, VNF_MAC))

    def receive(self, timeout_s: float) -> bytes | None:
        return self._answers.pop(0) if self._answers else None

    def close(self) -> None:
        pass

    def _answer(self, message: Message) -> Ack:
        self.said.append(message.type)
        if message.type is MessageType.HELLO:
            self.forget()
            self.session = message.session
            self.sessions.append(message.session)
        code, applied = Code.OK, 0
        if message.session != self.session:
            code = Code.NO_SESSION
        elif message.sequence != self.expected:
            code = Code.SEQUENCE
        else:
            for record in message.records:
                code = self._apply(record)
                if code is not Code.OK:
                    break
                applied += 1
            self.expected += 1 if code is Code.OK else WINDOW  # what is under way is not applied
            if message.type is MessageType.FLUSH:
                self.routes.clear()
                self.hops.clear()
        return Ack(
            message.type, message.session, message.sequence, code, applied, self.expected, 64, len(self.routes), 1000
        )

    def _apply(self, record: RouteRecord | HopRecord) -> Code:
        if isinstance(record, HopRecord):
            if record.op is Op.DELETE:
                assert record.number not in self.routes.values()
                return Code.OK if self.hops.pop(record.number, None) else Code.ABSENT
            if record.number not in self.hops and len(self.hops) == self.hops_max:
                return Code.QUOTA
            self.hops[record.number] = record
            return Code.OK
        if record.op is Op.DELETE:
            return Code.OK if self.routes.pop(record.prefix, None) is not None else Code.ABSENT
        if record.hop not in self.hops:
            return Code.NO_NEXT_HOP
        self.routes[record.prefix] = record.hop
        return Code.OK

    def does(self, to: str) -> str | None:
        """MAC and wire, "LOCAL", "BLACKHOLE", or None."""
        if prefix(to) not in self.routes:
            return None
        hop = self.hops[self.routes[prefix(to)]]
        return f"{hop.destination.hex(':')} {hop.wire}" if hop.kind is HopKind.FORWARD else hop.kind.name


class Rig:
    def __init__(self, **settings: Any) -> None:
        self.kernel, self.forwarder = Kernel(), Forwarder()
        self.events: list[tuple[str, Mapping[str, Any]]] = []
        self.agent = Agent(
            AgentSettings({OURS: 4}, **settings),
            self.kernel,  # type: ignore[arg-type]
            self.forwarder,  # type: ignore[arg-type]
            lambda event, facts: self.events.append((event, facts)),
        )

    def until(self, condition: Callable[[], bool]) -> None:
        end = time.monotonic() + PATIENCE_S
        while not condition():
            assert time.monotonic() < end, f"in vain; told: {self.events[:8]}"
            self.agent.turn()

    def told(self, event: str) -> int:
        return [name for name, _ in self.events].count(event)

    def end(self) -> None:
        self.agent.stop()
        self.agent.run()


def test_everything_is_announced_then_end_of_rib_then_changes() -> None:
    rig = Rig()
    rig.until(lambda: rig.told("end_of_rib") == 1)
    assert rig.forwarder.said[0] is MessageType.HELLO and rig.forwarder.said[-1] is MessageType.END_OF_RIB
    assert (rig.forwarder.does("192.0.2.0/24"), rig.forwarder.does("10.0.0.2/32")) == ("02:00:00:00:01:01 4", "LOCAL")
    rig.kernel.put("198.51.100.0/24", Path(1, 0, RouteKind.BLACKHOLE))
    rig.kernel.put("192.0.2.0/24", None)
    rig.until(lambda: rig.forwarder.does("198.51.100.0/24") == "BLACKHOLE")
    rig.until(lambda: set(rig.forwarder.hops) == {LOCAL, BLACKHOLE})
    assert rig.forwarder.does("192.0.2.0/24") is None
    assert rig.forwarder.said.count(MessageType.END_OF_RIB) == 1
    rig.end()
    assert rig.events[-1] == ("ended", {"withdrawn": False, "routes": 2, "next_hops": 2, "multipath": 0, "refused": {}})
    assert rig.forwarder.does("198.51.100.0/24") == "BLACKHOLE", "routes stay"


def test_routes_are_withdrawn_on_request() -> None:
    rig = Rig(withdraw=True)
    rig.until(lambda: rig.told("end_of_rib") == 1)
    rig.end()
    assert rig.forwarder.routes == {} and rig.forwarder.said[-1] is MessageType.FLUSH
    assert rig.events[-1][1]["withdrawn"]


def test_end_of_rib_waits_for_the_routing_daemon() -> None:
    rig = Rig(settle_s=3600.0)
    rig.until(lambda: len(rig.forwarder.routes) == 2)
    for _ in range(5):
        rig.agent.turn()
    assert MessageType.END_OF_RIB not in rig.forwarder.said


def test_a_forwarder_that_starts_anew_is_told_everything_again() -> None:
    rig = Rig()
    rig.until(lambda: rig.told("end_of_rib") == 1)
    rig.forwarder.forget()
    rig.kernel.put("198.51.100.0/24", via())
    rig.until(lambda: rig.told("end_of_rib") == 2)
    assert len(set(rig.forwarder.sessions)) == 2 and rig.told("lost") == 1
    assert len(rig.forwarder.routes) == 3


def test_it_waits_for_a_forwarder_that_is_not_there() -> None:
    rig = Rig()
    rig.forwarder.deaf = True
    for _ in range(10):
        rig.agent.turn()
    assert rig.events == []
    rig.kernel.put("198.51.100.0/24", via())
    rig.forwarder.deaf = False
    rig.until(lambda: rig.told("end_of_rib") == 1)
    assert len(rig.forwarder.routes) == 3


@pytest.mark.parametrize("event", [OSError(errno.ENOBUFS, "overrun"), Unsure()])
def test_what_was_not_said_is_read(event: Event | OSError) -> None:
    rig = Rig()
    rig.until(lambda: rig.told("end_of_rib") == 1)
    del rig.kernel.there[prefix("192.0.2.0/24")]
    rig.kernel.there[prefix("198.51.100.0/24")] = via()
    rig.kernel.queue.append(event)
    rig.until(lambda: rig.forwarder.does("198.51.100.0/24") is not None)
    assert rig.forwarder.does("192.0.2.0/24") is None
    assert rig.told("overrun") == isinstance(event, OSError)
    assert len(rig.forwarder.sessions) == 1


def test_gateways_are_looked_for_and_followed() -> None:
    rig = Rig()
    rig.kernel.resolved.clear()
    rig.until(lambda: rig.told("end_of_rib") == 1)
    assert rig.forwarder.does("192.0.2.0/24") == "LOCAL", "the VNF forwards what the forwarder cannot yet"
    assert rig.kernel.asked == [GATEWAY]
    rig.kernel.queue.append(NeighbourEvent(GATEWAY, MAC, True))
    rig.until(lambda: rig.forwarder.does("192.0.2.0/24") == "02:00:00:00:01:01 4")
    rig.kernel.queue.append(NeighbourEvent(GATEWAY, b"", False))
    rig.until(lambda: rig.forwarder.does("192.0.2.0/24") == "LOCAL")


def test_a_quota_of_next_hops_leaves_the_rest_to_the_vnf() -> None:
    rig = Rig()
    rig.forwarder.hops_max = 4
    for i in range(1, 6):
        rig.kernel.there[prefix(f"20.{i}.0.0/16")] = via(Leg(OURS, bytes([10, 0, 0, i])))
        rig.kernel.resolved[Leg(OURS, bytes([10, 0, 0, i]))] = MAC[:5] + bytes([i])
    rig.until(lambda: rig.told("end_of_rib") == 1)
    rig.until(lambda: len(rig.forwarder.routes) == 7)
    done = [rig.forwarder.does(f"20.{i}.0.0/16") for i in range(1, 6)]
    assert done.count("LOCAL") == 3 and len(set(done)) == 3
    assert rig.told("refused") >= 1


def test_an_interface_that_goes_ends_it() -> None:
    rig = Rig()
    rig.kernel.queue.append(InterfaceGone(OURS))
    with pytest.raises(InterfaceGoneError, match="interface 7 is gone"):
        rig.agent.turn()
