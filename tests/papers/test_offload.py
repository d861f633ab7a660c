# SPDX-License-Identifier: BSD-3-Clause
"""ic16's claims of many VNFs side by side: over-provisioning, and FIB offload against the rest."""

from __future__ import annotations

from typing import Any

import pytest
from making import LARGE_HOST, Figure, delay, judged, rate

from planebench.model.records import TrafficSent
from planebench.papers.told import ClaimOutcome

YES, NO, OPEN = ClaimOutcome.CONFIRMED, ClaimOutcome.NOT_CONFIRMED, ClaimOutcome.CANNOT_BE_TESTED
OFFLOAD = "planed:offload=fib"
ROUTERS = {"chain": "l3fwd:fib=cuckoo:synthetic=1M", "traffic": "fib-1M"}
VEB = "planed:nic=veb"
LOAD = "156Mb/s per VNF"


def many(switch: str, count: int, mpps: float, **more: Any) -> list[Figure]:
    return rate(switch, "parallel", mpps, chain_length=count, **more)


@pytest.mark.parametrize(("mpps", "outcome"), [(1.0, YES), (9.0, NO)])
def test_more_vnfs_than_cores_lose_most_of_the_packets(mpps: float, outcome: ClaimOutcome) -> None:
    sides = many(VEB, 1, 10.0), many(VEB, 63, mpps)
    assert judged("over-provisioning-loses", *sides).why == "not testable on this host"
    assert judged("over-provisioning-loses", *sides, host=LARGE_HOST).outcome is outcome


@pytest.mark.parametrize("switch", ["planed", "ovs-dpdk", OFFLOAD])
def test_over_provisioning_is_judged_behind_a_nic_only(switch: str) -> None:
    """A software switch may share its core with its VNFs, so that one is one too many, and they starve it."""
    found = judged("over-provisioning-loses", many(switch, 1, 10.0), many(switch, 63, 1.0), host=LARGE_HOST)
    assert (found.outcome, found.why) == (OPEN, "not covered by this run")


@pytest.mark.parametrize(("mpps", "outcome"), [(8.0, YES), (0.1, NO)])
def test_offload_is_set_against_open_vswitch(mpps: float, outcome: ClaimOutcome) -> None:
    sides = many(OFFLOAD, 63, mpps, **ROUTERS), many("ovs-dpdk", 63, 0.2, **ROUTERS)
    assert judged("offload-passes-ovs-dpdk", *sides, host=LARGE_HOST).outcome is outcome


@pytest.mark.parametrize(("us", "outcome"), [(90.0, YES), (10.0, NO)])
def test_latency_without_vnfs_is_compared_at_full_load(us: float, outcome: ClaimOutcome) -> None:
    def at(switch: str, scenario: str, mean_us: float) -> list[Figure]:
        return delay(switch, scenario, "10Gb/s", mean_us, chain_length=63)

    sides = at(OFFLOAD, "parallel", 20.0), at("ovs-dpdk", "bare", us)
    assert judged("l2-offload-is-faster-than-ovs-dpdk", *sides).outcome is outcome


def bare(switch: str, count: int, mpps: float, **more: Any) -> list[Figure]:
    return rate(switch, "bare", mpps, chain_length=count, **more)


@pytest.mark.parametrize(("mpps", "outcome"), [(9.0, YES), (7.0, NO)])
def test_bare_metal_is_one_process_with_the_tables_of_all(mpps: float, outcome: ClaimOutcome) -> None:
    sides = bare("planed", 63, 10.0, **ROUTERS), many(OFFLOAD, 63, mpps, **ROUTERS)
    assert judged("offload-close-to-bare-metal", *sides).outcome is outcome


def test_addresses_of_a_part_of_the_routes_are_another_table() -> None:
    """What a table of 63 million costs is not known where a million of its routes are looked up."""
    part = {"extra": {"sent": (TrafficSent("n0->n1", 1000, 64_000, dst_ips_sent=999),)}}
    found = judged(
        "offload-close-to-bare-metal", bare("planed", 63, 10.0, **ROUTERS, **part), many(OFFLOAD, 63, 9.0, **ROUTERS)
    )
    assert (found.outcome, found.why) == (ClaimOutcome.OTHER_CONDITIONS, "entries")
    assert found.evidence.startswith("addresses of a part of the routes. With these confirmed: ")


