# SPDX-License-Identifier: BSD-3-Clause
"""The noise between starts of a switch, and intervals that contain it.

The unit is the start: trials of one start share its memory, its placement and its mode, so they are one observation.
A cell has few starts, but a run has many cells: :func:`fit_noise` estimates what the variances of all cells have in
common, and each cell's own variance is pulled towards it (the moderated t statistic: Smyth, "Linear models and
empirical Bayes methods", Stat. Appl. Genet. Mol. Biol. 3(1), 2004). Where the cells differ much from each other, the
common value weighs little. docs/methodology.md has the coverage by simulation.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

RESOLUTION = 0.001
"""Standard deviation of the logarithm below which no noise is believed: counters and clocks are not better."""
CELLS_MIN = 3
"""With fewer samples nothing is known of how their variances differ, and none is pulled towards the others."""
CORRELATION_MAX = 0.8
FACTOR_MAX = 1e12
"""No end of an interval is beyond: nothing here is measured so large, and numbers of more digits overflow."""
POWER = 0.8
"""Probability with which the least detectable difference is found."""


@cache
def _student_t() -> Any:
    """Return Student's t. scipy is imported where it is used: it is most of the start of a command that needs none."""
    from scipy import stats

    return stats.t


@cache
def _quantile(share: float, degrees: float) -> float:
    """Return the quantile of Student's t; all cells of a run ask for the same few."""
    return float(_student_t().ppf(share, degrees))


@dataclass(frozen=True, slots=True)
class Estimate:
    """The mean of a sample with its standard error, both of the logarithm, and the degrees of freedom of the error."""

    mean: float
    error: float
    degrees: float
    n: int

    def half_width(self, alpha: float = 0.05) -> float:
        """Return half of the width of the two-sided interval with confidence 1 - ``alpha``."""
        return _quantile(1 - alpha / 2, self.degrees) * self.error

    def detectable(self, alpha: float = 0.05) -> float:
        """Return the least difference that a two-sided test at ``alpha`` finds with probability POWER."""
        return self.half_width(alpha) + _quantile(POWER, self.degrees) * self.error

    def p_value(self, null: float = 0.0) -> float:
        """Return the two-sided p-value of the hypothesis that the mean is ``null``; it agrees with the interval."""
        return float(2 * _student_t().sf(abs(self.mean - null) / self.error, self.degrees))

    def p_above(self, null: float) -> float:
        """Return the one-sided p-value of the hypothesis that the mean is at most ``null``."""
        return float(_student_t().sf((self.mean - null) / self.error, self.degrees))

    def p_below(self, null: float) -> float:
        """Return the one-sided p-value of the hypothesis that the mean is at least ``null``."""
        return float(_student_t().cdf((self.mean - null) / self.error, self.degrees))

    def interval(self, alpha: float = 0.05) -> tuple[float, float]:
        """Return the two-sided interval of the figure itself, not of its logarithm."""
        half = self.half_width(alpha)
        return factor(self.mean - half), factor(self.mean + half)

    def minus(self, other: Estimate) -> Estimate:
        """Return the difference of two independent estimates, with degrees of freedom by Welch and Satterthwaite."""
        mine, theirs = self.error**2, other.error**2
        degrees = (mine + theirs) ** 2 / (mine**2 / self.degrees + theirs**2 / other.degrees)
        return Estimate(self.mean - other.mean, math.sqrt(mine + theirs), degrees, min(self.n, other.n))


@dataclass(frozen=True, slots=True)
class Noise:
    """The noise that the samples of a run have in common.

    ``variance``: of one start, of the logarithm. ``degrees``: how many degrees of freedom it is worth beside a
    cell's own; 0: nothing in common, infinite: all cells alike. ``degrees_max``: of independent starts in the run, no
    error has more. ``correlation``: of successive starts of a cell.
    """

    variance: float
    degrees: float
    degrees_max: float
    correlation: float = 0.0

    def estimate(self, sample: Sequence[float]) -> Estimate | None:
        """Return the mean of the logarithms of one cell with its error; None where nothing is known of the error."""
        n, own = len(sample), len(sample) - 1
        degrees = min(self.degrees + own, self.degrees_max)
        if n == 0 or degrees <= 0:
            return None
        mine = max(float(np.var(sample, ddof=1)), RESOLUTION**2) if own else 0.0
        common = self.variance if math.isinf(self.degrees) else self._weighted(mine, own)
        error = math.sqrt(common * _inflation(self.correlation, n) / n)
        return Estimate(float(np.mean(sample)), error, degrees, n)

    def _weighted(self, mine: float, own: int) -> float:
        return (self.degrees * self.variance + own * mine) / (self.degrees + own)


