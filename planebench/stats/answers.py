# SPDX-License-Identifier: BSD-3-Clause
"""The answers of a comparison: different by so much, the same within a margin, or open at a price."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

from planebench.model.results import AnswerKind
from planebench.stats.noise import Estimate, factor, figure_of

ALPHA = 0.05
MARGIN = 0.05
"""Two figures are called the same if the interval of their ratio is within 1 / (1 + MARGIN) to 1 + MARGIN."""
LOOK_ALPHAS = (0.05, 0.0294, 0.0221, 0.0182, 0.0158, 0.0142, 0.0130, 0.0120)
"""Level of each look where a comparison is looked at up to 1, 2, ... times and ends at the first decision, so that it
errs with probability ALPHA in all (Pocock, Biometrika 64, 1977; Jennison and Turnbull 2000, table 2.1)."""
STARTS_MAX = 200
"""A comparison that would need more is not worth a price."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The ratio b / a with its interval, and the answer that follows from the interval.

    ``low`` and ``high``: None where an end is open, or where nothing was tested. ``starts``: for an open comparison,
    how many more starts of each side would probably decide it; None where more than STARTS_MAX would be needed or
    nothing is known of the noise.
    """

    ratio: float
    low: float | None
    high: float | None
    answer: AnswerKind
    starts: int | None = None

    @property
    def distinguishable(self) -> bool:
        """Return whether the two differ significantly."""
        return self.answer == "different"


@dataclass(frozen=True, slots=True)
class Bounds:
    """Which of the two figures of a ratio b / a are only lower bounds, because the tester was the limit."""

    a: bool = False
    b: bool = False

    def hide(self, estimate: Estimate) -> bool:
        """Return whether the direction of the estimate is one that the limit of the tester alone may have caused."""
        return (self.a and estimate.mean > 0) or (self.b and estimate.mean < 0) or (self.a and self.b)


EXACT = Bounds()


def answer(estimate: Estimate, alpha: float = ALPHA, margin: float = MARGIN, bounds: Bounds = EXACT) -> Answer:
    """Return the answer of an estimate of log(b / a). Interval and words agree: different if 1 is outside.

    A lower bound leaves its end of the interval open.
    """
    half = estimate.half_width(alpha)
    low = None if bounds.a else estimate.mean - half
    high = None if bounds.b else estimate.mean + half
    within = math.log1p(margin)
    if (low is not None and low > 0) or (high is not None and high < 0):
        kind: AnswerKind = "different"
    elif low is not None and high is not None and -within < low and high < within:
        kind = "same"
    else:
        kind = "open"
    priced = kind == "open" and not bounds.hide(estimate)
    starts = starts_missing(estimate, alpha, margin) if priced else None
    low, high = (None if end is None else factor(end) for end in (low, high))
    return Answer(figure_of(estimate.mean), low, high, kind, starts)


@dataclass(frozen=True, slots=True)
class OneOfMany:
    """One comparison of many. Those of the same ``unit`` share their starts, so they are wrong together."""

    estimate: Estimate
    bounds: Bounds
    unit: Hashable

    @property
    def p_value(self) -> float:
        """Return the p-value of the hypothesis that the ratio is 1."""
        return 1.0 if self.bounds.hide(self.estimate) else self.estimate.p_value()


def answers(family: Sequence[OneOfMany], alpha: float = ALPHA) -> list[Answer]:
    """Return the answers of all comparisons of a run, each with its own 95 % interval.

    Two differ where their unit does, of all units (Holm), and where 1 is outside of the interval at ``alpha``. The
    p-value of a unit is that of Simes (1986).
    """
    of_unit: dict[Hashable, list[float]] = {}
    for it in family:
        of_unit.setdefault(it.unit, []).append(it.p_value)
    p_values = {unit: _simes(found) for unit, found in of_unit.items()}
    corrected = dict(zip(p_values, holm(list(p_values.values())), strict=True))
    left = max(sum(p >= alpha for p in corrected.values()), 1)
    found = []
    for it in family:
        shown, tested = answer(it.estimate, bounds=it.bounds), answer(it.estimate, alpha, bounds=it.bounds)
        kind, starts = tested.answer, tested.starts
        if kind == "different" and corrected[it.unit] >= alpha:
            kind, starts = "open", starts_missing(it.estimate, alpha / left)
        found.append(replace(shown, answer=kind, starts=starts))
    return found


def _simes(p_values: Sequence[float]) -> float:
    """Return the p-value of several hypotheses together."""
    return min(len(p_values) * p / rank for rank, p in enumerate(sorted(p_values), start=1))


def starts_missing(estimate: Estimate, alpha: float = ALPHA, margin: float = MARGIN) -> int | None:
    """Return how many more starts decide the comparison if its mean and noise stay as they are.

    More starts make the mean more certain, and the noise as well: its degrees of freedom rise with them.
    """
    needed = max(abs(estimate.mean), math.log1p(margin) - abs(estimate.mean))
    prices = range(1, STARTS_MAX - estimate.n + 1)
    at = bisect_left(prices, -needed, key=lambda more: -_after(estimate, more, alpha))
    return prices[at] if at < len(prices) else None


def _after(estimate: Estimate, more: int, alpha: float) -> float:
    """Return half of the width of the interval after so many more starts."""
    times = 1 + more / estimate.n
    later = replace(estimate, error=estimate.error / math.sqrt(times), degrees=estimate.degrees * times)
    return later.half_width(alpha)


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
