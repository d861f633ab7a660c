# SPDX-License-Identifier: BSD-3-Clause
"""Gaps of the pollers: losses that they explain are told, and no trial is passed over for them."""

from __future__ import annotations

import dataclasses
import random

import pytest
from builders import make_point, make_trial

from planebench.analysis.search.task import SearchFinding, explained_by_gaps, host_at_bound
from planebench.model.records import DirectionCounts, Evidence, Load, ThreadEvidence, Trial, VerdictKind


def paced(lost: int = 0, late: int = 0, wait_ns: int = 0, gap_sum_ns: int = 0, directions: int = 1) -> Trial:
    """1 s at 1 Mpps in each direction; what is missing is missing in the first."""
    million = 1_000_000
    counts = [DirectionCounts(f"n{i}->n{1 - i}", million, million, million) for i in range(directions)]
    offered = million - late
    counts[0] = dataclasses.replace(
        counts[0], offered_packets=offered, forwarded_packets=offered - lost, unsent_late_packets=late
    )
    threads = (
        ThreadEvidence("switch", "w0", 0, 0, wait_ns // 2, 1),
        ThreadEvidence("tester", "w1", 1, 0, wait_ns - wait_ns // 2, 1),
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
        (paced(lost=9, wait_ns=10_000), True),
        (paced(lost=11, wait_ns=10_000), False),
        (paced(lost=9, gap_sum_ns=10_000), True),
        (paced(lost=14, wait_ns=10_000, gap_sum_ns=10_000), True),
        (paced(lost=16, wait_ns=10_000, gap_sum_ns=10_000), False),
        (paced(lost=9, late=500, wait_ns=10_000), True),
        (paced(lost=19, wait_ns=10_000, directions=2), True),
        (paced(lost=21, wait_ns=10_000, directions=2), False),
        (paced(lost=1), False),
    ],
)
def test_gaps_explain_what_would_have_come_in_them(trial, explained):
    assert explained_by_gaps(trial, 0.0) is explained


@pytest.mark.parametrize(("lost", "explained"), [(1000, False), (1001, True), (1009, True), (1011, False)])
def test_gaps_need_explain_only_what_the_goal_does_not_allow(lost, explained):
    assert explained_by_gaps(paced(lost=lost, wait_ns=10_000), 0.001) is explained


def test_half_of_the_failed_trials_decide():
    gap, own, found = paced(lost=10, wait_ns=2_000_000), paced(lost=100), SearchFinding(upper_pps=1e6)
    assert host_at_bound(found, []) == host_at_bound(found, [own, own, gap]) == ()
    (told,) = host_at_bound(found, [own, gap, gap, own])
    assert told.text == (
        "gaps of the pollers explain the losses at 1 Mpps (4 ms in 2 s): this host, not the switch, may be the limit"
    )
    assert host_at_bound(SearchFinding(upper_pps=2e6), [gap]) == ()


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
        threads = (ThreadEvidence("switch", "w0", 0, 0, wait_ns, 1),)
        evidence = dataclasses.replace(trial.evidence, threads=threads, stall_ns=wait_ns)
        return dataclasses.replace(trial, directions=(less, *trial.directions[1:]), evidence=evidence)

    return change


@pytest.mark.parametrize("method", ["ndr", "bswlv", "rfc2544"])
def test_every_trial_answers_whatever_the_host_did(rig, method):
    tried = rig("sim:capacity=10M")
    tried.change = interrupted(0.3)
    result = tried.finish(method)
    assert result.complete and result.verdict.kind is VerdictKind.VALID
    assert result.trials == tuple(range(len(tried.trials))), "every trial was taken, in the order of the asks"


def test_ndr_stands_where_fewer_than_half_of_the_trials_lose_for_the_host(rig):
    """The tolerance of MLRsearch is for that; one loss decides RFC 2544, whatever the cause, and the host is told."""
    ndr, rfc2544 = rig("sim:capacity=10M"), rig("sim:capacity=10M")
    for tried in (ndr, rfc2544):
        tried.change = interrupted(0.3, seed=2)
    found = ndr.finish("ndr")
    assert 9.9e6 < found.lower_pps <= 10e6 <= found.upper_pps
    assert "gaps-at-bound" not in found.verdict.codes
    result = rfc2544.finish("rfc2544")
    assert result.upper_pps < 9.9e6
    assert "this host, not the switch, may be the limit" in result.verdict.texts[0]


def test_where_every_trial_loses_for_the_host_that_is_told(rig):
    tried = rig("sim:capacity=10M", max_r=2, min_load_pps=1e6)
    tried.change = interrupted(1.0)
    result = tried.finish("bswlv")
    assert result.complete and result.lower_pps is None
    assert result.verdict.kind is VerdictKind.VALID
    assert result.verdict.codes == ("gaps-at-bound", "no-load-met")


def test_what_the_host_bounds_is_a_lower_bound_of_the_switch(rig):
    """It loses a few frames in each trial above 5 Mpps, and the switch none."""
    tried, lose = rig("sim:capacity=10M", max_r=1), interrupted(1.0)
    tried.change = lambda trial: lose(trial) if (trial.load.pps_per_direction or 0) > 5e6 else trial
    result = tried.finish("bswlv")
    assert result.lower_pps <= 5e6 <= result.upper_pps
    assert result.verdict.codes == ("gaps-at-bound",)
    assert result.is_bound
    assert not rig("sim:capacity=10M", max_r=1).finish("bswlv").is_bound


def test_a_burst_with_a_gap_of_the_tester_does_not_get_through(rig):
    """Its late frames are no burst; with loss verification another try is."""
    tried, seen = rig("sim:capacity=8M:ring=2000", max_load_pps=10e6, burst_repetitions=1), set()

    def first_is_late(trial: Trial) -> Trial:
        first = trial.directions[0]
        if trial.load.pps_per_direction is None or first.intended_packets in seen:
            return trial
        seen.add(first.intended_packets)
        late = first.intended_packets // 2
        offered = first.intended_packets - late
        less = dataclasses.replace(first, offered_packets=offered, forwarded_packets=offered, unsent_late_packets=late)
        return dataclasses.replace(trial, directions=(less,))

    tried.change = first_is_late
    burst = tried.finish("b2b").burst
    assert 9900 <= burst.max_packets <= 10_004


def test_a_loss_that_the_goal_allows_needs_no_excuse(rig):
    tried = rig("sim:capacity=10M")
    tried.change = interrupted(1.0)
    result = tried.finish("pdr")
    assert result.complete and result.lower_pps is not None
    assert result.lower_pps > 9.9e6
