# SPDX-License-Identifier: BSD-3-Clause
"""Either end goes under traffic, a hundred times, by leaving or by kill -9: nothing is left of it, and who comes next
finds ports that work."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import pytest
import vhost_driver
from planed_rig import CPU, OTHER_CPU, Document, Planed, document, load, often, task, until
from vhost_driver import BUFFERS, GUEST_ADDRESS, RECEIVEQ, RING_SIZE, TRANSMITQ, VhostDriver
from vring_rig import (
    FLAT_OUT,
    FLOOD_S,
    Handles,
    assert_adds_up,
    assert_conserved,
    connect,
    device,
    driver,
    flood,
    handles,
    join,
    leave,
    ports,
    ports_up,
    resident_kb,
    wake_library,
    without_drivers,
)

from planebench.host.process import Supervisor

pytestmark = pytest.mark.dataplane

TIMES = 100
DEVICE_KILLS = often(4, 10)
"""A new process has nothing of the old one, and DPDK's vhost library needs a second to notice its first sockets."""
SAMPLES = (19, 59, 99)
"""Rounds after which memory is compared."""
GROWTH_KB = 128
"""Between two samples: a leak of one page a round would be 160."""


class Growth:
    """Resident memory of a process, over many rounds of the same thing.

    A leak grows all the time; a thread that allocates for the first time on a busy machine, once: one of the two
    intervals may be above the limit. AddressSanitizer keeps what is freed: with it, leaks are LeakSanitizer's to find.
    """

    def __init__(self, planed: Planed) -> None:
        self._planed = planed
        self._samples_kb: list[int] = []
        self._known = "libasan" not in Path(f"/proc/{planed.process.pid}/maps").read_text()

    def round(self, number: int) -> None:
        if number in SAMPLES:
            self._samples_kb.append(resident_kb(self._planed))
        if number == TIMES - 1 and self._known:
            assert min(b - a for a, b in pairwise(self._samples_kb)) < GROWTH_KB


@pytest.mark.parametrize("packed", [pytest.param(0, marks=pytest.mark.all), 1])
def test_a_driver_that_comes_and_goes(planed: Planed, other: Planed, packed: int) -> None:
    """Every other time in full flight."""
    layout = f"packed_vq={packed},mrg_rxbuf=1"
    before = without_drivers(planed)
    growth = Growth(planed)
    for number in range(TIMES):
        join(planed, other, layout)
        if number % 2:
            flood(planed, other)
        other.apply()
        leave(planed, before)
        assert_adds_up(planed, other)
        growth.round(number)
    join(planed, other, layout)
    assert_conserved(planed, other, **FLAT_OUT)


def test_a_device_that_comes_and_goes(planed: Planed, other: Planed) -> None:
    """Its ports are removed in full flight, and made again at the same paths."""
    bell = device("bell", planed.workdir / "bell.sock")
    planed.apply([bell])
    before = handles(planed)
    growth = Growth(planed)
    for number in range(TIMES):
        without_drivers(planed, bell)
        wake_library(Path(bell["path"]))
        join(planed, other, "packed_vq=0,mrg_rxbuf=1")
        flood(planed, other)
        assert_adds_up(planed, other)
        planed.apply([bell])
        until(lambda: handles(planed) == before, f"it has {before} again")
        until(lambda: planed.call("stats.get")["mbufs"]["in_use"] == 0, "no mbuf is in use")
        other.apply()
        growth.round(number)
    connect(planed, other, "packed_vq=0,mrg_rxbuf=1")
    assert_conserved(planed, other, **FLAT_OUT)


