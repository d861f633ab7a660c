# SPDX-License-Identifier: BSD-3-Clause
"""The ratio of two samples and its significance. No significant difference is a valid answer."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import comb

import numpy as np

from planebench.model.results import AnswerKind
from planebench.stats.histogram import Counts, merge_counts, percentile_ns, resampled_percentiles_ns
from planebench.stats.intervals import Interval, median_ratio_interval, percentile_interval

MIN_TRIALS = 3
"""Minimum per side; with fewer there is no interval and nothing is tested."""
MIN_EFFECT = 0.01
"""Differences below 1 % are below what placement and page colouring do (METHODOLOGY)."""
ALPHA = 0.05
"""Significance level of the exact two-sided Mann-Whitney test, if the samples are large enough to reach it."""
RESAMPLES = 2000

NO_DIFFERENCE = "no significant difference"
"""Says that a test was made and found none. Never said where no test was made."""
NOT_TESTED = f"not tested (n < {MIN_TRIALS})"
INCONCLUSIVE = "inconclusive (tester-limited)"
"""Says that the tester's limit hides which of two figures is higher."""


@dataclass(frozen=True, slots=True)
class Effect:
    """The ratio b / a with its 95 % confidence interval; an end is None with too few trials, or if it is open."""

    ratio: float
    low: float | None
    high: float | None
    distinguishable: bool

    @property
    def answer(self) -> AnswerKind:
        """Return what the comparison ends in."""
        if self.distinguishable:
            return "different"
        return "untested" if self.low is None and self.high is None else "open"


def undecided_words(low: float | None, high: float | None, tested: bool) -> str:
    """Return why two figures do not differ significantly: ``low`` and ``high`` are the ends of the interval."""
    if not tested:
        return NOT_TESTED
    return INCONCLUSIVE if low is None or high is None else NO_DIFFERENCE


def median_effect(a: Sequence[float], b: Sequence[float], seed: int = 1) -> Effect:
    """Return the ratio of the medians of two samples of positive values; neither may be empty."""
    ratio = statistics.median(b) / statistics.median(a)
    enough = min(len(a), len(b)) >= MIN_TRIALS
    return _effect(ratio, median_ratio_interval(a, b, seed=seed) if enough else None, a, b)


def percentile_effect(a: Sequence[Counts], b: Sequence[Counts], share: float, seed: int = 1) -> Effect:
    """Return the ratio of one percentile of merged histograms, one per trial, by bootstrap over the trials."""
    ratio = percentile_ns(merge_counts(b), share) / percentile_ns(merge_counts(a), share)
    if min(len(a), len(b)) < MIN_TRIALS:
        return Effect(ratio, None, None, False)
    below, above = (
        resampled_percentiles_ns(side, share, np.random.default_rng([seed, i]), RESAMPLES)
        for i, side in enumerate((a, b))
    )
    each_a, each_b = ([percentile_ns(counts, share) for counts in side] for side in (a, b))
    return _effect(ratio, percentile_interval(above / below), each_a, each_b)


def with_bounds(effect: Effect, a_is_bound: bool, b_is_bound: bool) -> Effect:
    """Return the effect with an open end of the interval where a or b is only a lower bound.

    Distinguishable only where the direction is still certain: b above a although b is a lower bound, or below although
    a is one.
    """
    certain = not (
        (b_is_bound and effect.ratio < 1) or (a_is_bound and effect.ratio > 1) or (a_is_bound and b_is_bound)
    )
    return replace(
        effect,
        low=None if a_is_bound else effect.low,
        high=None if b_is_bound else effect.high,
        distinguishable=effect.distinguishable and certain,
    )


def search_effect(
    a: tuple[float, float | None], b: tuple[float, float | None], spreads: tuple[float | None, float | None]
) -> Effect:
    """Return the effect of two searches by (lower, upper) bound: the extremes that bounds and noise allow.

    One search is one sample, so both of its bounds are widened by the relative spread of its side. Where a spread is
    None (too few trials to know it) there is no interval, and nothing is told apart.
    """
    (lower_a, upper_a), (lower_b, upper_b) = a, b
    spread_a, spread_b = spreads
    if spread_a is None or spread_b is None:
        return Effect(lower_b / lower_a, None, None, False)
    least_a, least_b = lower_a * max(0.0, 1 - spread_a), lower_b * max(0.0, 1 - spread_b)
    low = least_b / (upper_a * (1 + spread_a)) if upper_a else None
    high = upper_b * (1 + spread_b) / least_a if upper_b and least_a else None
    ratio = lower_b / lower_a
    apart = (low is not None and low > 1) or (high is not None and high < 1)
    return Effect(ratio, low, high, apart and abs(ratio - 1) >= MIN_EFFECT)


def beyond_noise(a: Sequence[float], b: Sequence[float]) -> bool:
    """Return whether the ranks of two samples differ: Mann-Whitney if it can reach ALPHA, else a wide gap between them.

    Of two equal samples of three one lies wholly above the other in one case of ten. So the gap between them must also
    be wider than either sample.
    """
    if 2 / comb(len(a) + len(b), len(a)) < ALPHA:
        from scipy.stats import mannwhitneyu  # half a second to import, for one command

        # "auto" is exact up to eight values without ties; ties have no exact distribution.
        return bool(mannwhitneyu(a, b, alternative="two-sided", method="auto").pvalue < ALPHA)
    gap = max(min(b) - max(a), min(a) - max(b))
    return gap > max(max(a) - min(a), max(b) - min(b))


def _effect(ratio: float, interval: Interval | None, a: Sequence[float], b: Sequence[float]) -> Effect:
    if interval is None:
        return Effect(ratio, None, None, False)
    excludes_one = not interval.lower <= 1 <= interval.upper
    told = excludes_one and abs(ratio - 1) >= MIN_EFFECT and beyond_noise(a, b)
    return Effect(ratio, interval.lower, interval.upper, told)
