# SPDX-License-Identifier: BSD-3-Clause
"""Hostile and clumsy drivers in any order of steps (hypothesis), beside an honest pair whose every frame is counted.

The steps speak vhost-user on two ports of a real planed. What must hold is nothing that a driver can see: the process
lives and answers RPC, each frame of the honest pair arrives once, the next honest driver is served, and descriptors,
mappings, threads and mbufs are as before once the drivers are gone.

A short, reproducible set by default. ``HYPOTHESIS_PROFILE=fuzz`` (``make fuzz``): a long one, another each time.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import random
import socket
import struct
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test
from planed_rig import CPU, Planed, load, stream, task, until
from vhost_driver import (
    BUFFERS,
    GUEST_ADDRESS,
    MEMORY_BYTES,
    RECEIVEQ,
    RING_BYTES,
    RING_SIZE,
    TRANSMITQ,
    WRITABLE,
    VhostDriver,
)
from vring_rig import FLOOD_S, PACED, device, join, ports

from planebench.host.process import Supervisor

pytestmark = [
    pytest.mark.dataplane,
    pytest.mark.slow,
    pytest.mark.timeout(0 if os.environ.get("HYPOTHESIS_PROFILE") else 300),
]

SHORT = settings(max_examples=12, stateful_step_count=25, phases=(Phase.explicit, Phase.reuse, Phase.generate))
"""Without shrinking: a step that fails waits for a minute before it does."""
LONG = settings(max_examples=20, stateful_step_count=60, derandomize=False)
DRIVERS_MAX = 6
"""Two ports take four connections each; more than four at one wait for their turn."""
FILES_MAX = 300
"""Descriptors that planed may have for all of them: those of memory are closed once mapped, 32 of rings stay."""
LIARS, HONEST = "ab", "cd"
REQUESTS_MAX = 48
PUNCH_HOLE_KEEP_SIZE = 3
_libc = ctypes.CDLL(None)
HERE = GUEST_ADDRESS + BUFFERS


class Files:
    """Descriptors of every kind that a driver may pass; they live as long as the machine's example."""

    def __init__(self) -> None:
        self._stack = contextlib.ExitStack()
        keep = self._keep
        small, hole, sealed = (keep(os.memfd_create(it, os.MFD_ALLOW_SEALING)) for it in ("small", "hole", "sealed"))
        os.ftruncate(small, 5000)
        os.ftruncate(hole, 1 << 40)
        os.ftruncate(sealed, MEMORY_BYTES)
        disk = tempfile.TemporaryFile(dir="/var/tmp")  # noqa: SIM115 - the stack closes it
        self._stack.callback(disk.close)
        disk.truncate(MEMORY_BYTES)
        reader, writer = os.pipe2(os.O_NONBLOCK)
        ends = [self._stack.enter_context(it) for it in socket.socketpair()]
        self.all = [
            *(small, hole, sealed, disk.fileno(), keep(reader), keep(writer), *(it.fileno() for it in ends)),
            *(keep(os.open(path, os.O_RDONLY | os.O_CLOEXEC)) for path in ("/", "/dev/zero", "/proc/self/maps")),
            *(keep(os.eventfd(0, flags)) for flags in (0, os.EFD_NONBLOCK, os.EFD_SEMAPHORE)),
        ]

    def _keep(self, fd: int) -> int:
        self._stack.callback(os.close, fd)
        return fd

    def close(self) -> None:
        self._stack.close()


def process_state(planed: Planed) -> dict[str, int]:
    """Return what connections that are gone must not leave behind: descriptors, shared mappings, threads."""
    process = Path("/proc") / str(planed.process.pid)
    return {
        "files": len(list((process / "fd").iterdir())),
        "shared mappings": sum(line.split()[1][3] == "s" for line in (process / "maps").read_text().splitlines()),
        "threads": len(list((process / "task").iterdir())),
    }


