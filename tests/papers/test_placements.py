# SPDX-License-Identifier: BSD-3-Clause
"""Claims on placements: a remote NUMA node, and far cores where there is none."""

from __future__ import annotations

import pytest
from making import LARGE_HOST, judged, of_can17, rate

from planebench.papers.told import ClaimOutcome

YES, NO, OPEN = ClaimOutcome.CONFIRMED, ClaimOutcome.NOT_CONFIRMED, ClaimOutcome.CANNOT_BE_TESTED
CHAIN = of_can17("firewall,l3fwd")


@pytest.mark.parametrize(("mpps", "outcome"), [(3.0, YES), (9.0, NO)])
def test_the_worst_placement_loses_most_of_the_packets(mpps: float, outcome: ClaimOutcome) -> None:
    near, far = (
        rate("planed:nic=veb", "parallel", value, chain_length=16, placement=placement)
        for value, placement in ((10.0, "near"), (mpps, "far"))
    )
    assert judged("worst-case-placement", near, far, host=LARGE_HOST).outcome is outcome
    assert judged("worst-case-placement", near, host=LARGE_HOST).why == "not covered by this run"


@pytest.mark.parametrize(("mpps", "outcome"), [(2.1, YES), (3.9, NO)])
def test_two_sockets_halve_a_chain(mpps: float, outcome: ClaimOutcome) -> None:
    near, split = (
        rate("bess", "loopback", value, placement=placement, **CHAIN)
        for value, placement in ((4.0, "near"), (mpps, "split:1"))
    )
    assert judged("numa-halves-a-chain", near, split, host=LARGE_HOST).outcome is outcome
    one_node = judged("numa-halves-a-chain", near, split)
    assert one_node.why == "not testable on this host" and "2 NUMA nodes (this host: 1)" in one_node.evidence


@pytest.mark.parametrize(("mpps", "outcome"), [(2.1, YES), (3.9, NO)])
def test_far_cores_stand_in_and_say_so(mpps: float, outcome: ClaimOutcome) -> None:
    near, far = (rate("bess", "loopback", value, band=band, **CHAIN) for value, band in ((4.0, "near"), (mpps, "far")))
    found = judged("far-cores-halve-a-chain", near, far, host=LARGE_HOST)
    assert found.outcome is outcome
    assert all("core-to-core latency, not NUMA" in text for text in (found.evidence, found.claim.sentence))


def test_one_band_does_not_judge_far_cores() -> None:
    found = judged("far-cores-halve-a-chain", rate("bess", "loopback", 4.0, **CHAIN), host=LARGE_HOST)
    assert found.outcome is OPEN and "on far and on near cores" in found.evidence
