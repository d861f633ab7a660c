# SPDX-License-Identifier: BSD-3-Clause
"""Exact counts through two switches and the link between them, and the verdict where they share a CPU."""

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
from planebench.model.scenarios import build
from planebench.switches.registry import get_adapter
from planebench.testbed.placement import place

pytestmark = [pytest.mark.dataplane, pytest.mark.timeout(120)]

TRIES = 20


@pytest.mark.parametrize("switch", ["planed", "testpmd"])
def test_every_frame_crosses_both_switches(switch: str) -> None:
    adapter, planed, host = get_adapter(switch), find_planed(), facts.collect()
    found = adapter.find()
    if isinstance(found, NotFound):
        pytest.skip(f"{switch} is not here: {found.remedy}")
    assert planed is not None
    topology = build("bridged", 2)
    placement = place(Cpus(host.cpus_allowed, host.siblings, host.numa_node), 2)
    settings = LiveSettings(planed=planed, ring_size=256, hugepages=False, max_frame_bytes=1518, wire="virtio")
    point = make_point(adapter.name, "bridged", direction="bidirectional", chain_length=2)
    wanted = TrialRequest(point, "latency", Load("2kpps", 2000.0), 0.05, probe_rate_pps=500)
    with high_priority(), Supervisor(Path("/tmp")) as supervisor:
        live = LiveTopology.start(adapter.name, adapter, topology, placement, settings, supervisor)
        for _ in range(TRIES):  # two pollers take turns on one core
            trial = run_trial(live, wanted, lambda: None)
            if all(way.offered_packets == way.forwarded_packets > 0 for way in trial.directions):
                break
        processes = len(live.switch.pids())
        live.stop()
    assert all(way.offered_packets == way.forwarded_packets > 0 for way in trial.directions), trial
    assert processes == 2
    sent = sum(way.offered_packets for way in trial.directions)
    assert (trial.switch.packets, trial.switch.forwarded_packets) == (4 * sent, 4 * sent)
    assert trial.verdict.kind == "functional" and "two switches share CPU" in trial.verdict.texts[0]
