# SPDX-License-Identifier: BSD-3-Clause
"""The estimate of a capacity against a poller whose cost is known."""

from __future__ import annotations

import random

import pytest
from builders import make_header, make_trial

from planebench.model.records import DirectionCounts, Load, SwitchCycles, Trial
from planebench.model.run import Run
from planebench.stats import derive_results
from planebench.stats.capacity import capacity_estimate_pps

HZ = 2_000_000_000
OF_PACKET, OF_POLL, FULL = 100.0, 800.0, 32
CAPACITY_PPS = HZ / (OF_PACKET + OF_POLL / FULL)


def poller(share: float, luck: random.Random, noise: float = 0.0, **changes: object) -> Trial:
    """Return a trial at a share of the capacity: a poll takes what came in since the last one, at least a frame."""
    pps = share * CAPACITY_PPS
    per_cycle = pps / HZ
    batch = min(max(1.0, per_cycle * OF_POLL / (1 - per_cycle * OF_PACKET)), FULL)
    packets = round(pps)
    busy = packets * (OF_PACKET + OF_POLL / batch) * luck.gauss(1.0, noise)
    switch = SwitchCycles(
        busy_cycles=min(round(busy), HZ),
        idle_cycles=max(HZ - round(busy), 0),
        packets=packets,
        bursts=round(packets / batch),
    )
    counts = (DirectionCounts("n0->n1", packets, packets, packets),)
    return make_trial(switch=switch, directions=counts, load=Load("paced", pps), **changes)


@pytest.mark.parametrize("loads", [(0.1, 0.5, 0.8), (0.1, 0.6, 0.6, 0.6), (0.3, 0.6, 0.9)])
def test_the_estimate_is_within_a_tenth_where_throughput_by_utilization_is_not(loads: tuple[float, ...]) -> None:
    luck = random.Random(1)
    for _ in range(50):
        trials = [poller(share, luck, noise=0.01) for share in loads]
        assert capacity_estimate_pps(trials) == pytest.approx(CAPACITY_PPS, rel=0.1)
    slow = trials[0]
    assert slow.throughput_pps / (slow.switch.busy_share or 1) < 0.7 * CAPACITY_PPS


def test_there_is_no_estimate_where_the_cost_cannot_be_fitted() -> None:
    luck = random.Random(1)
    few, alike = [poller(s, luck) for s in (0.1, 0.8)], [poller(s, luck) for s in (0.79, 0.8, 0.81)]
    assert capacity_estimate_pps(few) is None
    assert capacity_estimate_pps(alike) is None
    wild = [poller(s, luck, noise=0.5) for s in (0.1, 0.2, 0.4, 0.6, 0.8)]
    assert capacity_estimate_pps(wild) is None
    mute = make_trial(switch=SwitchCycles(busy_cycles=50, idle_cycles=50, packets=1))
    assert capacity_estimate_pps([mute] * 5) is None


def test_only_a_result_that_the_tester_limits_has_an_estimate() -> None:
    luck = random.Random(1)
    for verdict in ("valid", "tester-limited"):
        trials = [poller(s, luck, role="r_plus", verdict=verdict, index=i) for i, s in enumerate((0.1, 0.5, 0.8))]
        (result,) = derive_results(Run(make_header(), tuple(trials)))
        assert (result.capacity_estimate_pps is None) == (verdict == "valid")
