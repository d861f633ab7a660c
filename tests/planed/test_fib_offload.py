# SPDX-License-Identifier: BSD-3-Clause
"""fib_offload in a real planed: VNFs announce routes through their ports, packets follow, VNFs die and come back; and
as many ports as ic16 has VNFs.

What becomes of every kind of packet is in dataplane/fib/fib_offload*_test.c.
"""

from __future__ import annotations

import itertools
import socket
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from nf.nat44_frames import udp
from planed_rig import (
    CPU,
    OTHER_CPU,
    PATIENCE_S,
    Document,
    Planed,
    document,
    load,
    planed_binary,
    stream,
    task,
    until,
    vhost,
    virtio,
)
from station import BROADCAST, Station

from planebench.host.process import Process, Supervisor, stretched
from planebench.planed.client import PlanedClient, RpcError
from planebench_fib.client import FibClient
from planebench_fib.errors import FibUpdateError

pytestmark = pytest.mark.dataplane

WIRES = ("wire0", "wire1")
HOST, FAR, NEAR = "02:00:00:00:09:00", "02:00:00:00:09:01", "02:00:00:00:09:02"
GRACE_S = 3
MANY = 63
_NAMES = itertools.count()


def vnf_mac(number: int) -> str:
    return f"02:00:00:00:02:{number:02x}"


def packet(vnf: int, to: str, number: int = 0) -> bytes:
    """To an address behind a VNF."""
    data = udp(
        (socket.inet_aton("192.0.2.1"), 1000), (socket.inet_aton(to), 2000), number.to_bytes(4, "big") + bytes(14)
    )
    return raw(vnf_mac(vnf), HOST, 0x0800, data)


def raw(to: str, source: str, ether_type: int, data: bytes) -> bytes:
    return bytes.fromhex((to + source).replace(":", "")) + ether_type.to_bytes(2, "big") + data.ljust(46, b"\0")


def tagged(frame: bytes, vlan: int) -> bytes:
    return frame[:12] + b"\x81\0" + vlan.to_bytes(2, "big") + frame[12:]


class Guest:
    """Who is at the other end of a port; as a transport, the VNF that says what its routes are."""

    def __init__(self, path: Path, mac: str = HOST) -> None:
        self.station = Station(path)
        self.mac = bytes.fromhex(mac.replace(":", ""))
        self.answers: deque[bytes] = deque()
        self.others: list[bytes] = []

    def look(self) -> list[bytes]:
        """All frames so far that are no answers."""
        for frame in self.station.received():
            if frame[12:14] == b"\x88\xb5":
                self.answers.append(frame)
            else:
                self.others.append(frame)
        return self.others

    def send(self, frame: bytes) -> None:
        self.station.send(frame)

    def receive(self, timeout_s: float) -> bytes | None:
        end = time.monotonic() + stretched(timeout_s)
        while not self.answers:
            self.look()
            if not self.answers and time.monotonic() >= end:
                return None
        return self.answers.popleft()

    def close(self) -> None:
        self.station.close()


def settings(count: int, **more: Any) -> Document:
    vnfs = [
        {"vnf": n, "port": f"vnf{n}", "mac": vnf_mac(n), "grace_s": GRACE_S, "hold_s": 60, **more}
        for n in range(1, count + 1)
    ]
    return {"wires": list(WIRES), "routes4": 100_000, "pages": "4K", "vnfs": vnfs}


