# SPDX-License-Identifier: BSD-3-Clause
"""A live topology on the veth wire with a switch in the kernel, and an exact count of what crosses it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import pytest

from planebench.host.facts import CAP_SYS_NICE, has_capability
from planebench.host.planed_program import find_planed
from planebench.host.process import Supervisor
from planebench.measure.counts import Sending, tester_counts
from planebench.measure.live import LiveSettings, LiveTopology
from planebench.model.cpus import Cpus
from planebench.model.scenario import Direction, ScenarioName
from planebench.model.scenarios import build, flows
from planebench.switches.adapter import Adapter
from planebench.testbed.placement import place
from planebench.testbed.traffic import parse_traffic

PLACES_THREADS = pytest.mark.skipif(
    os.geteuid() != 0 or not has_capability(CAP_SYS_NICE),
    reason="only root with CAP_SYS_NICE may load XDP programs and place kernel threads",
)

RATE_PPS, DURATION_S = 5_000, 0.02
"""100 frames each way: fewer than any ring has places, so that no stall of the machine can lose one."""


def live(
    adapter: Adapter,
    supervisor: Supervisor,
    scenario: ScenarioName,
    length: int = 0,
    traffic: str = "",
    *,
    echo: bool = False,
) -> LiveTopology:
    """Tester and switch, connected; running."""
    planed = find_planed()
    assert planed is not None
    topology = build(scenario, length, echo=echo)
    it = LiveTopology.start(
        adapter.name,
        adapter,
        topology,
        place(Cpus(tuple(sorted(os.sched_getaffinity(0)))), len(topology.vnfs)),
        LiveSettings(planed=planed, ring_size=256, hugepages=False, max_frame_bytes=1518, wire="veth"),
        supervisor,
        profiles=[parse_traffic(traffic)] if traffic else [],
    )
    it.resume()
    return it


def crossed(it: LiveTopology, direction: Direction, traffic: str = "") -> Mapping[str, Any]:
    """Send; every frame must arrive once, whole, in order, and nothing else. The switch's counters of it."""
    topology = it.topology
    wanted = flows(topology, direction)
    profile = it.profile(parse_traffic(traffic), "", flat_out=False) if traffic else None
    before = it.switch.counters()
    counts = tester_counts(it.send(Sending(wanted, 128, DURATION_S, RATE_PPS, profile=profile)), wanted)
    after = it.switch.counters()
    sent = sum(way.offered_packets for way in counts.directions)
    assert sent > 0
    for way in counts.directions:
        assert (way.forwarded_packets, way.reordered_packets, way.corrupt_packets) == (way.offered_packets, 0, 0), way
        assert way.forwarded_bytes == way.offered_bytes
    assert (counts.evidence.foreign_packets, counts.misdirected_packets) == (0, 0)
    received, each_hop = (after.packets or 0) - (before.packets or 0), len(topology.cross_connects) * sent
    assert received == (after.forwarded_packets or 0) - (before.forwarded_packets or 0) == each_hop
    assert not any(after.drops.values()), after.drops
    return {"busy": (after.busy_cycles, before.busy_cycles)}