@pytest.mark.parametrize(("mpps", "outcome"), [(1.8, YES), (1.4, NO)])
def test_where_the_tester_is_the_limit_slower_clocks_decide(mpps: float, outcome: ClaimOutcome) -> None:
    """More than half of the comparisons: one emulated clock beside the machine's own is not enough."""

    def clocked(clock: str, ours: float, theirs: float, **how: Any) -> list[Figure]:
        fields = {**ROUTERS, "cpu_clock": clock, **how}
        return [*bare("planed", 63, theirs, **fields), *many(OFFLOAD, 63, ours, **fields)]

    own = clocked("", 22.0, 22.0, verdict="tester-limited")
    fifth, tenth = clocked("duty:0.2", 2 * mpps, 4.0), clocked("duty:0.1", mpps, 2.0)
    assert judged("offload-close-to-bare-metal", own).outcome is OPEN
    assert judged("offload-close-to-bare-metal", own, fifth).outcome is (outcome if outcome is NO else OPEN)
    found = judged("offload-close-to-bare-metal", own, fifth, tenth)
    assert found.outcome is outcome and "at 20 % of the clock (emulated)" in found.evidence


@pytest.mark.parametrize(("mpps", "outcome"), [(9.0, YES), (7.0, NO)])
def test_without_vnfs_open_vswitch_sends_frames_straight_back(mpps: float, outcome: ClaimOutcome) -> None:
    sides = many(OFFLOAD, 63, mpps), bare("ovs-dpdk", 63, 8.0)
    assert judged("l2-offload-passes-ovs-dpdk", *sides).outcome is outcome


@pytest.mark.parametrize(("mpps", "outcome"), [(9.0, YES), (7.0, NO)])
def test_offload_is_set_against_a_nic_that_nobody_starves(mpps: float, outcome: ClaimOutcome) -> None:
    sides = many(OFFLOAD, 63, mpps, **ROUTERS), many(VEB, 63, 8.0, **ROUTERS)
    assert judged("offload-passes-a-switching-nic", *sides, host=LARGE_HOST).outcome is outcome


@pytest.mark.parametrize(("of_64", "of_128", "outcome"), [(9.0, 9.0, YES), (7.0, 7.0, NO), (9.0, 7.0, NO)])
def test_small_tables_may_beat_one_large_table(of_64: float, of_128: float, outcome: ClaimOutcome) -> None:
    sides = [
        figures
        for size, mpps in ((64, of_64), (128, of_128))
        for figures in (
            many(VEB, 16, mpps, frame_size_bytes=size, **ROUTERS),
            bare("planed", 16, 8.0, frame_size_bytes=size, **ROUTERS),
        )
    ]
    assert judged("vnfs-beat-bare-metal-with-small-frames", *sides).why == "not testable on this host"
    assert judged("vnfs-beat-bare-metal-with-small-frames", *sides, host=LARGE_HOST).outcome is outcome


@pytest.mark.parametrize(
    ("claim", "load", "counts"),
    [("fewer-vnfs-are-slower", "2.5Gb/s", (32, 63)), ("latency-grows-with-vnfs", LOAD, (63, 8))],
)
def test_latency_is_compared_over_numbers_of_vnfs(claim: str, load: str, counts: tuple[int, int]) -> None:
    def at(count: int, us: float) -> list[Figure]:
        return delay(VEB, "parallel", load, us, chain_length=count, frame_size_bytes=1024, **ROUTERS)

    for factor, outcome in ((2.0, YES), (0.5, NO)):
        assert judged(claim, at(counts[0], 100.0 * factor), at(counts[1], 100.0), host=LARGE_HOST).outcome is outcome


@pytest.mark.parametrize(("factor", "outcome"), [(2.0, YES), (0.5, NO)])
def test_latency_is_compared_with_bare_metal(factor: float, outcome: ClaimOutcome) -> None:
    more = {"chain_length": 8, "frame_size_bytes": 1024, **ROUTERS}
    sides = delay(VEB, "parallel", "2.5Gb/s", 50.0 * factor, **more), delay("planed", "bare", "2.5Gb/s", 50.0, **more)
    assert judged("latency-above-bare-metal", *sides).evidence == "it takes 10 cores (this host: unknown)"
    assert judged("latency-above-bare-metal", *sides, host=LARGE_HOST).outcome is outcome


@pytest.mark.parametrize(("us", "outcome"), [(1.3, YES), (1.5, NO)])
def test_jitter_is_that_of_receive_bursts(us: float, outcome: ClaimOutcome) -> None:
    def side(switch: str, scenario: str, traffic: str, jitter: float) -> list[Figure]:
        more = {"chain_length": 63, "chain": ROUTERS["chain"], "traffic": traffic}
        return delay(switch, scenario, LOAD, 9.0, jitter=jitter, **more)

    sides = side("planed", "bare", "fib-1M", 1.0), side(OFFLOAD, "parallel", "updates-2", us)
    assert judged("offload-jitter", *sides).outcome is outcome