class Switch:
    """A planed with one fib_offload, and its sockets.

    With another planed between them and the guests, which patches each port through, its ports are drivers: frames
    are handled in place.
    """

    def __init__(self, planed: Planed, count: int, folder: Path, between: Planed | None = None) -> None:
        self.planed, self.folder, self.between = planed, folder, between
        self.names = [*WIRES, *(f"vnf{n}" for n in range(1, count + 1))]
        self.ports = [vhost(name, folder / name) for name in self.names]
        if between:
            inner = {name: f"{name}-inner" for name in self.names}
            between.apply(
                [*self.ports, *(vhost(far, folder / far) for far in inner.values())],
                [task(f"patch-{name}", "patch", name, far) for name, far in inner.items()],
                cpu=OTHER_CPU,
            )
            self.ports = [virtio(name, folder / far) for name, far in inner.items()]
        self.apply(settings(count))

    def apply(self, keys: Document, **more: Any) -> None:
        self.planed.apply(self.ports, [task("sw", "fib_offload", *self.names, settings=keys)], cpu=CPU, **more)

    def attach(self, name: str, mac: str = HOST) -> Guest:
        guest = Guest(self.folder / name, mac)
        until(lambda: self.link(name), f"{name} is up")
        time.sleep(0.02)  # a worker looks at one wire each millisecond, and nothing tells that it has
        return guest

    def link(self, name: str) -> bool:
        ports = (self.between or self.planed).call("ports.get")["ports"]
        return bool(next(port for port in ports if port["name"] == name)["link_up"])

    def counted(self) -> Document:
        return dict(self.planed.tasks()["sw"])

    def vnf(self, number: int) -> Document:
        return dict(self.counted()["fib_offload"]["vnfs"][number - 1])

    def call(self, method: str, **params: Any) -> Document:
        return self.planed.call(f"fib_offload.{method}", {"task": "sw", **params})


@pytest.fixture
def switch(planed: Planed, tmp_path: Path) -> Switch:
    return Switch(planed, 2, tmp_path)


@pytest.fixture(params=["mbufs", "in-place"])
def either(request: pytest.FixtureRequest, planed: Planed, other: Planed, tmp_path: Path) -> Iterator[Switch]:
    """A switch of vhost ports, and one of virtio ports."""
    yield Switch(planed, 2, tmp_path, other if request.param == "in-place" else None)
    planed.apply()  # drivers go before their devices


def arrives(at: Guest, by: Guest, frame: bytes) -> bytes:
    """Send a frame by one port, and get what comes out of another."""
    before = len(at.look())
    by.send(frame)
    until(lambda: len(at.look()) > before, "the frame arrives")
    assert len(at.others) == before + 1
    return at.others[-1]


def addresses(frame: bytes) -> tuple[str, str]:
    return frame[:6].hex(":"), frame[6:12].hex(":")


def conserves(counted: Document) -> bool:
    return bool(counted["rx_packets"] == counted["tx_packets"] + sum(counted["drops"].values()))


def announced(guest: Guest, wire: int, hop_mac: str) -> FibClient:
    client = FibClient(guest)
    client.hop(1, destination=hop_mac, wire=wire)
    client.add("10.0.0.1/32", 1)
    client.add("10.1.0.0/16", 1)
    client.end_of_rib()
    client.drain()
    return client


def test_traffic_follows_what_vnfs_announce_and_ends_with_them(switch: Switch) -> None:
    wires = [switch.attach(name) for name in WIRES]
    guests = {n: switch.attach(f"vnf{n}", vnf_mac(n)) for n in (1, 2)}
    one, two = announced(guests[1], 1, FAR), announced(guests[2], 0, NEAR)

    # The same addresses, two VNFs.
    for to in ("10.0.0.1", "10.1.2.3"):
        assert addresses(arrives(wires[1], wires[0], packet(1, to))) == (FAR, vnf_mac(1))
        assert addresses(arrives(wires[0], wires[0], packet(2, to))) == (NEAR, vnf_mac(2))

    # A route and a next hop change.
    one.hop(1, destination=NEAR, wire=0)
    one.delete("10.1.0.0/16")
    one.drain()
    assert addresses(arrives(wires[0], wires[0], packet(1, "10.0.0.1"))) == (NEAR, vnf_mac(1))
    assert addresses(arrives(wires[0], wires[0], packet(2, "10.1.2.3"))) == (NEAR, vnf_mac(2))
    wires[0].send(packet(1, "10.1.2.3"))
    until(lambda: switch.counted()["drops"]["no_route"] == 1, "the deleted route is gone")
    with pytest.raises(FibUpdateError):
        two.delete("10.9.9.9/32")
        two.drain()

    # One dies: it forwards on for the grace period, then no more. The other does not notice.
    guests[1].close()
    until(lambda: not switch.link("vnf1"), "the VNF is missed")
    assert addresses(arrives(wires[0], wires[0], packet(1, "10.0.0.1"))) == (NEAR, vnf_mac(1))
    until(lambda: switch.vnf(1)["routes4"] == 0, "the grace period ends")
    wires[0].send(packet(1, "10.0.0.1"))
    until(lambda: switch.counted()["drops"]["no_route"] == 2, "its routes are flushed")
    assert addresses(arrives(wires[0], wires[0], packet(2, "10.0.0.1"))) == (NEAR, vnf_mac(2))
    assert switch.vnf(1)["session"]["lost_peers"] == 1
    assert switch.vnf(2)["session"]["state"] == "up"

    # And comes back.
    announced(switch.attach("vnf1", vnf_mac(1)), 1, FAR)
    assert addresses(arrives(wires[1], wires[0], packet(1, "10.1.2.3"))) == (FAR, vnf_mac(1))
    assert conserves(switch.counted())


