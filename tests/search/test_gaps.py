# SPDX-License-Identifier: BSD-3-Clause
"""Gaps of the pollers: trials that are set aside for them, and losses that they explain."""

from __future__ import annotations

import dataclasses
import random
from collections import Counter

import pytest
from builders import make_point, make_trial

from planebench.model.records import DirectionCounts, Evidence, Load, ThreadEvidence, Trial, VerdictKind
from planebench.search import explained_by_gaps
from planebench.search.facts import gap_ns, has_gaps
from planebench.search.judge import bound_by_others, late_only
from planebench.search.log import PASSED_OVER_MAX, PASSED_OVER_SHARE


def paced(lost: int = 0, late: int = 0, wait_ns: int = 0, gap_sum_ns: int = 0, directions: int = 1) -> Trial:
    """1 s at 1 Mpps in each direction; what is missing is missing in the first."""
    million = 1_000_000
    counts = [DirectionCounts(f"n{i}->n{1 - i}", million, million, million) for i in range(directions)]
    offered = million - late
    counts[0] = dataclasses.replace(
        counts[0], offered_packets=offered, forwarded_packets=offered - lost, unsent_late_packets=late
    )
    threads = (
        ThreadEvidence("switch", "w0", 0, 10**9, wait_ns // 2, 1),
        ThreadEvidence("tester", "w1", 1, 10**9, wait_ns - wait_ns // 2, 1),
    )
    return make_trial(
        0,
        make_point(direction="bidirectional" if directions == 2 else "unidirectional"),
        role="search",
        load=Load("1Mpps", 1e6),
        directions=tuple(counts),
        evidence=Evidence(threads=threads, poll_gap_sum_ns=gap_sum_ns),
    )


@pytest.mark.parametrize(
    ("trial", "explained"),
    [
        (paced(lost=0, wait_ns=10_000), False),
        (paced(lost=10, wait_ns=10_000), True),
        (paced(lost=11, wait_ns=10_000), False),
        (paced(lost=10, gap_sum_ns=10_000), True),
        (paced(lost=15, wait_ns=10_000, gap_sum_ns=10_000), True),
        (paced(lost=16, wait_ns=10_000, gap_sum_ns=10_000), False),
        (paced(lost=6, late=5, wait_ns=10_000), False),
        (paced(lost=5, late=5, wait_ns=10_000), True),
        (paced(lost=20, wait_ns=10_000, directions=2), True),
        (paced(lost=21, wait_ns=10_000, directions=2), False),
        (paced(lost=1), False),
    ],
)
def test_gaps_explain_what_would_have_come_in_them(trial, explained):
    assert explained_by_gaps(trial) is explained


@pytest.mark.parametrize(("gap_sum_ns", "total"), [(0, 10), (5, 10), (6, 11), (100, 105)])
def test_a_tester_that_waits_for_its_cpu_has_a_poll_gap_too_and_it_counts_once(gap_sum_ns, total):
    """5 ns of wait are the switch's, 5 the tester's."""
    assert gap_ns(paced(wait_ns=10, gap_sum_ns=gap_sum_ns)) == total


def test_half_of_the_failed_trials_decide():
    gap, own = paced(lost=10, wait_ns=2_000_000), paced(lost=100)
    assert bound_by_others([], 0.0) is None
    assert bound_by_others([own, own, gap], 0.0) is None
    verdict = bound_by_others([own, gap, gap, own], 0.0)
    assert verdict.kind is VerdictKind.DISTURBED
    assert verdict.texts == (
        "gaps of the pollers explain the losses at 1 Mpps (4 ms in 2 s): this host, not the switch, may be the limit",
    )


def test_a_late_generator_is_to_blame_only_where_the_switch_met_the_goal():
    assert late_only(paced(late=10), 0.0)
    assert not late_only(paced(lost=1, late=10), 0.0)
    assert late_only(paced(lost=1, late=10), 0.005)
    assert not late_only(paced(), 0.0)
    assert bound_by_others([paced(late=10), paced(lost=5)], 0.0).kind is VerdictKind.TESTER_LIMITED


def interrupted(share: float, seed: int = 7):
    """Return a machine that takes the core for a while in this share of the trials, and loses a few frames with it."""
    rng = random.Random(seed)

    def change(trial: Trial) -> Trial:
        if trial.role != "search" or rng.random() >= share:
            return trial
        wait_ns = trial.offered_duration_ns // 1000
        lost = int(wait_ns * trial.offered_pps / 1e9 * 0.9)
        first = trial.directions[0]
        less = dataclasses.replace(first, forwarded_packets=max(1, first.forwarded_packets - lost))
        threads = (ThreadEvidence("switch", "w0", 0, 10**9, wait_ns, 1),)
        evidence = dataclasses.replace(trial.evidence, threads=threads)
        return dataclasses.replace(trial, directions=(less, *trial.directions[1:]), evidence=evidence)

    return change


def test_trials_with_gaps_are_passed_over_while_there_are_others_and_told(rig):
    tried = rig("sim:capacity=10M")
    tried.change = interrupted(0.15)
    result = tried.finish("ndr")
    assert result.complete and result.verdict.kind is VerdictKind.VALID
    assert result.lower_pps is not None and abs(result.lower_pps - 10e6) < 0.01 * 10e6
    assert not any(explained_by_gaps(t) for t in tried.used(result))
    paced = [t for t in tried.trials if t.load.pps_per_direction is not None]
    over = [t for t in paced if has_gaps(t, 0.0) and t.load.pps_per_direction <= result.lower_pps]
    assert over
    assert result.verdict.texts == (
        f"{len(over)} trials at or below {result.lower_pps / 1e6:.6g} Mpps had gaps of the pollers, and were passed "
        "over, lossy or not",
    )


def test_more_trials_passed_over_than_counted_at_the_bound_is_disturbed(rig):
    """All five that may be passed over are at the lowest load; so the bound is hardly proven."""
    tried, seen = rig("sim:capacity=10M", max_r=2, max_load_pps=9e6), Counter()

    def early(trial: Trial) -> Trial:
        seen[trial.load] += 1
        evidence = dataclasses.replace(trial.evidence, poll_gap_sum_ns=60_000)
        return dataclasses.replace(trial, evidence=evidence) if 0 < seen[trial.load] <= 3 else trial

    tried.change = early
    result = tried.finish("bswlv")
    at_bound = [t for t in tried.trials if t.load.pps_per_direction == result.lower_pps]
    counted = [t for t in at_bound if t.index in result.trials]
    assert 0 < len(counted) < len(at_bound) - len(counted)
    assert result.verdict.kind is VerdictKind.DISTURBED
    assert "had gaps of the pollers, and were passed over, lossy or not: " in result.verdict.texts[0]
    assert f"{len(at_bound) - len(counted)} at the bound, where {len(counted)} were accepted" in result.verdict.texts[0]


def test_rfc2544_passes_nothing_over(rig):
    """One loss decides there. The result is disturbed where gaps explain the loss that bounds it."""
    tried = rig("sim:capacity=10M")
    tried.change = interrupted(0.6, seed=4)
    result = tried.finish("rfc2544")
    assert result.upper_pps < 10e6
    assert result.verdict.kind is VerdictKind.DISTURBED
    assert "this host, not the switch, may be the limit" in result.verdict.texts[0]
    assert result.trials == tuple(range(len(tried.trials))), "every trial was taken, in the order of the asks"
    lossy = [p for t in tried.trials if (p := t.load.pps_per_direction) is not None and t.loss_ratio > 0]
    assert result.lower_pps < result.upper_pps == min(lossy)


def test_rfc2544_does_not_find_more_than_the_first_trial_of_a_load_shows(rig):
    """A switch that loses frames in every first trial of a load, each with a gap as big, has no RFC 2544 rate."""
    tried, seen = rig("sim:capacity=10M"), set()
    lose = interrupted(1.0)

    def first_only(trial: Trial) -> Trial:
        again = trial.load in seen
        seen.add(trial.load)
        return trial if again else lose(trial)

    tried.change = first_only
    result = tried.finish("rfc2544")
    assert result.lower_pps is None
    assert result.verdict.kind is VerdictKind.DISTURBED


def test_where_every_trial_has_gaps_they_are_taken_and_told(rig):
    tried = rig("sim:capacity=10M", max_r=2)
    tried.change = interrupted(1.0)
    result = tried.finish("bswlv")
    assert result.verdict.kind is VerdictKind.DISTURBED
    assert "this host, not the switch, may be the limit" in result.verdict.texts[0]
    over = len(tried.trials) - len(result.trials)
    assert PASSED_OVER_MAX <= over < PASSED_OVER_MAX + PASSED_OVER_SHARE * len(result.trials) + 1


def test_a_good_trial_with_gaps_is_passed_over_as_a_bad_one(rig):
    """The switch loses 200 frames in seven of ten trials; the tester has gaps of 150 us in all: no excuse."""

    def rate_found(gap_ns: int, seed: int) -> float:
        tried, luck = rig("sim:capacity=10M", seed=seed, max_load_pps=12e6), random.Random(seed)

        def change(trial: Trial) -> Trial:
            first = trial.directions[0]
            if luck.random() < 0.7:
                first = dataclasses.replace(first, forwarded_packets=first.forwarded_packets - 200)
            evidence = dataclasses.replace(trial.evidence, poll_gap_sum_ns=gap_ns)
            return dataclasses.replace(trial, directions=(first,), evidence=evidence)

        tried.change = change
        return tried.finish("bswlv").lower_pps or 0.0

    seeds = range(40)
    found = [sum(rate_found(gap, seed) > 9.9e6 for seed in seeds) / len(seeds) for gap in (0, 150_000)]
    assert found[1] - found[0] < 0.05


def test_bursts_passed_over_are_told(rig):
    """The first burst of every length that the ring takes loses a frame, and a poller stands still."""
    tried, seen = rig("sim:capacity=8M:ring=2000", max_load_pps=10e6, burst_repetitions=1), Counter()

    def early(trial: Trial) -> Trial:
        first = trial.directions[0]
        seen[first.intended_packets] += 1
        if trial.role != "search" or first.lost_packets or seen[first.intended_packets] > 1:
            return trial
        less = dataclasses.replace(first, forwarded_packets=first.forwarded_packets - 1)
        evidence = dataclasses.replace(trial.evidence, poll_gap_sum_ns=60_000)
        return dataclasses.replace(trial, directions=(less,), evidence=evidence)

    tried.change = early
    result = tried.finish("b2b")
    longest = result.burst.max_packets
    assert 9900 <= longest <= 10_004
    over = [t for t in tried.trials if has_gaps(t, 0.0) and t.directions[0].intended_packets <= longest]
    assert len(over) > 3
    assert result.verdict.kind is VerdictKind.VALID
    assert result.verdict.texts == (
        f"{len(over)} bursts of at most {longest} frames had gaps of the pollers, and were passed over, lossy or not",
    )


def test_a_loss_that_the_goal_allows_needs_no_excuse(rig):
    tried = rig("sim:capacity=10M")
    tried.change = interrupted(1.0)
    result = tried.finish("pdr")
    assert result.complete and result.lower_pps is not None
    assert result.lower_pps > 9.9e6


def test_waits_are_not_those_of_a_burst() -> None:
    burst = dataclasses.replace(paced(lost=5, wait_ns=10**6, gap_sum_ns=3), offered_duration_ns=9_989_999)
    assert gap_ns(burst) == 3
    assert not explained_by_gaps(burst)


def test_waiting_for_vnfs_on_the_same_core_excuses_no_loss() -> None:
    trial = paced(lost=10, wait_ns=20_000)
    assert gap_ns(trial) == 20_000
    vnf = ThreadEvidence("vnf", "w2", 0, 10**9, 10_000, 1)
    evidence = dataclasses.replace(trial.evidence, threads=(*trial.evidence.threads, vnf))
    shared = dataclasses.replace(trial, evidence=evidence)
    assert gap_ns(shared) == 10_000  # the tester's
