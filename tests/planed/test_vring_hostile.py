# SPDX-License-Identifier: BSD-3-Clause
"""A guest that lies, in its rings or to the vhost library: it is stopped, alone."""

from __future__ import annotations

import os
import random
import resource
import signal
import socket
import stat
import struct
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest
import vhost_driver
from planed_rig import CPU, OTHER_CPU, Planed, load, stream, task, until, virtio
from vhost_driver import (
    BUFFERS,
    GUEST_ADDRESS,
    MEMORY_BYTES,
    RECEIVEQ,
    RING_SIZE,
    SET_VRING_CALL,
    TABLE,
    TRANSMITQ,
    WRITABLE,
    VhostDriver,
)
from vring_rig import FLOOD_S, PACED, device, handles, join, ports

from planebench.host.process import Supervisor
from planebench.planed.client import RpcError

pytestmark = pytest.mark.dataplane


Lie = Callable[[VhostDriver], None]
NEXT, INDIRECT = 1, 4
HERE = GUEST_ADDRESS + BUFFERS
END = GUEST_ADDRESS + MEMORY_BYTES


def taken(guest: VhostDriver, count: int, queue: int = TRANSMITQ) -> None:
    until(lambda: guest.used(queue) == count, f"the device has given back {count} buffers")


def _indirect(address: int, length: int, *entry: int) -> Lie:
    """A table of one entry, if any, and the descriptor that points to it."""

    def lie(guest: VhostDriver) -> None:
        if entry:
            guest.write(TABLE, struct.pack("<QIHH", *entry))
        guest.offer(TRANSMITQ, 0, address, length, flags=INDIRECT)

    return lie


def _unknown_slot(guest: VhostDriver) -> None:
    """The descriptor of the next buffer has a number that there is not."""
    guest.write_entry(TRANSMITQ, 1, RING_SIZE)
    guest.set_index(TRANSMITQ, 2)


def _too_long_a_chain(guest: VhostDriver) -> None:
    for slot in range(RING_SIZE):
        guest.write_descriptor(TRANSMITQ, slot, HERE, 64, NEXT, (slot + 1) % RING_SIZE)
    guest.offer(TRANSMITQ, 0, HERE, 64, NEXT, 1)


OUTSIDE = "points outside of the shared memory"
CHAIN = "loops or is too long"
TABLES = "indirect table is empty, odd, nested, too long or chained"
DIRECTION = "writable where it must be"
BEYOND = "descriptor number is beyond the table"

LIES: dict[str, tuple[str, Lie]] = {
    "an index that jumps": ("more buffers available than", lambda it: it.set_index(TRANSMITQ, 1 + RING_SIZE + 1)),
    "an index that goes back": ("more buffers available than", lambda it: it.set_index(TRANSMITQ, 0)),
    "an unknown slot": (BEYOND, _unknown_slot),
    "a chain to an unknown slot": (BEYOND, lambda it: it.offer(TRANSMITQ, 0, HERE, 64, NEXT, RING_SIZE)),
    "a byte behind the memory": (OUTSIDE, lambda it: it.offer(TRANSMITQ, 0, END - 63, 64)),
    "before the memory": (OUTSIDE, lambda it: it.offer(TRANSMITQ, 0, GUEST_ADDRESS - 1, 64)),
    "the end of all addresses": (OUTSIDE, lambda it: it.offer(TRANSMITQ, 0, 2**64 - 1, 64)),
    "four gigabytes": (OUTSIDE, lambda it: it.offer(TRANSMITQ, 0, HERE, 2**32 - 1)),
    "a loop": (CHAIN, lambda it: it.offer(TRANSMITQ, 0, HERE, 64, NEXT, 0)),
    "too long a chain": (CHAIN, _too_long_a_chain),
    "no byte": ("chain of descriptors has no bytes", lambda it: it.offer(TRANSMITQ, 0, HERE, 0)),
    "writable": (DIRECTION, lambda it: it.offer(TRANSMITQ, 0, HERE, 64, WRITABLE)),
    "no table": (TABLES, _indirect(TABLE, 0)),
    "half an entry": (TABLES, _indirect(TABLE, 24)),
    "a table that is too long": (TABLES, _indirect(TABLE, 16 * (RING_SIZE + 1))),
    "a table in a table": (TABLES, _indirect(TABLE, 16, TABLE, 16, INDIRECT, 0)),
    "a table outside": (OUTSIDE, _indirect(END - 8, 16)),
    "an entry outside": (OUTSIDE, _indirect(TABLE, 16, END, 64, 0, 0)),
    "a receive buffer outside": (OUTSIDE, lambda it: it.offer(RECEIVEQ, 0, END - 8, 2048, WRITABLE)),
    "a receive buffer to read": (DIRECTION, lambda it: it.offer(RECEIVEQ, 0, HERE, 2048)),
}


