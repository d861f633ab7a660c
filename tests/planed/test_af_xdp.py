# SPDX-License-Identifier: BSD-3-Clause
"""Ports on AF_XDP sockets: DPDK's driver on veth pairs, and what the kernel says of its sockets."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from planed_rig import CPU, MEMORY, OTHER_CPU, Planed, document, ethdev, load, task

from planebench.host import af_xdp
from planebench.host.af_xdp import mode_words, socket_modes
from planebench.host.interfaces import interfaces_of
from planebench.host.netns import VethWire
from planebench.host.process import Supervisor

pytestmark = [pytest.mark.dataplane, pytest.mark.root]

RING = 2048
"""As many descriptors as the driver gives buffers to the kernel: then the receive ring cannot be full, which the driver
would not count."""
POOL = {**MEMORY, "size_mb": 256, "mbuf_count": 16383}


@pytest.fixture(scope="module")
def wire(supervisor: Supervisor) -> Iterator[VethWire]:
    if os.geteuid() != 0:
        pytest.skip("XDP programs require root")
    made = VethWire.create(supervisor, ["n0", "n1"], cpus=frozenset({CPU}))
    yield made
    made.close()


def port(name: str, interface: str) -> dict[str, object]:
    return ethdev(name, f"net_af_xdp_{interface},iface={interface}", ring_size=RING)


@pytest.fixture(scope="module")
def tester(supervisor: Supervisor, wire: VethWire) -> Planed:
    ports = [port(name, wire.pairs[name][0]) for name in ("n0", "n1")]
    tasks = [task("gen", "generator", "n0", stream=0), task("mon", "monitor", "n1")]
    start = document("xdp-tester", ports, tasks, memory=POOL)
    return Planed(supervisor, "xdp-tester", start, netns_pid=wire.netns_pid)


@pytest.fixture(scope="module")
def switch(supervisor: Supervisor, wire: VethWire) -> Planed:
    ports = [port(name, wire.pairs[name][1]) for name in ("n0", "n1")]
    start = document("xdp-switch", ports, [task("sw", "patch", "n0", "n1")], cpu=OTHER_CPU, memory=POOL)
    return Planed(supervisor, "xdp-switch", start, netns_pid=wire.netns_pid)


@pytest.mark.parametrize("rate", [{"rate_pps": 5000}, {"flat_out": True}])
def test_every_frame_arrives_or_is_counted_where_it_was_lost(
    tester: Planed, switch: Planed, wire: VethWire, rate: dict[str, object]
) -> None:
    switch.call("stats.clear")
    before = _kernel_drops(wire)
    there = tester.send(load("gen", **rate), duration_s=0.1, clear=switch)
    forwarded = sum(stream["forwarded_packets"] for stream in there["mon"]["monitor"]["streams"])
    missed = sum(it["rx_missed"] for planed in (tester, switch) for it in planed.call("stats.get")["ports"])
    full = switch.tasks()["sw"]["drops"]["tx_full"]
    kernel = _kernel_drops(wire) - before
    assert forwarded > 0
    assert there["gen"]["generator"]["offered_packets"] == forwarded + missed + full + kernel


def test_the_mode_is_what_the_kernel_gave(tester: Planed, switch: Planed, wire: VethWire) -> None:
    sockets = socket_modes(tester.process.pid)
    assert sockets == ["copy", "copy"]  # veth has no zero-copy
    assert mode_words(sockets, ["native"] * 2) == "copy, native"
    interfaces = [name for pair in wire.pairs.values() for name in pair]
    asked = ["nsenter", f"--net=/proc/{wire.netns_pid}/ns/net", sys.executable, str(Path(af_xdp.__file__)), *interfaces]
    answer = subprocess.run(asked, check=True, capture_output=True, text=True)
    assert json.loads(answer.stdout) == dict.fromkeys(interfaces, "native")


def test_the_speed_of_a_link_is_reported_while_it_is_up(tester: Planed) -> None:
    assert [(it["link_up"], it["speed_mbps"]) for it in tester.call("ports.get")["ports"]] == [(True, 10_000)] * 2


def test_frames_that_found_no_room_are_no_errors(tester: Planed, wire: VethWire) -> None:
    """The driver counts what it refused as an error; the generator counts it already."""
    link = ["nsenter", f"--net=/proc/{wire.netns_pid}/ns/net", "ip", "link", "set", wire.pairs["n0"][0]]
    subprocess.run([*link, "down"], check=True)
    try:
        sent = tester.send(load("gen", flat_out=True), epoch=2)["gen"]["generator"]
    finally:
        subprocess.run([*link, "up"], check=True)
    assert sent["refused_packets"] > 0
    assert sent["offered_packets"] <= RING
    assert all(it["tx_errors"] == 0 for it in tester.call("stats.get")["ports"])


def test_words_of_sockets_that_are_not_alike() -> None:
    assert mode_words(["copy", "zero-copy"], ["native", "generic"]) == "copy and zero-copy, generic and native"
    assert mode_words(["zero-copy"], []) == "zero-copy, XDP program not found"


def test_a_process_that_is_gone_has_no_sockets() -> None:
    assert socket_modes(2**22) == []


def _kernel_drops(wire: VethWire) -> int:
    """Return what the interfaces could not send: the ring of the other end of a veth pair was full."""
    return sum(it.tx_dropped for it in interfaces_of(wire.netns_pid).values())
