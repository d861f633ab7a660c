# SPDX-License-Identifier: BSD-3-Clause
"""Exact counts of a tester of two cores, whose workers each have a queue pair of every port."""

from __future__ import annotations

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
from planebench.model.records import Load
from planebench.planed.client import get_statistics
from planebench.switches.registry import get_adapter
from planebench.testbed.chain import build_chain
from planebench.testbed.placement import place

pytestmark = [pytest.mark.dataplane, pytest.mark.timeout(120)]

PPS = 20_000.0
DURATION_S = 0.05
TRIES = 20


@pytest.mark.parametrize(
    ("switch", "wire"),
    [("planed:workers=2", "virtio"), ("planed", "memif"), ("ovs-dpdk:workers=2", "virtio"), ("testpmd", "vhost")],
)
def test_every_frame_of_two_cores_arrives(switch: str, wire: str) -> None:
    """On a machine of two CPUs they are those of the switch, too: frames may wait for longer than rings hold."""
    adapter, planed, host = get_adapter(switch), find_planed(), facts.collect()
    found = adapter.find()
    if isinstance(found, NotFound):
        pytest.skip(f"{switch} is not here: {found.remedy}")
    assert planed is not None
    first, *_, last = host.cpus_allowed
    if first == last:
        pytest.skip("one CPU")
    placement = place(Cpus(host.cpus_allowed, host.siblings, host.numa_node, tester_cores=2))
    if len(placement.tester_cpus) < 2:
        placement = replace(placement, tester_cpus=(first, last), more_switch_cpus=(first,), shared=True)
    settings = LiveSettings(
        planed=planed, ring_size=256, hugepages=False, max_frame_bytes=1518, wire=wire, tester_cores=2
    )
    point = make_point(adapter.name, "p2p", direction="bidirectional", wire=wire)
    wanted = TrialRequest(point, "latency", Load("20kpps", PPS), DURATION_S, probe_rate_pps=2000)
    with high_priority(), Supervisor(Path("/tmp")) as supervisor:
        live = LiveTopology.start(adapter.name, adapter, build_chain("p2p", 0), placement, settings, supervisor)
        for _ in range(TRIES):
            trial = run_trial(live, wanted, lambda: None)
            ways = trial.directions
            if all(way.offered_packets == way.forwarded_packets > 0 for way in ways):
                break
        live.resume()
        stats = get_statistics(live.call)
        live.stop()
    assert trial.verdict.kind != "invalid", trial.verdict
    assert all(way.offered_packets == way.forwarded_packets > 0 for way in ways), ways
    assert all((way.duplicate_packets, way.reordered_packets, way.corrupt_packets) == (0, 0, 0) for way in ways), ways
    assert [(worker.cpu, len(worker.tasks)) for worker in live.document().workers] == [
        (cpu, 4) for cpu in placement.tester_cpus
    ]
    assert len(stats.workers) == 2 and all(worker.busy_cycles for worker in stats.workers)
    sent = {task.name: task.generator for task in stats.tasks if task.generator is not None}
    seen = [stream for task in stats.tasks if task.monitor is not None for stream in task.monitor.streams]
    for stream, name in enumerate(("gen-n0", "gen-n1", "gen-n0-q1", "gen-n1-q1")):
        came = [it for it in seen if it.stream == stream]
        assert sum(it.forwarded_packets for it in came) == sent[name].offered_packets > 0
        assert sum(it.probes_received for it in came) == sent[name].probes_sent > 0
    assert trial.latency is not None and trial.latency.probes_received == trial.latency.probes_sent
