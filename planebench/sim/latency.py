# SPDX-License-Identifier: BSD-3-Clause
"""Latency of a simulated switch: a base, a queue that grows with load, the wait for a batch to fill, a tail."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise

from planebench.model.records import LatencyRecord
from planebench.sim.spec import SimSpec
from planebench.stats.histogram import HIGHEST_NS, encode

SAMPLES_MAX = 2000
"""Probes that are drawn one by one; more of them would only cost time."""
BURST = 8
"""Frames of a receive burst, for the jitter of burst means."""
SPREAD = 0.15
QUEUE_LOAD_MAX = 0.98
RING_FULL_FACTOR = 50.0
"""A switch that is overloaded forwards from full rings."""


def latency_record(
    spec: SimSpec, rng: random.Random, probes: int, load_pps: float, capacity_pps: float, *, stamp_all: bool = False
) -> LatencyRecord:
    """Return the latency at ``load_pps``, the load of all directions, from at most SAMPLES_MAX probes.

    With ``stamp_all`` they stand for all frames, and have burst means too.
    """
    samples = _samples(spec, rng, min(probes, SAMPLES_MAX), load_pps, capacity_pps)
    bursts = [samples[i : i + BURST] for i in range(0, len(samples) * stamp_all, BURST)]
    means = [sum(burst) // len(burst) for burst in bursts]
    record = LatencyRecord(
        probes_sent=len(samples),
        probes_received=len(samples),
        histogram=_histogram(samples),
        probes_stamped=len(samples),
        ipdv=_histogram(_steps(samples)),
    )
    if not stamp_all:
        return record
    return replace(
        record,
        stamped_packets=len(samples),
        burst_rises=_histogram(b - a for a, b in pairwise(means) if b >= a),
        burst_falls=_histogram(a - b for a, b in pairwise(means) if b < a),
    )


def _samples(spec: SimSpec, rng: random.Random, count: int, load_pps: float, capacity_pps: float) -> list[int]:
    base_ns = spec.latency_us * 1e3
    busy = load_pps / capacity_pps
    queue = busy / (1 - busy) / 2 if busy < QUEUE_LOAD_MAX else RING_FULL_FACTOR
    fill_ns = (spec.batch - 1) / load_pps * 1e9 if spec.batch > 1 and load_pps > 0 else 0.0
    drawn = (
        base_ns * rng.lognormvariate(0.0, SPREAD) + base_ns * queue * rng.random() + fill_ns * rng.random()
        for _ in range(count)
    )
    return [min(max(1, round(ns)), HIGHEST_NS) for ns in drawn]


def _steps(values: Sequence[int]) -> Iterable[int]:
    """Return the absolute differences of successive values, at least 1 ns: HDR has no zero."""
    return (max(1, abs(b - a)) for a, b in pairwise(values))


def _histogram(values: Iterable[int]) -> str:
    return encode(sorted(Counter(values).items()))
