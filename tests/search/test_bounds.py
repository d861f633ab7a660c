# SPDX-License-Identifier: BSD-3-Clause
"""What searches find on switches whose truth is known."""

from __future__ import annotations

import pytest
from builders import make_point
from hypothesis import given, settings
from hypothesis import strategies as st

from planebench.analysis.search.task import SearchSettings
from planebench.model.records import VerdictKind

from .conftest import Rig

LOSSLESS = ("ndr", "rfc2544", "bswlv")
BINARY = (*LOSSLESS, "pdr")


@pytest.mark.parametrize("method", LOSSLESS)
@settings(max_examples=25)
@given(capacity=st.integers(20_000, 200_000_000), two=st.booleans(), seed=st.integers(0, 99))
def test_bounds_bracket_the_capacity(method, capacity, two, seed):
    point = make_point("sim", direction="bidirectional" if two else "unidirectional")
    rig = Rig(f"sim:capacity={capacity}", seed, point=point)
    result = rig.finish(method)
    assert result.complete
    assert result.verdict.kind is VerdictKind.VALID
    assert result.lower_pps <= capacity <= result.upper_pps
    # Whole packets a second in each direction: two more at the most on the width.
    assert result.upper_pps - result.lower_pps <= 0.005 * result.upper_pps + 4
    assert len(rig.trials) <= 60


@settings(max_examples=25)
@given(capacity=st.integers(20_000, 200_000_000), seed=st.integers(0, 99))
def test_pdr_brackets_the_load_that_loses_its_ratio(capacity, seed):
    rig = Rig(f"sim:capacity={capacity}", seed)
    result = rig.finish("pdr")
    truth = capacity / (1 - 0.005)
    assert result.lower_pps <= truth * (1 + 1e-4)
    assert result.upper_pps >= truth * (1 - 1e-4)
    assert result.upper_pps - result.lower_pps <= 0.005 * result.upper_pps + 4
    assert result.conditional_pps >= result.lower_pps * 0.995
    assert len(rig.trials) <= 60


@pytest.mark.parametrize("width", [0.05, 0.01, 0.001])
def test_width_is_as_set(rig, width):
    result = rig("sim:capacity=7.777M", relative_width=width).finish("bswlv")
    assert result.lower_pps <= 7.777e6 <= result.upper_pps
    assert result.upper_pps - result.lower_pps <= width * result.upper_pps + 2


def test_loss_verification_finds_what_one_long_trial_does_not(rig):
    """40 % of trials lose 3 frames; over 100 seeds. With max(r) = 4, 95 % of searches end within 1 % of 10 Mpps; with
    one trial a load 68 % do, and the lowest tenth is more than 3 % below. Neither ends above.
    """

    def found(method, **how):
        return sorted(rig("sim:stall_share=40%", seed, **how).finish(method).lower_pps or 0.0 for seed in range(100))

    verified, single = found("bswlv", max_r=4), found("rfc2544")
    assert sum(9.9e6 <= pps <= 10e6 for pps in verified) >= 92
    assert sum(9.9e6 <= pps <= 10e6 for pps in single) <= 75
    assert verified[90] - verified[10] <= 0.1e6
    assert single[90] - single[10] >= 0.3e6
    assert max(verified + single) <= 10e6


def test_a_switch_that_always_loses_meets_no_goal(rig):
    result = rig("sim:loss=1%").finish("rfc2544")
    assert result.complete
    assert result.lower_pps is None
    assert result.verdict.kind is VerdictKind.VALID
    assert result.verdict.codes == ("no-load-met",)


def test_a_fault_of_one_frame_in_a_thousand_is_within_pdr_and_not_within_ndr(rig):
    assert rig("sim:drop_one_in=1000").finish("pdr").lower_pps > 9.9e6
    assert rig("sim:drop_one_in=1000").finish("ndr").lower_pps is None
    assert rig("sim:drop_one_in=1000", min_load_pps=500).finish("ndr").lower_pps < 1000


def test_more_duration_or_ring_than_loss_is_no_loss(rig):
    """A ring of 50000 frames takes what 1 s at 10.05 Mpps has too much; the trial cannot tell."""
    result = rig("sim:ring=50000").finish("bswlv")
    assert result.lower_pps <= 10.05e6 <= result.upper_pps


def test_max_load_is_kept_to(rig):
    tried = rig("sim:capacity=10M", max_load_pps=6e6)
    result = tried.finish("ndr")
    assert result.lower_pps == 6e6
    assert result.upper_pps is None
    assert result.verdict.kind is VerdictKind.VALID
    assert result.verdict.codes[0] == "met-at-maximum"
    assert all(t.load.pps_per_direction is not None for t in tried.trials)


def test_loads_are_whole_packets_in_each_direction(rig):
    tried = rig("sim:capacity=3333333", point=make_point("sim", direction="bidirectional"))
    result = tried.finish("bswlv")
    paced = [t for t in tried.trials if t.load.pps_per_direction is not None]
    assert len(paced) > 4
    assert all(t.load.pps_per_direction == round(t.load.pps_per_direction) for t in paced)
    assert result.lower_pps % 2 == 0


def test_a_switch_slower_than_the_lowest_load_can_be_searched(rig):
    result = rig("sim:capacity=500").finish("bswlv")
    assert result.lower_pps <= 500 <= result.upper_pps


@pytest.mark.parametrize("method", BINARY)
def test_same_seed_same_path(rig, method):
    spec = "sim:noise=2%:stall_share=20%:disturbed_share=10%"
    one, two, other = rig(spec, 7), rig(spec, 7), rig(spec, 8)
    assert one.finish(method) == two.finish(method)
    assert one.trials == two.trials
    other.finish(method)
    assert other.trials != one.trials


def test_trial_duration_scales_the_sum_and_is_owned_up_to(rig):
    tried = rig("sim", duration_s=0.1)
    full = rig("sim")
    result = tried.finish("ndr")
    full.finish("ndr")
    assert len(tried.trials) == len(full.trials)
    assert {t.intended_duration_ns for t in tried.trials[1:]} == {100_000_000}
    assert any("CSIT takes 1 s" in d for d in result.deviations)
    assert any("2.1 s of trials" in d for d in result.deviations)


def test_standard_durations_are_no_deviation(rig):
    tried = rig("sim", max_load_pps=12e6)
    result = tried.finish("rfc2544")
    assert {t.intended_duration_ns for t in tried.trials} == {60_000_000_000}
    assert len(result.deviations) == 1
    assert "line rate" in result.deviations[0]
    assert any("60 s" in d for d in rig("sim", duration_s=1.0).finish("rfc2544").deviations)


def test_settings_are_those_of_csit_by_default(rig):
    """A load at which every second trial loses is decided by 21 trials, not by the first."""
    tried = rig("sim:stall_share=50%")
    result = tried.finish("ndr")
    assert SearchSettings().relative_width is None
    assert 9.9e6 <= result.lower_pps <= 10e6
    loads = [t.load.pps_per_direction for t in tried.used(result)]
    assert max(loads.count(load) for load in loads) > 11
