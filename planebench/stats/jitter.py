# SPDX-License-Identifier: BSD-3-Clause
"""Jitter by three definitions: IPDV (RFC 3393), PDV (RFC 5481), burst jitter (ic16). Microseconds."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from planebench.model.results import JitterSummary
from planebench.stats.histogram import Counts, merge, summarise, used_ns


def merged_jitter(histograms: Iterable[str]) -> JitterSummary | None:
    """Return the merged histograms of differences (IPDV, burst jitter). Empty texts are unknown; None if all are."""
    known = [text for text in histograms if text]
    summary = summarise(merge(known)) if known else None
    if summary is None:
        return None
    return JitterSummary(summary.mean, summary.p50, summary.p99, summary.max, summary.samples)


def pdv(latency: Counts) -> JitterSummary | None:
    """Return the packet delay variation of a latency histogram: delay minus the least delay (RFC 5481 section 4.2).

    A delay is the middle of its bucket, so that the least one varies by exactly zero. None for an empty histogram.
    """
    delay_ns, counts = used_ns(latency)
    if counts.size == 0:
        return None
    variation_us = (delay_ns - delay_ns[0]) / 1e3
    cumulative = np.cumsum(counts)
    samples = int(cumulative[-1])

    def percentile(share: float) -> float:
        rank = max(1, int(np.ceil(share * samples - 1e-9)))
        return float(variation_us[int(np.searchsorted(cumulative, rank))])

    mean = float((counts * variation_us).sum()) / samples
    return JitterSummary(mean, percentile(0.50), percentile(0.99), float(variation_us[-1]), samples)