class Rig:
    """A switch with two ports for liars and two for honest drivers, which are of a second planed."""

    def __init__(self, supervisor: Supervisor) -> None:
        self._supervisor = supervisor
        self._lives = 0
        self._begin()

    def _begin(self) -> None:
        self._lives += 1
        self.switch, self.guest = (Planed(self._supervisor, f"{name}{self._lives}") for name in ("switch", "guest"))
        self.liars = [device(name, self.switch.workdir / f"{name}.sock") for name in LIARS]
        self.switch.wires = tuple(device(name, self.switch.workdir / f"{name}.sock") for name in HONEST)
        self.apply()
        join(self.switch, self.guest, "packed_vq=0,mrg_rxbuf=1")
        self.rest = process_state(self.switch)

    def apply(self, liars: str = LIARS) -> None:
        """Load the document with these ports of the liars."""
        wires = [*(wire for wire in self.liars if wire["name"] in liars), *self.switch.wires]
        tasks = [task("sw", "patch", "a", "b")] if liars == LIARS else []
        self.switch.apply(wires, [*tasks, task("beside", "patch", "c", "d")], cpu=CPU)

    def start_traffic(self) -> None:
        """Let frames flow between the honest ports; a process that an example has ended is replaced."""
        if not self.switch.process.alive():
            self.guest.process.terminate()
            self._begin()
        self.switch.call("stats.clear")
        self.guest.start_traffic(*(load(f"gen{index}", **PACED) for index in (0, 1)), duration_s=FLOOD_S)

    def assert_exact(self) -> None:
        """End the traffic: what was offered was forwarded; what was not was counted since the last config.apply."""
        self.guest.call("traffic.stop")
        middle, there = self.switch.settled()["beside"], self.guest.settled()
        for sender, receiver in ((0, 1), (1, 0)):
            came = stream(there[f"mon{receiver}"], sender)
            lost = middle["drops_by_port"][HONEST[receiver]]["tx_full"]
            assert came["forwarded_packets"] == there[f"gen{sender}"]["tx_packets"] - lost > 0
            assert (came["duplicate_packets"], came["reordered_packets"], came["corrupt_packets"]) == (0, 0, 0)

    def assert_next_is_served(self) -> None:
        """An honest driver connects to each port of the liars: its frame is taken, and nothing is left afterwards."""
        for wire in self.liars:
            with VhostDriver(Path(wire["path"])) as driver:
                driver.offer(TRANSMITQ, 0, HERE, 72)
                until(lambda it=driver: it.used(TRANSMITQ) == 1, "the next driver is served")  # type: ignore[misc]

    def assert_nothing_left(self) -> None:
        until(lambda: not any(ports(self.switch)[name]["link_up"] for name in LIARS), "the switch sees them go")
        until(lambda: process_state(self.switch) == self.rest, f"{process_state(self.switch)} is {self.rest}")
        assert self.switch.call("stats.get")["mbufs"]["in_use"] == 0


sizes = st.sampled_from(
    [0, 1, 15, 4096, 5000, MEMORY_BYTES - 1, MEMORY_BYTES, MEMORY_BYTES + 1, 1 << 40, 2**63, 2**64 - 1]
)
addresses = st.sampled_from([0, 1, GUEST_ADDRESS, GUEST_ADDRESS + 4096, 2**63, 2**64 - 4096, 2**64 - 1])
numbers = st.one_of(st.integers(0, 4), st.sampled_from([31, 32, 255, 256, 32768, 65535, 2**31, 2**32 - 1]))
whom = st.integers(0, DRIVERS_MAX - 1)
some_files = st.lists(st.integers(0, 31), max_size=9)
rings = st.sampled_from([RECEIVEQ, TRANSMITQ])


