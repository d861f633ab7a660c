# SPDX-License-Identifier: BSD-3-Clause
"""The agent: runs in a VNF and keeps the forwarder's FIB equal to the routes of this kernel (docs/fib-agent.md).

One thread, one loop: netlink reports changes, the mirror computes their consequences, the client sends them.
"""

from __future__ import annotations

import errno
import itertools
import select
import socket
import struct
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from planebench_fib.agent_fpm import Fpm
from planebench_fib.agent_kernel import Event, Kernel, NeighbourEvent, RouteEvent, Unsure
from planebench_fib.agent_mirror import BLACKHOLE, LOCAL, Changes, Hop, Leg, Mirror, Path
from planebench_fib.client import FibClient
from planebench_fib.errors import FibSessionLost, FibTimeout, FibUpdateError
from planebench_fib.exceptions import Error, UsageError
from planebench_fib.messages import Code, GroupRecord, HopRecord, Op, Prefix, RouteRecord
from planebench_fib.transport import PacketTransport

IDLE_S, UNANSWERED_S = 0.25, 0.02
"""How often the client gets its turn: to send a sign of life, or again what got lost."""
PIECE = 1 << 10
"""Routes read, heard or said in one go. The client has its turn between, or the forwarder takes the VNF for dead."""
END_S = 2.0
"""How long the last words may take."""
_ASKERS = 1 << 12
"""Agents that were refused; nobody answers them, and those beyond do not learn which process was first."""
AGAIN_S = 10.0
"""After which a part of what the forwarder refused is said again: there may be room now, or larger quotas."""
REFRESH_S = 10.0
"""How often neighbours that packets go to are looked after: the kernel itself sees none of those packets."""

Tell = Callable[[str, dict[str, Any]], None]
"""Where events go: a name, and what there is to know."""


class InterfaceGoneError(Error):
    """The VNF's interface was removed while the agent ran."""


class AgentRunsError(Error):
    """Another agent runs on the interface: each would end the session of the other."""


@dataclass(frozen=True, slots=True)
class AgentSettings:
    """Settings of an agent.

    ``interface`` leads to the forwarder. ``wires`` maps interfaces to the VNF's wires as the forwarder's configuration
    numbers them; VLAN interfaces on these have the same. One that is not there is waited for. ``settle_s``: how long
    after the first dump routes of an earlier session are kept, for a routing daemon that has just started.
    ``withdraw``: at the end withdraw the routes; otherwise they stay for the forwarder's grace period.
    """

    interface: str
    wires: Mapping[str, int]
    table: int = 254
    settle_s: float = 0.0
    withdraw: bool = False


def interface_index(name: str) -> int:
    """Return the index of an interface. Raises UsageError with the existing names."""
    try:
        return socket.if_nametoindex(name)
    except OSError:
        there = ", ".join(found for _, found in socket.if_nameindex())
        raise UsageError(f'no interface "{name}" in this network namespace. Valid: {there}') from None


def only_one(interface: str) -> socket.socket:
    """Return what keeps other agents of this network namespace off an interface while it is open.

    Raises AgentRunsError if there is one.
    """
    name = f"\0planebench-fib-agent/{socket.if_indextoname(interface_index(interface))}"
    held = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        held.bind(name)
        held.listen(_ASKERS)
    except OSError as error:
        held.close()
        if error.errno != errno.EADDRINUSE:
            raise
        raise AgentRunsError(
            f"an agent runs on interface '{interface}' already{_holder(name)}; end that one or choose another"
        ) from None
    return held


