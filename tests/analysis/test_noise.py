# SPDX-License-Identifier: BSD-3-Clause
"""The noise between starts: known values, limits, and that intervals and p-values agree."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from planebench.analysis.answers import answer
from planebench.analysis.noise import FACTOR_MAX, RESOLUTION, TYPICAL, Estimate, Noise, fit_noise


def gaussian(rows: int, columns: int, sd: float = 0.02, seed: int = 1) -> list[list[float]]:
    return np.random.default_rng(seed).normal(0, sd, (rows, columns)).tolist()


def test_a_cell_alone_has_the_t_interval() -> None:
    sample = [0.01, 0.03, -0.02, 0.05]
    estimate = fit_noise([sample], degrees_max=3).estimate(sample)
    assert estimate is not None and estimate.degrees == 3
    low, high = stats.t.interval(0.95, 3, np.mean(sample), stats.sem(sample))
    assert estimate.mean - estimate.half_width() == pytest.approx(low)
    assert estimate.mean + estimate.half_width() == pytest.approx(high)


def test_hardly_any_degree_of_freedom_tells_nothing_and_is_no_error() -> None:
    estimate = Estimate(0.1, 0.2, 0.05, 2)
    assert estimate.interval() == pytest.approx((1 / FACTOR_MAX, FACTOR_MAX))
    found = answer(estimate)
    assert (found.answer, found.low, found.high) == ("open", pytest.approx(1 / FACTOR_MAX), pytest.approx(FACTOR_MAX))


def test_the_variance_is_its_own_and_at_least_the_typical_one() -> None:
    """Variances of 1, 4, 9, 16 and 100 in units of 1e-4; the quantile is 0.4 of the way from 9 to 16."""
    samples = [[0.0, half, -half] for half in (0.01, 0.02, 0.03, 0.04, 0.1)]
    noise = fit_noise(samples, degrees_max=8)
    assert noise.variance == pytest.approx(11.8e-4)
    quiet, noisy = noise.estimate(samples[0]), noise.estimate(samples[4])
    assert quiet is not None and quiet.error == pytest.approx(math.sqrt(11.8e-4 / 3))
    assert noisy is not None and noisy.error == pytest.approx(0.1 / math.sqrt(3))
    assert quiet.degrees == noisy.degrees == 4


@pytest.mark.parametrize(("starts", "share"), [(3, 0.92), (5, 1.01), (8, 1.04)])
def test_the_quantile_of_normal_noise_is_its_variance(starts: int, share: float) -> None:
    assert stats.chi2.ppf(TYPICAL, starts - 1) / (starts - 1) == pytest.approx(share, abs=0.005)
    noise = fit_noise(gaussian(4000, starts), degrees_max=8000)
    assert noise.variance == pytest.approx(share * 0.02**2, rel=0.05)


def test_one_cell_that_is_ill_does_not_widen_the_others() -> None:
    samples = gaussian(18, 5)
    before, after = (
        fit_noise(it, degrees_max=48).estimate(samples[0]) for it in (samples, [*samples, [0, 0, 0, 0, 3]])
    )
    assert before is not None and after is not None
    assert after.error < 1.2 * before.error


def test_two_starts_of_a_quiet_run_decide_a_factor_and_alone_do_not() -> None:
    noise = fit_noise(gaussian(18, 2), degrees_max=16)
    alone = fit_noise([[0.0, 0.01]], degrees_max=1).estimate([math.log(3), math.log(3.01)])
    pooled = noise.estimate([math.log(3), math.log(3.01)])
    assert alone is not None and pooled is not None
    assert pooled.half_width() < 0.1 and (alone.degrees, pooled.degrees) == (1, 2)


def test_one_start_has_the_error_of_the_others() -> None:
    noise = fit_noise(gaussian(50, 4), degrees_max=100)
    estimate = noise.estimate([0.5])
    assert estimate is not None
    assert (estimate.error, estimate.degrees) == (math.sqrt(noise.variance), 2)
    assert fit_noise(gaussian(2, 4), degrees_max=6).estimate([0.5]) is None, "of two others no noise is typical"


@pytest.mark.parametrize("sample", [[], [0.5]])
def test_nothing_known_is_none(sample: list[float]) -> None:
    assert fit_noise([], degrees_max=10).estimate(sample) is None
    assert fit_noise([sample], degrees_max=0).estimate(sample) is None


def test_no_error_has_more_degrees_than_there_are_starts() -> None:
    estimate = fit_noise(gaussian(400, 8), degrees_max=7).estimate([0.1] * 8)
    assert estimate is not None and estimate.degrees == 7


def test_no_noise_at_all_is_not_believed() -> None:
    estimate = fit_noise([[0.0, 0.0, 0.0]] * 9, degrees_max=18).estimate([0.1, 0.1, 0.1])
    assert estimate is not None and estimate.error == pytest.approx(RESOLUTION / math.sqrt(3))


@given(
    st.lists(st.floats(-0.5, 0.5), min_size=2, max_size=9),
    st.floats(1, 50),
    st.floats(0.001, 0.5),
)
def test_the_interval_excludes_a_value_where_its_p_value_is_below_alpha(
    sample: list[float], degrees: float, alpha: float
) -> None:
    estimate = Noise(1e-4, 3, degrees).estimate(sample)
    assert estimate is not None
    edge = estimate.mean + estimate.half_width(alpha)
    assert estimate.p_value(edge) == pytest.approx(alpha, rel=1e-6)
