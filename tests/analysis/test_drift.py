# SPDX-License-Identifier: BSD-3-Clause
"""A machine that becomes slower is told from one that is only noisy."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta

from builders import make_point, make_trial

from planebench.analysis.disturbance import drift
from planebench.model.records import Trial

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


def run(seed: int, per_minute: float, passes: int = 4, noise: float = 0.01) -> list[Trial]:
    """Three switches on three topologies, two sizes each; starts have noise in common to their sizes."""
    luck, trials, minute = random.Random(seed), [], 0.0
    for repetition in range(passes):
        for chain in (1, 2, 3):
            for switch in ("planed", "ovs-dpdk", "testpmd"):
                start = luck.gauss(0, noise)
                for size in (64, 1024):
                    point = make_point(switch, "loopback", chain_length=chain, frame_size_bytes=size)
                    mpps = 10 * (1 + per_minute * minute) * (1 + start + luck.gauss(0, 0.003))
                    at = (BEGIN + timedelta(minutes=minute)).isoformat()
                    trials.append(make_trial(0, point, mpps=mpps, repetition=repetition, started_at=at))
                    minute += 0.03
    return trials


def test_a_drift_is_told_with_its_slope() -> None:
    for seed in range(20):
        found = drift(run(seed, per_minute=-0.02))
        assert found is not None
        assert found.code.value == "drift"
        assert -0.03 < found.values["per_minute"] < -0.01


def test_noise_is_no_drift() -> None:
    assert sum(drift(run(seed, per_minute=0.0)) is not None for seed in range(100)) <= 4


def test_one_pass_tells_nothing() -> None:
    assert drift(run(1, per_minute=-0.05, passes=1)) is None
    assert drift([]) is None
