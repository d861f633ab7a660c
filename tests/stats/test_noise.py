# SPDX-License-Identifier: BSD-3-Clause
"""The noise between starts: known values, limits, and that intervals and p-values agree."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from planebench.stats.answers import answer
from planebench.stats.noise import FACTOR_MAX, RESOLUTION, Estimate, Noise, fit_noise


def gaussian(rows: int, columns: int, sd: float = 0.02, seed: int = 1) -> list[list[float]]:
    return np.random.default_rng(seed).normal(0, sd, (rows, columns)).tolist()


def test_without_a_prior_it_is_the_t_interval() -> None:
    sample = [0.01, 0.03, -0.02, 0.05]
    estimate = Noise(1.0, 0.0, math.inf).estimate(sample)
    assert estimate is not None
    low, high = stats.t.interval(0.95, 3, np.mean(sample), stats.sem(sample))
    assert estimate.mean - estimate.half_width() == pytest.approx(low)
    assert estimate.mean + estimate.half_width() == pytest.approx(high)


def test_hardly_any_degree_of_freedom_tells_nothing_and_is_no_error() -> None:
    estimate = Estimate(0.1, 0.2, 0.05, 2)
    assert estimate.interval() == pytest.approx((1 / FACTOR_MAX, FACTOR_MAX))
    found = answer(estimate)
    assert (found.answer, found.low, found.high) == ("open", pytest.approx(1 / FACTOR_MAX), pytest.approx(FACTOR_MAX))


def test_cells_that_are_alike_are_pooled() -> None:
    noise = fit_noise(gaussian(400, 3), degrees_max=800)
    assert math.sqrt(noise.variance) == pytest.approx(0.02, rel=0.05)
    assert noise.degrees > 50


def test_cells_that_differ_are_not() -> None:
    scales = np.random.default_rng(2).lognormal(0, 1.5, 400)
    samples = [[value * scale for value in row] for row, scale in zip(gaussian(400, 6), scales, strict=True)]
    assert fit_noise(samples, degrees_max=2000).degrees < 2


def test_two_starts_of_a_quiet_run_decide_a_factor_and_alone_do_not() -> None:
    noise = fit_noise(gaussian(18, 2), degrees_max=16)
    alone = fit_noise([[0.0, 0.01]], degrees_max=1).estimate([math.log(3), math.log(3.01)])
    pooled = noise.estimate([math.log(3), math.log(3.01)])
    assert alone is not None and pooled is not None
    assert pooled.half_width() < 0.1 and alone.degrees == 1


def test_one_start_has_the_error_of_the_others() -> None:
    estimate = fit_noise(gaussian(50, 4), degrees_max=100).estimate([0.5])
    assert estimate is not None and estimate.error == pytest.approx(0.02, rel=0.1)


@pytest.mark.parametrize("sample", [[], [0.5]])
def test_nothing_known_is_none(sample: list[float]) -> None:
    assert fit_noise([], degrees_max=10).estimate(sample) is None


def test_no_error_has_more_degrees_than_there_are_starts() -> None:
    estimate = fit_noise(gaussian(400, 3), degrees_max=12).estimate([0.1, 0.1, 0.1])
    assert estimate is not None and estimate.degrees == 12


def test_no_noise_at_all_is_not_believed() -> None:
    estimate = fit_noise([[0.0, 0.0, 0.0]] * 9, degrees_max=18).estimate([0.1, 0.1, 0.1])
    assert estimate is not None and estimate.error >= RESOLUTION / math.sqrt(3)


def test_values_that_wander_have_a_wider_interval() -> None:
    steps = np.cumsum(gaussian(100, 6), axis=1).tolist()
    wandering, independent = fit_noise(steps, 500), fit_noise(gaussian(100, 6), 500)
    assert wandering.correlation > 0.3 > 0.1 > independent.correlation


@given(
    st.lists(st.floats(-0.5, 0.5), min_size=2, max_size=9),
    st.floats(0, 50),
    st.floats(0.001, 0.5),
)
def test_the_interval_excludes_a_value_where_its_p_value_is_below_alpha(
    sample: list[float], degrees: float, alpha: float
) -> None:
    estimate = Noise(1e-4, degrees, 100.0).estimate(sample)
    assert estimate is not None
    edge = estimate.mean + estimate.half_width(alpha)
    assert estimate.p_value(edge) == pytest.approx(alpha, rel=1e-6)
