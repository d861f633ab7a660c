# SPDX-License-Identifier: BSD-3-Clause
"""A tester that cannot do what it is told may not be taken for the switch."""

from __future__ import annotations

import dataclasses
import math

import pytest

from planebench.model.records import VerdictKind

LOSSLESS = ("ndr", "rfc2544", "bswlv")


@pytest.mark.parametrize("method", [*LOSSLESS, "pdr"])
def test_a_generator_that_falls_short_gives_a_lower_bound(rig, method):
    tried = rig("sim:capacity=10M:max_rate=8M")
    result = tried.finish(method)
    assert result.complete
    assert result.verdict.kind is VerdictKind.TESTER_LIMITED
    assert result.lower_pps == pytest.approx(0.98 * 8e6, abs=1)
    assert result.upper_pps is None
    assert len(tried.trials) <= 14


@pytest.mark.parametrize("method", LOSSLESS[:3])
def test_a_generator_just_above_the_switch_does_not_hide_it(rig, method):
    result = rig("sim:capacity=10M:max_rate=11M").finish(method)
    assert result.verdict.kind is VerdictKind.VALID
    assert result.lower_pps <= 10e6 <= result.upper_pps
    assert result.upper_pps - result.lower_pps <= 0.005 * result.upper_pps + 2


@pytest.mark.parametrize("method", LOSSLESS)
@pytest.mark.parametrize("stretch", [1.02, 1.1, 1.5])
def test_a_tester_that_sends_slower_at_every_load_yields_nothing(rig, stretch, method):
    result = rig(f"sim:capacity=10M:stretch={stretch}").finish(method)
    assert result.lower_pps is None or result.lower_pps <= 10e6
    assert not result.complete
    assert result.verdict.kind is VerdictKind.TESTER_LIMITED


@pytest.mark.parametrize("method", LOSSLESS[:3])
@pytest.mark.parametrize("stretch", [1.002, 1.009])
def test_a_tester_that_sends_a_little_slower_has_offered_less(rig, stretch, method):
    """A load of 10.05 Mpps that takes 1.009 s is one of 9.96 Mpps."""
    result = rig(f"sim:capacity=10M:stretch={stretch}").finish(method)
    assert result.complete
    assert 9.9e6 < result.lower_pps <= 10e6 * 1.0001 < result.upper_pps
    assert result.conditional_pps == result.lower_pps


def test_one_bad_moment_of_the_tester_does_not_shrink_the_search(rig):
    wanted = rig("sim").finish("bswlv")
    tried = rig("sim")
    hit = []

    def late_once(trial):
        if trial.load.pps_per_direction is None or hit:
            return trial
        hit.append(trial)
        verdict = dataclasses.replace(trial.verdict, kind=VerdictKind.TESTER_LIMITED, reasons=("late",))
        return dataclasses.replace(trial, verdict=verdict)

    tried.change = late_once
    result = tried.finish("bswlv")
    assert (result.lower_pps, result.upper_pps) == (wanted.lower_pps, wanted.upper_pps)
    assert len(tried.trials) == len(wanted.trials) + 1


def test_what_a_late_generator_did_not_send_is_no_load(rig):
    """At 0.6 % late slots a trial is valid: the load of the bound is what was offered."""
    result = rig("sim:capacity=20M:max_rate=8M", max_load_pps=8.05e6).finish("bswlv")
    assert result.verdict.codes == ("met-at-maximum",)
    assert (result.lower_pps, result.upper_pps) == (pytest.approx(8e6), None)
    assert result.is_bound


def test_a_host_that_keeps_the_generator_from_its_schedule_does_not_keep_it_from_an_answer(rig):
    """The tester stands for a third of every trial: the switch carries what is offered in the rest."""
    wanted = rig("sim").finish("bswlv")
    tried = rig("sim")

    def stand(trial):
        first = trial.directions[0]
        if trial.load.pps_per_direction is None:
            return trial
        late = first.intended_packets // 3
        less = dataclasses.replace(
            first,
            offered_packets=first.offered_packets - late,
            forwarded_packets=first.offered_packets - late - math.ceil(first.lost_packets * 2 / 3),
            unsent_late_packets=late,
        )
        evidence = dataclasses.replace(trial.evidence, poll_gap_sum_ns=trial.intended_duration_ns // 3)
        return dataclasses.replace(trial, directions=(less,), evidence=evidence)

    tried.change = stand
    result = tried.finish("bswlv")
    assert result.lower_pps == pytest.approx(wanted.lower_pps, rel=1e-6)
    assert result.upper_pps == wanted.upper_pps