def test_control_reaches_the_vnf_and_its_answers_the_wire(either: Switch) -> None:
    switch = either
    wires = [switch.attach(name) for name in WIRES]
    guest = switch.attach("vnf1", vnf_mac(1))
    request = raw(BROADCAST, HOST, 0x0806, b"who")
    assert arrives(guest, wires[0], request) == request
    answer = raw(HOST, vnf_mac(1), 0x0806, b"me")
    assert arrives(wires[0], guest, answer) == answer
    client = FibClient(guest)
    client.hop_local(0)
    client.add("10.0.0.2/32", 0)
    client.drain()
    assert switch.vnf(1)["session"]["update_age_s"] < 600
    assert "update_age_s" not in switch.vnf(2)["session"]
    own = packet(1, "10.0.0.2")
    assert arrives(guest, wires[1], own) == own
    assert arrives(wires[1], guest, answer) == answer  # its neighbour has moved
    client.hop(1, destination=FAR, wire=1)
    client.add("10.0.0.0/8", 1)
    client.drain()
    for number in range(20):
        assert addresses(arrives(wires[1], wires[0], packet(1, "10.0.0.1", number))) == (FAR, vnf_mac(1))
    wires[0].send(packet(2, "10.0.0.1"))
    until(lambda: switch.counted()["drops"]["no_route"] == 1, "another VNF has no route")
    assert switch.vnf(1)["punted"] == 2
    assert switch.vnf(1)["forwarded"] == 20
    assert conserves(switch.counted())


def test_tags_are_put_on_and_taken_off(either: Switch) -> None:
    """Also where frames would be handled in rings, which have no room for a tag."""
    either.apply(settings(2, vlans=[10, 20]))
    near, far, vnf = (either.attach(name) for name in (*WIRES, "vnf1"))
    ways = (("198.51.100.1", {}, b"\x08\0"), ("198.51.100.2", {"vlan": 20}, b"\x81\0\0\x14\x08\0"))
    for hop, (to, tag, types) in enumerate(ways):
        either.call("next_hop_set", vnf=1, hop=hop, wire="wire1", mac=FAR, **tag)
        either.call("route_set", vnf=1, prefix=to, hop=hop)
        frame = packet(1, to)
        came = arrives(far, near, frame)
        assert addresses(came) == (FAR, vnf_mac(1)) and came[12:-46] == types
        assert came[-20:] == frame[-20:]
        assert arrives(far, near, tagged(frame, 10)) == came
    arp = tagged(raw(vnf_mac(1), HOST, 0x0806, b""), 20)
    assert arrives(vnf, near, arp) == arp
    near.send(tagged(packet(1, "198.51.100.1"), 30))
    until(lambda: either.counted()["drops"]["foreign_vlan"] == 1, "it is nobody's")


