# SPDX-License-Identifier: BSD-3-Clause
import random
import statistics

import pytest
from scipy.stats import binom

from planebench.stats.intervals import mean_interval, median_interval, relative_spread


@pytest.mark.parametrize(
    ("values", "spread"), [((), 0.0), ((5.0,), 0.0), ((0.0, 0.0), 0.0), ((9.0, 10.0, 11.0), 0.2), ((10.0, 10.0), 0.0)]
)
def test_spread(values: tuple[float, ...], spread: float) -> None:
    assert relative_spread(values) == pytest.approx(spread)


@pytest.mark.parametrize("n", range(2, 40))
def test_the_median_interval_covers_what_it_says(n: int) -> None:
    interval = median_interval(list(range(n)))
    assert interval is not None
    cut = int(interval.lower)
    assert interval.upper == n - 1 - cut
    assert interval.confidence == pytest.approx(1 - 2 * binom.cdf(cut, n, 0.5))
    assert interval.confidence >= 0.95 or cut == 0
    narrower = 1 - 2 * binom.cdf(cut + 1, n, 0.5)
    assert narrower < 0.95


def test_too_few_values_have_no_interval() -> None:
    assert median_interval([1.0]) is None
    assert mean_interval([]) is None


def test_the_mean_interval_is_reproducible_and_holds_the_mean() -> None:
    rng = random.Random(1)
    values = [rng.gauss(10, 1) for _ in range(12)]
    interval = mean_interval(values)
    assert interval == mean_interval(values)
    assert interval is not None
    assert interval.lower < statistics.fmean(values) < interval.upper
