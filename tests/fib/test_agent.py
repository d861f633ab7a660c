# SPDX-License-Identifier: BSD-3-Clause
"""The agent between a kernel that says what the test wants and the forwarder's sessions: losses, refusals, restarts."""

from __future__ import annotations

import errno
import ipaddress
import itertools
import os
import socket
import struct
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from fib_rig import MAC, Forwarder
from planed_rig import PATIENCE_S

from planebench_fib import agent
from planebench_fib.agent import PIECE, Agent, AgentRunsError, AgentSettings, InterfaceGoneError, only_one
from planebench_fib.agent_kernel import Event, Links, NeighbourEvent, RouteEvent, Unsure
from planebench_fib.agent_mirror import Leg, Path, RouteKind, Vlan
from planebench_fib.messages import Ack, Code, HopKind, MessageType, Prefix, decode_message

pytestmark = pytest.mark.dataplane

OURS = 7
GATEWAY, PEER = Leg(OURS, bytes([10, 0, 0, 1])), bytes.fromhex("020000000101")
ON_LINK = Leg(OURS, b"")
FORWARD = "1 2:0:0:0:1:1"


def prefix(text: str) -> Prefix:
    network = ipaddress.ip_network(text)
    return Prefix(network.network_address.packed, network.prefixlen)


def via(leg: Leg = GATEWAY) -> Path:
    return Path(1, 0, RouteKind.UNICAST, (leg,))


class Kernel:
    """Routes and neighbours, and events that the test puts there; an OSError among them is raised."""

    complete = True

    def __init__(self) -> None:
        self.there: dict[Prefix, Path] = {prefix("192.0.2.0/24"): via(), prefix("10.0.0.2/32"): local()}
        self.resolved: dict[Leg, bytes] = {GATEWAY: PEER}
        self.interfaces: dict[str, int] = {"vnf0": OURS}
        self.tagged: dict[int, Vlan] = {}
        self.asked: list[Leg] = []
        self.dormant: list[tuple[int, bool]] = []
        self.queue: list[Event | OSError] = []
        self._readable, self._far = socket.socketpair()

    def fileno(self) -> int:
        return self._readable.fileno()

    def routes(self) -> Iterator[tuple[Prefix, Path]]:
        return iter(self.there.items())

    def links(self) -> Links:
        return Links(dict(self.interfaces), dict(self.tagged))

    def neighbours(self) -> dict[Leg, bytes]:
        return dict(self.resolved)

    def resolve(self, neighbour: Leg) -> None:
        self.asked.append(neighbour)

    def set_dormant(self, interface: int, dormant: bool) -> None:
        self.dormant.append((interface, dormant))

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


class Wire:
    """A transport to the real thing of a forwarder, which can be deaf, and start anew."""

    mac = MAC

    def __init__(self, quota_hops: int, quota_routes: int) -> None:
        self.deaf = False
        self.shown_quota = quota_routes
        self.wires_up = 0b11
        self.said: list[MessageType] = []
        self.sessions: set[int] = set()
        self._quota_hops = quota_hops
        self._forwarder = Forwarder(quota_routes, quota_hops)
        self._answers: list[bytes] = []
        self._readable, self._far = socket.socketpair()
        self._far.send(b"always")

    def forget(self) -> None:
        """It starts anew."""
        self.close()
        self._forwarder = Forwarder(quota_hops=self._quota_hops)

    def fileno(self) -> int:
        return self._readable.fileno()

    def send(self, frame: bytes) -> None:
        if self.deaf:
            return
        message = decode_message(frame)
        self.said.append(message.type)
        self.sessions.add(message.session)
        self._answers.append(self._forwarder.handle(frame))

    def receive(self, timeout_s: float) -> bytes | None:
        answer = self._answers.pop(0) if self._answers else None
        if not answer:
            return None
        return answer[:31] + bytes([self.wires_up]) + answer[32:52] + struct.pack("!Q", self.shown_quota) + answer[60:]

    def notice(self, session: int, wires_up: int) -> None:
        """A wire goes down, or comes up."""
        self.wires_up = wires_up
        self._answers.append(Ack(MessageType.NOTICE, session, 0, Code.OK, wires_up, 0, 1, 64, 0, 0).encode(MAC, MAC))

    def close(self) -> None:
        self._forwarder.__exit__()

    def routes(self) -> dict[str, str]:
        """By prefix: port and MAC, "LOCAL", "BLACKHOLE"."""
        found = self._forwarder.routes()
        return {
            to: f"{one.port} {one.mac}" + f" in VLAN {one.vlan}" * bool(one.vlan)
            if one.kind == HopKind.FORWARD
            else HopKind(one.kind).name
            for to, one in found.items()
        }


