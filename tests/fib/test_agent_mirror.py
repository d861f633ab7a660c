# SPDX-License-Identifier: BSD-3-Clause
"""What the agent tells the forwarder: whatever happened in whatever order, it forwards as the kernel would."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from planebench_fib.agent_mirror import (
    BLACKHOLE,
    LOCAL,
    Changes,
    Hop,
    Leg,
    Mirror,
    Path,
    RouteKind,
    Vlan,
)
from planebench_fib.messages import HOP_NUMBERS, Prefix

OURS, SECOND, OTHER = 7, 9, 8
GATEWAYS = [ipaddress.ip_address(text).packed for text in ("10.0.0.1", "10.0.0.2", "fe80::1", "fe80::2")]
MACS = [bytes([2, 0, 0, 0, 0, i]) for i in range(4)]


def prefix(text: str) -> Prefix:
    network = ipaddress.ip_network(text)
    return Prefix(network.network_address.packed, network.prefixlen)


def address(text: str) -> bytes:
    return ipaddress.ip_address(text).packed


def via(gateway: str, interface: int = OURS, metric: int = 0) -> Path:
    return Path(1, metric, RouteKind.UNICAST, (Leg(interface, address(gateway)),))


def link(interface: int = OURS) -> Path:
    return Path(1, 0, RouteKind.UNICAST, (Leg(interface, b""),))


@dataclass
class Forwarder:
    """Believes what it is told, and refuses what a forwarder refuses."""

    hops: dict[int, Hop] = field(default_factory=dict)
    routes: dict[Prefix, int] = field(default_factory=dict)

    def take(self, changes: Changes) -> None:
        for hop in changes.hops:
            assert all(self.hops[member].mac for member, _ in hop.members), "a member that was not announced"
            self.hops[hop.number] = hop
        for to, number in changes.routes:
            assert number in self.hops, "a route to a hop that was not announced"
            self.routes[to] = number
        for to in changes.routes_gone:
            del self.routes[to]
        for number in changes.hops_gone:
            assert number not in self.routes.values(), "routes lead to a hop that goes"
            del self.hops[number]
            assert not any(number == member for hop in self.hops.values() for member, _ in hop.members)

    def find(self, where: bytes) -> object:
        """MAC address, a sorted list of some, "punt", "drop", or None without a route."""
        bits = len(where) * 8
        for length in range(bits, -1, -1):
            masked = int.from_bytes(where) >> (bits - length) << (bits - length)
            number = self.routes.get(Prefix(masked.to_bytes(len(where)), length))
            if number is not None and (members := self.hops[number].members):
                macs = sorted(self.hops[member].mac for member, _ in members)
                return macs if len(macs) > 1 else macs[0]
            if number is not None:
                return self.hops[number].mac or ("drop" if number == BLACKHOLE else "punt")
        return None


def told(mirror: Mirror) -> Forwarder:
    forwarder = Forwarder()
    forwarder.take(mirror.changes())
    return forwarder


def test_equal_gateways_in_several_vlans_are_several_hops() -> None:
    """And members of one group."""
    ways = [Leg(interface, GATEWAYS[0]) for interface in (OURS, SECOND, OTHER)]
    mirror = Mirror({OURS: 3}, {SECOND: Vlan(OURS, 10), OTHER: Vlan(OURS, 20)})
    mirror.load([(prefix("192.0.2.0/24"), Path(1, 0, RouteKind.UNICAST, tuple(ways)))])
    mirror.load_neighbours(dict.fromkeys(ways, MACS[0]))
    forwarder = told(mirror)
    members = forwarder.hops[forwarder.routes[prefix("192.0.2.0/24")]].members
    found = [(forwarder.hops[number].wire, forwarder.hops[number].vlan) for number, _ in members]
    assert sorted(found) == [(3, 0), (3, 10), (3, 20)]


def test_a_gateway_is_resolved_and_its_mac_changes_without_a_word_on_routes() -> None:
    mirror = Mirror({OURS: 3, SECOND: 5})
    mirror.load([(prefix("192.0.2.0/24"), via("10.0.0.1")), (prefix("198.51.100.0/24"), via("10.0.0.1"))])
    forwarder = told(mirror)
    assert forwarder.find(address("192.0.2.1")) == "punt"
    assert mirror.gateways() == {Leg(OURS, address("10.0.0.1")): False}
    mirror.neighbour(Leg(OURS, address("10.0.0.1")), MACS[0])
    number = forwarder.routes[prefix("192.0.2.0/24")]
    assert mirror.changes() == Changes(hops=(Hop(number, MACS[0], 3),))
    mirror.neighbour(Leg(OURS, address("10.0.0.1")), MACS[1])
    assert mirror.changes() == Changes(hops=(Hop(number, MACS[1], 3),))
    mirror.neighbour(Leg(OURS, address("10.0.0.1")), b"")
    assert mirror.changes() == Changes(hops=(Hop(number),))
    assert not mirror.changes()


def test_hops_go_with_their_last_route_and_numbers_are_used_again() -> None:
    mirror = Mirror({OURS: 3, SECOND: 5})
    for turn in range(3 * HOP_NUMBERS):
        gateway = f"10.{turn >> 16}.{turn >> 8 & 255}.{turn & 255}"
        mirror.add(prefix("192.0.2.0/24"), via(gateway), replace=True, append=False)
        changes = mirror.changes()
        assert len(changes.routes) == 1 and len(changes.hops_gone) == (turn > 0)
    mirror.remove(prefix("192.0.2.0/24"), via(gateway))
    changes = mirror.changes()
    assert changes.routes_gone == (prefix("192.0.2.0/24"),) and len(changes.hops_gone) == 1
    assert (mirror.routes, mirror.hops) == (0, 2)


def test_gateways_without_a_number_are_left_to_the_vnf() -> None:
    mirror = Mirror({OURS: 3, SECOND: 5})
    mirror.load([(prefix(f"20.0.{i >> 8}.{i & 255}/32"), via(f"10.0.{i >> 8}.{i & 255}")) for i in range(HOP_NUMBERS)])
    forwarder = told(mirror)
    assert len(forwarder.hops) == HOP_NUMBERS
    assert list(forwarder.routes.values()).count(LOCAL) == 2


def test_a_next_hop_that_is_not_granted_is_left_to_the_vnf() -> None:
    mirror = Mirror({OURS: 3, SECOND: 5})
    mirror.load([(prefix(f"20.{i}.0.0/16"), via(f"10.0.0.{i}")) for i in (1, 2)])
    mirror.load_neighbours({Leg(OURS, address(f"10.0.0.{i}")): MACS[i] for i in (1, 2)})
    forwarder = told(mirror)
    number = forwarder.routes[prefix("20.1.0.0/16")]
    mirror.refuse(number)
    changes = mirror.changes()
    assert changes == Changes(routes=((prefix("20.1.0.0/16"), LOCAL),))
    mirror.add(prefix("20.3.0.0/16"), via("10.0.0.1"), replace=False, append=False)
    assert mirror.changes() == Changes(routes=((prefix("20.3.0.0/16"), LOCAL),))
    mirror.forget()
    again = told(mirror)
    assert again.find(address("20.1.0.1")) == again.find(address("20.3.0.1")) == MACS[1]


def test_next_hops_are_sent_again_before_routes_that_lead_to_them() -> None:
    """What leads to them: routes, groups, neighbours on the link, and routes to one of these."""
    mirror = Mirror({OURS: 3, SECOND: 5})
    legs = tuple(Leg(OURS, address(f"10.0.0.{i}")) for i in (1, 2))
    to, both = prefix("20.1.0.0/16"), prefix("20.2.0.0/16")
    mirror.load([(to, via("10.0.0.1")), (both, Path(1, 0, RouteKind.UNICAST, legs)), (prefix("10.0.0.0/24"), link())])
    mirror.load_neighbours({leg: MACS[i] for i, leg in enumerate(legs)})
    mirror.add(prefix("10.0.0.2/32"), link(), replace=False, append=False)
    forwarder = told(mirror)
    members = [number for number, _ in forwarder.hops[forwarder.routes[both]].members]
    for number in (*members, forwarder.routes[both]):
        mirror.refuse(number)
    forwarder.take(mirror.changes())
    wheres = [address(text) for text in ("20.1.0.1", "20.2.0.1", "10.0.0.1", "10.0.0.2")]
    assert [forwarder.find(where) for where in wheres] == ["punt"] * 4
    assert mirror.refused and mirror.again(1, 0) and mirror.again(2, 0) and not mirror.again(1, 0)
    changes = mirror.changes()
    assert len(changes.hops) == 3 and not changes.routes and not mirror.changes()
    forwarder.take(changes)
    assert mirror.use_granted() and not mirror.use_granted() and not mirror.refused
    forwarder.take(mirror.changes())
    assert [forwarder.find(where) for where in wheres] == [MACS[0], MACS[:2], MACS[0], MACS[1]]


def test_a_next_hop_that_is_refused_again_has_no_routes() -> None:
    mirror = Mirror({OURS: 3, SECOND: 5})
    mirror.load([(prefix("20.1.0.0/16"), via("10.0.0.1"))])
    mirror.load_neighbours({Leg(OURS, address("10.0.0.1")): MACS[1]})
    mirror.refuse(told(mirror).routes[prefix("20.1.0.0/16")])
    mirror.changes()
    mirror.again(1, 0)
    (hop,) = mirror.changes().hops
    mirror.refuse(hop.number)
    assert not mirror.use_granted() and mirror.refused
    assert not mirror.changes()


def test_refused_routes_are_sent_again() -> None:
    """Not one that is another by now, or gone."""
    mirror = Mirror({OURS: 3, SECOND: 5})
    routes = [prefix(f"20.{i}.0.0/16") for i in range(4)]
    mirror.load([(to, via("10.0.0.1")) for to in routes])
    number = told(mirror).routes[routes[0]]
    for to in routes:
        mirror.hold(to, number)
    mirror.hold(prefix("30.0.0.0/8"), number)
    mirror.add(routes[0], via("10.0.0.2"), replace=True, append=False)
    mirror.remove(routes[1], via("10.0.0.1"))
    assert mirror.changes().routes_gone == (routes[1],)
    mirror.hold(routes[0], number)
    assert mirror.again(10, 1)
    assert mirror.changes() == Changes(routes=((routes[2], number),))
    assert mirror.again(10, 10)
    assert mirror.changes() == Changes(routes=((routes[3], number),))
    assert not mirror.again(10, 10) and not mirror.refused


def test_neighbours_of_a_connected_network_have_routes_of_their_own() -> None:
    mirror = Mirror({OURS: 3, SECOND: 5})
    mirror.load([(prefix("10.0.0.0/24"), link()), (prefix("10.0.0.128/25"), via("10.0.0.1"))])
    for last in (1, 2, 130):
        mirror.neighbour(Leg(OURS, address(f"10.0.0.{last}")), MACS[last % 4])
    forwarder = told(mirror)
    assert forwarder.find(address("10.0.0.2")) == MACS[2]
    assert forwarder.find(address("10.0.0.3")) == "punt"
    assert forwarder.find(address("10.0.0.130")) == MACS[1], "the longer prefix wins, neighbour or not"
    mirror.remove(prefix("10.0.0.128/25"), via("10.0.0.1"))
    forwarder.take(mirror.changes())
    assert forwarder.find(address("10.0.0.130")) == MACS[130 % 4]
    mirror.neighbour(Leg(OURS, address("10.0.0.2")), b"")
    forwarder.take(mirror.changes())
    assert forwarder.find(address("10.0.0.2")) == "punt"


def test_what_the_kernel_prefers() -> None:
    mirror = Mirror({OURS: 3, SECOND: 5})
    to = prefix("192.0.2.1/32")
    mirror.add(to, via("10.0.0.1", metric=20), replace=False, append=False)
    mirror.add(to, via("10.0.0.2", metric=10), replace=False, append=False)
    for last in (1, 2, 3):
        mirror.neighbour(Leg(OURS, address(f"10.0.0.{last}")), MACS[last])
    forwarder = told(mirror)
    assert forwarder.find(to.address) == MACS[2], "the least metric"
    mirror.add(to, via("10.0.0.3", metric=10), replace=False, append=True)
    forwarder.take(mirror.changes())
    assert forwarder.find(to.address) == MACS[2], "the first of as many"
    mirror.add(to, Path(0, 0, RouteKind.LOCAL), replace=False, append=False)
    forwarder.take(mirror.changes())
    assert forwarder.find(to.address) == "punt", "the table of local addresses"
    mirror.remove(to, Path(0, 0, RouteKind.LOCAL))
    mirror.remove(to, via("10.0.0.2", metric=10))
    forwarder.take(mirror.changes())
    assert forwarder.find(to.address) == MACS[3]


def test_several_legs() -> None:
    """Those that leave by our interface and are resolved; of IPv6 a leg goes alone. Routes stay where they are."""
    mirror = Mirror({OURS: 3, SECOND: 5})
    legs = (Leg(OTHER, GATEWAYS[0]), Leg(OURS, GATEWAYS[2]), Leg(OURS, GATEWAYS[3]))
    to = prefix("2001:db8::/32")
    mirror.add(to, Path(1, 0, RouteKind.UNICAST, legs), replace=False, append=False)
    mirror.load_neighbours({Leg(OURS, GATEWAYS[i]): MACS[i] for i in (2, 3)})
    forwarder = told(mirror)
    assert forwarder.find(address("2001:db8::1")) == [MACS[2], MACS[3]] and mirror.multipath == 1
    mirror.neighbour(Leg(OURS, GATEWAYS[2]), b"")
    changes = mirror.changes()
    assert not changes.routes and len(changes.hops) == 2
    forwarder.take(changes)
    assert forwarder.find(address("2001:db8::1")) == MACS[3]
    mirror.neighbour(Leg(OURS, GATEWAYS[3]), b"")
    forwarder.take(mirror.changes())
    assert forwarder.find(address("2001:db8::1")) == "punt"
    mirror.load_neighbours({Leg(OURS, GATEWAYS[i]): MACS[i] for i in (2, 3)})
    forwarder.take(mirror.changes())
    assert forwarder.find(address("2001:db8::1")) == [MACS[2], MACS[3]]
    mirror.remove(to, Path(1, 0, RouteKind.UNICAST, legs[1:2]))
    forwarder.take(mirror.changes())
    assert forwarder.find(address("2001:db8::1")) == MACS[3]
    mirror.remove(to, Path(1, 0, RouteKind.UNICAST, (legs[0], legs[2])))
    forwarder.take(mirror.changes())
    assert forwarder.find(address("2001:db8::1")) is None and set(forwarder.hops) == {LOCAL, BLACKHOLE}


def test_weights_of_legs() -> None:
    mirror = Mirror({OURS: 3, SECOND: 5})
    legs = (Leg(OURS, GATEWAYS[0]), Leg(SECOND, GATEWAYS[1]), Leg(OURS, GATEWAYS[1]))
    to = prefix("20.0.0.0/8")
    mirror.load([(to, Path(1, 0, RouteKind.UNICAST, legs, (1, 3, 256)))])
    mirror.load_neighbours(dict(zip(legs, MACS[:3], strict=True)))
    forwarder = told(mirror)
    members = {forwarder.hops[n]: weight for n, weight in forwarder.hops[forwarder.routes[to]].members}
    assert {(hop.mac, hop.wire, weight) for hop, weight in members.items()} == {
        (MACS[0], 3, 1),
        (MACS[1], 5, 3),
        (MACS[2], 3, 255),
    }
    assert Path(1, 0, RouteKind.UNICAST, legs, (1, 3, 256)).without(legs[1:2]).weights == (1, 256)


def test_a_group_that_is_not_granted_uses_its_first_resolved_gateway() -> None:
    mirror = Mirror({OURS: 3, SECOND: 5})
    legs = (Leg(OURS, GATEWAYS[0]), Leg(OURS, GATEWAYS[1]))
    to = prefix("20.0.0.0/8")
    mirror.load([(to, Path(1, 0, RouteKind.UNICAST, legs))])
    mirror.load_neighbours({legs[1]: MACS[1]})
    forwarder = told(mirror)
    mirror.refuse(forwarder.routes[to])
    changes = mirror.changes()
    assert [forwarder.hops[number].mac for _, number in changes.routes] == [MACS[1]]


def test_each_interface_has_its_wire() -> None:
    mirror = Mirror({OURS: 3, SECOND: 5})
    mirror.load([(prefix("20.0.0.0/8"), via("10.0.0.1")), (prefix("30.0.0.0/8"), via("10.0.0.1", SECOND))])
    mirror.load_neighbours({Leg(OURS, address("10.0.0.1")): MACS[1], Leg(SECOND, address("10.0.0.1")): MACS[2]})
    forwarder = told(mirror)
    hops = [forwarder.hops[forwarder.routes[prefix(text)]] for text in ("20.0.0.0/8", "30.0.0.0/8")]
    assert [(hop.mac, hop.wire) for hop in hops] == [(MACS[1], 3), (MACS[2], 5)]


def test_another_interface_and_blackholes() -> None:
    mirror = Mirror({OURS: 3, SECOND: 5})
    mirror.load(
        [
            (prefix("0.0.0.0/0"), via("192.168.0.1", OTHER)),
            (prefix("192.0.2.0/24"), Path(1, 0, RouteKind.BLACKHOLE)),
            (prefix("198.51.100.0/24"), Path(1, 0, RouteKind.LOCAL)),
        ]
    )
    forwarder = told(mirror)
    assert [forwarder.find(address(text)) for text in ("9.9.9.9", "192.0.2.1", "198.51.100.1")] == [
        "punt",
        "drop",
        "punt",
    ]


def test_a_new_session_is_told_everything_and_a_dump_only_what_differs() -> None:
    mirror = Mirror({OURS: 3, SECOND: 5})
    routes = [(prefix(f"20.{i}.0.0/16"), via("10.0.0.1")) for i in range(50)]
    mirror.load([*routes, (prefix("10.0.0.0/24"), link())])
    mirror.load_neighbours({Leg(OURS, address(f"10.0.0.{i}")): MACS[i] for i in (1, 2)})
    before = told(mirror)
    mirror.load([*routes[1:], (prefix("10.0.0.0/24"), link()), (prefix("30.0.0.0/8"), link())])
    changes = mirror.changes()
    assert changes == Changes(routes=((prefix("30.0.0.0/8"), LOCAL),), routes_gone=(routes[0][0],))
    before.take(changes)
    mirror.forget()
    assert told(mirror) == before


# Whatever happens

PREFIXES = [prefix(text) for text in ("10.0.0.0/24", "10.0.0.0/25", "10.0.0.2/32", "0.0.0.0/0", "fe80::2/128", "::/0")]
LEGS = st.builds(Leg, st.sampled_from([OURS, OURS, SECOND, OTHER]), st.sampled_from([*GATEWAYS, b""]))
PATHS = st.builds(
    Path,
    st.integers(0, 1),
    st.integers(0, 1),
    st.sampled_from([RouteKind.UNICAST] * 3 + [RouteKind.LOCAL, RouteKind.BLACKHOLE]),
    st.lists(LEGS, min_size=1, max_size=3, unique=True).map(tuple),
    st.just(()),
)
STEPS = st.one_of(
    st.tuples(st.just("add"), st.sampled_from(PREFIXES), PATHS, st.booleans()),
    st.tuples(st.just("remove"), st.sampled_from(PREFIXES), PATHS),
    st.tuples(
        st.just("neighbour"),
        st.sampled_from([OURS, SECOND]),
        st.sampled_from(GATEWAYS),
        st.sampled_from([*MACS[:2], b""]),
    ),
    st.tuples(st.just("load"), st.lists(st.tuples(st.sampled_from(PREFIXES), PATHS), max_size=5)),
    st.tuples(st.just("forget")),
    st.tuples(st.just("tell")),
)


def expected(routes: dict[Prefix, list[Path]], neighbours: dict[Leg, bytes], where: bytes) -> object:
    """What the kernel does, from its routes and neighbours."""
    bits = len(where) * 8
    for length in range(bits, -1, -1):
        masked = int.from_bytes(where) >> (bits - length) << (bits - length)
        paths = routes.get(Prefix(masked.to_bytes(len(where)), length))
        if not paths:
            continue
        path = sorted(paths, key=lambda one: (one.rank, one.metric))[0]
        if path.kind is RouteKind.BLACKHOLE:
            return "drop"
        legs = [leg for leg in path.legs if leg.interface in (OURS, SECOND)]
        if path.kind is RouteKind.LOCAL or not legs:
            return "punt"
        if gateways := [leg for leg in legs if leg.gateway]:
            macs = sorted(mac for leg in gateways if (mac := neighbours.get(leg)))
            return macs if len(macs) > 1 else macs[0] if macs else "punt"
        return neighbours.get(Leg(legs[0].interface, legs[0].gateway or where), b"") or "punt"
    return None


@given(st.lists(STEPS, max_size=25))
def test_it_forwards_as_the_kernel_does(steps: list[tuple[object, ...]]) -> None:
    mirror, forwarder = Mirror({OURS: 3, SECOND: 5}), Forwarder()
    neighbours: dict[Leg, bytes] = {}
    for step in [*steps, ("tell",)]:
        match step:
            case ("add", to, path, replace):
                mirror.add(to, path, replace=replace, append=False)
            case ("remove", to, path):
                mirror.remove(to, path)
            case ("neighbour", interface, who, mac):
                mirror.neighbour(Leg(interface, who), mac)
                neighbours[Leg(interface, who)] = mac
            case ("load", routes):
                mirror.load(routes)
            case ("forget",):
                mirror.forget()
                forwarder = Forwarder()
            case ("tell",):
                forwarder.take(mirror.changes())
    kernel = {to: list(paths) for to, paths in mirror._paths.items()}
    for where in (*GATEWAYS, address("10.0.0.200"), address("10.0.0.3"), address("9.9.9.9"), address("2001:db8::1")):
        assert forwarder.find(where) == expected(kernel, neighbours, where), where
    members = {member for number in forwarder.routes.values() for member, _ in forwarder.hops[number].members}
    resolving = {mirror._numbers[leg] for leg in mirror.gateways()}
    assert set(forwarder.hops) - {LOCAL, BLACKHOLE} <= set(forwarder.routes.values()) | members | resolving
    assert forwarder.routes == mirror.told()