def _holder(name: str) -> str:
    """Name the process that has bound an address, if that can be seen (unix(7), SO_PEERCRED)."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asking:
        asking.setblocking(False)
        try:
            asking.connect(name)
            pid, _, _ = struct.unpack("3i", asking.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
        except OSError:
            return ""
    return f": process {pid}" if pid else ""


class Agent:
    """The agent's loop. It owns neither kernel nor transport; :meth:`run` until :meth:`stop`, which a signal handler
    may call."""

    def __init__(self, settings: AgentSettings, kernel: Kernel | Fpm, transport: PacketTransport, tell: Tell) -> None:
        self._settings, self._kernel, self._transport, self._tell = settings, kernel, transport, tell
        self._mirror = Mirror({})
        self._index = kernel.links().interfaces.get(settings.interface)
        self._absent: set[str] = set()
        self._client = self._new_client()
        self._up = False
        self._refused: Counter[str] = Counter()
        self._again, self._again_at, self._quota = 1, 0.0, 0
        self._stale: set[Leg] = set()
        self._asked: set[Leg] = set()
        self._wires: dict[int, bool] = {}
        self._woken, self._wake = socket.socketpair()
        self._unsure = True
        self._events: Iterator[Event] | None = None
        self._stopped = False
        self._refresh_at = 0.0
        self._settled_at: float | None = None

    def stop(self) -> None:
        """Let :meth:`run` end soon."""
        self._stopped = True
        self._wake.send(b"\0")

    def run(self) -> None:
        """Mirror until stopped. Raises OSError and InterfaceGoneError."""
        while not self._stopped:
            self.turn()
        self._patiently(self._end)
        self._tell("ended", {"withdrawn": self._settings.withdraw and self._up} | self._facts())

    def turn(self) -> None:
        """Send the changes, wait for events and handle them."""
        if self._unsure:
            self._dump()
        self._patiently(self._speak)
        self._resolve()
        self._wait()
        self._listen()

    # The kernel

    def _dump(self) -> None:
        self._unsure = False
        self._find_links()
        self._mirror.load(self._lively(self._kernel.routes()))
        neighbours = self._kernel.neighbours()
        self._mirror.load_neighbours(neighbours)
        self._stale = set(neighbours)

    def _find_links(self) -> None:
        """Take the interfaces that are there. Routes by others are left to the VNF until they come."""
        interfaces, self._mirror.vlans = self._kernel.links()
        interface, wires = self._settings.interface, self._settings.wires
        if self._index is None or interfaces.get(interface) != self._index:
            raise InterfaceGoneError(f"interface {interface} disappeared; restart the agent when the interface is back")
        self._mirror.wires = {interfaces[name]: wire for name, wire in wires.items() if name in interfaces}
        self._wires = {index: up for index, up in self._wires.items() if index in self._mirror.wires}
        absent = wires.keys() - interfaces.keys()
        for name in sorted(absent ^ self._absent):
            self._tell("interface", {"name": name, "there": name not in absent})
        self._absent = absent

    def _lively(self, routes: Iterable[tuple[Prefix, Path]]) -> Iterator[tuple[Prefix, Path]]:
        """Yield the routes, and poll the client meanwhile: reading many takes longer than the forwarder's timeout."""
        for number, route in enumerate(routes):
            if number % PIECE == 0:
                self._patiently(self._client.poll)
            yield route

    def _listen(self) -> None:
        events = self._events or self._kernel.events()
        self._events = None
        try:
            heard = list(itertools.islice(events, PIECE))
        except OSError as error:
            if error.errno != errno.ENOBUFS:
                raise
            self._unsure = True
            self._tell("overrun", {})
            return
        self._events = events if len(heard) == PIECE else None
        for event in heard:
            self._heard(event)

    def _heard(self, event: object) -> None:
        match event:
            case RouteEvent(prefix, path, True, replace, append):
                self._unsure |= not self._mirror.add(prefix, path, replace=replace, append=append)
            case RouteEvent(prefix, path):
                self._mirror.remove(prefix, path)
            case NeighbourEvent(neighbour, mac, fresh):
                self._mirror.neighbour(neighbour, mac)
                (self._stale.discard if fresh or not mac else self._stale.add)(neighbour)
            case Unsure():
                self._unsure = True

    def _resolve(self) -> None:
        """Ask the kernel to resolve new gateways, and from time to time those that are stale."""
        gateways = self._mirror.gateways()
        again = time.monotonic() >= self._refresh_at
        if again:
            self._refresh_at = time.monotonic() + REFRESH_S
        for gateway, resolved in gateways.items():
            if (again and (not resolved or gateway in self._stale)) or not (resolved or gateway in self._asked):
                self._kernel.resolve(gateway)
        self._asked = set(gateways)

    # The forwarder

    def _new_client(self) -> FibClient:
        return FibClient(self._transport, refused=self._count_refused)

    def _patiently(self, speak: Callable[[], None]) -> None:
        """Run ``speak``; a lost session is reported, and everything is announced again in a new one."""
        try:
            speak()
        except FibSessionLost as error:
            self._lost(error)
        except FibTimeout as error:
            self._client = self._new_client()
            self._lost(error)

    def _lost(self, error: Error) -> None:
        self._up = False
        self._settled_at = None
        self._tell("lost", {"reason": str(error)})

    def _speak(self) -> None:
        self._client.poll()
        self._follow_wires()
        if not self._up:
            if self._client.unanswered:
                return
            self._up = True
            self._mirror.forget()
            self._settled_at = time.monotonic() + self._settings.settle_s
            self._tell("session", {"number": self._client.session})
        self._say_again()
        self._say(self._mirror.changes(PIECE))
        told = self._kernel.complete and not self._mirror.pending
        if self._settled_at is not None and told and time.monotonic() >= self._settled_at:
            self._settled_at = None
            self._client.end_of_rib()
            self._client.drain()
            self._tell("end_of_rib", self._facts())

    def _say_again(self) -> None:
        """Say again what was refused: a part of it, and twice as much as long as it is taken. At once if the quota of
        routes has grown."""
        if not self._mirror.refused or self._mirror.pending or self._client.unanswered:
            return
        if self._mirror.use_granted():
            return
        now, quota = time.monotonic(), self._client.quota
        if quota > self._quota:
            self._again_at = now
        self._quota = quota
        if now < self._again_at:
            return
        if self._mirror.again(self._again, max(quota - self._client.routes, 0)):
            self._again = min(2 * self._again, PIECE)
        else:
            self._again_at = now + AGAIN_S

    def _follow_wires(self) -> None:
        """Show at the VNF's interfaces which wires are down. What is up at first is no news."""
        if (up := self._client.wires_up) is None:
            return
        for interface, wire in self._mirror.wires.items():
            is_up = bool(up >> wire & 1)
            if (was := self._wires.get(interface)) is is_up:
                continue
            self._wires[interface] = is_up
            self._kernel.set_dormant(interface, not is_up)
            if was is not None or not is_up:
                self._tell("wire", {"wire": wire, "up": is_up})

    def _say(self, changes: Changes) -> None:
        for hop in changes.hops:
            self._say_hop(hop)
        self._client.replace_all(changes.routes)
        for prefix in changes.routes_gone:
            self._client.delete(prefix)
        for number in changes.hops_gone:
            self._client.hop_delete(number)
        self._client.poll()

    def _say_hop(self, hop: Hop) -> None:
        if hop.members:
            self._client.group(hop.number, hop.members)
        elif hop.mac:
            self._client.hop(hop.number, destination=hop.mac, wire=hop.wire, vlan=hop.vlan)
        elif hop.number == BLACKHOLE:
            self._client.hop_blackhole(hop.number)
        else:
            self._client.hop_local(hop.number)

    def _count_refused(self, error: FibUpdateError) -> None:
        """Report the first refusal of a kind and count the others. The VNF keeps what leads to a refused next hop."""
        self._refused[error.code.name] += 1
        if self._refused[error.code.name] == 1:
            self._tell("refused", {"reason": str(error)})
        self._again, self._again_at, self._quota = 1, time.monotonic() + AGAIN_S, self._client.quota
        match error.record:
            case RouteRecord(Op.REPLACE, prefix, number) if error.code in (Code.QUOTA, Code.FULL):
                self._mirror.hold(prefix, number)
            case GroupRecord(number) | HopRecord(Op.REPLACE, number) if number != LOCAL:
                self._mirror.refuse(number)

    def _facts(self) -> dict[str, Any]:
        return {
            "routes": self._mirror.routes,
            "next_hops": self._mirror.hops,
            "multipath": self._mirror.multipath,
            "refused": dict(self._refused),
        }

    def _wait(self) -> None:
        """Wait for an event, or until something is due."""
        due_s = UNANSWERED_S if self._client.unanswered else IDLE_S
        if self._events or (self._up and self._mirror.pending):
            due_s = 0.0
        if self._settled_at is not None and self._kernel.complete:
            due_s = min(due_s, max(0.0, self._settled_at - time.monotonic()))
        select.select([self._kernel.fileno(), self._transport.fileno(), self._woken.fileno()], [], [], due_s)

    def _end(self) -> None:
        if self._up and self._settings.withdraw:
            self._client.flush()
        if self._up:
            self._client.drain(END_S)
