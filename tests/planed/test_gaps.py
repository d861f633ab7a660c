# SPDX-License-Identifier: BSD-3-Clause
"""A switch or a tester that is stopped: what the probes under way met, and who is charged with it."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from planed_rig import CPU, OTHER_CPU, Planed, load, stream, task, until, vhost, virtio

from planebench.analysis.histogram import decode
from planebench.host.evidence import ThreadRef, ThreadSampler
from planebench.measure.counts import tester_counts
from planebench.measure.latency import charged
from planebench.model.records import Evidence
from planebench.model.scenarios import Flow
from planebench.planed.client import get_statistics

pytestmark = pytest.mark.dataplane

DURATION_S = 1.0
PPS = 50_000
"""Nearly each frame is a probe: some are under way whenever the switch is stopped, and a ring takes 20 ms of them."""
RING = 1024


@contextlib.contextmanager
def stopped(process: Planed) -> Iterator[None]:
    os.kill(process.process.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(process.process.pid, signal.SIGCONT)


@pytest.fixture
def tester(planed: Planed, other: Planed) -> Planed:
    """A tester behind a switch, both of which pass frames."""
    sockets: list[Path] = [planed.workdir / f"{name}.sock" for name in "ab"]
    wires = [vhost(path.stem, path, RING) for path in sockets]
    planed.apply(wires, [task("sw", "patch", "a", "b")], cpu=CPU)
    ends = [virtio("n0", sockets[0], RING), virtio("n1", sockets[1], RING)]
    other.apply(ends, [task("mon-n1", "monitor", "n1"), task("gen-n0", "generator", "n0")], cpu=OTHER_CPU)
    other.links_up()
    return other


def begin(tester: Planed) -> None:
    rates = {"rate_pps": PPS, "probe_rate_pps": PPS}
    tester.start_traffic(load("gen-n0", **rates), duration_s=DURATION_S, nonce=7)
    until(lambda: tester.tasks()["mon-n1"]["rx_packets"] >= 100, "frames pass")


def end(tester: Planed) -> Mapping[str, Any]:
    """Return what the monitor counted of the stream; each probe is in one histogram."""
    until(lambda: not tester.call("traffic.get")["running"], "the generator ends")
    found = stream(tester.settled()["mon-n1"])
    assert sum(samples(found, kind) for kind in ("latency", "latency_gap", "latency_stall")) == found["probes_received"]
    return found


def samples(found: Mapping[str, Any], kind: str) -> int:
    histogram = found.get(kind, {"counts": [], "overflow": 0})
    return int(histogram["overflow"] + sum(count for _, count in histogram["counts"]))


def test_a_switch_that_is_stopped_is_charged_with_it(planed: Planed, tester: Planed) -> None:
    """The kernel knows of no wait: it is stopped for so long that what it waited before and after is no half of it."""
    [worker] = planed.call("stats.get")["workers"]
    sampler = ThreadSampler([ThreadRef(planed.process.pid, worker["tid"], "w0")])
    before = sampler.sample()
    begin(tester)
    with stopped(planed):
        time.sleep(0.8 * DURATION_S)
    found = end(tester)
    evidence = Evidence(threads=ThreadSampler.difference(before, sampler.sample()))
    assert found["stalls"] > 0
    assert samples(found, "latency_stall") > 0

    counts = tester_counts(get_statistics(tester.call), [Flow("n0", "n1", 0)])
    assert counts.latency is not None
    latency = charged(counts.latency, evidence, counts.duration_ns)
    assert latency.stalled_ns == found["stall_sum_ns"]
    assert int(decode(latency.histogram).sum()) == samples(found, "latency") + samples(found, "latency_stall")
    assert (int(decode(latency.host).sum()) if latency.host else 0) == samples(found, "latency_gap")


def test_a_tester_that_is_stopped_has_the_probes_under_way_in_a_histogram_of_their_own(
    planed: Planed, tester: Planed
) -> None:
    """The switch keeps them under way."""
    begin(tester)
    with stopped(planed):
        time.sleep(0.005)
        with stopped(tester):
            time.sleep(0.02)
    found = end(tester)
    assert samples(found, "latency_gap") > 0
    [worker] = tester.call("stats.get")["workers"]
    assert worker["gaps"] > 0
    assert worker["gap_max_ns"] > 10_000_000
