# SPDX-License-Identifier: BSD-3-Clause
"""The kernel's stamps of real frames over a veth pair: each probe has both, and they lie within those of software."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from planed_rig import MEMORY, Planed, document, ethdev, load, task

from planebench.host.netns import VethWire
from planebench.host.process import Supervisor
from planebench.measure.latency import join, read_log
from planebench.planed.client import RpcError
from planebench.testbed.request import af_packet_devargs

pytestmark = [pytest.mark.dataplane, pytest.mark.root]

POOL = {**MEMORY, "size_mb": 256}
NAMES = {"gen-a", "gen-b", "mon-a", "mon-b"}


@pytest.fixture(scope="module")
def tester(supervisor: Supervisor) -> Iterator[Planed]:
    if os.geteuid() != 0:
        pytest.skip("packet sockets require root")
    wire = VethWire.create(supervisor, ["n0"], cpus=frozenset(os.sched_getaffinity(0)))
    ports = [
        ethdev(name, f"net_af_packet_{name},{af_packet_devargs(interface, 256, 1518)}", clock="kernel")
        for name, interface in zip("ab", wire.pairs["n0"], strict=True)
    ]
    monitors = [task(f"mon-{port}", "monitor", port) for port in "ab"]
    generators = [task(f"gen-{port}", "generator", port, stream=stream) for stream, port in enumerate("ab")]
    start = document("clocks", ports, [*monitors, *generators], memory=POOL)
    yield Planed(supervisor, "clocks", start, netns_pid=wire.netns_pid)
    wire.close()


def test_the_kernel_stamps_every_probe_and_both_ends_have_one_clock(tester: Planed) -> None:
    both = [load(f"gen-{port}", rate_pps=2000, probe_rate_pps=1000) for port in "ab"]
    seen = tester.send(*both, duration_s=0.2, clocks=True)
    logs = {name: read_log(tester.call, name, NAMES) for name in NAMES}
    for sender, receiver in ("ab", "ba"):
        generator, (stream,) = seen[f"gen-{sender}"]["generator"], seen[f"mon-{receiver}"]["monitor"]["streams"]
        assert stream["forwarded_packets"] == generator["offered_packets"] > 0
        joined = join(logs[f"gen-{sender}"], logs[f"mon-{receiver}"], tester.call("stats.get")["tsc_hz"])
        assert len(joined.clock_ns) == generator["probes_sent"] == stream["probes_received"] > 0
        assert not joined.without
        assert sum(joined.clock_ns) < sum(joined.software_ns)


def test_without_a_wish_for_clocks_there_are_no_stamps(tester: Planed) -> None:
    tester.send(load("gen-a", rate_pps=2000, probe_rate_pps=1000))
    assert read_log(tester.call, "gen-a", NAMES).times == {}


def test_a_port_without_a_clock_is_refused(tester: Planed) -> None:
    with pytest.raises(RpcError, match='kind vhost-user has no "clock" but "software"'):
        tester.call(
            "config.apply",
            document("clocks", [{"name": "v", "kind": "vhost-user", "path": "/tmp/v", "clock": "kernel"}], memory=POOL),
        )
