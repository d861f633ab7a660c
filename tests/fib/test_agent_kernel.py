# SPDX-License-Identifier: BSD-3-Clause
"""What the kernel says of its routes, in a namespace of its own: dumps, events, and that both come to the same."""

from __future__ import annotations

import contextlib
import errno
import ipaddress
import os
import random
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from fib_example import inside, no_vlans
from planed_rig import until

from planebench.host import procfs
from planebench.host.process import Supervisor
from planebench_fib import agent_kernel
from planebench_fib.agent_kernel import Kernel, NeighbourEvent, RouteEvent, Unsure
from planebench_fib.agent_mirror import Leg, Mirror, RouteKind, Vlan
from planebench_fib.agent_mirror import Path as Way
from planebench_fib.messages import Prefix
from planebench_fib.transport import FrameTooLongError, PacketTransport, TransportError

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root: network namespaces"),
]

BATCHES = 25

SETUP = """
link set lo up
link add vnf0 type veth peer name far0
link add vnf1 type veth peer name far1
link set vnf0 up
link set vnf1 up
link set far0 up
link set far1 up
address add 10.0.0.2/24 dev vnf0
address add 10.1.0.2/24 dev vnf1
address add 2001:db8::2/64 dev vnf0 nodad
"""


def packed(text: str) -> bytes:
    return ipaddress.ip_address(text).packed


def prefix(text: str) -> Prefix:
    network = ipaddress.ip_network(text)
    return Prefix(network.network_address.packed, network.prefixlen)


class Namespace:
    """With two interfaces; the kernel's sockets are in it."""

    def __init__(self, supervisor: Supervisor) -> None:
        holder = supervisor.spawn(
            "netns", ["sleep", "infinity"], cpus=frozenset(os.sched_getaffinity(0)), new_netns=True, high_priority=False
        )
        until(lambda: procfs.read_text(f"/proc/{holder.pid}/comm") == "sleep", "the namespace is there")
        self.pid = holder.pid
        self.ip(SETUP)
        with inside(self.pid):
            self.vnf0, self.vnf1 = (socket.if_nametoindex(name) for name in ("vnf0", "vnf1"))
        # The kernel adds an IPv6 address at once, and its route in a work of its own.
        with contextlib.closing(self.kernel()) as kernel:
            address = prefix("2001:db8::2/128")
            until(lambda: address in dict(kernel.routes()), "the address has its route")

    def ip(self, commands: str) -> None:
        """A batch of ip(8)."""
        done = subprocess.run(
            ["nsenter", f"--net=/proc/{self.pid}/ns/net", "ip", "-force", "-batch", "-"],
            input=commands,
            text=True,
            capture_output=True,
            timeout=60,
        )
        self.said = done.stderr

    def kernel(self, table: int = agent_kernel.MAIN_TABLE) -> Kernel:
        with inside(self.pid):
            return Kernel(("vnf0",), table)


@pytest.fixture(scope="module")
def supervisor() -> Iterator[Supervisor]:
    with Supervisor(Path("/tmp")) as it:
        yield it


@pytest.fixture
def namespace(supervisor: Supervisor) -> Namespace:
    return Namespace(supervisor)


def unicast(*legs: tuple[int, str], metric: int = 0) -> Way:
    return Way(1, metric, RouteKind.UNICAST, tuple(Leg(i, packed(to) if to else b"") for i, to in legs))