@contextmanager
def traffic_beside(switch: Planed, guest: Planed, epoch: int) -> Iterator[None]:
    """Frames flow between c and d all the time, and each arrives, once, intact, in order, or was counted at its end.

    That a ring is full for a moment, because its reader waits for a CPU, is no fault.
    """
    switch.call("stats.clear")
    guest.start_traffic(*(load(f"gen{index}", **PACED) for index in (0, 1)), epoch=epoch, duration_s=FLOOD_S)
    until(lambda: switch.tasks()["beside"]["rx_packets"] > 0, "frames flow")
    yield
    assert guest.call("traffic.get")["running"]
    guest.call("traffic.stop")
    middle, there = switch.settled()["beside"], guest.settled()
    assert middle["rx_packets"] == sum(there[f"gen{end}"]["tx_packets"] for end in (0, 1)) > 0
    for sender, receiver in ((0, 1), (1, 0)):
        came = stream(there[f"mon{receiver}"], sender)
        lost = middle["drops_by_port"]["cd"[receiver]]["tx_full"]
        assert came["forwarded_packets"] == there[f"gen{sender}"]["tx_packets"] - lost > 0
        assert (came["duplicate_packets"], came["reordered_packets"], came["corrupt_packets"]) == (0, 0, 0)


def four_ports(switch: Planed, guest: Planed, **limits: object) -> tuple[Path, Path]:
    """A patch between a and b, for liars, and one between c and d, where the guest is. The paths of a and b.

    ``limits``: of the drivers of a and b.
    """
    paths = {name: switch.workdir / f"{name}.sock" for name in "abcd"}
    liars = [{**device(name, paths[name]), **limits} for name in "ab"]
    switch.wires = tuple(device(name, paths[name]) for name in "cd")
    tasks = [task("sw", "patch", "a", "b"), task("beside", "patch", "c", "d")]
    switch.apply([*liars, *switch.wires], tasks, cpu=CPU)
    join(switch, guest, "packed_vq=0,mrg_rxbuf=1")
    return paths["a"], paths["b"]


def link_up(switch: Planed, port: str) -> bool:
    return bool(ports(switch)[port]["link_up"])


def test_a_guest_that_lies_is_stopped_alone(planed: Planed, other: Planed) -> None:
    """Its port goes down, one line says why; guests beside it notice nothing; restarted, it may try again."""
    a, b = four_ports(planed, other)
    with VhostDriver(b) as mate:
        for epoch, (words, lie) in enumerate(LIES.values(), start=1):
            with traffic_beside(planed, other, epoch), VhostDriver(a) as liar:
                until(lambda: link_up(planed, "a"), "the liar is connected")
                liar.offer(TRANSMITQ, 5, HERE, 72)
                taken(liar, 1)
                lie(liar)
                mate.offer(TRANSMITQ, 0, HERE, 72)
                until(lambda: not link_up(planed, "a"), "the lie is found")
                assert planed.process.log_tail(1).count(words) == 1
                assert liar.used(TRANSMITQ) == 1 and liar.used(RECEIVEQ) == 0
            taken(mate, epoch)
    until(lambda: not link_up(planed, "b"), "the switch sees the mate go")
    assert all(port["link_up"] == (name in "cd") for name, port in ports(planed).items())


def test_a_guest_of_noise(planed: Planed, other: Planed) -> None:
    """All of its memory, rings included, is noise, and other noise all the time, through a hundred lives."""
    a, _ = four_ports(planed, other)
    noise = random.Random(4)
    with traffic_beside(planed, other, 1):
        for _ in range(100):
            with VhostDriver(a) as liar:
                liar.settle()
                for _ in range(20):
                    liar.write(GUEST_ADDRESS, noise.randbytes(BUFFERS))
                    liar.set_index(TRANSMITQ, liar.used(TRANSMITQ) + noise.randrange(RING_SIZE))


