# SPDX-License-Identifier: BSD-3-Clause
"""Latency histograms: HDR, 1 ns to 10 s, three significant digits, stored whole and merged by adding counts.

Stored as the standard HDR V2 compressed encoding in base64, so that any HDR tool can read a run folder.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import sqrt

import numpy as np
from hdrh.histogram import HdrHistogram
from numpy.typing import NDArray

from planebench.model.errors import StoreError
from planebench.model.results import HistogramSummary

LOWEST_NS = 1
HIGHEST_NS = 10_000_000_000
SIGNIFICANT_DIGITS = 3

Counts = NDArray[np.int64]
"""One count for each HDR bucket, dense."""

_SUB_BUCKETS = 2048
"""HDR: smallest power of two above 2 x 10^3 values. The upper half of each doubling is used."""
_HALF = _SUB_BUCKETS // 2
_LENGTH: int = HdrHistogram(LOWEST_NS, HIGHEST_NS, SIGNIFICANT_DIGITS).counts_len


# The lowest value and the width of each bucket (HdrHistogram, "value from index").
_INDEX = np.arange(_LENGTH)
_WIDTH_NS = 2.0 ** np.maximum(_INDEX // _HALF - 1, 0)
_LOW_NS = np.where(_INDEX < _HALF, _INDEX, _INDEX % _HALF + _HALF) * _WIDTH_NS
_MIDDLE_NS = _LOW_NS + np.floor(_WIDTH_NS / 2)
_TOP_NS = np.minimum(_LOW_NS + _WIDTH_NS - 1, HIGHEST_NS)


def encode(counts: Iterable[Sequence[int]], overflow: int = 0) -> str:
    """Return planed's sparse ``[[value_ns, count], ...]`` as HDR V2 base64.

    ``overflow`` probes, which took longer than 10 s, are put in as 10 s: the histogram then holds every probe that came
    back, and no percentile is flattered. Raises ValueError for a value or count that is negative or out of range.
    """
    histogram = HdrHistogram(LOWEST_NS, HIGHEST_NS, SIGNIFICANT_DIGITS)
    for value_ns, count in [*counts, (HIGHEST_NS, overflow)]:
        if value_ns < 0 or count < 0:
            raise ValueError(f"latency bucket [{value_ns} ns, {count}]: values and counts are not negative")
        if count and not histogram.record_value(min(value_ns, HIGHEST_NS), count):
            raise ValueError(f"latency bucket [{value_ns} ns, {count}]: not between {LOWEST_NS} and {HIGHEST_NS} ns")
    encoded: bytes = histogram.encode()
    return encoded.decode("ascii")


@lru_cache(maxsize=256)
def decode(text: str) -> Counts:
    """Return the counts of a stored histogram, read-only. Raises StoreError for another format."""
    try:
        histogram = HdrHistogram.decode(text.encode("ascii"))
        counts = np.ctypeslib.as_array(histogram.counts).astype(np.int64)
    except MemoryError:
        raise
    except Exception as error:  # the package raises whatever its layers raise: binascii, zlib, struct, its own
        raise StoreError(f"stored latency histogram {text[:24]!r}... cannot be decoded: {error!r}") from error
    if counts.shape != (_LENGTH,) or histogram.unit_magnitude != 0:
        raise StoreError(
            f"stored latency histogram has {counts.size} buckets, not the {_LENGTH} of 1 ns to 10 s, 3 digits"
        )
    counts.flags.writeable = False  # kept: comparing the switches of a cell asks for the same ones again and again
    return counts


def encode_counts(counts: Counts) -> str:
    """Return counts as a stored histogram."""
    used = np.flatnonzero(counts)
    return encode(zip(_LOW_NS[used].astype(int).tolist(), counts[used].tolist(), strict=True))


def merge(texts: Iterable[str]) -> Counts:
    """Return all stored histograms merged: counts are added bucket by bucket."""
    total = np.zeros(_LENGTH, dtype=np.int64)
    for text in texts:
        total += decode(text)
    return total


def summarise(counts: Counts) -> HistogramSummary | None:
    """Return mean, deviation (population), percentiles and maximum in us; None for an empty histogram.

    A percentile is the upper edge of the bucket that holds its rank, as in HDR: at most 0.1 % above the sample.
    """
    samples = int(counts.sum())
    if samples == 0:
        return None
    used = np.flatnonzero(counts)
    # Only the buckets in use, and sums instead of products of vectors: BLAS wakes threads for 24,000 elements, which
    # takes milliseconds where something else has the CPUs.
    values, weights = _MIDDLE_NS[used], counts[used]
    mean = float((weights * values).sum()) / samples
    variance = float((weights * (values - mean) ** 2).sum()) / samples
    p50, p90, p99, p99_9 = (percentile_ns(counts, share) / 1e3 for share in (0.50, 0.90, 0.99, 0.999))
    top = float(_TOP_NS[used[-1]])
    return HistogramSummary(samples, mean / 1e3, variance**0.5 / 1e3, p50, p90, p99, p99_9, top / 1e3)


def percentile_ns(counts: Counts, share: float) -> float:
    """Return the latency in ns that ``share`` (0..1) of the samples do not exceed. Needs a sample."""
    return float(_TOP_NS[place_of(counts, share)])


def place_of(counts: Counts, share: float) -> int:
    """Return the place in ``counts`` of the value that ``share`` of the samples do not exceed: nearest rank."""
    cumulative = np.cumsum(counts)
    # The tolerance keeps 0.999 x 1000, which floating point makes 999.0000000000001, at rank 999.
    rank = max(1, int(np.ceil(share * int(cumulative[-1]) - 1e-9)))
    return int(np.searchsorted(cumulative, rank))


def used_ns(counts: Counts) -> tuple[NDArray[np.float64], Counts]:
    """Return the non-empty buckets, rising: the middle value of each in ns, and its count."""
    used = np.flatnonzero(counts)
    return _MIDDLE_NS[used], counts[used]


def upper_edges_ns(counts: Counts) -> tuple[NDArray[np.float64], Counts]:
    """Return the non-empty buckets with their upper edges, which percentiles use."""
    used = np.flatnonzero(counts)
    return _TOP_NS[used], counts[used]


# How one clock runs against another: offset and drift, from readings of both by one TSC. Pure.

WRAP = 2**64


@dataclass(frozen=True, slots=True)
class Relation:
    """Clock B reads ``offset_ns`` more than clock A when A reads ``at_ns``, and ``drift`` more for each ns since.

    Both are ints: times of 64 bits lose nanoseconds as floats.
    """

    at_ns: int = 0
    offset_ns: int = 0
    drift: float = 0.0
    offset_error_ns: float = 0.0
    """Standard error of the offset at ``at_ns``."""
    drift_error: float = 0.0

    def error_at(self, a_ns: int) -> float:
        """Return the standard error of the offset when clock A reads ``a_ns``: it grows with the time since."""
        return sqrt(self.offset_error_ns**2 + (self.drift_error * difference_ns(self.at_ns, a_ns)) ** 2)

    def elapsed_ns(self, a_ns: int, b_ns: int) -> float:
        """Return the time from ``a_ns`` by clock A to ``b_ns`` by clock B."""
        return difference_ns(a_ns + self.offset_ns, b_ns) - self.drift * difference_ns(self.at_ns, a_ns)


@dataclass(frozen=True, slots=True)
class ClockReading:
    """A clock read ``ns`` at ``tsc``, within half of ``width_tsc``."""

    tsc: int
    ns: int
    width_tsc: int


SAME = Relation()
"""Both stamps are of one clock."""


def difference_ns(earlier_ns: int, later_ns: int) -> int:
    """Return ``later_ns`` - ``earlier_ns`` of a counter of 64 bits, which may have wrapped in between."""
    return (later_ns - earlier_ns + WRAP // 2) % WRAP - WRAP // 2


def relate_readings(
    a: tuple[ClockReading, ClockReading], b: tuple[ClockReading, ClockReading], tsc_hz: int
) -> Relation:
    """Return the relation of clock B to clock A from a reading of each before and one after, all by one TSC.

    The offset is wrong by half of the time that the readings took, at most. Clock A tells the rate of the TSC between
    its two readings; ``tsc_hz`` is taken where they are the same.
    """
    passed_ns, ticks = difference_ns(a[0].ns, a[1].ns), a[1].tsc - a[0].tsc
    ns_per_tick = passed_ns / ticks if passed_ns and ticks else 1e9 / tsc_hz
    pairs = list(zip(a, b, strict=True))
    offsets = [difference_ns(at_a.ns, at_b.ns) + (at_a.tsc - at_b.tsc) * ns_per_tick for at_a, at_b in pairs]
    error_ns = max(at_a.width_tsc + at_b.width_tsc for at_a, at_b in pairs) / 2 * ns_per_tick
    return Relation(
        at_ns=a[0].ns,
        offset_ns=round(offsets[0]),
        drift=(offsets[1] - offsets[0]) / passed_ns if passed_ns else 0.0,
        offset_error_ns=error_ns,
    )