def factor(log: float) -> float:
    """Return the ratio of a logarithm, at most FACTOR_MAX and at least its inverse.

    The quantile of hardly any degree of freedom is beyond all numbers, and so would be the ends of its interval.
    """
    return math.exp(max(-math.log(FACTOR_MAX), min(math.log(FACTOR_MAX), log)))


def figure_of(log: float) -> float:
    """Return the figure of a logarithm, to the twelve digits that are left of it."""
    return float(f"{math.exp(log):.12g}")


def fit_noise(samples: Sequence[Sequence[float]], degrees_max: float) -> Noise:
    """Return what the variances of the samples have in common.

    A sample is the logarithms of one cell in the order of time, one for each start: figures of a switch, or the
    differences of two switches in the same block. ``degrees_max``: distinct starts of the run minus the means that are
    estimated from them; cells that share a start are not independent.
    """
    from scipy import special

    several = [np.asarray(sample, dtype=np.float64) for sample in samples if len(sample) > 1]
    if len(several) < CELLS_MIN:
        return Noise(RESOLUTION**2, 0.0, degrees_max)
    own = np.array([len(sample) - 1 for sample in several])
    variances = np.maximum([np.var(sample, ddof=1) for sample in several], RESOLUTION**2)
    # The mean and the variance of log s2 tell the two parameters of a scaled inverse chi-squared prior (Smyth s6.2).
    centred = np.log(variances) - special.digamma(own / 2) + np.log(own / 2)
    excess = float(np.var(centred, ddof=1) - np.mean(special.polygamma(1, own / 2)))
    degrees = 2 * _inverse_trigamma(excess) if excess > 0 else math.inf
    shift = 0.0 if math.isinf(degrees) else float(special.digamma(degrees / 2) - math.log(degrees / 2))
    return Noise(math.exp(float(np.mean(centred)) + shift), degrees, degrees_max, _correlation(several))


def _inverse_trigamma(value: float) -> float:
    """Return x with trigamma(x) = ``value``, by Newton's method on 1 / trigamma, which converges from this start."""
    from scipy import special

    x = 0.5 + 1 / value
    for _ in range(50):
        trigamma = float(special.polygamma(1, x))
        step = trigamma * (1 - trigamma / value) / float(special.polygamma(2, x))
        x += step
        if -step / x < 1e-8:
            break
    return x


def _correlation(samples: Sequence[np.ndarray[tuple[int], np.dtype[np.float64]]]) -> float:
    """Return the correlation of successive values over all samples of three and more; not below 0.

    The residuals of n independent values have a correlation of -1 / (n - 1) on average, which is taken off.
    """
    found = []
    for sample in samples:
        if len(sample) > 2:
            residuals = sample - np.mean(sample)
            power = float(np.mean(residuals**2))
            if power > RESOLUTION**2:
                lagged = float(np.mean(residuals[1:] * residuals[:-1])) / power
                found.append(lagged + 1 / (len(sample) - 1))
    return min(max(float(np.mean(found)), 0.0), CORRELATION_MAX) if found else 0.0


def _inflation(correlation: float, n: int) -> float:
    """Return by how much the variance of the mean of n values exceeds s2 / n, if they are a first-order autoregression.

    Both effects are in it: the mean varies more, and the sample's own variance is too small.
    """
    lags = np.arange(1, n)
    of_mean = (1 + 2 * float(np.sum((1 - lags / n) * correlation**lags))) / n
    return of_mean * (n - 1) / (1 - of_mean) if n > 1 else 1.0