def test_memory_that_changes_while_frames_flow(planed: Planed) -> None:
    """The table is sent anew, larger and smaller, and the rings go on where they were."""
    wires = [device(name, planed.workdir / f"{name}.sock") for name in "ab"]
    planed.apply(wires, [task("sw", "patch", "a", "b")], cpu=CPU)
    with VhostDriver(Path(wires[0]["path"])) as guest:
        until(lambda: ports(planed)["a"]["link_up"], "the guest is connected")
        for number in range(200):
            guest.offer(TRANSMITQ, number % RING_SIZE, GUEST_ADDRESS + BUFFERS, 72)
            if number % 3 == 0:
                guest.share_memory(MEMORY_BYTES // (1 + number % 2))
            if number % RING_SIZE == RING_SIZE - 1:
                guest.settle()
                taken(guest, number + 1)
        taken(guest, 200)
        counted = planed.tasks()["sw"]
        assert counted["rx_packets"] == counted["drops"]["tx_full"] == 200, "nobody is at b"
        assert ports(planed)["a"]["link_up"]


def _intrude(path: Path) -> None:
    """Set up rings on a port that another driver has: nothing is read or written there."""
    with VhostDriver(path, set_up=False) as intruder:
        intruder.fill_receiveq()
        intruder.offer(TRANSMITQ, 0, HERE, 72)
        with suppress(ConnectionError):
            intruder.begin(1)
        assert intruder.hung_up()
        assert intruder.used(RECEIVEQ) == intruder.used(TRANSMITQ) == 0


def test_a_second_driver_is_refused_while_the_first_is_there(planed: Planed, other: Planed) -> None:
    """Every frame of the first arrives meanwhile."""
    four_ports(planed, other)
    path = Path(planed.wires[0]["path"])
    with traffic_beside(planed, other, 1):
        for _ in range(20):
            _intrude(path)
        probes = [VhostDriver(path, set_up=False) for _ in range(10)]
        for probe in probes[-3:]:
            probe.settle()
    assert ports(planed)["c"]["refused_messages"] == {"taken": 20, "idle": 7}
    for probe in probes:
        probe.close()
    assert planed.process.log_tail().count("another one has the port, and is still connected") == 8


def test_a_driver_that_has_stopped_its_rings_keeps_the_port(planed: Planed) -> None:
    """As a guest that is reset does: the port is its own until its connection ends."""
    path = _limited_port(planed)
    with VhostDriver(path) as first:
        until(lambda: link_up(planed, "a"), "the first is connected")
        for queue in (RECEIVEQ, TRANSMITQ):
            first.stop_ring(queue)
        until(lambda: not link_up(planed, "a"), "its rings are stopped")
        _intrude(path)
        for queue in (RECEIVEQ, TRANSMITQ):
            first.set_up_ring(queue)
        first.offer(TRANSMITQ, 0, HERE, 72)
        taken(first, 1)


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL])
def test_a_driver_that_restarts_is_served_at_once(planed: Planed, supervisor: Supervisor, end: int) -> None:
    """The connection of one that was killed is closed by the kernel. No driver is refused on the way."""
    path = _limited_port(planed, connections_per_s=1000)
    for number in range(5):
        process = supervisor.spawn(
            f"driver-{end}-{number}", [sys.executable, vhost_driver.__file__, str(path)], cpus=frozenset({CPU})
        )
        until(lambda: link_up(planed, "a"), "a driver is connected")
        os.kill(process.pid, end)
        process.wait()
        with VhostDriver(path) as following:
            following.offer(TRANSMITQ, 0, HERE, 72)
            taken(following, 1)
    assert ports(planed)["a"]["refused_messages"] == {}


def test_our_own_driver_waits_for_the_port(planed: Planed, other: Planed) -> None:
    """It is refused by name; once the first has gone it gets the port."""
    path = _limited_port(planed)
    wires, tasks = [virtio("v0", path)], [task("mon", "monitor", "v0")]
    with VhostDriver(path):
        until(lambda: link_up(planed, "a"), "the first is connected")
        with pytest.raises(RpcError, match="port v0 cannot be opened"):
            other.apply(wires, tasks, cpu=OTHER_CPU)
    other.apply(wires, tasks, cpu=OTHER_CPU)
    until(lambda: link_up(planed, "a"), "it has the port")


