# SPDX-License-Identifier: BSD-3-Clause
"""Claims on CPU clocks, set or emulated, and on a table of a billion routes."""

from __future__ import annotations

from typing import Any

import pytest
from making import LARGE_HOST, Figure, judged, of_can17, rate

from planebench.papers.told import ClaimOutcome

YES, NO, OPEN = ClaimOutcome.CONFIRMED, ClaimOutcome.NOT_CONFIRMED, ClaimOutcome.CANNOT_BE_TESTED
FREQUENCY = "throughput-grows-with-frequency"
ROUTER = {"chain_length": 1, "chain": "l3fwd"}
BILLION = {
    "chain_length": 1,
    "chain": "l3fwd:fib=cuckoo:synthetic=1000M",
    "frame_size_bytes": 256,
    "traffic": "fib-all",
}


def clocks(*sides: tuple[str, float], **router: Any) -> list[list[Figure]]:
    return [rate("bess", "loopback", mpps, cpu_clock=clock, **(router or of_can17("l3fwd"))) for clock, mpps in sides]


@pytest.mark.parametrize(("mpps", "outcome"), [(9.3, YES), (4.0, NO)])
def test_throughput_grows_with_the_clock(mpps: float, outcome: ClaimOutcome) -> None:
    """The lowest and the highest clock decide, in whatever order they were measured."""
    found = judged(FREQUENCY, *clocks(("2600MHz", mpps), ("1600MHz", 5.0), ("1200MHz", 4.3)), host=LARGE_HOST)
    assert found.outcome is outcome
    assert len(found.compared) == 1


def test_an_emulated_clock_decides_nothing() -> None:
    """A switch that waits by design is slower by design: that cannot fail, so it stands beside."""
    figures = clocks(("", 9.3), ("duty:0.8", 8.0), ("duty:0.46", 4.3), **ROUTER)
    here = judged(FREQUENCY, *figures)
    assert (here.outcome, here.why) == (OPEN, "not testable on this host")
    assert here.evidence.startswith("it takes 3 cores (this host: unknown), CPUs whose clock can be set (cpufreq; th")
    there = judged(FREQUENCY, *figures, host=LARGE_HOST)
    assert (there.outcome, there.why) == (OPEN, "not covered by this run")
    for found in (here, there):
        (beside,) = found.beside
        assert beside.holds and "at 46 % of the clock (emulated)" in beside.what


def test_clocks_of_two_scales_are_not_compared() -> None:
    found = judged(FREQUENCY, *clocks(("", 4.0), ("1200MHz", 4.0)), host=LARGE_HOST)
    assert found.outcome is OPEN and "at two CPU clocks (--cpu-mhz)" in found.evidence


def test_other_claims_are_about_the_clock_of_the_machine() -> None:
    slow, own = (
        rate("bess", "loopback", value, cpu_clock=clock, **of_can17(chain))
        for value, clock, chain in ((4.0, "1200MHz", "l3fwd"), (9.0, "", "l3fwd"))
    )
    wall = rate("bess", "loopback", 9.0, **of_can17("firewall"))
    assert judged("firewall-costs-as-l3fwd", slow, own, wall, host=LARGE_HOST).outcome is YES
    assert judged("firewall-costs-as-l3fwd", slow, wall, host=LARGE_HOST).outcome is OPEN


@pytest.mark.parametrize(("mpps", "outcome"), [(5.2, YES), (3.1, NO)])
def test_a_billion_routes_fill_ten_gigabits_from_256_bytes(mpps: float, outcome: ClaimOutcome) -> None:
    found = judged("billion-routes", rate("planed", "bare", mpps, **BILLION), host=LARGE_HOST)
    assert found.outcome is outcome and "of 4.53 Mpps" in found.evidence
    fewer = {**BILLION, "chain": "l3fwd:fib=cuckoo:synthetic=100000000"}
    assert judged("billion-routes", rate("planed", "bare", mpps, **fewer), host=LARGE_HOST).outcome is OPEN