def test_a_dump(namespace: Namespace) -> None:
    namespace.ip(
        """
        route add 192.0.2.0/24 via 10.0.0.1
        route add 192.0.2.0/24 via 10.0.0.3 metric 50
        route add 198.51.100.0/24 nexthop via 10.0.0.1 nexthop via 10.1.0.1
        route add 198.51.101.0/24 nexthop via 10.0.0.1 nexthop via 10.1.0.1 weight 3
        route add 2001:db8:2::/48 nexthop via fe80::2 dev vnf0 weight 2 nexthop via fe80::1 dev vnf0
        route add 203.0.113.0/24 via inet6 fe80::5 dev vnf0
        route add blackhole 100.64.0.0/10
        route add unreachable 100.0.0.0/16
        route add 9.9.9.9 via 10.0.0.1 table 77
        route add 2001:db8:1::/48 via fe80::1 dev vnf0
        route add default via 10.1.0.1
        """
    )
    assert namespace.said == ""
    kernel = namespace.kernel()
    found = list(kernel.routes())
    routes = dict(found)
    assert len(found) == len(routes) + 1, "one prefix is there twice, by metric"
    zero, one = namespace.vnf0, namespace.vnf1
    local = Way(0, 0, RouteKind.LOCAL)
    assert [way for to, way in found if to == prefix("192.0.2.0/24")] == [
        unicast((zero, "10.0.0.1")),
        unicast((zero, "10.0.0.3"), metric=50),
    ]
    assert routes[prefix("198.51.100.0/24")] == unicast((zero, "10.0.0.1"), (one, "10.1.0.1"))
    weighted = routes[prefix("198.51.101.0/24")]
    assert (weighted.legs, weighted.weights) == (routes[prefix("198.51.100.0/24")].legs, (1, 3))
    six = routes[prefix("2001:db8:2::/48")]
    assert (six.legs, six.weights) == ((Leg(zero, packed("fe80::1")), Leg(zero, packed("fe80::2"))), (1, 2))
    assert routes[prefix("203.0.113.0/24")] == unicast((zero, "fe80::5"))
    assert routes[prefix("100.64.0.0/10")] == Way(1, 0, RouteKind.BLACKHOLE)
    assert routes[prefix("100.0.0.0/16")].kind is RouteKind.LOCAL
    assert routes[prefix("10.0.0.0/24")] == unicast((zero, ""))
    assert routes[prefix("0.0.0.0/0")] == unicast((one, "10.1.0.1"))
    assert routes[prefix("10.0.0.2/32")] == routes[prefix("10.0.0.255/32")] == local
    assert routes[prefix("2001:db8:1::/48")].legs == (Leg(zero, packed("fe80::1")),)
    assert routes[prefix("2001:db8::2/128")].kind is RouteKind.LOCAL
    assert prefix("9.9.9.9/32") not in routes
    own = [ipaddress.ip_address(to.address) for to in routes if to.length not in (0, 24, 10, 16, 48, 64)]
    assert not any(address.is_loopback or address.is_multicast for address in own)
    assert all(to.length == 128 for to in routes if to.address[:2] == b"\xfe\x80"), "link-local networks stay there"
    kernel.close()
    other = namespace.kernel(77)
    assert dict(other.routes())[prefix("9.9.9.9/32")] == unicast((zero, "10.0.0.1"))
    other.close()


def test_neighbours(namespace: Namespace) -> None:
    """Those of the interface; one that is asked for is looked for."""
    namespace.ip(
        """
        neigh add 10.0.0.1 lladdr 02:00:00:00:00:01 dev vnf0 nud permanent
        neigh add fe80::1 lladdr 02:00:00:00:00:02 dev vnf0 nud stale
        neigh add 10.1.0.1 lladdr 02:00:00:00:00:03 dev vnf1 nud permanent
        """
    )
    kernel = namespace.kernel()
    mac = bytes.fromhex("020000000001")
    permanent, stale = Leg(namespace.vnf0, packed("10.0.0.1")), Leg(namespace.vnf0, packed("fe80::1"))
    assert kernel.neighbours() == {permanent: mac, stale: mac[:5] + b"\2"}
    namespace.ip("neigh replace 10.0.0.1 lladdr 02:00:00:00:00:07 dev vnf0 nud reachable\nneigh del fe80::1 dev vnf0")
    events = [event for event in kernel.events() if isinstance(event, NeighbourEvent)]
    assert NeighbourEvent(permanent, mac[:5] + b"\7", True) in events
    assert events[-1].neighbour == stale and events[-1].mac == b""
    absent = Leg(namespace.vnf0, packed("10.0.0.77"))
    kernel.resolve(absent)
    assert absent not in kernel.neighbours()
    listed = subprocess.run(
        ["nsenter", f"--net=/proc/{namespace.pid}/ns/net", "ip", "neigh", "show", "10.0.0.77"],
        capture_output=True,
        text=True,
    ).stdout
    assert "INCOMPLETE" in listed or "FAILED" in listed
    kernel.close()


