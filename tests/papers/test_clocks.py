# SPDX-License-Identifier: BSD-3-Clause
"""Claims on CPU clocks, set or emulated, and on a table of a billion routes."""

from __future__ import annotations

import pytest
from making import LARGE_HOST, judged, rate

from planebench.papers.told import Outcome

YES, NO, OPEN = Outcome.CONFIRMED, Outcome.NOT_CONFIRMED, Outcome.CANNOT_BE_TESTED
FREQUENCY = "throughput-grows-with-frequency"
ROUTER = {"chain_length": 1, "chain": "l3fwd"}
BILLION = {"chain_length": 1, "chain": "l3fwd:fib=cuckoo:synthetic=1000M", "frame_size_bytes": 256, "traffic": "fib-1M"}


@pytest.mark.parametrize(("mpps", "outcome"), [(9.3, YES), (4.0, NO)])
@pytest.mark.parametrize("clocks", [("1200MHz", "1600MHz", "2600MHz"), ("duty:0.46", "duty:0.8", "")])
def test_throughput_grows_with_the_clock(clocks: tuple[str, str, str], mpps: float, outcome: Outcome) -> None:
    """The lowest and the highest clock decide, in whatever order they were measured."""
    figures = [
        rate("bess", "loopback", value, cpu_clock=clock, **ROUTER)
        for clock, value in zip(reversed(clocks), (mpps, 5.0, 4.3), strict=True)
    ]
    found = judged(FREQUENCY, *figures)
    assert found.outcome is outcome
    assert len(found.compared) == 1
    assert ("emulated" in found.evidence) == ("duty:0.46" in clocks)


def test_clocks_of_two_scales_are_not_compared() -> None:
    figures = [rate("bess", "loopback", 4.0, cpu_clock=clock, **ROUTER) for clock in ("", "1200MHz")]
    found = judged(FREQUENCY, *figures)
    assert found.outcome is OPEN and "--duty emulates one" in found.evidence


def test_other_claims_are_about_the_clock_of_the_machine() -> None:
    slow, own = (
        rate("bess", "loopback", value, cpu_clock=clock, chain_length=1, chain=chain)
        for value, clock, chain in ((4.0, "1200MHz", "l3fwd"), (9.0, "", "l3fwd"))
    )
    wall = rate("bess", "loopback", 9.0, chain_length=1, chain="firewall")
    assert judged("firewall-costs-as-l3fwd", slow, own, wall).outcome is YES
    assert judged("firewall-costs-as-l3fwd", slow, wall).outcome is OPEN


@pytest.mark.parametrize(("mpps", "outcome"), [(5.2, YES), (3.1, NO)])
def test_a_billion_routes_fill_ten_gigabits_from_256_bytes(mpps: float, outcome: Outcome) -> None:
    found = judged("billion-routes", rate("planed", "bare", mpps, **BILLION), host=LARGE_HOST)
    assert found.outcome is outcome and "of 4.53 Mpps" in found.evidence
    fewer = {**BILLION, "chain": "l3fwd:fib=cuckoo:synthetic=100000000"}
    assert judged("billion-routes", rate("planed", "bare", mpps, **fewer), host=LARGE_HOST).outcome is OPEN