class Rig:
    def __init__(
        self,
        quota_hops: int = 64,
        quota_routes: int = 10000,
        wires: Mapping[str, int] | None = None,
        **settings: Any,
    ) -> None:
        self.kernel, self.forwarder = Kernel(), Wire(quota_hops, quota_routes)
        self.events: list[tuple[str, Mapping[str, Any]]] = []
        self.agent = Agent(
            AgentSettings("vnf0", wires or {"vnf0": 1}, **settings),
            self.kernel,  # type: ignore[arg-type]
            self.forwarder,  # type: ignore[arg-type]
            lambda event, facts: self.events.append((event, facts)),
        )

    def does(self, to: str) -> str | None:
        return self.forwarder.routes().get(to)

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


Start = Callable[..., Rig]


@pytest.fixture
def start() -> Iterator[Start]:
    made: list[Rig] = []

    def make(**settings: Any) -> Rig:
        made.append(Rig(**settings))
        return made[-1]

    yield make
    for rig in made:
        rig.forwarder.close()


def test_a_wire_that_is_down_is_shown_at_its_interface() -> None:
    rig = Rig()
    rig.until(lambda: rig.does("192.0.2.0/24") == FORWARD)
    assert rig.kernel.dormant == [(OURS, False)], "as an agent before this one may have left it"
    (session,) = rig.forwarder.sessions
    for up, wires_up in ((False, 0b01), (True, 0b11)):
        rig.forwarder.notice(session, wires_up)
        rig.until(lambda up=up: rig.kernel.dormant[-1] == (OURS, not up))  # type: ignore[misc]
    assert [facts for event, facts in rig.events if event == "wire"] == [
        {"wire": 1, "up": False},
        {"wire": 1, "up": True},
    ]
    assert rig.does("192.0.2.0/24") == FORWARD, "the forwarder itself uses no wire that is down"


def test_routes_by_a_vlan_interface_have_its_tag(start: Start) -> None:
    """Also by one that comes later; one that is not ours is left to the VNF."""
    rig = start()
    gateways = {index: Leg(index, GATEWAY.gateway) for index in (21, 22)}
    for index, gateway in gateways.items():
        rig.kernel.there[prefix(f"20.{index}.0.0/16")] = via(gateway)
        rig.kernel.resolved[gateway] = PEER
    rig.kernel.tagged = {21: Vlan(OURS, 100)}
    rig.until(lambda: rig.told("end_of_rib") == 1)
    assert (rig.does("192.0.2.0/24"), rig.does("20.22.0.0/16")) == (FORWARD, "LOCAL")
    assert rig.does("20.21.0.0/16") == f"{FORWARD} in VLAN 100"
    rig.kernel.tagged = {21: Vlan(OURS, 100), 22: Vlan(OURS, 200)}
    rig.kernel.queue.append(Unsure())
    rig.until(lambda: rig.does("20.22.0.0/16") == f"{FORWARD} in VLAN 200")
    rig.kernel.tagged = {22: Vlan(OURS, 200)}
    rig.kernel.queue.append(Unsure())
    rig.until(lambda: rig.does("20.21.0.0/16") == "LOCAL")


def test_everything_is_announced_then_end_of_rib_then_changes(start: Start) -> None:
    rig = start()
    rig.until(lambda: rig.told("end_of_rib") == 1)
    assert rig.forwarder.said[0] is MessageType.HELLO and rig.forwarder.said[-1] is MessageType.END_OF_RIB
    assert (rig.does("192.0.2.0/24"), rig.does("10.0.0.2/32")) == (FORWARD, "LOCAL")
    rig.kernel.put("198.51.100.0/24", Path(1, 0, RouteKind.BLACKHOLE))
    rig.kernel.put("192.0.2.0/24", None)
    rig.until(lambda: rig.does("198.51.100.0/24") == "BLACKHOLE")
    assert rig.does("192.0.2.0/24") is None
    assert rig.forwarder.said.count(MessageType.END_OF_RIB) == 1
    rig.end()
    assert rig.events[-1] == ("ended", {"withdrawn": False, "routes": 2, "next_hops": 2, "multipath": 0, "refused": {}})
    assert rig.does("198.51.100.0/24") == "BLACKHOLE", "routes stay"


def test_routes_are_withdrawn_on_request(start: Start) -> None:
    rig = start(withdraw=True)
    rig.until(lambda: rig.told("end_of_rib") == 1)
    rig.end()
    assert rig.forwarder.routes() == {} and rig.forwarder.said[-1] is MessageType.FLUSH
    assert rig.events[-1][1]["withdrawn"]


