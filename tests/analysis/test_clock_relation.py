# SPDX-License-Identifier: BSD-3-Clause
"""Offset and drift of two clocks, from frames over a cable that is made up: the truth is known."""

from __future__ import annotations

import numpy as np
import pytest

from planebench.analysis.histogram import SAME, ClockReading, Relation, Stamped, difference_ns, relate, relate_readings

SECOND = 1_000_000_000


def over_a_cable(
    offset_ns: int, drift: float, *, start: int = 5 * SECOND, delay_ns: int = 300, noise_ns: float = 0, pairs: int = 400
) -> tuple[list[Stamped], list[Stamped]]:
    """Return stamps of a second of frames both ways. Clock A is the true time; one frame in five waits in a queue."""
    random = np.random.default_rng(7)

    def by_b(true_ns: int) -> int:
        return (true_ns + offset_ns + round(drift * (true_ns - start))) % 2**64

    def travel() -> int:
        wait = int(random.integers(0, 50_000)) if random.random() < 0.2 else 0
        return delay_ns + wait + round(abs(random.normal(0, noise_ns)))

    times = [start + n * SECOND // pairs for n in range(pairs)]
    there = [(at % 2**64, by_b(at + travel())) for at in times]
    back = [(by_b(at + 1000), (at + 1000 + travel()) % 2**64) for at in times]
    return there, back


@pytest.mark.parametrize("offset_ns", [0, -170, 123_456_789, -(2**40), 2**62])
@pytest.mark.parametrize("drift", [0.0, 2e-6, -5e-5])
def test_offset_and_drift_are_found(offset_ns: int, drift: float) -> None:
    found = relate(*over_a_cable(offset_ns, drift))
    assert found is not None
    at_ns = 5 * SECOND + SECOND // 3
    b_ns = at_ns + offset_ns + round(drift * (at_ns - 5 * SECOND))
    assert found.elapsed_ns(at_ns, b_ns) == pytest.approx(0, abs=3)
    assert found.drift == pytest.approx(drift, abs=1e-8)
    assert found.delay_ns == pytest.approx(300, abs=3)


def test_the_errors_cover_the_truth_and_grow_with_time() -> None:
    found = relate(*over_a_cable(40_000, 1e-6, noise_ns=30))
    assert found is not None
    middle = found.at_ns
    b_ns = middle + 40_000 + round(1e-6 * (middle - 5 * SECOND))
    assert abs(found.elapsed_ns(middle, b_ns)) < 4 * found.error_at(middle) + 1
    assert abs(found.drift - 1e-6) < 4 * found.drift_error
    assert found.error_at(middle) < found.error_at(middle + SECOND) < found.error_at(middle + 100 * SECOND)


def test_clocks_may_wrap() -> None:
    found = relate(*over_a_cable(2**61, 0.0, start=2**64 - SECOND // 2))
    assert found is not None
    assert found.elapsed_ns(100, 100 + 2**61 + 700) == pytest.approx(700, abs=5)


def test_too_few_frames_tell_nothing() -> None:
    there, back = over_a_cable(0, 0.0, pairs=10)
    assert relate(there, back) is None
    assert relate(there, []) is None
    assert relate([], back) is None


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
