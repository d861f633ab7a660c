# SPDX-License-Identifier: BSD-3-Clause
"""How sure a figure is: intervals that say how they were made and what they cover."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb
from typing import Literal

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Interval:
    """``lower`` to ``upper`` covers the true value with probability ``confidence``, by ``method``."""

    lower: float
    upper: float
    confidence: float
    method: Literal["order-statistic", "bootstrap"]


def relative_spread(values: Sequence[float]) -> float:
    """(max - min) / median; 0.0 for fewer than two values or a median of zero."""
    middle = float(np.median(values)) if values else 0.0
    return (max(values) - min(values)) / middle if len(values) > 1 and middle else 0.0


def median_interval(values: Sequence[float], confidence: float = 0.95) -> Interval | None:
    """The narrowest pair of order statistics around the median that covers at least ``confidence``; distribution-free.

    Below six values even minimum and maximum cover less than 95 %: they are returned, with the confidence they reach.
    None for fewer than two values.
    """
    ordered = sorted(values)
    n = len(ordered)
    if n < 2:
        return None
    cut = max((k for k in range((n + 1) // 2) if _coverage(n, k) >= confidence), default=0)
    return Interval(ordered[cut], ordered[n - 1 - cut], _coverage(n, cut), "order-statistic")


def mean_interval(
    values: Sequence[float], confidence: float = 0.95, seed: int = 1, resamples: int = 2000
) -> Interval | None:
    """Percentile bootstrap of the mean, the same for the same seed. None for fewer than two values."""
    if len(values) < 2:
        return None
    sample = np.asarray(values, dtype=np.float64)
    drawn = np.random.default_rng(seed).choice(sample, size=(resamples, sample.size)).mean(axis=1)
    return percentile_interval(drawn, confidence)


def median_ratio_interval(
    a: Sequence[float], b: Sequence[float], confidence: float = 0.95, seed: int = 1, resamples: int = 2000
) -> Interval | None:
    """Percentile bootstrap of median(b) / median(a), both resampled on their own; the same for the same seed.

    None for fewer than two values on a side, or where a median of ``a`` may be zero.
    """
    if min(len(a), len(b)) < 2 or min(a) <= 0:
        return None
    below, above = (
        np.median(generator.choice(np.asarray(values, dtype=np.float64), size=(resamples, len(values))), axis=1)
        for values, generator in ((a, np.random.default_rng([seed, 0])), (b, np.random.default_rng([seed, 1])))
    )
    return percentile_interval(above / below, confidence)


def percentile_interval(drawn: NDArray[np.float64], confidence: float = 0.95) -> Interval:
    """The middle ``confidence`` of bootstrap figures."""
    tail = (1 - confidence) / 2
    lower, upper = np.quantile(drawn, [tail, 1 - tail])
    return Interval(float(lower), float(upper), confidence, "bootstrap")


def _coverage(n: int, cut: int) -> float:
    """P(median lies between the (cut+1)-th smallest and the (cut+1)-th largest of n): binomial(n, 1/2)."""
    return 1 - 2 * sum(comb(n, k) for k in range(cut + 1)) / float(2**n)
