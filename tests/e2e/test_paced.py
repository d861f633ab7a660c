# SPDX-License-Identifier: BSD-3-Clause
"""A paced trial with probes on every topology with every switch, whatever a saturating one came to."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from builders import make_point
from e2e_rig import SWITCHES

from planebench.analysis.histogram import merge, summarise
from planebench.host import facts
from planebench.host.planed_program import find_planed
from planebench.host.process import Supervisor, high_priority
from planebench.host.programs import NotFound
from planebench.measure.live import LiveSettings, LiveTopology
from planebench.measure.trial import TrialRequest, run_trial
from planebench.model.cpus import Cpus
from planebench.model.plan import FrameCheck
from planebench.model.records import Load, Point, Trial
from planebench.model.scenarios import build
from planebench.switches.registry import get_adapter
from planebench.testbed.placement import place

pytestmark = [pytest.mark.dataplane, pytest.mark.timeout(180)]

PPS = 20_000.0
PROBES_PPS = 2000
DURATION_S = 0.05
TRIES = 20
POINTS = {
    "p2p": {"direction": "bidirectional"},
    "p2v": {"direction": "reversed"},
    "v2v": {"direction": "unidirectional"},  # echoed, as v2v latency is measured
    "loopback": {"direction": "bidirectional"},
}
CASES = (
    *(("planed", scenario) for scenario in POINTS),
    *((switch, scenario) for switch in SWITCHES[1:] for scenario in ("p2v", "v2v")),
    ("planed:workers=4", "loopback"),
)


@pytest.fixture(params=CASES, ids="-".join)
def live(request: pytest.FixtureRequest) -> Iterator[tuple[LiveTopology, Point]]:
    with started(*request.param) as it:
        yield it


@contextlib.contextmanager
def started(name: str, scenario: str, check: FrameCheck = "full") -> Iterator[tuple[LiveTopology, Point]]:
    adapter, planed, host = get_adapter(name), find_planed(), facts.collect()
    found = adapter.find()
    if isinstance(found, NotFound):
        pytest.skip(f"{name} is not here: {found.remedy}")
    assert planed is not None
    point = make_point(adapter.name, scenario, **POINTS[scenario])
    topology = build(point.scenario, point.chain_length, echo=point.scenario == "v2v")
    placement = place(Cpus(host.cpus_allowed, host.siblings, host.numa_node), len(topology.vnfs))
    settings = LiveSettings(planed, 256, hugepages=False, max_frame_bytes=1518, wire="virtio", check=check)
    with high_priority(), Supervisor(Path("/tmp")) as supervisor:
        it = LiveTopology.start(adapter.name, adapter, topology, placement, settings, supervisor)
        yield it, point
        it.stop()


def measure(live: LiveTopology, point: Point, probe_rate_pps: int = PROBES_PPS) -> Trial:
    """A trial in which something was sent; on a machine without a free moment even that may take several."""
    wanted = TrialRequest(
        point,
        "latency" if probe_rate_pps else "r_plus",
        Load("20kpps", PPS),
        DURATION_S,
        probe_rate_pps=probe_rate_pps,
    )
    for _ in range(TRIES):
        trial = run_trial(live, wanted, lambda: None)
        if (trial.latency is not None) == (probe_rate_pps > 0) and all(
            way.forwarded_packets for way in trial.directions
        ):
            break
    return trial


def test_every_frame_and_every_probe_is_accounted_for(live: tuple[LiveTopology, Point]) -> None:
    topology, point = live
    trial = measure(topology, point)
    assert trial.verdict.kind != "invalid", trial.verdict
    assert len(trial.directions) == (2 if point.direction == "bidirectional" else 1)
    for way in trial.directions:
        assert way.intended_packets == PPS * DURATION_S
        assert way.offered_packets == way.intended_packets - way.unsent_late_packets - way.unsent_ring_full_packets
        assert 0 < way.forwarded_packets <= way.offered_packets
        assert (way.duplicate_packets, way.reordered_packets, way.corrupt_packets) == (0, 0, 0)
    if point.switch == "planed" and point.scenario in ("p2p", "p2v"):
        assert sum(way.lost_packets for way in trial.directions) == sum(trial.switch.drops.values())
    assert trial.evidence.foreign_packets == 0
    latency = trial.latency
    assert latency is not None
    assert 0 < latency.probes_received <= latency.probes_sent <= len(trial.directions) * PROBES_PPS * DURATION_S
    summary = summarise(merge(filter(None, [latency.histogram, latency.host])))
    assert summary is not None
    assert summary.samples == latency.probes_received
    assert summary.p50 > 0


def test_a_sampled_trial_counts_every_frame() -> None:
    with started("planed", "p2p", "sampled") as (topology, point):
        sampled, probed = measure(topology, point, 0), measure(topology, point)
    assert sampled.verdict.kind != "invalid", sampled.verdict
    for way in sampled.directions:
        assert 0 < way.unchecked_packets < way.forwarded_packets <= way.offered_packets
        assert way.forwarded_bytes == way.forwarded_packets * point.frame_size_bytes
    assert sum(way.lost_packets for way in sampled.directions) == sum(sampled.switch.drops.values())
    assert probed.latency is not None
    assert probed.latency.probes_received > 0
    assert all(way.unchecked_packets == 0 for way in probed.directions)
