# SPDX-License-Identifier: BSD-3-Clause
"""Ports with several queue pairs, polled by several workers: every frame of every queue is accounted for."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from planed_rig import (
    CPU,
    MEMORY,
    OTHER_CPU,
    PATIENCE_S,
    Document,
    Planed,
    document,
    ethdev,
    load,
    planed_binary,
    stream,
    task,
    until,
)
from vhost_driver import (
    BUFFERS,
    GUEST_ADDRESS,
    MEMORY_BYTES,
    MQ,
    PROTOCOL_MQ,
    RECEIVEQ,
    RING_SIZE,
    TRANSMITQ,
    VhostDriver,
)

from planebench.host.process import Supervisor
from planebench.planed.client import RpcError

pytestmark = pytest.mark.dataplane

QUEUES = 4
FLAT_OUT: Document = {"flat_out": True}
PACED: Document = {"rate_pps": 5_000}
BIG = {**MEMORY, "size_mb": 256, "mbuf_count": 16383}
"""Rings of all queues full of buffers, and eight generators with pools of their own."""
RECONNECTS = 6
VIRTIO: Document = {"kind": "virtio-user"}
MEMIF_SERVER: Document = {"kind": "memif-server"}
MEMIF_CLIENT: Document = {"kind": "memif-client"}


@pytest.fixture(scope="module")
def guest_running(supervisor: Supervisor) -> Planed:
    return Planed(supervisor, "mqguest", document("mqguest", memory=BIG))


@pytest.fixture
def guest(guest_running: Planed) -> Iterator[Planed]:
    """A planed that plays the guests: drivers, generators and monitors."""
    yield guest_running
    guest_running.apply(memory=BIG)


@pytest.fixture(scope="module")
def switch_running(supervisor: Supervisor) -> Planed:
    return Planed(supervisor, "mqswitch", document("mqswitch", memory=BIG))


@pytest.fixture
def switch(switch_running: Planed) -> Iterator[Planed]:
    """A planed with the ports a and b, and a patch for each of their queues: even ones polled by w0, odd ones by w1."""
    yield switch_running
    switch_running.apply(memory=BIG)


def start_switch(
    switch: Planed,
    backends: tuple[str, str] = ("planed", "planed"),
    queues: int = QUEUES,
    kind: str = "vhost-user",
    **keys: Any,
) -> None:
    switch.wires = tuple(
        {
            "name": name,
            "kind": kind,
            "path": str(switch.workdir / f"{name}.sock"),
            "backend": backend,
            "queues": queues,
            **keys,
        }
        for name, backend in zip("ab", backends, strict=True)
    )
    patches = [task(f"sw{queue}", "patch", "a", "b", queue=queue) for queue in range(queues)]
    switch.apply(switch.wires, patches, memory=BIG, workers=two_workers(patches))


def two_workers(tasks: list[Document]) -> list[Document]:
    names = [task["name"] for task in tasks]
    return [
        {"name": f"w{number}", "cpu": cpu, "tasks": names[number::2]} for number, cpu in enumerate((CPU, OTHER_CPU))
    ]


def join(switch: Planed, guest: Planed, driven: tuple[int, int] = (QUEUES, QUEUES), end: Document = VIRTIO) -> None:
    """Drivers v0 and v1 with so many queues; on each a monitor and a generator, whose stream tells port and queue."""
    paths = [wire["path"] for wire in switch.wires]
    guest.wires = tuple(
        {"name": f"v{number}", "path": path, "queues": driven[number], **end} for number, path in enumerate(paths)
    )
    start_guest(switch, guest, driven)


def start_guest(switch: Planed, guest: Planed, driven: tuple[int, int]) -> None:
    ends = [
        task(f"{kind[:3]}{end}-{queue}", kind, f"v{end}", queue=queue, **_stream(kind, end, queue))
        for end in (0, 1)
        for queue in range(driven[end])
        for kind in ("monitor", "generator")
    ]
    guest.apply(guest.wires, ends, cpu=OTHER_CPU, memory=BIG)
    guest.links_up()
    switch.links_up()


def _stream(kind: str, end: int, queue: int) -> Document:
    return {"stream": end * QUEUES + queue} if kind == "generator" else {}


def generators(driven: tuple[int, int] = (QUEUES, QUEUES)) -> list[str]:
    return [f"gen{end}-{queue}" for end in (0, 1) for queue in range(driven[end])]


def ports(planed: Planed) -> Document:
    return {port["name"]: port for port in planed.call("stats.get")["ports"]}


def send(switch: Planed, guest: Planed, names: list[str], epoch: int = 1, **rate: Any) -> tuple[Document, Document]:
    """Send from these generators; what the switch and the guests counted."""
    guest.send(*(load(name, 64, **rate) for name in names), epoch=epoch, clear=switch)
    return switch.settled(), guest.settled()


def assert_every_queue(switch: Planed, guest: Planed, epoch: int = 1, **rate: Any) -> None:
    """What is sent on a queue comes out on that queue, once and in order, or was counted as dropped there."""
    middle, there = send(switch, guest, generators(), epoch, **rate)
    counted = ports(switch)
    for queue in range(QUEUES):
        patch = middle[f"sw{queue}"]
        assert patch["worker"] == f"w{queue % 2}"
        assert patch["rx_packets"] == sum(there[f"gen{end}-{queue}"]["tx_packets"] for end in (0, 1))
        assert patch["rx_packets"] == patch["tx_packets"] + patch["drops"]["tx_full"]
        for sender, receiver in ((0, 1), (1, 0)):
            sent = there[f"gen{sender}-{queue}"]["tx_packets"]
            lost = patch["drops_by_port"]["ab"[receiver]]["tx_full"]
            monitor = there[f"mon{receiver}-{queue}"]
            came = stream(monitor, sender * QUEUES + queue)
            assert came["forwarded_packets"] == monitor["rx_packets"] == sent - lost
            assert (came["duplicate_packets"], came["reordered_packets"], came["corrupt_packets"]) == (0, 0, 0)
            assert counted["ab"[sender]]["queues"][queue]["rx_packets"] == sent > 0
            assert counted["ab"[receiver]]["queues"][queue]["tx_packets"] == sent - lost
            assert counted["ab"[receiver]]["queues"][queue].get("tx_full", lost) == lost
            if rate == PACED:
                assert lost == 0
    ends = ports(guest)
    for end in (0, 1):
        for queue, counts in enumerate(ends[f"v{end}"]["queues"]):
            assert counts["rx_packets"] == there[f"mon{end}-{queue}"]["rx_packets"]
            assert counts["tx_packets"] == there[f"gen{end}-{queue}"]["tx_packets"]
            refused = there[f"gen{end}-{queue}"]["generator"]["refused_packets"]
            assert counts.get("tx_full", refused) == refused
    for port in (*counted.values(), *ends.values()):
        for key in ("rx_packets", "tx_packets"):
            assert port[key] == sum(queue[key] for queue in port["queues"])


@pytest.mark.parametrize("backends", [("planed", "planed"), ("planed", "dpdk"), ("dpdk", "dpdk")])
def test_every_frame_of_every_queue(switch: Planed, guest: Planed, backends: tuple[str, str]) -> None:
    start_switch(switch, backends)
    join(switch, guest)
    for epoch, rate in enumerate((PACED, FLAT_OUT), start=1):
        assert_every_queue(switch, guest, epoch, **rate)


def test_memif_clients_that_exchange_buffers(switch: Planed, guest: Planed) -> None:
    """Patches of a switch with zero_copy: all queues share one pool of buffers."""
    start_switch(switch, ("planed", "planed"), kind="memif-client", zero_copy=True)
    join(switch, guest, end=MEMIF_SERVER)
    for epoch, rate in enumerate((PACED, FLAT_OUT), start=1):
        assert_every_queue(switch, guest, epoch, **rate)


def test_only_clients_with_zero_copy_exchange_buffers(switch: Planed, guest: Planed) -> None:
    """Only one of two clients has zero_copy: the patch copies the frames between them and counts each one."""
    start_switch(switch, ("planed", "planed"), kind="memif-client")
    switch.wires = ({**switch.wires[0], "zero_copy": True}, switch.wires[1])
    switch.apply((), memory=BIG)
    patches = [task(f"sw{queue}", "patch", "a", "b", queue=queue) for queue in range(QUEUES)]
    switch.apply(switch.wires, patches, memory=BIG, workers=two_workers(patches))
    join(switch, guest, end=MEMIF_SERVER)
    assert_every_queue(switch, guest, **FLAT_OUT)


def test_a_port_of_one_queue_shows_none(planed: Planed) -> None:
    wire = {"kind": "vhost-user", "path": str(planed.workdir / "a.sock")}
    planed.apply([{"name": "a", **wire}], [task("mon", "monitor", "a")])
    assert "queues" not in ports(planed)["a"]
    with VhostDriver(Path(wire["path"])) as driver:
        assert not driver.features & MQ
        assert not driver.protocol_features() & PROTOCOL_MQ
        assert driver.queue_num() == 1


@pytest.mark.parametrize("queue_size", [64, 256])
@pytest.mark.parametrize("packed", [0, 1])
def test_a_driver_that_enables_fewer(switch: Planed, guest: Planed, packed: int, queue_size: int) -> None:
    """It sets all rings up and enables half of the pairs: what is for the others is dropped, by their names."""
    driven = (QUEUES, QUEUES // 2)
    start_switch(switch)
    devices = [
        f"net_virtio_user_{packed}{queue_size}{end},path={wire['path']},queues={QUEUES},"
        f"queue_size={queue_size},packed_vq={packed}"
        for end, wire in enumerate(switch.wires)
    ]
    guest.wires = tuple(
        ethdev(f"v{end}", device, queues=driven[end], ring_size=queue_size) for end, device in enumerate(devices)
    )
    start_guest(switch, guest, driven)
    assert_half_is_dropped(switch, guest, driven)


def test_a_driver_that_has_fewer(switch: Planed, guest: Planed) -> None:
    """It sets up half of the rings, and the rest the next time."""
    driven = (QUEUES, QUEUES // 2)
    start_switch(switch)
    for half in (driven, (QUEUES, QUEUES), driven):
        join(switch, guest, half)
        if half == driven:
            assert_half_is_dropped(switch, guest, half)
        else:
            assert_every_queue(switch, guest, **FLAT_OUT)
        guest.apply(memory=BIG)
        until(lambda: not any(port["link_up"] for port in ports(switch).values()), "the switch sees them go")


def assert_half_is_dropped(switch: Planed, guest: Planed, driven: tuple[int, int]) -> None:
    middle, there = send(switch, guest, generators(driven), **PACED)
    counted = ports(switch)
    for queue in range(QUEUES):
        sent = there[f"gen0-{queue}"]["tx_packets"]
        lost = 0 if queue < driven[1] else sent
        assert middle[f"sw{queue}"]["drops_by_port"] == {"a": {"tx_full": 0}, "b": {"tx_full": lost}}
        assert counted["a"]["queues"][queue]["rx_packets"] == sent > 0
        assert counted["b"]["queues"][queue]["tx_full"] == lost
        if queue < driven[1]:
            assert there[f"mon1-{queue}"]["rx_packets"] == sent
    assert counted["b"]["link_up"] and counted["b"]["broken_rings"] == 0


def handles(planed: Planed) -> tuple[int, int]:
    """Open files and shared mappings of the process."""
    process = Path("/proc") / str(planed.process.pid)
    return len(list((process / "fd").iterdir())), (process / "maps").read_text().count("memfd:")


def flood(switch: Planed, guest: Planed) -> None:
    """Traffic on every queue for longer than anybody waits; returns while it flows through both workers."""
    switch.call("stats.clear")
    guest.start_traffic(*(load(name, **FLAT_OUT) for name in generators()), duration_s=PATIENCE_S)
    until(lambda: all(patch["tx_packets"] > 100 for patch in switch.tasks().values()), "frames flow on every queue")


def leave(switch: Planed, before: tuple[int, int]) -> None:
    until(lambda: not any(port["link_up"] for port in ports(switch).values()), "the switch sees them go")
    until(lambda: handles(switch) == before, f"it has {before} handles again")


def test_drivers_that_come_and_go_in_full_flight(switch: Planed, guest: Planed) -> None:
    start_switch(switch)
    before = handles(switch)
    for _ in range(RECONNECTS):
        join(switch, guest)
        flood(switch, guest)
        guest.apply(memory=BIG)
        leave(switch, before)
    join(switch, guest)
    assert_every_queue(switch, guest, **FLAT_OUT)


def test_guests_that_are_killed_in_full_flight(switch: Planed, guest: Planed, supervisor: Supervisor) -> None:
    start_switch(switch)
    before = handles(switch)
    for number in range(3):
        victim = Planed(supervisor, f"mqvictim{number}", document(f"mqvictim{number}", memory=BIG))
        join(switch, victim)
        flood(switch, victim)
        os.kill(victim.process.pid, signal.SIGKILL)
        leave(switch, before)
    join(switch, guest)
    assert_every_queue(switch, guest, **FLAT_OUT)


@pytest.mark.parametrize(
    ("kind", "end", "keys"),
    [
        ("memif-server", MEMIF_CLIENT, {}),
        pytest.param("memif-client", MEMIF_SERVER, {}, marks=pytest.mark.all),
        ("memif-client", MEMIF_SERVER, {"zero_copy": True}),
    ],
)
def test_ends_of_memifs_that_are_killed_in_full_flight(
    switch: Planed, guest: Planed, supervisor: Supervisor, kind: str, end: Document, keys: Document
) -> None:
    start_switch(switch, ("planed", "planed"), kind=kind, **keys)
    before = handles(switch)
    name = f"mqvictim-{kind}{len(keys)}"
    victim = Planed(supervisor, name, document(name, memory=BIG))
    join(switch, victim, end=end)
    flood(switch, victim)
    os.kill(victim.process.pid, signal.SIGKILL)
    victim.process.wait(PATIENCE_S)  # its socket is another's when it is dead
    leave(switch, before)
    join(switch, guest, end=end)
    assert_every_queue(switch, guest, **FLAT_OUT)


LIES = {
    "more buffers available than": lambda guest, ring: guest.set_index(ring, RING_SIZE + 2),
    "outside of the shared memory": lambda guest, ring: guest.offer(ring, 0, GUEST_ADDRESS + MEMORY_BYTES - 63, 64),
}
SECOND_TRANSMITQ = 2 + TRANSMITQ


def test_a_lie_in_the_second_pair_stops_that_ring_alone(planed: Planed) -> None:
    """The port is down and the log names the queue; its first pair goes on, polled by the other worker."""
    path = planed.workdir / "c.sock"
    wires = [
        {"name": name, "kind": "vhost-user", "path": str(planed.workdir / f"{name}.sock"), "queues": 2} for name in "cd"
    ]
    patches = [task(f"sw{queue}", "patch", "c", "d", queue=queue) for queue in (0, 1)]
    planed.apply(wires, patches, workers=two_workers(patches))
    for count, (words, lie) in enumerate(LIES.items(), start=1):
        with VhostDriver(path, pairs=2) as liar:
            until(lambda: ports(planed)["c"]["link_up"], "the liar is connected")
            for ring in (TRANSMITQ, SECOND_TRANSMITQ):
                liar.offer(ring, 5, GUEST_ADDRESS + BUFFERS, 72)
                taken(liar, ring, 1)
            lie(liar, SECOND_TRANSMITQ)
            until(lambda: not ports(planed)["c"]["link_up"], "the lie is found")
            assert _warnings(planed, words) == ["transmit ring of queue 1"]
            liar.offer(TRANSMITQ, 6, GUEST_ADDRESS + BUFFERS, 72)
            taken(liar, TRANSMITQ, 2)
            assert liar.used(SECOND_TRANSMITQ) == 1
            counted = ports(planed)
            assert (counted["c"]["broken_rings"], counted["d"]["broken_rings"]) == (count, 0)
        until(lambda: not ports(planed)["c"]["link_up"], "it is gone")


def _warnings(planed: Planed, words: str) -> list[str]:
    """Which rings of port c the log says were stopped for this reason."""
    return re.findall(
        rf"port c: the guest's (\w+ ring of queue \d+) is stopped: [^;]*{words}", planed.process.log_tail()
    )


def taken(guest: VhostDriver, ring: int, count: int) -> None:
    until(lambda: guest.used(ring) == count, f"the device has given back {count} buffers of ring {ring}")


def test_pairs_that_were_not_negotiated_are_not_served(planed: Planed) -> None:
    """Without VIRTIO_NET_F_MQ there is one pair, whatever the driver sets up (virtio 1.2 s5.1.2)."""
    path = planed.workdir / "c.sock"
    wires = [{"name": "c", "kind": "vhost-user", "path": str(path), "queues": 2}]
    monitors = [task(f"mon{queue}", "monitor", "c", queue=queue) for queue in (0, 1)]
    planed.apply(wires, monitors, workers=two_workers(monitors))
    with VhostDriver(path, pairs=2, multiqueue=False) as driver:
        until(lambda: ports(planed)["c"]["link_up"], "it is connected")
        for ring in (SECOND_TRANSMITQ, TRANSMITQ):
            driver.offer(ring, 0, GUEST_ADDRESS + BUFFERS, 72)
        taken(driver, TRANSMITQ, 1)
        driver.settle()
        assert driver.used(SECOND_TRANSMITQ) == 0
        assert [planed.tasks()[f"mon{queue}"]["rx_packets"] for queue in (0, 1)] == [1, 0]


def test_the_device_says_how_many_pairs_it_has(planed: Planed) -> None:
    """Nor can anybody leave files behind by asking."""
    path = planed.workdir / "c.sock"
    planed.apply([{"name": "c", "kind": "vhost-user", "path": str(path), "queues": 3}])
    before = handles(planed)
    for _ in range(3):
        with VhostDriver(path, pairs=2) as driver:
            assert driver.features & MQ
            assert driver.protocol_features() & PROTOCOL_MQ
            assert driver.queue_num() == 3
            driver.offer(RECEIVEQ, 0, GUEST_ADDRESS + BUFFERS, 72)
            driver.queue_num_with_a_file()
        until(lambda: handles(planed) == before, f"it has {before} handles again")


def test_more_pairs_than_the_port_has(switch: Planed, guest: Planed) -> None:
    """A driver that did not ask: the first are served, and one line says that the others are not."""
    start_switch(switch, queues=2)
    wires = [
        ethdev(f"v{end}", f"net_virtio_user_more{end},path={wire['path']},queues={QUEUES}", queues=QUEUES)
        for end, wire in enumerate(switch.wires)
    ]
    ends = [task("mon", "monitor", "v1", queue=1), task("gen", "generator", "v0", queue=1)]
    guest.apply(wires, ends, cpu=OTHER_CPU, memory=BIG)
    guest.links_up()
    switch.links_up()
    lines = [f"port {port}: its driver has enabled ring 4; queues is 2" for port in ("a", "b")]
    # A link is up before its last ring is; rings are enabled in order.
    until(lambda: all(line in switch.process.log_tail() for line in lines), "all pairs are enabled")
    there = guest.send(load("gen", **PACED))
    assert there["mon"]["rx_packets"] == there["gen"]["tx_packets"] > 0
    assert [switch.process.log_tail().count(line) for line in lines] == [1, 1]


def test_queues_are_refused_by_what_has_fewer(planed: Planed, other: Planed) -> None:
    path = str(planed.workdir / "a.sock")
    planed.apply([{"name": "a", "kind": "vhost-user", "path": path}])
    with pytest.raises(RpcError, match="another kind, backend, path, device, ring_size, queues, mac, clock or limit"):
        planed.apply([{"name": "a", "kind": "vhost-user", "path": path, "queues": 2}])
    with pytest.raises(RpcError, match="port v cannot be opened"):
        other.apply([{"name": "v", "kind": "virtio-user", "path": path, "queues": 4}])
    assert "the device has one queue pair only" in other.process.log_tail()


def test_the_example_is_valid(tmp_path: Path) -> None:
    text = (Path(__file__).parents[2] / "docs/examples/two-workers.json").read_text(encoding="utf-8")
    example = tmp_path / "two-workers.json"  # in a folder that is there, on the CPUs of this machine
    example.write_text(text.replace("/run/planed", str(tmp_path)).replace('"cpu": 1', f'"cpu": {OTHER_CPU}'))
    done = subprocess.run([planed_binary(), "--check", example], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_device_of_dpdk_with_queues(planed: Planed) -> None:
    """With RSS, where it can: DPDK's null device says so, and sends nowhere."""
    sink = ethdev("e", "net_null7,no-rx=1", queues=2)
    tasks = [task(f"gen{queue}", "generator", "e", queue=queue, stream=queue) for queue in (0, 1)]
    planed.apply([sink], tasks, workers=two_workers(tasks))
    planed.call("stats.clear")
    sent = planed.send(load("gen0", **PACED), load("gen1", **FLAT_OUT))
    queues = ports(planed)["e"]["queues"]
    assert [queue["tx_packets"] for queue in queues] == [sent[f"gen{queue}"]["tx_packets"] for queue in (0, 1)]
    assert all("tx_full" not in queue for queue in queues)