def test_end_of_rib_waits_for_the_routing_daemon(start: Start) -> None:
    rig = start(settle_s=3600.0)
    rig.until(lambda: len(rig.forwarder.routes()) == 2)
    for _ in range(5):
        rig.agent.turn()
    assert MessageType.END_OF_RIB not in rig.forwarder.said


def test_a_forwarder_that_starts_anew_is_told_everything_again(start: Start) -> None:
    rig = start()
    rig.until(lambda: rig.told("end_of_rib") == 1)
    rig.forwarder.forget()
    rig.kernel.put("198.51.100.0/24", via())
    rig.until(lambda: rig.told("end_of_rib") == 2)
    assert len(rig.forwarder.sessions) == 2 and rig.told("lost") == 1
    assert len(rig.forwarder.routes()) == 3


def test_it_waits_for_a_forwarder_that_is_not_there(start: Start) -> None:
    rig = start()
    rig.forwarder.deaf = True
    for _ in range(10):
        rig.agent.turn()
    assert rig.events == []
    rig.kernel.put("198.51.100.0/24", via())
    rig.forwarder.deaf = False
    rig.until(lambda: rig.told("end_of_rib") == 1)
    assert len(rig.forwarder.routes()) == 3


@pytest.mark.parametrize("event", [OSError(errno.ENOBUFS, "overrun"), Unsure()])
def test_what_was_not_said_is_read(start: Start, event: Event | OSError) -> None:
    rig = start()
    rig.until(lambda: rig.told("end_of_rib") == 1)
    del rig.kernel.there[prefix("192.0.2.0/24")]
    rig.kernel.there[prefix("198.51.100.0/24")] = via()
    rig.kernel.queue.append(event)
    rig.until(lambda: rig.does("198.51.100.0/24") is not None)
    assert rig.does("192.0.2.0/24") is None
    assert rig.told("overrun") == isinstance(event, OSError)
    assert len(rig.forwarder.sessions) == 1


def test_gateways_are_looked_for_and_followed(start: Start) -> None:
    rig = start()
    rig.kernel.resolved.clear()
    rig.until(lambda: rig.told("end_of_rib") == 1)
    assert rig.does("192.0.2.0/24") == "LOCAL", "the VNF forwards what the forwarder cannot yet"
    assert rig.kernel.asked == [GATEWAY]
    rig.kernel.queue.append(NeighbourEvent(GATEWAY, PEER, True))
    rig.until(lambda: rig.does("192.0.2.0/24") == FORWARD)
    rig.kernel.queue.append(NeighbourEvent(GATEWAY, b"", False))
    rig.until(lambda: rig.does("192.0.2.0/24") == "LOCAL")


def test_a_quota_of_next_hops_leaves_the_rest_to_the_vnf(start: Start) -> None:
    rig = start(quota_hops=4)
    for i in range(1, 6):
        rig.kernel.there[prefix(f"20.{i}.0.0/16")] = via(Leg(OURS, bytes([10, 0, 0, i])))
        rig.kernel.resolved[Leg(OURS, bytes([10, 0, 0, i]))] = PEER[:5] + bytes([i])
    rig.until(lambda: rig.told("end_of_rib") == 1)
    rig.until(lambda: len(rig.forwarder.routes()) == 7)
    done = [rig.does(f"20.{i}.0.0/16") for i in range(1, 6)]
    assert done.count("LOCAL") == 3 and len(set(done)) == 3
    assert rig.told("refused") >= 1


def test_refused_next_hops_are_used_when_others_are_released(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent, "AGAIN_S", 0.1)
    rig = start(quota_hops=4)
    routes = [f"20.{i}.0.0/16" for i in range(1, 6)]
    for i, to in enumerate(routes, 1):
        rig.kernel.there[prefix(to)] = via(Leg(OURS, bytes([10, 0, 0, i])))
        rig.kernel.resolved[Leg(OURS, bytes([10, 0, 0, i]))] = PEER[:5] + bytes([i])

    def by_the_vnf() -> list[str]:
        return [to for to in routes if rig.does(to) == "LOCAL"]

    rig.until(lambda: rig.told("end_of_rib") == 1)
    rig.until(lambda: len(by_the_vnf()) == 3)
    for left in (2, 1, 0):
        for to in [to for to in routes if rig.does(to) not in (None, "LOCAL")][:1]:
            rig.kernel.put(to, None)
        if rig.does("192.0.2.0/24"):
            rig.kernel.put("192.0.2.0/24", None)
        rig.until(lambda left=left: len(by_the_vnf()) <= left)  # type: ignore[misc]


