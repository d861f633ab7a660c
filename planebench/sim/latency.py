# SPDX-License-Identifier: BSD-3-Clause
"""Latency of a simulated switch: a base, a queue that grows with load, the wait for a batch to fill, a tail."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise

from planebench.model.records import LatencyRecord
from planebench.sim.draw import Draw
from planebench.sim.foreign import Standing
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
    spec: SimSpec, luck: Draw, probes: int, load_pps: float, host: Standing, held_ns: float, *, stamp_all: bool = False
) -> LatencyRecord:
    """Return the latency at ``load_pps``, the load of all directions, from at most SAMPLES_MAX probes.

    With ``stamp_all`` they stand for all frames, and have burst means too. What comes in the first ``held_ns`` in which
    the switch stands, and what is under way when the tester begins to, is late by the rest of that time.
    """
    samples = _samples(spec, luck.rng, min(probes, SAMPLES_MAX), load_pps, luck.capacity_pps)
    samples = _late(samples, luck.host, host, held_ns, spec.latency_us * 1e3)
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


def _late(samples: Sequence[int], rng: random.Random, host: Standing, held_ns: float, under_way_ns: float) -> list[int]:
    """Return the latencies with the time for which some of the probes met a poller that stood."""
    lengths = [end - begin for spans in (host.switch, host.tester) for begin, end in spans]
    windows = [min(held_ns, length) for length in lengths[: len(host.switch)]]
    windows += [min(under_way_ns, length) for length in lengths[len(host.switch) :]]
    share = sum(windows) / (sum(windows) + max(host.had * host.duration_ns, 1.0))
    late = []
    for ns in samples:
        if rng.random() < share:
            ((length, window),) = rng.choices(list(zip(lengths, windows, strict=True)), windows)
            ns = min(ns + round(length - window * rng.random()), HIGHEST_NS)
        late.append(ns)
    return late


def _steps(values: Sequence[int]) -> Iterable[int]:
    """Return the absolute differences of successive values, at least 1 ns: HDR has no zero."""
    return (max(1, abs(b - a)) for a, b in pairwise(values))


def _histogram(values: Iterable[int]) -> str:
    return encode(sorted(Counter(values).items()))
