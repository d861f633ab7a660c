# SPDX-License-Identifier: BSD-3-Clause
"""Offset and drift of two clocks, from readings of both by one TSC: the truth is known."""

from __future__ import annotations

import pytest

from planebench.analysis.histogram import SAME, ClockReading, Relation, difference_ns, relate_readings

SECOND = 1_000_000_000


def test_one_clock_is_its_own() -> None:
    assert SAME.elapsed_ns(2**64 - 5, 7) == 12
    assert difference_ns(7, 2**64 - 5) == -12
    assert Relation(at_ns=0, offset_ns=50, drift=0.5).elapsed_ns(10, 100) == 35


def test_clocks_of_devices_are_related_by_the_tsc() -> None:
    """B is 7 us before A and gains a part in a million; the TSC has 2 GHz."""
    hz = 2 * SECOND

    def reading(true_ns: int, drift: float = 0.0, offset_ns: int = 0) -> ClockReading:
        return ClockReading(2 * true_ns, round(true_ns * (1 + drift)) + offset_ns, 800)

    a = reading(SECOND), reading(2 * SECOND)
    b = reading(SECOND + 5000, 1e-6, 7000), reading(2 * SECOND + 3000, 1e-6, 7000)
    found = relate_readings(a, b, hz)
    sent, received = 3 * SECOND // 2, 3 * SECOND // 2 + 900
    assert found.elapsed_ns(sent, round(received * (1 + 1e-6)) + 7000) == pytest.approx(900, abs=2)
    assert found.error_at(sent) == 400


def test_a_tsc_whose_rate_is_rounded_does_no_harm() -> None:
    """The rate is 0.15 % too high, and a busy machine reads B long after A: seen in the lab, 30 us wrong."""
    a = ClockReading(0, SECOND, 800), ClockReading(2 * SECOND, 2 * SECOND, 800)
    b = ClockReading(40_000_000, SECOND + 20_000_000, 800), ClockReading(2_080_000_000, 2_040_000_000, 800)
    found = relate_readings(a, b, 2_003_000_000)
    assert found.elapsed_ns(3 * SECOND // 2, 3 * SECOND // 2 + 900) == pytest.approx(900, abs=2)