@contextmanager
def flooding(path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A driver in a process of its own that keeps both rings full."""
    with subprocess.Popen([sys.executable, vhost_driver.__file__, str(path)]) as guest:
        try:
            yield guest
        finally:
            guest.kill()


@pytest.mark.parametrize(
    "fault", [pytest.param({}, marks=pytest.mark.all), {"fault": {"drop_one_in": 1000}}], ids=["hop", "mbufs"]
)
def test_a_driver_that_is_killed(planed: Planed, other: Planed, fault: Document) -> None:
    """Again and again; its neighbour, which sends all the time, stays."""
    without_drivers(planed, **fault)
    neighbour = driver("v1", Path(planed.wires[1]["path"]), "packed_vq=0,mrg_rxbuf=1", 256)
    other.apply([neighbour], [task("mon", "monitor", "v1"), task("gen", "generator", "v1")], cpu=OTHER_CPU)
    until(lambda: ports(planed)["b"]["link_up"], "the neighbour is there")
    other.start_traffic(load("gen", **FLAT_OUT), duration_s=FLOOD_S)
    before = handles(planed)
    growth = Growth(planed)
    for number in range(TIMES):
        with flooding(Path(planed.wires[0]["path"])) as guest:
            planed.call("stats.clear")
            until(lambda: all(ports(planed)["a"][key] for key in ("rx_packets", "tx_packets")), "frames flow both ways")
            os.kill(guest.pid, signal.SIGKILL)
            until(lambda: not ports(planed)["a"]["link_up"], "the switch sees it go")
        until(lambda: handles(planed) == before, f"it has {before} again")
        assert_adds_up(planed, other)
        until(lambda: planed.call("stats.get")["mbufs"]["in_use"] == 0, "no mbuf is in use")
        assert ports(planed)["b"]["link_up"]
        growth.round(number)
    other.apply()
    join(planed, other, "packed_vq=0,mrg_rxbuf=1")
    if not fault:
        assert_conserved(planed, other, **FLAT_OUT)


@pytest.mark.parametrize("packed", [0, pytest.param(1, marks=pytest.mark.all)])
def test_two_guests_that_are_killed(planed: Planed, other: Planed, supervisor: Supervisor, packed: int) -> None:
    """DPDK's driver, both ends of the patch at once."""
    layout = f"packed_vq={packed},mrg_rxbuf=1"
    before = without_drivers(planed)
    for number in range(3):
        victim = Planed(supervisor, f"victim{packed}{number}")
        join(planed, victim, layout)
        flood(planed, victim)
        os.kill(victim.process.pid, signal.SIGKILL)
        leave(planed, before)
    join(planed, other, layout)
    assert_conserved(planed, other, **FLAT_OUT)


def test_a_device_that_is_killed(supervisor: Supervisor) -> None:
    """A new process each time, at the same paths: drivers find it again, and every frame of theirs."""
    assert len({_one_life(_start_switch(supervisor)) for _ in range(DEVICE_KILLS)}) == 1, "they are all alike"


def _one_life(switch: Planed) -> Handles:
    a, b = (Path(wire["path"]) for wire in switch.wires)
    with VhostDriver(a) as sender, VhostDriver(b) as receiver:
        until(lambda: ports_up(switch), "both are connected")
        for end in (sender, receiver):
            end.settle()  # its rings have been called, too, by a descriptor that is closed then
        seen = handles(switch)
        receiver.fill_receiveq()
        until(lambda: _passes(sender, receiver), "a first frame comes")
        for slot in range(RING_SIZE - receiver.used(RECEIVEQ)):
            sender.offer(TRANSMITQ, slot, GUEST_ADDRESS + BUFFERS, 72)
        until(lambda: receiver.used(RECEIVEQ) == RING_SIZE, "all frames have come")
        sender.set_index(TRANSMITQ, sender.used(TRANSMITQ) + RING_SIZE)  # under way when it dies
        os.kill(switch.process.pid, signal.SIGKILL)
        switch.process.wait()
        assert sender.hung_up() and receiver.hung_up()
    return seen


def _passes(sender: VhostDriver, receiver: VhostDriver) -> bool:
    """Send a frame. While a message about its rings is handled, a port takes none: the first may be dropped."""
    taken = sender.used(TRANSMITQ)
    sender.offer(TRANSMITQ, 0, GUEST_ADDRESS + BUFFERS, 72)
    until(lambda: sender.used(TRANSMITQ) != taken, "the frame is taken")
    time.sleep(0.01)
    return receiver.used(RECEIVEQ) > 0


def _start_switch(supervisor: Supervisor) -> Planed:
    wires = [device(name, supervisor.workdir("switch") / f"{name}.sock") for name in "ab"]
    start = document("switch", wires, [task("sw", "patch", "a", "b")], cpu=CPU)
    start["memory"] = {**start["memory"], "size_mb": 32, "mbuf_count": 255}
    switch = Planed(supervisor, "switch", start)
    switch.wires = tuple(wires)
    switch.call("version")
    return switch
