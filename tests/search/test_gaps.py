# SPDX-License-Identifier: BSD-3-Clause
"""Losses that a gap of a poller explains, and those that it does not."""

from __future__ import annotations

import dataclasses
import random

import pytest
from builders import make_point, make_trial

from planebench.model.records import DirectionCounts, Evidence, Load, ThreadEvidence, Trial, VerdictKind
from planebench.search import explained_by_gaps
from planebench.search.facts import gap_ns
from planebench.search.gaps import bound_by_others, late_only
from planebench.search.log import EXCUSES_MAX


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
        (paced(lost=20, wait_ns=10_000, gap_sum_ns=10_000), True),
        (paced(lost=6, late=5, wait_ns=10_000), False),
        (paced(lost=5, late=5, wait_ns=10_000), True),
        (paced(lost=20, wait_ns=10_000, directions=2), True),
        (paced(lost=21, wait_ns=10_000, directions=2), False),
        (paced(lost=1), False),
    ],
)
def test_gaps_explain_what_would_have_come_in_them(trial, explained):
    assert explained_by_gaps(trial) is explained


def test_gaps_are_those_of_all_pollers():
    assert gap_ns(paced(wait_ns=7, gap_sum_ns=5)) == 12


def test_half_of_the_failed_trials_decide():
    gap, own = paced(lost=10, wait_ns=2_000_000), paced(lost=100)
    assert bound_by_others([], 0.0) is None
    assert bound_by_others([own, own, gap], 0.0) is None
    verdict = bound_by_others([own, gap, gap, own], 0.0)
    assert verdict.kind is VerdictKind.DISTURBED
    assert verdict.reasons == (
        "the losses at 1 Mpps are no more than what the gaps of the pollers explain (4 ms in 2 s): this machine, "
        "not the switch, may be the bound",
    )


def test_a_late_generator_is_to_blame_only_where_the_switch_met_the_goal():
    assert late_only(paced(late=10), 0.0)
    assert not late_only(paced(lost=1, late=10), 0.0)
    assert late_only(paced(lost=1, late=10), 0.005)
    assert not late_only(paced(), 0.0)
    assert bound_by_others([paced(late=10), paced(lost=5)], 0.0).kind is VerdictKind.TESTER_LIMITED


def interrupted(share: float):
    """A machine that takes the core for a while in this share of the trials, and loses a few frames with it."""
    rng = random.Random(7)

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


def test_trials_with_an_excuse_are_passed_over_while_there_are_others(rig):
    tried = rig("sim:capacity=10M")
    tried.change = interrupted(0.6)
    result = tried.finish("rfc2544")
    assert result.complete
    assert result.lower_pps is not None and abs(result.lower_pps - 10e6) < 0.01 * 10e6
    assert not any(explained_by_gaps(t) for t in tried.used(result))


def test_where_every_trial_has_the_same_excuse_it_is_taken_and_told(rig):
    tried = rig("sim:capacity=10M")
    tried.change = interrupted(1.0)
    result = tried.finish("rfc2544")
    assert result.verdict.kind is VerdictKind.DISTURBED
    assert "this machine, not the switch, may be the bound" in result.verdict.reasons[0]
    at_bound = [t for t in tried.trials if t.load.pps_per_direction == result.upper_pps]
    assert len(at_bound) == 1 + EXCUSES_MAX


def test_a_loss_that_the_goal_allows_needs_no_excuse(rig):
    tried = rig("sim:capacity=10M")
    tried.change = interrupted(1.0)
    result = tried.finish("pdr")
    assert result.complete and result.lower_pps is not None
    assert result.lower_pps > 9.9e6
