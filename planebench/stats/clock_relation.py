# SPDX-License-Identifier: BSD-3-Clause
"""How one clock runs against another: offset and drift, from frames that were sent both ways over a cable. Pure.

As RFC 5905 (NTP) has it: a frame that is sent at a by clock A and received at b by clock B shows b - a = offset +
delay, one in the other direction shows a - b = -offset + delay. The cable takes the same time both ways, so the offset
is half the difference, and the delay half the sum. The offset changes by the drift: a straight line through the offsets
of many pairs of frames shows it, and its error.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np

WRAP = 2**64
LEAST_PAIRS = 8

Stamped = tuple[int, int]
"""When a frame was sent by the clock of its sender, and when it was received by that of its receiver, in ns."""


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
    delay_ns: float = 0.0
    """The least time between sending and receiving: the cable and what the clocks themselves add."""

    def error_at(self, a_ns: int) -> float:
        """Return the standard error of the offset when clock A reads ``a_ns``: it grows with the time since."""
        return sqrt(self.offset_error_ns**2 + (self.drift_error * difference_ns(self.at_ns, a_ns)) ** 2)

    def elapsed_ns(self, a_ns: int, b_ns: int) -> float:
        """Return the time from ``a_ns`` by clock A to ``b_ns`` by clock B."""
        return difference_ns(a_ns + self.offset_ns, b_ns) - self.drift * difference_ns(self.at_ns, a_ns)


@dataclass(frozen=True, slots=True)
class Reading:
    """A clock read ``ns`` at ``tsc``, within half of ``width_tsc``."""

    tsc: int
    ns: int
    width_tsc: int


SAME = Relation()
"""Both stamps are of one clock."""


def difference_ns(earlier_ns: int, later_ns: int) -> int:
    """Return ``later_ns`` - ``earlier_ns`` of a counter of 64 bits, which may have wrapped in between."""
    return (later_ns - earlier_ns + WRAP // 2) % WRAP - WRAP // 2


def relate(there: Sequence[Stamped], back: Sequence[Stamped]) -> Relation | None:
    """Return the relation of clock B to clock A from frames A -> B (``there``) and B -> A (``back``) over a cable.

    Each frame is paired with the one of the other direction that is nearest in time. Of the pairs, those count whose
    delay is among the least half: a frame that waited in a queue says nothing of the clocks. None with fewer than 8.
    """
    pairs = _pairs(there, back)
    if len(pairs) < LEAST_PAIRS:
        return None
    start, twice_base, _ = pairs[0]
    times = np.array([difference_ns(start, a_ns) for a_ns, _, _ in pairs], dtype=float)
    offsets = np.array([twice - twice_base for _, twice, _ in pairs], dtype=float) / 2
    delays = np.array([delay for _, _, delay in pairs], dtype=float)
    kept = delays <= np.median(delays)
    if int(kept.sum()) < LEAST_PAIRS:
        return None
    return _line(start, twice_base // 2, times[kept], offsets[kept], float(delays.min()))


def relate_readings(a: tuple[Reading, Reading], b: tuple[Reading, Reading], tsc_hz: int) -> Relation:
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


def _pairs(there: Sequence[Stamped], back: Sequence[Stamped]) -> list[tuple[int, int, float]]:
    """Return (time by clock A, twice the offset, delay) of pairs of frames of the two directions, nearest in time."""
    if not (there and back):
        return []
    first = there[0][0]
    arrivals = sorted(((difference_ns(first, a_ns), b_ns, a_ns) for b_ns, a_ns in back))
    keys = np.array([key for key, _, _ in arrivals])
    found = []
    for a_ns, b_ns in sorted(there, key=lambda stamped: difference_ns(first, stamped[0])):
        time = difference_ns(first, a_ns)
        at = int(np.searchsorted(keys, time))
        near = min((i for i in (at - 1, at) if 0 <= i < len(keys)), key=lambda i: abs(int(keys[i]) - time))
        _, b_sent_ns, a_received_ns = arrivals[near]
        forth, reverse = difference_ns(a_ns, b_ns), difference_ns(b_sent_ns, a_received_ns)
        found.append((a_ns, forth - reverse, (forth + reverse) / 2))
    return found


def _line(start: int, base: int, times: np.ndarray, offsets: np.ndarray, delay_ns: float) -> Relation:
    """Return the straight line by least squares, at the mean of its times, where offset and drift do not correlate."""
    middle = times.mean()
    spread = float(((times - middle) ** 2).sum())
    drift = float(((times - middle) * offsets).sum() / spread) if spread else 0.0
    rest = offsets - offsets.mean() - drift * (times - middle)
    sigma = sqrt(float((rest**2).sum()) / (len(times) - 2))
    return Relation(
        at_ns=(start + round(middle)) % WRAP,
        offset_ns=base + round(float(offsets.mean())),
        drift=drift,
        offset_error_ns=sigma / sqrt(len(times)),
        drift_error=sigma / sqrt(spread) if spread else 0.0,
        delay_ns=delay_ns,
    )
