# SPDX-License-Identifier: BSD-3-Clause
"""Exact counts of a tester of two cores, whose workers each have a queue pair of every port."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from builders import make_point

from planebench.host import facts
from planebench.host.planed_program import find_planed
from planebench.host.process import Supervisor, high_priority
from planebench.host.programs import NotFound
from planebench.measure.live import LiveSettings, LiveTopology
from planebench.measure.trial import TrialRequest, run_trial
from planebench.model.cpus import Cpus
from planebench.model.records import Load, Trial
from planebench.planed.client import get_statistics
from planebench.planed.statistics import Statistics, StreamStatistics
from planebench.switches import ovs
from planebench.switches.registry import get_adapter
from planebench.testbed.chain import build_chain
from planebench.testbed.placement import place
from planebench.testbed.request import SwitchPort, SwitchRequest
from planebench.testbed.traffic import parse_traffic

pytestmark = [pytest.mark.dataplane, pytest.mark.timeout(120)]

LOAD = Load("20kpps", 20_000.0)
DURATION_S = 0.05
TRIES = 20
GENERATORS = ("gen-n0", "gen-n1", "gen-n0-q1", "gen-n1-q1")
"""By the stream that each sends."""


@contextmanager
def started(switch: str, wire: str) -> Iterator[LiveTopology]:
    """On a machine of two CPUs they are those of the switch, too: frames may wait for longer than rings hold."""
    adapter, planed, host = get_adapter(switch), find_planed(), facts.collect()
    found = adapter.find()
    if isinstance(found, NotFound):
        pytest.skip(f"{switch} is not here: {found.remedy}")
    first, last = host.cpus_allowed[0], host.cpus_allowed[-1]
    if first == last:
        pytest.skip("one CPU")
    assert planed is not None
    placement = place(Cpus(host.cpus_allowed, host.siblings, host.numa_node, tester_cores=2))
    if len(placement.tester_cpus) < 2:
        placement = replace(placement, tester_cpus=(first, last), more_switch_cpus=(first,), shared=True)
    settings = LiveSettings(planed, 256, hugepages=False, max_frame_bytes=1518, wire=wire, tester_cores=2)
    with high_priority(), Supervisor(Path("/tmp")) as supervisor:
        live = LiveTopology.start(adapter.name, adapter, build_chain("p2p", 0), placement, settings, supervisor)
        yield live
        live.stop()


def measured(live: LiveTopology, request: TrialRequest) -> tuple[Trial, Statistics]:
    """A trial without loss, and the counters of its tester."""
    for _ in range(TRIES):
        trial = run_trial(live, request, lambda: None)
        ways = trial.directions
        if all(way.offered_packets == way.forwarded_packets > 0 for way in ways):
            break
    live.resume()
    assert trial.verdict.kind != "invalid", trial.verdict
    assert all(way.offered_packets == way.forwarded_packets > 0 for way in ways), ways
    assert all((way.duplicate_packets, way.corrupt_packets) == (0, 0) for way in ways), ways
    return trial, get_statistics(live.call)


def streams(stats: Statistics) -> dict[str, list[StreamStatistics]]:
    """Of each generator, its stream at every monitor that it came to."""
    seen = [stream for task in stats.tasks if task.monitor is not None for stream in task.monitor.streams]
    return {name: [it for it in seen if it.stream == number] for number, name in enumerate(GENERATORS)}


@pytest.mark.parametrize(
    ("switch", "wire"),
    [("planed:workers=2", "virtio"), ("planed", "memif"), ("ovs-dpdk:workers=2", "virtio"), ("testpmd", "vhost")],
)
def test_every_frame_of_two_cores_arrives(switch: str, wire: str) -> None:
    point = make_point(switch, "p2p", direction="bidirectional", wire=wire)
    with started(switch, wire) as live:
        trial, stats = measured(live, TrialRequest(point, "latency", LOAD, DURATION_S, probe_rate_pps=2000))
        workers = [(worker.cpu, len(worker.tasks)) for worker in live.document().workers]
        assert workers == [(cpu, len(GENERATORS)) for cpu in live.placement.tester_cpus]
    assert len(stats.workers) == 2 and all(worker.busy_cycles for worker in stats.workers)
    sent = {task.name: task.generator for task in stats.tasks if task.generator is not None}
    for name, came in streams(stats).items():
        assert sum(it.forwarded_packets for it in came) == sent[name].offered_packets > 0
        assert sum(it.probes_received for it in came) == sent[name].probes_sent > 0
    assert trial.latency is not None and trial.latency.probes_received == trial.latency.probes_sent
    assert not any(way.reordered_packets for way in trial.directions)


def test_a_stream_that_the_switch_spreads_by_flow_is_counted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Open vSwitch chooses the queue by a hash: each stream comes to both monitors, each flow to one of them."""
    columns = ovs._port_columns

    def by_hash(number: int, port: SwitchPort, request: SwitchRequest) -> list[str]:
        return [*columns(number, port, request), "other_config:tx-steering=hash"]

    monkeypatch.setattr(ovs, "_port_columns", by_hash)
    profile = parse_traffic("imix:flows=64")
    point = make_point("ovs-dpdk", "p2p", traffic=profile.name)
    with started("ovs-dpdk:workers=2", "virtio") as live:
        _, stats = measured(live, TrialRequest(point, "search", LOAD, DURATION_S, profile=profile))
    sent = {task.name: task.generator for task in stats.tasks if task.generator is not None}
    found = streams(stats)
    for name in ("gen-n0", "gen-n0-q1"):
        assert [it.elsewhere_packets for it in found[name]] == [0, 0]
        assert min(it.forwarded_packets for it in found[name]) > 0
        assert sum(it.forwarded_packets for it in found[name]) == sent[name].offered_packets > 0