def test_routes_stay_when_a_vnf_is_added(switch: Switch) -> None:
    wires = [switch.attach(name) for name in WIRES]
    client = announced(switch.attach("vnf1", vnf_mac(1)), 1, FAR)
    switch.names.append("vnf3")
    switch.ports.append(vhost("vnf3", switch.folder / "vnf3"))
    switch.apply(settings(3))
    assert addresses(arrives(wires[1], wires[0], packet(1, "10.0.0.1"))) == (FAR, vnf_mac(1))
    client.add("10.0.0.7/32", 1)
    client.drain()  # the session goes on
    assert addresses(arrives(wires[1], wires[0], packet(1, "10.0.0.7"))) == (FAR, vnf_mac(1))


def test_quotas_of_a_task_that_is_renamed_are_the_new_ones(switch: Switch) -> None:
    """The FIB goes by the key "fib": a task of another name takes it over, with settings of its own."""
    keys = {**settings(2), "fib": "routes"}
    switch.apply(keys)
    switch.call("load_synthetic", vnf=1, routes=100, wire="wire1", mac=NEAR)
    keys["vnfs"] = [{**vnf, "quota_routes": 200} for vnf in keys["vnfs"]]
    switch.planed.apply(switch.ports, [task("renamed", "fib_offload", *switch.names, settings=keys)], cpu=CPU)
    vnf = switch.planed.tasks()["renamed"]["fib_offload"]["vnfs"][0]
    assert (vnf["routes4"], vnf["quota_routes"]) == (100, 200)


def test_an_operator_sets_lists_saves_and_loads(switch: Switch, tmp_path: Path) -> None:
    wires = [switch.attach(name) for name in WIRES]
    switch.call("next_hop_set", vnf=2, hop=1, wire="wire1", mac=FAR)
    switch.call("route_set", vnf=2, prefix="10.3.0.0/16", hop=1)
    switch.call("load_synthetic", vnf=1, routes=50_000, next_hops=4, wire="wire1", mac=NEAR)
    assert addresses(arrives(wires[1], wires[0], packet(1, "10.0.0.2"))) == ("02:00:00:00:09:04", vnf_mac(1))
    assert switch.call("lookup", vnf=2, address="10.3.4.5")["hop"] == {
        "kind": "forward", "wire": "wire1", "mac": FAR, "source": vnf_mac(2)
    }  # fmt: skip
    assert switch.call("lookup", vnf=2, address="10.4.0.0")["hop"] == {"kind": "none"}
    listed: list[str] = []
    page: Document = {"next": 0}
    while page["next"] is not None:
        page = switch.call("routes", vnf=1, **{"from": page["next"]})
        listed += [route["prefix"] for route in page["routes"]]
    assert sorted(map(socket.inet_aton, (prefix.removesuffix("/32") for prefix in listed))) == [
        (0x0A000000 + i).to_bytes(4, "big") for i in range(50_000)
    ]
    path = str(tmp_path / "snapshot")
    switch.call("save", path=path)
    assert switch.call("flush", vnf=1) == {"flushed": 50_000}
    assert switch.vnf(1)["routes4"] == 0
    switch.call("load", path=path)
    assert switch.vnf(1)["routes4"] == 50_000
    assert addresses(arrives(wires[1], wires[0], packet(2, "10.3.4.5"))) == (FAR, vnf_mac(2))


HOSTILE: tuple[Any, ...] = (None, -1, 0, 1.5, True, 2**63, 10**30, "", "\0", "x" * 5000, [], [[]], {}, {"a": {}})


def test_hostile_parameters_are_answered(switch: Switch) -> None:
    good: dict[str, Document] = {
        "lookup": {"vnf": 1, "address": "10.0.0.1"},
        "routes": {"vnf": 1, "from": 0, "limit": 8},
        "next_hop_set": {"vnf": 1, "hop": 1, "kind": "forward", "wire": "wire0", "mac": FAR, "source": NEAR},
        "route_set": {"vnf": 1, "prefix": "10.0.0.0/8", "hop": 1},
        "route_delete": {"vnf": 1, "prefix": "10.0.0.0/8"},
        "load_synthetic": {"vnf": 1, "routes": 10, "next_hops": 2, "wire": "wire0", "mac": FAR},
        "flush": {"vnf": 1},
        "save": {"path": "/nowhere/at/all"},
        "load": {"path": "/dev/zero"},
    }
    for method, params in good.items():
        for name, value in itertools.product(params, HOSTILE):
            refused_or_answered(switch, method, {**params, name: value})
        refused_or_answered(switch, method, params)
        with pytest.raises(RpcError, match='unknown key "nonsense"'):
            switch.call(method, **params, nonsense=1)
    assert conserves(switch.counted())


