# SPDX-License-Identifier: BSD-3-Clause
"""Exact counts through switches with two queue pairs per port, and a VNF of two cores behind them."""

from __future__ import annotations

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
from planebench.testbed.placement import place_vnfs

pytestmark = [pytest.mark.dataplane, pytest.mark.timeout(120)]

PPS = 20_000.0
DURATION_S = 0.05
TRIES = 20
CHAIN = "l2fwd:cores=2"


@pytest.mark.parametrize(
    ("switch", "wire"),
    [("testpmd:workers=2", "virtio"), ("ovs-dpdk:workers=2", "virtio"), ("planed:workers=2", "memif")],
)
def test_every_frame_of_two_queues_arrives(switch: str, wire: str) -> None:
    adapter, planed, host = get_adapter(switch), find_planed(), facts.collect()
    found = adapter.find()
    if isinstance(found, NotFound):
        pytest.skip(f"{switch} is not here: {found.remedy}")
    assert planed is not None
    topology = build_chain("loopback", 1, chain=CHAIN)
    placement = place_vnfs(Cpus(host.cpus_allowed, host.siblings, host.numa_node), topology.cores_of_vnfs)
    settings = LiveSettings(planed=planed, ring_size=256, hugepages=False, max_frame_bytes=1518, wire=wire)
    point = make_point(adapter.name, "loopback", direction="bidirectional", chain_length=1, chain=CHAIN, wire=wire)
    wanted = TrialRequest(point, "latency", Load("20kpps", PPS), DURATION_S, probe_rate_pps=2000)
    with high_priority(), Supervisor(Path("/tmp")) as supervisor:
        live = LiveTopology.start(adapter.name, adapter, topology, placement, settings, supervisor)
        for _ in range(TRIES):  # others may take the only CPU for longer than the rings hold
            trial = run_trial(live, wanted, lambda: None)
            ways = trial.directions
            if all(way.offered_packets == way.forwarded_packets > 0 for way in ways):
                break
        live.resume()
        stats = get_statistics(live.call)
        live.stop()
    assert trial.verdict.kind != "invalid", trial.verdict
    assert all(way.offered_packets == way.forwarded_packets > 0 for way in ways), ways
    sent = {task.name: task.generator.offered_packets for task in stats.tasks if task.generator is not None}
    assert sent.keys() == {"gen-n0", "gen-n0-q1", "gen-n1", "gen-n1-q1"} and all(sent.values())
    assert sum(sent.values()) == sum(way.offered_packets for way in ways)
    forwarded = [task.tx_packets for task in stats.tasks if task.kind == "l2fwd"]
    assert len(forwarded) == 2 and sum(forwarded) == sum(sent.values())