def test_refused_routes_are_said_again_when_the_quota_grows(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """At once, and all. The forwarder has room, but shows it only later."""
    monkeypatch.setattr(agent, "AGAIN_S", 3600.0)
    rig = start(quota_routes=5)
    for i in range(8):
        rig.kernel.there[prefix(f"20.{i}.0.0/16")] = via()
    rig.until(lambda: rig.told("end_of_rib") == 1 and len(rig.forwarder.routes()) == 5)
    there = [to for to in rig.forwarder.routes() if to.startswith("20.")]
    rig.forwarder.shown_quota = 2
    for to in there[:3]:
        rig.kernel.put(to, None)
    rig.until(lambda: rig.does(there[2]) is None)
    for _ in range(10):
        rig.agent.turn()
    assert len(rig.forwarder.routes()) == 2, "there seems to be no room"
    rig.forwarder.shown_quota = 10
    rig.until(lambda: len(rig.forwarder.routes()) == 5)


@pytest.mark.parametrize("event", [OSError(errno.ENOBUFS, "overrun"), Unsure()])
@pytest.mark.parametrize("there", [{}, {"vnf0": OURS + 1}])
def test_the_interface_to_the_forwarder_ends_it_when_it_goes(
    start: Start, event: Event | OSError, there: dict[str, int]
) -> None:
    """Also if another of its name has come meanwhile."""
    rig = start()
    rig.agent.turn()
    rig.kernel.interfaces = there
    rig.kernel.queue.append(event)
    with pytest.raises(InterfaceGoneError, match="interface vnf0 disappeared"):
        for _ in range(2):
            rig.agent.turn()


def test_another_interface_may_go_and_come(start: Start) -> None:
    """Its routes are the VNF's meanwhile, those of the first stay."""
    rig = start(wires={"vnf0": 1, "vnf1": 0})
    second = Leg(OURS + 1, bytes([10, 1, 0, 1]))
    rig.kernel.there[prefix("198.51.100.0/24")] = via(second)
    rig.kernel.resolved[second] = PEER
    rig.until(lambda: rig.told("end_of_rib") == 1)
    assert (rig.does("192.0.2.0/24"), rig.does("198.51.100.0/24")) == (FORWARD, "LOCAL")
    rig.kernel.interfaces["vnf1"] = second.interface
    rig.kernel.queue.append(Unsure())
    rig.until(lambda: rig.does("198.51.100.0/24") == FORWARD.replace("1", "0", 1))
    assert rig.kernel.dormant[-1] == (second.interface, False)
    del rig.kernel.interfaces["vnf1"]
    rig.kernel.queue.append(Unsure())
    rig.until(lambda: rig.does("198.51.100.0/24") == "LOCAL")
    assert rig.does("192.0.2.0/24") == FORWARD
    there = [(facts["name"], facts["there"]) for event, facts in rig.events if event == "interface"]
    assert there == [("vnf1", False), ("vnf1", True), ("vnf1", False)]


def test_many_routes_are_said_in_pieces_and_what_is_near_first(start: Start) -> None:
    rig = start()
    count = 3 * PIECE
    rig.kernel.there = {prefix(f"20.{i >> 8}.{i & 255}.0/24"): via() for i in range(count)}
    rig.kernel.there |= {
        prefix("10.0.0.2/32"): local(),
        prefix("10.0.0.0/24"): Path(1, 0, RouteKind.UNICAST, (ON_LINK,)),
    }
    sizes = [0]
    while rig.told("end_of_rib") == 0:
        rig.agent.turn()
        sizes.append(len(rig.forwarder.routes()))
        if sizes[-1]:
            assert (rig.does("10.0.0.2/32"), rig.does("10.0.0.0/24")) == ("LOCAL", "LOCAL")
    assert sizes[-1] == count + 3  # the gateway is a neighbour on the link, too
    assert max(new - old for old, new in itertools.pairwise(sizes)) <= PIECE


def test_many_events_are_heard_in_pieces(start: Start) -> None:
    rig = start()
    rig.until(lambda: rig.told("end_of_rib") == 1)
    count = 3 * PIECE
    for i in range(count):
        rig.kernel.put(f"20.{i >> 8}.{i & 255}.0/24", via())
    left = count
    while left:
        rig.agent.turn()
        assert left - len(rig.kernel.queue) <= PIECE
        left = len(rig.kernel.queue)
    rig.until(lambda: len(rig.forwarder.routes()) == count + 2)


def test_an_interface_has_one_agent() -> None:
    with only_one("lo"):
        for _ in range(3):
            with pytest.raises(AgentRunsError, match=f"'lo' already: process {os.getpid()}; end that one"):
                only_one("lo")
    only_one("lo").close()
