# SPDX-License-Identifier: BSD-3-Clause
"""A tester that cannot do what it is told, and bands: neither may be taken for the switch."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planebench.model.records import VerdictKind

from .conftest import Rig

LOSSLESS = ("ndr", "rfc2544", "bswlv", "curve")


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


@settings(max_examples=15)
@given(stretch=st.sampled_from([1.002, 1.005, 1.02, 1.1, 1.5]), method=st.sampled_from(LOSSLESS))
def test_a_stretching_generator_yields_nothing_above_the_capacity(stretch, method):
    result = Rig(f"sim:capacity=10M:stretch={stretch}").finish(method)
    assert result.lower_pps is None or result.lower_pps <= 10e6
    assert not result.complete
    assert result.verdict.kind is VerdictKind.TESTER_LIMITED


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


def test_losses_of_a_late_generator_are_the_testers(rig):
    """At 0.5 % unsent a trial is still valid; what bounds the search is then the generator, not the switch."""
    result = rig("sim:capacity=20M:max_rate=8M", max_load_pps=8.05e6).finish("bswlv")
    assert result.verdict.kind is VerdictKind.TESTER_LIMITED
    assert "generator missed its schedule" in result.verdict.texts[0]
    assert result.lower_pps <= 8e6 <= result.upper_pps


def test_the_far_band_can_be_searched_too(rig):
    result = rig("sim:far_share=60%:far_ratio=0.4", 5, "far").finish("ndr")
    assert result.lower_pps <= 4e6 <= result.upper_pps


def test_a_band_that_does_not_come_ends_the_search(rig):
    tried = rig("sim:far_share=1", band="near")
    result = tried.finish("ndr")
    assert not result.complete
    assert result.verdict.kind is VerdictKind.DISTURBED
    assert "8 in band far" in result.verdict.texts[0]