class HostileDrivers(RuleBasedStateMachine):
    """Steps of up to DRIVERS_MAX drivers; a driver that planed has ended goes on, and is ignored."""

    rig: ClassVar[Rig]

    def __init__(self) -> None:
        super().__init__()
        self.drivers: list[VhostDriver] = []
        self.files = Files()
        self.rig.start_traffic()

    def _of(self, which: int) -> VhostDriver:
        return self.drivers[which % len(self.drivers)]

    def _fds(self, numbers: list[int]) -> list[int]:
        return [self.files.all[number % len(self.files.all)] for number in numbers]

    @contextlib.contextmanager
    def _of_no_avail(self) -> Iterator[None]:
        """The connection may have been ended at any earlier step, or its buffers are full: that is planed's right."""
        with contextlib.suppress(ConnectionError, BlockingIOError, TimeoutError):
            yield

    @precondition(lambda self: len(self.drivers) < DRIVERS_MAX)
    @rule(port=st.sampled_from([0, 0, 1]), pairs=st.integers(1, 2), honest=st.booleans())
    def connect(self, port: int, pairs: int, honest: bool) -> None:
        with self._of_no_avail():
            driver = VhostDriver(Path(self.rig.liars[port]["path"]), pairs, set_up=False)
            self.drivers.append(driver)
            driver.be_impatient()
            if honest:
                driver.begin(pairs)

    @precondition(lambda self: self.drivers)
    @rule(which=whom, pairs=st.integers(1, 2))
    def begin_again(self, which: int, pairs: int) -> None:
        with self._of_no_avail():
            self._of(which).begin(pairs)

    @precondition(lambda self: self.drivers)
    @rule(which=whom)
    def hang_up(self, which: int) -> None:
        driver = self._of(which)
        self.drivers.remove(driver)
        driver.close()

    @precondition(lambda self: self.drivers)
    @rule(
        which=whom,
        request=st.integers(0, REQUESTS_MAX),
        payload=st.one_of(
            st.binary(max_size=64),
            st.builds(lambda a, b: struct.pack("<II", a, b), numbers, numbers),
            st.builds(lambda a, *b: struct.pack("<II4Q", a, 0, *b), numbers, *[addresses] * 4),
        ),
        files=some_files,
    )
    def say_anything(self, which: int, request: int, payload: bytes, files: list[int]) -> None:
        with self._of_no_avail():
            self._of(which).send_message(request, payload, *self._fds(files))

    @precondition(lambda self: self.drivers)
    @rule(which=whom, data=st.binary(min_size=1, max_size=40))
    def say_half(self, which: int, data: bytes) -> None:
        with self._of_no_avail():
            self._of(which).send_bytes(data)

    @precondition(lambda self: self.drivers)
    @rule(which=whom, request=st.sampled_from([2, 5, 9, 13, 31]), size=st.sampled_from([8, 40, 264]))
    def say_a_header_alone(self, which: int, request: int, size: int) -> None:
        """Who reads the payload at once waits for it, with all the ports that it serves."""
        with self._of_no_avail():
            self._of(which).send_bytes(struct.pack("<III", request, 1, size))

    @precondition(lambda self: self.drivers)
    @rule(which=whom, request=st.integers(28, 32), bytes_=sizes, queues=numbers, files=st.sampled_from([[], [0], [1]]))
    def ask_for_what_is_not_offered(self, which: int, request: int, bytes_: int, queues: int, files: list[int]) -> None:
        """Post-copy, and files of buffers in flight."""
        payload = b"" if request < 31 else struct.pack("<QQHHI", bytes_, 0, queues & 0xFFFF, 256, 0)
        with self._of_no_avail():
            self._of(which).send_message(request, payload, *self._fds(files))

    @precondition(lambda self: self.drivers)
    @rule(which=whom, request=st.sampled_from([1, 15, 17]), times=st.sampled_from([1, 10, 300]))
    def ask_and_not_read(self, which: int, request: int, times: int) -> None:
        with self._of_no_avail():
            self._of(which).send_bytes(struct.pack("<III", request, 1, 0) * times)

    @precondition(lambda self: self.drivers)
    @rule(
        which=whom,
        regions=st.lists(st.tuples(addresses, sizes, addresses, sizes, st.integers(-1, 31)), min_size=1, max_size=9),
    )
    def share_memory(self, which: int, regions: list[tuple[int, int, int, int, int]]) -> None:
        """A table of odd regions and files; -1 is a file of the driver's own memory."""
        driver = self._of(which)
        table = struct.pack("<II", len(regions), 0) + b"".join(struct.pack("<4Q", *it[:4]) for it in regions)
        fds = [driver.memory_file if it[4] < 0 else self._fds([it[4]])[0] for it in regions]
        with self._of_no_avail():
            driver.send_message(5, table, *fds)

    @precondition(lambda self: self.drivers)
    @rule(which=whom, bytes_=st.sampled_from([4096, MEMORY_BYTES // 4, MEMORY_BYTES // 2, MEMORY_BYTES]))
    def share_less(self, which: int, bytes_: int) -> None:
        with self._of_no_avail():
            self._of(which).share_memory(bytes_)

    @precondition(lambda self: self.drivers)
    @rule(
        which=whom, request=st.sampled_from([12, 13, 14]), ring=numbers, files=st.lists(st.integers(0, 31), max_size=2)
    )
    def give_files_of_a_ring(self, which: int, request: int, ring: int, files: list[int]) -> None:
        with self._of_no_avail():
            self._of(which).send_message(request, struct.pack("<Q", ring), *self._fds(files))

    @precondition(lambda self: self.drivers)
    @rule(which=whom, request=st.sampled_from([8, 10, 11, 18]), ring=numbers, number=numbers)
    def change_a_ring(self, which: int, request: int, ring: int, number: int) -> None:
        with self._of_no_avail():
            self._of(which).send_message(request, struct.pack("<II", ring, number))

    @precondition(lambda self: self.drivers)
    @rule(which=whom, queue=rings, count=st.integers(1, RING_SIZE))
    def offer_buffers(self, which: int, queue: int, count: int) -> None:
        for slot in range(count):
            flags = WRITABLE if queue == RECEIVEQ else 0
            self._of(which).offer(queue, slot, HERE + 4096 * slot, 72 if queue else 2048, flags)

    @precondition(lambda self: self.drivers)
    @rule(which=whom, seed=st.integers(0, 9), queue=st.sampled_from([0, 1, 2, 3]), index=numbers)
    def write_garbage(self, which: int, seed: int, queue: int, index: int) -> None:
        driver = self._of(which)
        driver.write(GUEST_ADDRESS + queue * RING_BYTES, random.Random(seed).randbytes(RING_BYTES))
        driver.set_index(queue, index)

    @precondition(lambda self: self.drivers)
    @rule(
        which=whom,
        address=st.one_of(addresses, st.just(HERE)),
        length=sizes,
        flags=st.integers(0, 7),
        following=numbers,
    )
    def offer_a_lie(self, which: int, address: int, length: int, flags: int, following: int) -> None:
        self._of(which).offer(TRANSMITQ, 0, address, length & 0xFFFFFFFF, flags, following & 0xFFFF)

    @precondition(lambda self: self.drivers)
    @rule(which=whom, bytes_=st.sampled_from([0, 4096, BUFFERS]), again=st.booleans())
    def truncate_memory(self, which: int, bytes_: int, again: bool) -> None:
        """Take memory away; give zeros back, or hang up: we would end by SIGBUS if we wrote there."""
        driver = self._of(which)
        os.ftruncate(driver.memory_file, bytes_)
        time.sleep(0.002)
        if again:
            os.ftruncate(driver.memory_file, MEMORY_BYTES)
        else:
            self.hang_up(which)

    @precondition(lambda self: self.drivers)
    @rule(which=whom, page=st.integers(0, MEMORY_BYTES // 4096 - 1))
    def punch_a_hole(self, which: int, page: int) -> None:
        fd = self._of(which).memory_file
        _libc.fallocate(fd, PUNCH_HOLE_KEEP_SIZE, ctypes.c_long(page * 4096), ctypes.c_long(4096))

    @rule(gone=st.sampled_from(["", "a", "b", "ab"]))
    def apply(self, gone: str) -> None:
        """Ports of the liars are removed with all their connections, and made again."""
        self.rig.apply("".join(name for name in LIARS if name not in gone))
        if gone:
            self.rig.apply()

    @invariant()
    def planed_lives_and_answers(self) -> None:
        assert self.rig.switch.process.alive(), self.rig.switch.process.exit_report()
        assert {"sw", "beside"} <= self.rig.switch.tasks().keys()
        assert process_state(self.rig.switch)["files"] < self.rig.rest["files"] + FILES_MAX

    def teardown(self) -> None:
        alive = self.rig.switch.process.alive()
        for driver in self.drivers:
            driver.close()
        self.files.close()
        if alive:  # if not, the invariant has said so
            self.rig.assert_next_is_served()
            self.rig.assert_exact()
            self.rig.assert_nothing_left()


def test_hostile_drivers_in_any_order(supervisor: Supervisor) -> None:
    long = bool(os.environ.get("HYPOTHESIS_PROFILE"))
    HostileDrivers.rig = Rig(supervisor)
    run_state_machine_as_test(
        HostileDrivers,
        settings=settings(LONG if long else SHORT, suppress_health_check=list(HealthCheck)),
    )