def _grow_ring(guest: VhostDriver) -> None:
    guest.share_memory(MEMORY_BYTES // 8)
    guest.resize_ring(TRANSMITQ, 32768)


LIES_TO_THE_LIBRARY: dict[str, Lie] = {
    "a ring that runs out of the memory": _grow_ring,
}


@pytest.mark.parametrize("lie", LIES_TO_THE_LIBRARY.values(), ids=LIES_TO_THE_LIBRARY)
def test_what_the_library_lets_through_is_found(planed: Planed, other: Planed, lie: Lie) -> None:
    """DPDK's library keeps such a connection: the port does not; the next driver is served."""
    path, _ = four_ports(planed, other)
    with traffic_beside(planed, other, 1):
        for liar in (True, False):
            with VhostDriver(path) as guest:
                until(lambda: link_up(planed, "a"), "the guest is connected")
                guest.offer(TRANSMITQ, 0, HERE, 72)
                taken(guest, 1)
                if liar:
                    lie(guest)
                    guest.settle()
                    until(lambda: not link_up(planed, "a"), "it is found out")
            until(lambda: not link_up(planed, "a"), "the switch sees it go")
        assert planed.tasks()["sw"]["rx_packets"] == 2


RUDE: dict[str, Lie] = {
    "half a header": lambda it: it.send_bytes(b"\x05\0\0\0\x01\0"),
    "a header without its payload": lambda it: it.send_bytes(struct.pack("<III", 5, 1, 40)),
    "an unknown message": lambda it: it.send_bytes(struct.pack("<III", 999, 1, 0)),
    "a message that is too long": lambda it: it.send_bytes(struct.pack("<III", 5, 1, 2**31)),
    "a message of another version": lambda it: it.send_bytes(struct.pack("<III", 5, 2, 8) + bytes(8)),
    "a table of a thousand regions": lambda it: it.send_bytes(struct.pack("<IIIII", 5, 1, 8, 1000, 0)),
    "a table without a file": lambda it: it.send_bytes(struct.pack("<IIIIIQQQQ", 5, 1, 40, 1, 0, 0, 4096, 0, 0)),
    "a ring without a number": lambda it: it.send_bytes(struct.pack("<IIIII", 8, 1, 8, 77, 16)),
    "a ring of no size": lambda it: it.resize_ring(TRANSMITQ, 0),
    "nothing at all": lambda it: None,
}


def test_a_driver_that_breaks_the_protocol(planed: Planed, other: Planed) -> None:
    """Whatever the library makes of it, in full flight: it goes, guests beside it stay, the next one is served."""
    path, _ = four_ports(planed, other)
    for epoch, message in enumerate(RUDE.values(), start=1):
        with traffic_beside(planed, other, epoch):
            with VhostDriver(path) as guest:
                guest.settle()
                guest.set_index(TRANSMITQ, RING_SIZE)
                message(guest)
            with VhostDriver(path) as guest:
                until(lambda: link_up(planed, "a"), "the next one is connected")
                guest.offer(TRANSMITQ, 0, HERE, 72)
                taken(guest, 1)
            until(lambda: not link_up(planed, "a"), "the switch sees it go")


def _table(size_bytes: int, offset: int = 0, regions: int = 1) -> bytes:
    region = struct.pack("<QQQQ", GUEST_ADDRESS, size_bytes, 0, offset)
    return struct.pack("<II", regions, 0) + region * regions


REFUSED: dict[str, tuple[int, bytes, int]] = {
    "SET_LOG_BASE": (6, bytes(16), 1),
    "SET_LOG_FD": (7, b"", 1),
    "SEND_RARP": (19, bytes(8), 0),
    "NET_SET_MTU": (20, bytes(8), 0),
    "SET_BACKEND_REQ_FD": (21, b"", 1),
    "IOTLB_MSG": (22, bytes(32), 0),
    "GET_CONFIG": (24, bytes(12), 0),
    "POSTCOPY_ADVISE": (28, b"", 0),
    "POSTCOPY_ADVISE with files": (28, b"", 8),
    "POSTCOPY_LISTEN": (29, b"", 0),
    "POSTCOPY_END": (30, b"", 0),
    "GET_INFLIGHT_FD": (31, struct.pack("<QQHHI", 1 << 36, 0, 2, 256, 0), 0),
    "SET_INFLIGHT_FD": (32, struct.pack("<QQHHI", 1 << 36, 0, 2, 256, 0), 1),
    "a region that is longer than its file": (5, _table(MEMORY_BYTES + 1), 1),
    "a region behind the end of its file": (5, _table(4096, MEMORY_BYTES), 1),
    "a region whose end wraps": (5, _table(4096, 2**64 - 4095), 1),
    "an empty region": (5, _table(0), 1),
    "fewer files than regions": (5, _table(4096, regions=2), 1),
    "more files than regions": (5, _table(4096), 2),
    "a question with a file": (1, b"", 1),
    "a ring without its file": (13, struct.pack("<Q", 0), 0),
    "a ring with a file that is not there": (13, struct.pack("<Q", 0x100), 1),
    "a ring that no port has": (12, struct.pack("<Q", 32), 1),
    "protocol features that are not offered": (16, struct.pack("<Q", 1 << 12), 0),
}


def test_what_is_not_offered_is_refused(planed: Planed) -> None:
    """The connection is ended before the library has seen the message, and no descriptor of it is left."""
    wires = [device(name, planed.workdir / f"{name}.sock") for name in "ab"]
    planed.apply(wires, [task("sw", "patch", "a", "b")], cpu=CPU)
    before, log_begin = handles(planed), planed.process.log_path.stat().st_size
    for name, (request, payload, files) in REFUSED.items():
        with VhostDriver(Path(wires[0]["path"])) as guest:
            until(lambda: ports(planed)["a"]["link_up"], "the guest is connected")
            guest.send_message(request, payload, *[guest.memory_file] * files)
            assert guest.hung_up(), name
            until(lambda: handles(planed) == before, f"{name}: nothing is left of it")
    assert planed.process.log_path.read_text()[log_begin:].count("was refused") == 8, "a port says so eight times"
    counted = ports(planed)["a"]["refused_messages"]
    assert sum(counted.values()) == len(REFUSED)
    assert counted["not_offered"] == 13 and counted["memory_end"] == 4
    assert ports(planed)["b"]["refused_messages"] == {}


def test_a_port_has_four_connections(planed: Planed) -> None:
    """For a fifth the one goes that was silent longest, but never the driver."""
    path = _limited_port(planed)
    with VhostDriver(path) as driver, ExitStack() as stack:
        driver.settle()
        silent, *others = [stack.enter_context(VhostDriver(path, set_up=False)) for _ in range(3)]
        for guest in (silent, *others):
            guest.settle()
        before = handles(planed)
        fifth = stack.enter_context(VhostDriver(path, set_up=False))
        fifth.settle()
        assert silent.hung_up()
        for guest in (driver, *others):
            guest.settle()
        assert handles(planed) == before
    assert ports(planed)["a"]["refused_messages"] == {"idle": 1}


@pytest.mark.all
def test_half_a_message_may_end_after_the_port_was_stopped(planed: Planed) -> None:
    """A message has 5 s."""
    path, message = _limited_port(planed), struct.pack("<III", 1, 1, 0)  # VHOST_USER_GET_FEATURES
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as guest:
        guest.settimeout(10)
        guest.connect(str(path))
        guest.send(message[:6])
        time.sleep(0.5)  # it is read by then, as nothing tells
        planed.process.pause()
        time.sleep(5.5)
        planed.process.resume()
        guest.send(message[6:])
        assert guest.recv(64)[:4] == message[:4]
    assert ports(planed)["a"]["refused_messages"] == {}


def test_a_port_waits_for_descriptors(planed: Planed) -> None:
    """Without one for who connects the caller waits; it is served once there is one."""
    wires = [device(name, planed.workdir / f"{name}.sock") for name in "ab"]
    planed.apply(wires, [task("sw", "patch", "a", "b")], cpu=CPU)
    limits = resource.prlimit(planed.process.pid, resource.RLIMIT_NOFILE)
    numbers = {int(it.name) for it in Path(f"/proc/{planed.process.pid}/fd").iterdir()}
    lowest_free = next(number for number in range(len(numbers) + 1) if number not in numbers)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as caller:
        resource.prlimit(planed.process.pid, resource.RLIMIT_NOFILE, (lowest_free, limits[1]))
        caller.settimeout(0.5)
        caller.connect(wires[0]["path"])
        caller.sendall(struct.pack("<III", 1, 1, 0))
        with pytest.raises(TimeoutError):
            caller.recv(1)
        resource.prlimit(planed.process.pid, resource.RLIMIT_NOFILE, limits)
        caller.settimeout(10)
        assert len(caller.recv(20, socket.MSG_WAITALL)) == 20


def _slow_to_close() -> tuple[socket.socket, socket.socket]:
    """A connection that lingers: who closes its last descriptor waits for a reader that does not read."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        slow = socket.create_connection(listener.getsockname())
        reader, _ = listener.accept()
    slow.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 600))
    slow.setblocking(False)
    with suppress(BlockingIOError):
        while True:
            slow.send(bytes(1 << 16))
    return slow, reader


@pytest.mark.parametrize("end", ["apply", "sigterm"])
def test_no_driver_holds_up_the_end(supervisor: Supervisor, end: str) -> None:
    """Sixteen ports with half messages, replies that nobody reads, and a descriptor that takes ten minutes to close."""
    planed = Planed(supervisor, f"ends_by_{end}")
    wires = [device(f"p{number}", planed.workdir / f"{number}.sock") for number in range(16)]
    tasks = [task(f"sw{number}", "patch", f"p{number}", f"p{number + 1}") for number in range(0, 16, 2)]
    planed.apply(wires, tasks, cpu=CPU)
    with ExitStack() as stack:
        halves = [_three_that_stall(stack, Path(wire["path"])) for wire in wires]
        before = time.monotonic()
        if end == "sigterm":
            os.kill(planed.process.pid, signal.SIGTERM)
            assert planed.process.wait(60) == 0
        else:
            planed.apply()
        assert time.monotonic() - before < END_S
        assert planed.process.log_path.read_text(encoding="utf-8").count("it is left behind") == len(wires)
        assert all(half.hung_up() for half in halves)


END_S = 20.0
"""A port waits two seconds for its drivers, and all of them together wait no longer: one by one, they take 32."""


def _three_that_stall(stack: ExitStack, path: Path) -> VhostDriver:
    """Connect drivers that stall in three ways; return the one that is to be told of the end."""
    half, silent, last = (stack.enter_context(VhostDriver(path, set_up=not number)) for number in range(3))
    half.send_bytes(struct.pack("<III", 5, 1, 40))
    silent.send_bytes(struct.pack("<III", 1, 1, 0) * 50)
    slow, reader = _slow_to_close()
    stack.enter_context(reader)
    message = struct.pack("<IIIQ", 13, 1, 8, 0)
    last.send_bytes(message[:6], slow.fileno())
    slow.close()  # before the message is whole: else planed may close the descriptor before us, and we would wait
    last.send_bytes(message[6:])
    assert last.hung_up()
    return half


@pytest.mark.parametrize("hides", [False, True])
def test_a_driver_that_stops_a_worker(planed: Planed, other: Planed, hides: bool) -> None:
    """It makes its eventfd block again, fills it, and has itself called: it is ended, its neighbours lose no frame.

    ``hides``: once the worker stands, the eventfd looks as if it had never been made to block.
    """
    path, _ = four_ports(planed, other)
    with traffic_beside(planed, other, 1), VhostDriver(path) as liar:
        until(lambda: link_up(planed, "a"), "the liar is connected")
        liar.make_calls_block(RECEIVEQ, TRANSMITQ)
        liar.offer(TRANSMITQ, 0, HERE, 72)
        if hides:
            taken(liar, 1)
            time.sleep(STAND_S)
            for event in liar.calls:
                os.set_blocking(event, False)
        assert liar.hung_up()
        until(lambda: not link_up(planed, "a"), "its port is down")
        assert ports(planed)["a"]["refused_messages"] == {"blocking_eventfd": 1}


STAND_S = 0.005
"""Enough for a worker to stand in a call; far less than is between two looks at what blocks."""


def test_a_driver_that_has_itself_called_by_the_listener(planed: Planed, other: Planed) -> None:
    """A ring that is given back is called, too: whoever does that, the listener goes on."""
    a, b = four_ports(planed, other)
    with traffic_beside(planed, other, 1), VhostDriver(a) as liar:
        until(lambda: link_up(planed, "a"), "the liar is connected")
        liar.make_calls_block(RECEIVEQ)
        liar.place_ring(RECEIVEQ)
        assert liar.hung_up()
        assert ports(planed)["a"]["refused_messages"] == {"blocking_eventfd": 1}
        with VhostDriver(b) as mate:
            mate.settle()


def test_nobody_stands_in_the_call_of_a_driver_that_has_gone(planed: Planed, other: Planed) -> None:
    """Its connection ends, or the port is closed, while somebody stands in its eventfd: that is seen, too."""
    a, b = four_ports(planed, other)
    with VhostDriver(a) as liar, VhostDriver(b) as last:
        until(lambda: link_up(planed, "a") and link_up(planed, "b"), "both are connected")
        last.fill_receiveq()
        liar.make_calls_block(RECEIVEQ)
        liar.place_ring(RECEIVEQ)
        _send_what_is_gone(liar)
        assert liar.hung_up()
        until(lambda: not os.get_blocking(liar.calls[RECEIVEQ]), "who stands there is woken")
        assert ports(planed)["a"]["refused_messages"] == {"memory_gone": 1}
        last.make_calls_block(RECEIVEQ)
        last.place_ring(RECEIVEQ)
        time.sleep(STAND_S)
        planed.apply()
        assert "it is left behind" not in planed.process.log_path.read_text(encoding="utf-8")


def test_a_driver_that_stops_the_worker_of_another(planed: Planed, other: Planed) -> None:
    """It is called by a worker that has a ring of another driver meanwhile, who wants that back."""
    a, b = four_ports(planed, other)
    with traffic_beside(planed, other, 1), VhostDriver(a) as honest, VhostDriver(b) as liar:
        until(lambda: link_up(planed, "a") and link_up(planed, "b"), "both are connected")
        liar.fill_receiveq()
        liar.make_calls_block(RECEIVEQ)
        honest.offer(TRANSMITQ, 0, HERE, 72)
        taken(liar, 1, RECEIVEQ)
        time.sleep(STAND_S)
        honest.place_ring(TRANSMITQ)
        honest.settle()
        assert liar.hung_up()
        assert ports(planed)["a"]["refused_messages"] == {}
        assert ports(planed)["b"]["refused_messages"] == {"blocking_eventfd": 1}


def test_a_driver_is_barred_with_all_its_connections(planed: Planed) -> None:
    """Those that it has kept for the next time end, too, each counted."""
    path = _limited_port(planed)
    with VhostDriver(path) as liar, VhostDriver(path, set_up=False) as spare:
        until(lambda: link_up(planed, "a"), "the liar is connected")
        spare.settle()
        liar.make_calls_block(TRANSMITQ)
        liar.offer(TRANSMITQ, 0, HERE, 72)
        assert liar.hung_up() and spare.hung_up()
        assert ports(planed)["a"]["refused_messages"] == {"blocking_eventfd": 2}


def test_a_connection_that_has_not_the_port_ends_alone(planed: Planed) -> None:
    """Nobody calls it: whoever can connect must not be able to end the driver that has the port."""
    path = _limited_port(planed)
    with VhostDriver(path) as owner, VhostDriver(path, set_up=False) as liar:
        until(lambda: link_up(planed, "a"), "the owner is connected")
        event = os.eventfd(0)
        try:
            liar.send_message(SET_VRING_CALL, struct.pack("<Q", RECEIVEQ), event)
            liar.settle()
            os.eventfd_write(event, 2**64 - 2)
            os.set_blocking(event, True)
            assert liar.hung_up()
        finally:
            os.close(event)
        owner.settle()
        assert link_up(planed, "a")
        assert ports(planed)["a"]["refused_messages"] == {"blocking_eventfd": 1}


def _truncate(guest: VhostDriver, size_bytes: int) -> None:
    os.ftruncate(guest.memory_file, size_bytes)


def _send_what_is_gone(guest: VhostDriver) -> None:
    _truncate(guest, BUFFERS)
    guest.offer(TRANSMITQ, 0, HERE, 72)


def _receive_into_what_is_gone(guest: VhostDriver) -> None:
    guest.fill_receiveq()
    _truncate(guest, BUFFERS)


GONE: dict[str, Lie] = {
    "all of its memory": lambda it: _truncate(it, 0),
    "what it sends": _send_what_is_gone,
    "what it receives into": _receive_into_what_is_gone,
}


def test_memory_that_is_taken_away(planed: Planed, other: Planed) -> None:
    """A guest truncates the file behind its memory: its connection ends, nobody else notices, the next is served."""
    a, b = four_ports(planed, other)
    with VhostDriver(b) as mate:
        mate.fill_receiveq()
        for epoch, (name, take_away) in enumerate(GONE.items(), start=1):
            with traffic_beside(planed, other, epoch):
                with VhostDriver(a) as guest:
                    until(lambda: link_up(planed, "a"), f"{name}: the guest is connected")
                    take_away(guest)
                    mate.offer(TRANSMITQ, 0, HERE, 72)
                    assert guest.hung_up(), name
                assert ports(planed)["a"]["refused_messages"] == {"memory_gone": 1}, name
                with VhostDriver(a) as guest:
                    until(lambda: link_up(planed, "a"), f"{name}: the next one is connected")
                    guest.offer(TRANSMITQ, 0, HERE, 72)
                    taken(guest, 1)
                until(lambda: not link_up(planed, "a"), "the switch sees it go")


def _limited_port(planed: Planed, **limits: object) -> Path:
    wire = {**device("a", planed.workdir / "a.sock"), **limits}
    planed.apply([wire], [task("sw", "patch", "a", "a")], cpu=CPU)
    return Path(str(wire["path"]))


def test_who_may_connect(planed: Planed) -> None:
    """The owner, and a group that the document names."""
    assert stat.S_IMODE(_limited_port(planed).stat().st_mode) == 0o600
    planed.apply()
    group = next((number for number in os.getgroups() if number != os.getegid()), os.getegid())
    path = _limited_port(planed, group=str(group))
    assert (stat.S_IMODE(path.stat().st_mode), path.stat().st_gid) == (0o660, group)
    planed.apply()
    with pytest.raises(RpcError, match="port a cannot be opened"):
        _limited_port(planed, group="nobody-has-this-name")
    assert "there is no group of that name" in planed.process.log_tail()


def test_limits_of_a_port(planed: Planed) -> None:
    """Fewer connections and less memory than the defaults; a limit cannot change while the port exists."""
    path = _limited_port(planed, max_connections=1, max_memory_mb=1)
    with pytest.raises(RpcError, match="or limit of its drivers"):
        _limited_port(planed, max_connections=2, max_memory_mb=1)
    with VhostDriver(path) as guest, socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as second:
        guest.settle()
        second.connect(str(path))
        second.sendall(struct.pack("<III", 1, 1, 0))
        second.settimeout(0.3)
        with pytest.raises(TimeoutError):
            second.recv(1)
        os.ftruncate(guest.memory_file, 2 * MEMORY_BYTES)
        guest.share_memory(MEMORY_BYTES + 4096)
        assert guest.hung_up()
        second.settimeout(10)
        assert len(second.recv(20, socket.MSG_WAITALL)) == 20
    assert ports(planed)["a"]["refused_messages"] == {"memory_limit": 1}


def test_the_rate_of_new_connections(planed: Planed) -> None:
    """64 at once, then as many as the document says."""
    path = _limited_port(planed, connections_per_s=2)
    begin = time.monotonic()
    for _ in range(64 + 5):
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as caller:
            caller.settimeout(20)
            caller.connect(str(path))
            caller.sendall(struct.pack("<III", 1, 1, 0))
            assert len(caller.recv(20, socket.MSG_WAITALL)) == 20
    assert time.monotonic() - begin > 1


def test_a_guest_that_lies_again_and_again(planed: Planed) -> None:
    """Each ring that it breaks is counted; the log has 64 lines, and then one a second."""
    path = _limited_port(planed, connections_per_s=1000)
    before, begin = planed.process.log_path.stat().st_size, time.monotonic()
    for _ in range(100):
        with VhostDriver(path) as liar:
            until(lambda: link_up(planed, "a"), "it is connected")
            liar.set_index(TRANSMITQ, RING_SIZE + 1)
            until(lambda: not link_up(planed, "a"), "it is found out")
    assert ports(planed)["a"]["broken_rings"] == 100
    lines = planed.process.log_path.read_text()[before:].count("ring of queue 0 is stopped")
    assert 64 <= lines <= 65 + time.monotonic() - begin