def test_vlan_interfaces(namespace: Namespace) -> None:
    """Those on ours: not in one of these, no other tags; their neighbours, and that one comes or goes."""
    if reason := no_vlans():
        pytest.skip(reason)
    namespace.ip(
        """
        link add link vnf0 name vnf0.10 type vlan id 10
        link add link vnf0 name s20 type vlan proto 802.1ad id 20
        link add link vnf1 name vnf1.30 type vlan id 30
        link add link vnf0.10 name inner type vlan id 40
        link set vnf0.10 up
        neigh add 10.2.0.1 lladdr 02:00:00:00:00:01 dev vnf0.10 nud permanent
        neigh add 10.3.0.1 lladdr 02:00:00:00:00:02 dev vnf1.30 nud permanent
        """
    )
    assert namespace.said == ""
    with inside(namespace.pid):
        ours, named, inner = (socket.if_nametoindex(name) for name in ("vnf0.10", "vnf1.30", "inner"))
        kernel = Kernel(("vnf0", "vnf1.30"), agent_kernel.MAIN_TABLE)
    assert kernel.links().vlans == {ours: Vlan(namespace.vnf0, 10), named: Vlan(namespace.vnf1, 30)}
    assert {leg.interface for leg in kernel.neighbours()} == {ours, named}
    list(kernel.events())
    namespace.ip("link set vnf0.10 alias same")
    assert Unsure() not in list(kernel.events())
    namespace.ip("link set vnf0.10 down")
    kernel.links()
    list(kernel.events())
    namespace.ip("link set vnf0.10 up")
    assert Unsure() in list(kernel.events()), "routes by it may be there again"
    namespace.ip("link add link vnf0 name vnf0.11 type vlan id 11\nlink set vnf0.11 up")
    assert Unsure() in list(kernel.events())
    assert [vlan.id for vlan in kernel.links().vlans.values()] == [10, 30, 11]
    namespace.ip("link del vnf0.11")
    assert Unsure() in list(kernel.events())
    assert inner not in kernel.links().vlans
    kernel.close()


def test_what_is_said_and_what_is_not(namespace: Namespace) -> None:
    kernel, there = namespace.kernel(), prefix("192.0.2.0/24")

    def said() -> list[RouteEvent]:
        """Return the events of the route; the kernel may still have some of the interfaces, which have just come up."""
        return [event for event in kernel.events() if isinstance(event, RouteEvent) and event.prefix == there]

    namespace.ip("route add 192.0.2.0/24 via 10.0.0.1\nroute replace 192.0.2.0/24 via 10.0.0.3")
    first, second = said()
    assert (first.there, first.replace, second.there, second.replace) == (True, False, True, True)
    namespace.ip("route del 192.0.2.0/24")
    assert [event.there for event in said()] == [False]
    namespace.ip("route add 192.0.2.0/24 via 10.0.0.1\nlink set vnf0 down")
    assert Unsure() in list(kernel.events()), "the kernel does not say that this takes the route away"
    assert there not in dict(kernel.routes())
    namespace.ip("address del 10.1.0.2/24 dev vnf1")
    assert Unsure() in list(kernel.events())
    namespace.ip("link del vnf0")
    assert Unsure() in list(kernel.events())
    assert kernel.links().interfaces == {}
    kernel.close()


def test_routes_of_some_protocols_are_left_out(namespace: Namespace) -> None:
    """Neither reported nor dumped: a routing daemon tells of its own in another way."""
    with inside(namespace.pid):
        kernel = Kernel(("vnf0",), agent_kernel.MAIN_TABLE, without=(11, 186, 196))
    list(kernel.events())
    namespace.ip(
        """
        route add 192.0.2.0/24 via 10.0.0.1 proto 186
        route add 2001:db8:1::/48 via 2001:db8::1 proto 196
        route add 192.0.3.0/24 via 10.0.0.1 proto 11
        route add 198.51.100.0/24 via 10.0.0.1 proto 185
        route add 2001:db8:2::/48 via 2001:db8::1
        route del 192.0.2.0/24
        neigh add 10.0.0.1 lladdr 02:00:00:00:00:01 dev vnf0 nud permanent
        """
    )
    assert namespace.said == ""
    events = list(kernel.events())
    ours = {prefix("198.51.100.0/24"), prefix("2001:db8:2::/48")}
    assert {event.prefix for event in events if isinstance(event, RouteEvent)} == ours
    assert any(isinstance(event, NeighbourEvent) for event in events)
    dumped = {to for to, way in kernel.routes() if any(leg.gateway for leg in way.legs)}
    assert dumped == ours
    kernel.close()


def test_an_overrun_is_seen(namespace: Namespace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent_kernel, "_EVENTS_BYTES", 4096)
    kernel = namespace.kernel()
    namespace.ip("".join(f"route add 20.0.{i >> 8}.{i & 255} via 10.0.0.1\n" for i in range(500)))
    with pytest.raises(OSError) as raised:
        list(kernel.events())
    assert raised.value.errno == errno.ENOBUFS
    assert sum(to.address[0] == 20 for to, _ in kernel.routes()) == 500
    namespace.ip("route add 21.0.0.1 via 10.0.0.1")
    (event,) = kernel.events()
    assert isinstance(event, RouteEvent) and event.prefix == prefix("21.0.0.1/32"), "the next one is reported"
    kernel.close()


