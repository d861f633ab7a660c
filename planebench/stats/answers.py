# SPDX-License-Identifier: BSD-3-Clause
"""The three answers of a comparison: different by so much, the same within a margin, or open at a price."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from planebench.stats.noise import Estimate

ALPHA = 0.05
MARGIN = 0.05
"""Two figures are called the same if the interval of their ratio is within 1 / (1 + MARGIN) to 1 + MARGIN."""
LOOK_ALPHAS = (0.05, 0.0294, 0.0221, 0.0182, 0.0158, 0.0142, 0.0130, 0.0120)
"""Level of each look where a comparison is looked at up to 1, 2, ... times and ends at the first decision, so that it
errs with probability ALPHA in all (Pocock, Biometrika 64, 1977; Jennison and Turnbull 2000, table 2.1)."""
STARTS_MAX = 200
"""A comparison that would need more is not worth a price."""


class Kind(StrEnum):
    """The three ends of a comparison."""

    DIFFERENT = "different"
    SAME = "same"
    OPEN = "open"


@dataclass(frozen=True, slots=True)
class Answer:
    """The ratio b / a with its interval, and what follows from it.

    ``starts``: for an open comparison, how many more starts of each side would probably decide it; None where more
    than STARTS_MAX would be needed or nothing is known of the noise. ``low`` and ``high`` are None where nothing is
    known.
    """

    kind: Kind
    ratio: float
    low: float | None
    high: float | None
    starts: int | None = None


def answer(estimate: Estimate, alpha: float = ALPHA, margin: float = MARGIN) -> Answer:
    """Return the answer of an estimate of log(b / a). Interval and words agree: different if 1 is outside."""
    half = estimate.half_width(alpha)
    low, high = estimate.mean - half, estimate.mean + half
    within = math.log1p(margin)
    if low > 0 or high < 0:
        kind = Kind.DIFFERENT
    elif -within < low and high < within:
        kind = Kind.SAME
    else:
        kind = Kind.OPEN
    starts = starts_missing(estimate, alpha, margin) if kind is Kind.OPEN else None
    return Answer(kind, math.exp(estimate.mean), math.exp(low), math.exp(high), starts)


def starts_missing(estimate: Estimate, alpha: float = ALPHA, margin: float = MARGIN) -> int | None:
    """Return how many more starts decide the comparison if its mean and noise stay as they are."""
    needed = max(abs(estimate.mean), math.log1p(margin) - abs(estimate.mean))
    n = math.ceil(estimate.n * (estimate.half_width(alpha) / needed) ** 2)
    return max(n - estimate.n, 1) if n <= STARTS_MAX else None


def look_alpha(looks: int) -> float:
    """Return the level of each of up to ``looks`` looks at one comparison."""
    return LOOK_ALPHAS[min(looks, len(LOOK_ALPHAS)) - 1]


def holm(p_values: Sequence[float]) -> tuple[float, ...]:
    """Return p-values corrected for their number: any of them below alpha is wrong with probability alpha in all.

    Holm, "A simple sequentially rejective multiple test procedure", Scand. J. Statist. 6, 1979.
    """
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    corrected, least = [0.0] * len(p_values), 0.0
    for rank, index in enumerate(order):
        least = max(least, min(1.0, (len(p_values) - rank) * p_values[index]))
        corrected[index] = least
    return tuple(corrected)