def refused_or_answered(switch: Switch, method: str, params: Document) -> None:
    try:
        assert isinstance(switch.call(method, **params), dict)
    except RpcError as error:
        assert str(error)


def test_workers_share_a_fib(planed: Planed, other: Planed, tmp_path: Path) -> None:
    """Two workers with a queue each forward by the same routes, while thousands more are put in."""
    names = (*WIRES, "vnf1")
    ports = [{**vhost(name, tmp_path / name), "queues": 2} for name in names]
    tasks = [task(f"sw{q}", "fib_offload", *names, queue=q, settings={**settings(1), "fib": "one"}) for q in (0, 1)]
    workers = [{"name": f"w{q}", "cpu": cpu, "tasks": [f"sw{q}"]} for q, cpu in enumerate((CPU, OTHER_CPU))]
    planed.apply(ports, tasks, workers=workers)
    load_routes = {"task": "sw0", "vnf": 1, "wire": "wire1", "mac": FAR}
    planed.call("fib_offload.load_synthetic", {**load_routes, "routes": 100})
    to = {"dst_mac": vnf_mac(1), "dst_ip": "10.0.0.7"}
    other.apply(
        [{**virtio(name, tmp_path / name), "queues": 2} for name in WIRES],
        [task(f"gen{q}", "generator", "wire0", queue=q, stream=q, **to) for q in (0, 1)]
        + [task(f"mon{q}", "monitor", "wire1", queue=q) for q in (0, 1)],
    )
    other.links_up()
    loads = [load(f"gen{q}", rate_pps=1000) for q in (0, 1)]  # 200 frames: no ring can be full of them
    other.start_traffic(*loads, duration_s=0.2)
    planed.call("fib_offload.load_synthetic", {**load_routes, "routes": 50_000})
    until(lambda: not other.call("traffic.get")["running"], "the generators end")
    seen = other.settled()
    for q in (0, 1):
        sent = seen[f"gen{q}"]["tx_packets"]
        assert sent > 0
        assert stream(seen[f"mon{q}"], q)["forwarded_packets"] == sent
        counted = planed.tasks()[f"sw{q}"]
        assert counted["fib_offload"]["vnfs"][0]["forwarded"] == sent
        assert counted["fib_offload"]["vnfs"][0]["routes4"] == 50_000
        assert conserves(counted)
    other.apply()  # drivers go before their devices
    with pytest.raises(RpcError, match='share the FIB "one"'):
        tasks[1]["settings"] = {**settings(1), "fib": "one", "punt": {"burst": 9}}
        planed.apply(ports, tasks, workers=workers)