def test_interfaces_come_and_go(namespace: Namespace) -> None:
    """One that comes is seen, also by another of its names; one that gets another name is the same one."""
    with inside(namespace.pid):
        kernel = Kernel(("vnf0", "vnf2", "second"), agent_kernel.MAIN_TABLE)
    assert kernel.links().interfaces == {"vnf0": namespace.vnf0}
    namespace.ip("link set vnf1 alias other")
    list(kernel.events())
    namespace.ip("link property add dev vnf1 altname second")
    assert Unsure() in list(kernel.events())
    assert kernel.links().interfaces == {"vnf0": namespace.vnf0, "second": namespace.vnf1}
    namespace.ip(
        "link set vnf0 down\nlink set vnf0 name renamed\nlink add vnf2 type veth peer name far2\nlink del vnf1"
    )
    assert Unsure() in list(kernel.events())
    there = kernel.links().interfaces
    assert (there.keys(), there["vnf0"]) == ({"vnf0", "vnf2"}, namespace.vnf0)
    kernel.close()


def test_legs_are_alive_again_when_their_interface_goes_up(namespace: Namespace) -> None:
    """The kernel does not say so: it makes a doubt."""
    namespace.ip("route add 192.0.2.0/24 nexthop via 10.0.0.1 nexthop via 10.1.0.1")
    with inside(namespace.pid):
        kernel = Kernel(("vnf0", "vnf1"), agent_kernel.MAIN_TABLE)

    def legs() -> int:
        kernel.links()
        return len(dict(kernel.routes())[prefix("192.0.2.0/24")].legs)

    assert legs() == 2
    namespace.ip("link set vnf1 down")
    assert Unsure() in list(kernel.events())
    assert legs() == 1
    list(kernel.events())
    namespace.ip("link set vnf1 up")
    events = list(kernel.events())
    assert prefix("192.0.2.0/24") not in [event.prefix for event in events if isinstance(event, RouteEvent)]
    assert Unsure() in events
    assert legs() == 2
    namespace.ip("link set vnf1 alias same")
    assert Unsure() not in list(kernel.events())
    kernel.close()


def test_frames_fit_into_the_mtu(namespace: Namespace) -> None:
    with inside(namespace.pid):
        transport = PacketTransport("vnf0")
    assert transport.frame_bytes() == 1514
    namespace.ip("link set vnf0 mtu 1400")
    assert transport.frame_bytes() == 1414
    transport.send(bytes(1414))
    with pytest.raises(FrameTooLongError, match="the MTU of interface 'vnf0' has become smaller"):
        transport.send(bytes(1415))
    namespace.ip("link set vnf0 mtu 9000")
    assert transport.frame_bytes() == 1514
    namespace.ip("link set vnf0 mtu 83")
    with pytest.raises(TransportError, match="interface 'vnf0' has MTU 83; messages need 84"):
        transport.frame_bytes()
    transport.close()


def commands(rng: random.Random, count: int) -> Iterator[str]:
    """What people and daemons do to routes; some of it is refused."""
    for _ in range(count):
        four = rng.random() < 0.5
        to = rng.choice(
            ("192.0.2.0/24", "192.0.2.0/25", "10.0.0.9") if four else ("2001:db8:1::/48", "2001:db8:2::/48")
        )
        ways = [f"via 10.0.0.{i}" for i in (1, 3)] if four else [f"via 2001:db8::{i}" for i in (1, 3)]
        legs = " ".join(f"nexthop {way}" for way in ways)
        way = rng.choice((*ways, legs, f"{ways[0]} metric 7", "dev vnf1"))
        verb = rng.choice(("add", "add", "replace", "append", "prepend", "change", "del"))
        kind = rng.choice(("", "", "", "blackhole "))
        yield f"route {verb} {kind}{to} {'' if kind else way}\n"


@pytest.mark.parametrize("seed", range(4))
def test_events_come_to_the_same_as_a_dump(namespace: Namespace, seed: int) -> None:
    rng = random.Random(seed)
    kernel = namespace.kernel()
    mirror = Mirror({namespace.vnf0: 0})
    mirror.load(kernel.routes())
    mirror.changes()
    list(kernel.events())
    sure = 0
    for number in range(BATCHES):
        batch = "".join(commands(rng, rng.randint(1, 6)))
        namespace.ip(batch)
        doubt = False
        for event in kernel.events():
            if isinstance(event, RouteEvent) and event.there:
                doubt |= not mirror.add(event.prefix, event.path, replace=event.replace, append=event.append)
            elif isinstance(event, RouteEvent):
                mirror.remove(event.prefix, event.path)
        mirror.changes()
        mirror.load(kernel.routes())
        assert doubt or not mirror.changes(), f"after batch {number}:\n{batch}"
        mirror.changes()
        sure += not doubt
    assert sure > BATCHES / 2
    kernel.close()
