# SPDX-License-Identifier: BSD-3-Clause
"""Confidence intervals of figures, by bootstrap."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Interval:
    """``lower`` to ``upper`` covers the true value with probability ``confidence``, by bootstrap."""

    lower: float
    upper: float
    confidence: float


def relative_spread(values: Sequence[float]) -> float:
    """Return (max - min) / median; 0.0 for fewer than two values or a median of zero."""
    middle = float(np.median(values)) if values else 0.0
    return (max(values) - min(values)) / middle if len(values) > 1 and middle else 0.0


def median_ratio_interval(
    a: Sequence[float], b: Sequence[float], confidence: float = 0.95, seed: int = 1, resamples: int = 2000
) -> Interval | None:
    """Return the percentile bootstrap of median(b) / median(a), each resampled alone; deterministic for a seed.

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
    """Return the middle ``confidence`` of bootstrap figures."""
    tail = (1 - confidence) / 2
    lower, upper = np.quantile(drawn, [tail, 1 - tail])
    return Interval(float(lower), float(upper), confidence)
