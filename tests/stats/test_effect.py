# SPDX-License-Identifier: BSD-3-Clause
import random

import numpy as np
import pytest

from planebench.stats.effect import (
    MIN_EFFECT,
    Effect,
    beyond_noise,
    median_effect,
    percentile_effect,
    with_bounds,
)
from planebench.stats.histogram import Counts, decode, encode, merge_counts, percentile_ns, resampled_percentiles_ns
from planebench.stats.intervals import median_ratio_interval

SEEDS = range(200)


def _sample(rng: random.Random, n: int, noise: float, middle: float = 10e6) -> list[float]:
    return [middle * rng.gauss(1, noise) for _ in range(n)]


def _counts(*samples: tuple[int, int]) -> Counts:
    return decode(encode(samples))


@pytest.mark.parametrize("n", [3, 6])
def test_the_same_switch_is_never_told_from_itself_in_quiet(n: int) -> None:
    for seed in SEEDS:
        rng = random.Random(seed)
        effect = median_effect(_sample(rng, n, 0.003), _sample(rng, n, 0.003))
        assert abs(effect.ratio - 1) < MIN_EFFECT
        assert not effect.distinguishable


@pytest.mark.parametrize("n", [3, 4, 6, 10])
def test_the_same_switch_is_told_from_itself_in_at_most_one_of_twenty(n: int) -> None:
    found = 0
    for seed in SEEDS:
        rng = random.Random(seed)
        found += median_effect(_sample(rng, n, 0.03), _sample(rng, n, 0.03)).distinguishable
    assert found <= len(SEEDS) * 0.05


@pytest.mark.parametrize("n", [3, 6])
def test_five_per_cent_are_told_from_quiet_noise(n: int) -> None:
    for seed in SEEDS:
        rng = random.Random(seed)
        effect = median_effect(_sample(rng, n, 0.003), _sample(rng, n, 0.003, 10.5e6))
        assert effect.distinguishable
        assert effect.low is not None and effect.high is not None
        assert 1 < effect.low < effect.ratio < effect.high


def test_a_ratio_of_medians_and_the_full_range_of_three() -> None:
    effect = median_effect([10.0, 10.0, 20.0], [30.0, 30.0, 30.0])
    assert (effect.ratio, effect.low, effect.high) == (3.0, 1.5, 3.0)


@pytest.mark.parametrize(("n_a", "n_b"), [(1, 1), (2, 9), (9, 2)])
def test_too_few_trials_have_no_interval_and_tell_nothing(n_a: int, n_b: int) -> None:
    assert median_effect([10.0] * n_a, [20.0] * n_b) == Effect(2.0, None, None, False)


def test_what_is_below_the_least_effect_is_not_told_apart_however_sure() -> None:
    assert not median_effect([100.0] * 8, [100.9] * 8).distinguishable
    assert median_effect([100.0] * 8, [101.1] * 8).distinguishable


@pytest.mark.parametrize(
    ("a", "b", "told"),
    [
        ([10.0, 10.1, 10.2], [10.5, 10.6, 10.7], True),
        ([10.5, 10.6, 10.7], [10.0, 10.1, 10.2], True),
        ([10.0, 10.1, 10.2], [10.3, 10.4, 10.5], False),
        ([10.0, 10.1, 10.6], [10.5, 10.6, 10.7], False),
        ([1.0, 2.0, 3.0, 4.0], [4.5, 6.0, 7.0, 8.0], True),
        ([1.0, 2.0, 3.0, 5.0], [4.5, 6.0, 7.0, 8.0], False),
    ],
    ids=["apart", "below", "gap-of-the-spread", "overlap", "rank-test", "rank-test-overlap"],
)
def test_ranks_decide_from_four_on_and_a_gap_below(a: list[float], b: list[float], told: bool) -> None:
    assert beyond_noise(a, b) == told


@pytest.mark.parametrize(
    ("ratio", "a_bound", "b_bound", "told"),
    [
        (1.3, False, True, True),
        (0.7, False, True, False),
        (0.7, True, False, True),
        (1.3, True, False, False),
        (1.3, True, True, False),
        (1.3, False, False, True),
    ],
)
def test_a_lower_bound_tells_only_what_is_certain(ratio: float, a_bound: bool, b_bound: bool, told: bool) -> None:
    effect = with_bounds(Effect(ratio, ratio - 0.1, ratio + 0.1, True), a_bound, b_bound)
    assert effect.distinguishable == told
    assert (effect.low is None, effect.high is None) == (a_bound, b_bound)


def test_percentiles_are_of_the_merged_histograms() -> None:
    a = [_counts((1000, 90)), _counts((9000, 10))]
    effect = percentile_effect(a, [_counts((2000, 100))], 0.50)
    assert effect == Effect(2.0, None, None, False)
    assert percentile_effect(a, [_counts((2000, 100))], 0.99).ratio == pytest.approx(2 / 9, rel=2e-3)


def test_latency_is_told_apart_over_trials() -> None:
    a = [_counts((1000 + i, 100)) for i in range(3)]
    b = [_counts((1500 + i, 100)) for i in range(3)]
    effect = percentile_effect(a, b, 0.50)
    assert effect.distinguishable
    assert (effect.low, effect.high) == (pytest.approx(1500 / 1002), pytest.approx(1502 / 1000))
    assert not percentile_effect(a, a, 0.50).distinguishable


def test_resampled_percentiles_are_those_of_the_merges() -> None:
    trials = [_counts((1000, 10)), _counts((1200, 3)), _counts((5000, 7))]
    found = resampled_percentiles_ns(trials, 0.5, np.random.default_rng(1), 400)
    drawn = np.random.default_rng(1).multinomial(3, np.full(3, 1 / 3), size=400)
    merges = [merge_counts(t for t, times in zip(trials, row, strict=True) for _ in range(times)) for row in drawn]
    assert list(found) == [percentile_ns(m, 0.5) for m in merges]


def test_the_interval_is_the_same_for_the_same_seed() -> None:
    a, b = [1.0, 2.0, 4.0, 5.0], [2.0, 3.0, 5.0, 9.0]
    assert median_ratio_interval(a, b, seed=3) == median_ratio_interval(a, b, seed=3)
    assert median_ratio_interval([1.0], b) is None
    assert median_ratio_interval([0.0, 1.0], b) is None
