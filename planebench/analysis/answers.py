# SPDX-License-Identifier: BSD-3-Clause
"""The answers of a comparison: different by so much, the same within a margin, or open at a price."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

from planebench.analysis.noise import Estimate, factor, figure_of, fit_noise
from planebench.model.grouped import grouped
from planebench.model.results import AnswerKind

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
    nothing is known of the noise. ``level``: at which it is called different.
    """

    ratio: float
    low: float | None
    high: float | None
    answer: AnswerKind
    starts: int | None = None
    level: float = ALPHA

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


def answer(estimate: Estimate, bounds: Bounds = EXACT) -> Answer:
    """Return the answer of an estimate of log(b / a). Interval and words agree: different if 1 is outside.

    A lower bound leaves its end of the interval open.
    """
    half = estimate.half_width()
    low = None if bounds.a else estimate.mean - half
    high = None if bounds.b else estimate.mean + half
    within = math.log1p(MARGIN)
    if (low is not None and low > 0) or (high is not None and high < 0):
        kind: AnswerKind = "different"
    elif low is not None and high is not None and -within < low and high < within:
        kind = "same"
    else:
        kind = "open"
    low, high = (None if end is None else factor(end) for end in (low, high))
    return Answer(figure_of(estimate.mean), low, high, kind)


@dataclass(frozen=True, slots=True)
class OneOfMany:
    """One comparison of many. Those of the same ``unit``, as all of two switches, are judged together.

    ``ratio`` is the one shown where there is no estimate.
    """

    estimate: Estimate | None
    bounds: Bounds
    unit: Hashable
    ratio: float = math.nan


def answers(family: Sequence[OneOfMany], alpha: float = ALPHA) -> list[Answer]:
    """Return the answers of all comparisons of a run, each with its own 95 % interval.

    Whether the two of a unit differ anywhere is decided over all units (Simes, Holm); where they do, within the unit
    (Benjamini and Hochberg). So two that are equal are called different in a share ``alpha`` of runs at most, and of
    the differences between two that are not, a share ``alpha`` is wrong.
    """
    from scipy.stats import false_discovery_control

    units = grouped(
        (it.unit, (index, it.estimate, it.bounds)) for index, it in enumerate(family) if it.estimate is not None
    )
    within: dict[Hashable, list[float]] = {}
    for unit, members in units.items():  # the least of them is that of Simes (Biometrika 73, 1986), that all are true
        p_values = [1.0 if bounds.hide(estimate) else estimate.p_value() for _, estimate, bounds in members]
        within[unit] = false_discovery_control(p_values).tolist()
    over_all = dict(zip(units, holm([min(p_values) for p_values in within.values()]), strict=True))
    left = max(sum(p >= alpha for p in over_all.values()), 1)
    found = [Answer(it.ratio, None, None, "untested") for it in family]
    for unit, members in units.items():
        level = alpha if over_all[unit] < alpha else alpha / left
        for (index, estimate, bounds), p in zip(members, within[unit], strict=True):
            told = replace(answer(estimate, bounds), level=level)
            differs = max(p, over_all[unit]) < alpha
            if told.answer == "open" or (told.answer == "different" and not differs):
                starts = None if bounds.hide(estimate) else starts_missing(estimate, level, may_be_same=bounds == EXACT)
                told = replace(told, answer="open", starts=starts)
            found[index] = told
    return found


def starts_missing(estimate: Estimate, alpha: float, *, may_be_same: bool = True) -> int | None:
    """Return how many more starts decide the comparison if its mean and noise stay as they are.

    ``alpha``: the level at which it is called different; a lower bound is never called the same. More starts make the
    mean more certain, and the noise as well: its degrees of freedom rise with them.
    """
    away = abs(estimate.mean)

    def decides(more: int) -> bool:
        times = 1 + more / estimate.n
        later = replace(estimate, error=estimate.error / math.sqrt(times), degrees=estimate.degrees * times)
        return later.half_width(alpha) < away or (may_be_same and later.half_width() < math.log1p(MARGIN) - away)

    prices = range(1, STARTS_MAX - estimate.n + 1)
    at = bisect_left(prices, True, key=decides)
    return prices[at] if at < len(prices) else None


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


# The ratio of two figures as it is printed: with its interval, and the answer that follows from the interval.


def effect_of(estimate: Estimate | None, ratio: float, bounds: Bounds = EXACT) -> Answer:
    """Return the answer of an estimate of log(b / a); ``ratio`` is the one shown where there is no estimate."""
    return Answer(ratio, None, None, "untested") if estimate is None else answer(estimate, bounds)


def estimate_alone(values: Sequence[float]) -> Estimate | None:
    """Return the estimate of independent positive values, by their own noise alone; None for fewer than two."""
    logs = list(map(math.log, values))
    return fit_noise([logs], len(logs) - 1).estimate(logs)


def one_of_many(a: Sequence[float], b: Sequence[float], unit: Hashable) -> OneOfMany:
    """Return the comparison of two samples of independent positive values, by Welch's t."""
    ratio = math.exp(sum(map(math.log, b)) / len(b) - sum(map(math.log, a)) / len(a))
    of_a, of_b = estimate_alone(a), estimate_alone(b)
    return OneOfMany(None if of_a is None or of_b is None else of_b.minus(of_a), EXACT, unit, ratio)
