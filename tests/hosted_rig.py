# SPDX-License-Identifier: BSD-3-Clause
"""A live topology with hosted VNFs or ends, and trials at a rate at which nothing is lost."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from planebench.host import facts
from planebench.host.planed_program import find_planed
from planebench.host.process import Supervisor, high_priority
from planebench.host.programs import Found, NotFound
from planebench.measure.live import LiveSettings, LiveTopology
from planebench.measure.trial import TrialRequest, run_trial
from planebench.model.cpus import Cpus
from planebench.model.records import Load, Point, Role, Trial
from planebench.model.topology import Topology
from planebench.switches.registry import get_adapter
from planebench.testbed.hosting.registry import HOSTINGS
from planebench.testbed.placement import place

PPS, DURATION_S, TRIES = 1000.0, 0.2, 20
"""A ring of 256 holds that for a quarter of a second: who waits for its CPU loses nothing."""


def needs(*names: str) -> None:
    """Skip with the reason where a hosting is not here."""
    for name in names:
        found = HOSTINGS[name].find() if name in HOSTINGS else NotFound("no such hosting")
        if isinstance(found, NotFound):
            pytest.skip(f"{name}: {found.remedy}")


@contextmanager
def running(switch: str, topology: Topology) -> Iterator[LiveTopology]:
    """Yield a switch on a topology, and check that nothing is left of it in the end."""
    planed, host, adapter = find_planed(), facts.collect(), get_adapter(switch)
    assert planed is not None
    needs(*(vnf.hosting for vnf in topology.hosted_vnfs))
    if not isinstance(adapter.find(), Found):
        pytest.skip(f"{switch} is not here")
    cpus = Cpus(host.cpus_allowed, host.siblings, host.numa_node)
    hosted, idle = topology.hosted_numbers, topology.idle_tester
    placement = place(cpus, len(topology.vnfs), hosted=hosted, idle_tester=idle)
    settings = LiveSettings(planed=planed, ring_size=256, hugepages=False, max_frame_bytes=1518, wire="virtio")
    with high_priority(), Supervisor(Path("/tmp")) as supervisor:
        it = LiveTopology.start("it", adapter, topology, placement, settings, supervisor)
        yield it
        it.stop()
        assert not any(process.alive() for process in supervisor.processes)


def measure(live: LiveTopology, point: Point, role: Role = "search", *, probes: int = 0) -> Trial:
    """Run a paced trial; again where a busy machine did not get all of it sent or through."""
    request = TrialRequest(point, role, Load("x", PPS), DURATION_S, probe_rate_pps=probes)
    for _ in range(TRIES):
        trial = run_trial(live, request, lambda: None)
        if all(way.offered_packets and not way.lost_packets for way in trial.directions):
            break
    return trial


def assert_exact(trial: Trial, *ways: str) -> None:
    """Check that nothing was lost, doubled or damaged in the given directions."""
    assert [way.name for way in trial.directions] == [*ways], trial.verdict.texts
    for way in trial.directions:
        assert way.forwarded_packets == way.offered_packets > 0, (trial.verdict.texts, trial.tester_drops)
        assert (way.duplicate_packets, way.corrupt_packets) == (0, 0)
    assert not trial.tester_drops
