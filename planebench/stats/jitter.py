# SPDX-License-Identifier: BSD-3-Clause
"""Jitter by three definitions: IPDV (RFC 3393), PDV (RFC 5481), burst means (ic16). Microseconds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from planebench.model.records import LatencyRecord
from planebench.model.results import JitterSummary
from planebench.stats.histogram import Counts, merge, summarise, used_ns


def merged_jitter(histograms: Iterable[str]) -> JitterSummary | None:
    """Return the merged histograms of differences (IPDV; burst means, both signs). Empty texts are unknown; None if all
    are."""
    known = [text for text in histograms if text]
    summary = summarise(merge(known)) if known else None
    if summary is None:
        return None
    return JitterSummary(summary.mean, summary.p50, summary.p99, summary.max, summary.samples)


def burst_sizes(record: LatencyRecord) -> Iterator[str]:
    """Yield the histograms that have the sizes of the differences of burst means, rises and falls."""
    yield from (record.burst_rises, record.burst_falls)


def signed_jitter(rises: Iterable[str], falls: Iterable[str]) -> JitterSummary | None:
    """Return the differences of burst means with their signs: a fall is below zero. None if nothing is known.

    The mean is near zero wherever latency does not drift; percentiles and maximum are of the signed values.
    """
    up, down = (used_ns(merge(text for text in texts if text)) for texts in (rises, falls))
    values_us = np.concatenate([-down[0][::-1], up[0]]) / 1e3
    counts = np.concatenate([down[1][::-1], up[1]])
    return _summary(values_us, counts) if counts.size else None


def pdv(latency: Counts) -> JitterSummary | None:
    """Return the packet delay variation of a latency histogram: delay minus the least delay (RFC 5481 section 4.2).

    A delay is the middle of its bucket, so that the least one varies by exactly zero. None for an empty histogram.
    """
    delay_ns, counts = used_ns(latency)
    if counts.size == 0:
        return None
    return _summary((delay_ns - delay_ns[0]) / 1e3, counts)


def _summary(values_us: NDArray[np.float64], counts: Counts) -> JitterSummary:
    """Return the figures of values in rising order, each with its count."""
    cumulative = np.cumsum(counts)
    samples = int(cumulative[-1])

    def percentile(share: float) -> float:
        rank = max(1, int(np.ceil(share * samples - 1e-9)))
        return float(values_us[int(np.searchsorted(cumulative, rank))])

    mean = float((counts * values_us).sum()) / samples
    return JitterSummary(mean, percentile(0.50), percentile(0.99), float(values_us[-1]), samples)