def test_63_vnfs(supervisor: Supervisor, tmp_path: Path) -> None:
    """65 ports in a process on either side; a broadcast reaches all of them, and each VNF has its own FIB."""
    memory = {"hugepages": False, "size_mb": 384, "mbuf_count": 8191, "mbuf_data_bytes": 2176}
    name = f"many{next(_NAMES)}"
    switch = Switch(Planed(supervisor, name), MANY, tmp_path)
    vnfs = Planed(supervisor, f"{name}-vnfs", document(f"{name}-vnfs", memory=memory))
    ports = [virtio(port, tmp_path / port) for port in switch.names[1:]]
    vnfs.apply(ports, [task(port["name"], "l2fwd", port["name"]) for port in ports], cpu=OTHER_CPU, memory=memory)
    wire = switch.attach("wire0")
    switch.planed.links_up()
    wire.send(raw(BROADCAST, HOST, 0x0806, b"who"))
    until(lambda: switch.counted()["fib_offload"]["copies"] == MANY - 1, "all copies are taken")
    until(lambda: sum(one["rx_packets"] for one in vnfs.tasks().values()) == MANY, "all VNFs have it")
    for n in (1, MANY // 2, MANY):
        switch.call("load_synthetic", vnf=n, routes=100, wire="wire0", mac=f"02:00:00:00:0a:{n:02x}")
        assert addresses(arrives(wire, wire, packet(n, "10.0.0.9")))[1] == vnf_mac(n)
    assert [switch.vnf(n)["forwarded"] for n in (1, 2, MANY)] == [1, 0, 1]
    # An echo's frames come back with the address of its port as source, which is not the VNF's.
    until(lambda: switch.counted()["drops"]["spoofed"] == MANY, "all echoes are refused")
    assert conserves(switch.counted())


def started(supervisor: Supervisor, folder: Path, name: str) -> tuple[Planed, Guest]:
    """A forwarder that keeps a snapshot, and its VNF."""
    keys = {**settings(1, grace_s=600), "snapshot": str(folder / "snapshot"), "snapshot_s": 1}
    ports = [vhost(port, folder / port) for port in (*WIRES, "vnf1")]
    switch = task("sw", "fib_offload", *WIRES, "vnf1", settings=keys)
    return Planed(supervisor, name, document(name, ports, [switch])), Guest(folder / "vnf1", vnf_mac(1))


def forwards_what_was_announced(planed: Planed, folder: Path) -> None:
    with PlanedClient(planed.rpc, timeout_s=PATIENCE_S) as client:
        wires = [Guest(folder / name) for name in WIRES]
        for name in WIRES:
            until(lambda n=name: link_up(client, n), "the wire is up")  # type: ignore[misc]

    def comes() -> bool:
        wires[0].send(packet(1, "10.1.2.3"))  # until the forwarder has looked at its wires, which takes milliseconds
        return bool(wires[1].look())

    until(comes, "a frame arrives")
    assert addresses(wires[1].others[0]) == (FAR, vnf_mac(1))


def link_up(client: PlanedClient, name: str) -> bool:
    return bool(next(port for port in client.call("ports.get")["ports"] if port["name"] == name)["link_up"])


def again(supervisor: Supervisor, planed: Planed, *options: str) -> Process:
    argv = [planed_binary(), "--config", str(planed.workdir / "config.json"), "--rpc", str(planed.rpc), *options]
    return supervisor.spawn("again", argv, cpus=frozenset((CPU, OTHER_CPU)), workdir=planed.workdir)


def test_a_killed_forwarder_begins_with_its_routes(supervisor: Supervisor, tmp_path: Path) -> None:
    planed, guest = started(supervisor, tmp_path, "killed")
    client = announced(guest, 1, FAR)
    (tmp_path / "snapshot").unlink(missing_ok=True)
    client.add("10.2.0.0/16", 1)
    client.drain()
    until(lambda: (tmp_path / "snapshot").exists(), "the snapshot is written")
    planed.process.kill()
    again(supervisor, planed)
    forwards_what_was_announced(planed, tmp_path)


def test_another_planed_takes_over(supervisor: Supervisor, tmp_path: Path) -> None:
    planed, guest = started(supervisor, tmp_path, "upgraded")
    announced(guest, 1, FAR)
    new = again(supervisor, planed, "--take-over", str(planed.rpc))
    until(lambda: not planed.process.alive(), "the old one ends")
    assert planed.process.returncode == 0, new.exit_report()
    forwards_what_was_announced(planed, tmp_path)
    new.terminate()
    assert new.returncode == 0
    assert [path.name for path in tmp_path.iterdir()] == ["snapshot"], "no socket is left"


@pytest.mark.all
def test_a_take_over_that_fails_leaves_the_old_one(supervisor: Supervisor, tmp_path: Path) -> None:
    planed, guest = started(supervisor, tmp_path, "stays")
    announced(guest, 1, FAR)
    nobody = again(supervisor, planed, "--take-over", str(tmp_path / "nobody"))
    until(lambda: not nobody.alive(), "it ends")
    assert nobody.returncode == 1 and "no planed answers there" in nobody.log_tail()
    forwards_what_was_announced(planed, tmp_path)
