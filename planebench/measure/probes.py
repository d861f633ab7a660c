# SPDX-License-Identifier: BSD-3-Clause
"""Probes by what they met: the tester's gaps are the host's, and a stall is the host's or the switch's. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from planebench.model.records import Evidence, LatencyRecord
from planebench.model.time_had import stood
from planebench.planed.statistics import Stream
from planebench.stats.histogram import decode, encode, encode_counts, merge

HistogramKind = Literal["latency", "latency_gap", "latency_stall", "ipdv", "burst_rises", "burst_falls"]
PROBES: tuple[HistogramKind, ...] = ("latency", "latency_gap", "latency_stall")
"""Each probe is in one of these."""
HOSTS_SHARE = 0.5
"""Stalls are the host's if the kernel knows of waits for at least this share of their time."""


def histogram_of(streams: Sequence[Stream], *kinds: HistogramKind) -> str:
    """Return the histograms of some kinds as one, encoded. Streams without frames, or such probes, add nothing."""
    found = [stream[kind] for stream in streams for kind in kinds if kind in stream]
    counts = [pair for histogram in found for pair in histogram["counts"]]
    return encode(counts, sum(histogram["overflow"] for histogram in found))


def charged(latency: LatencyRecord, evidence: Evidence, duration_ns: int, *, roaming: bool = False) -> LatencyRecord:
    """Return the latency with the probes that met a stall in ``host`` if the stalls are the host's.

    The rule: while a thread of the switch, or of a VNF in a process of its own, waits for a CPU, no frame comes. So
    stalls are the host's if these waits, as `stood` accounts them, make up half of their time or more; else they are
    the switch's own, as any stall that the kernel cannot explain: a stop, a lock, a flush. They are judged together:
    which of them a wait fell in is not known. Stalls are of the time that the tester polled, so of the waits that share
    counts.

    Where the host would have every probe, nothing is left to tell apart, and all stay in ``histogram``.
    """
    histogram, host = decode(latency.histogram), merge(filter(None, [latency.host]))
    host_took = stood(evidence, duration_ns, roaming=roaming)
    kept_ns = host_took.waited * (1 - host_took.tester) * duration_ns
    if latency.stalled and kept_ns >= HOSTS_SHARE * latency.stalled_ns:
        stalled = decode(latency.stalled)
        histogram, host = histogram - stalled, host + stalled
    if not histogram.any():
        histogram, host = host, histogram
    return replace(latency, histogram=encode_counts(histogram), host=encode_counts(host) if host.any() else "")
