# SPDX-License-Identifier: BSD-3-Clause
"""The noise between starts of a switch, and intervals that contain it.

The unit is the start: trials of one start share its memory, its placement and its mode, so they are one observation.
A cell has few starts, and few that happen to agree are not to be believed alone; but a run has many cells. So the
variance of a cell is that of its own starts, but at least the one that is typical of the cells of the run.
docs/design/results.md has the method, docs/methodology.md its coverage by simulation.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

RESOLUTION = 0.001
"""Standard deviation of the logarithm below which no noise is believed: counters and clocks are not better."""
TYPICAL = 0.6
"""Quantile of the variances of all cells that is typical of them. For normal noise it is the true variance (0.92, 1.01
and 1.04 of it with three, five and eight starts), and a few cells that are much noisier do not move it."""
CELLS_MIN = 3
"""Cells with several starts that tell the noise of one that has a single start."""
FACTOR_MAX = 1e12
"""No end of an interval is beyond: nothing here is measured so large, and numbers of more digits overflow."""
POWER = 0.8
"""Probability with which the least detectable difference is found."""


# Student's t is imported where it is used: few commands need it. scipy.stats would be a quarter of a short run.


def _quantile(share: float, degrees: float) -> float:
    from scipy.special import stdtrit

    return float(stdtrit(degrees, share))


def _probability(t: float, degrees: float) -> float:
    from scipy.special import stdtr

    return float(stdtr(degrees, t))


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
        return 2 * min(self.p_above(null), self.p_below(null))

    def p_above(self, null: float) -> float:
        """Return the one-sided p-value of the hypothesis that the mean is at most ``null``."""
        return _probability((null - self.mean) / self.error, self.degrees)

    def p_below(self, null: float) -> float:
        """Return the one-sided p-value of the hypothesis that the mean is at least ``null``."""
        return _probability((self.mean - null) / self.error, self.degrees)

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
    """What the samples of a run tell of the noise of each.

    ``variance``: the typical one of a start, of the logarithm. ``cells``: how many it is known from.
    ``degrees_max``: of independent starts in the run, no error has more.
    """

    variance: float
    cells: int
    degrees_max: float

    def estimate(self, sample: Sequence[float]) -> Estimate | None:
        """Return the mean of the logarithms of one cell with its error; None where nothing is known of the error.

        Its variance is known better than from its own starts alone, so it has twice their degrees of freedom.
        """
        n = len(sample)
        degrees = min(2.0 * max(n - 1, 1), self.degrees_max)
        if n == 0 or degrees <= 0 or (n == 1 and self.cells < CELLS_MIN):
            return None
        own = float(np.var(sample, ddof=1)) if n > 1 else 0.0
        return Estimate(float(np.mean(sample)), math.sqrt(max(own, self.variance) / n), degrees, n)


def factor(log: float) -> float:
    """Return the ratio of a logarithm, at most FACTOR_MAX and at least its inverse.

    The quantile of hardly any degree of freedom is beyond all numbers, and so would be the ends of its interval.
    """
    return math.exp(max(-math.log(FACTOR_MAX), min(math.log(FACTOR_MAX), log)))


def figure_of(log: float) -> float:
    """Return the figure of a logarithm, to the twelve digits that are left of it."""
    return float(f"{math.exp(log):.12g}")


def fit_noise(samples: Sequence[Sequence[float]], degrees_max: float) -> Noise:
    """Return what the samples tell of the noise of each.

    A sample is the logarithms of one cell, one for each start: figures of a switch, or the differences of two switches
    in the same block. ``degrees_max``: distinct starts of the run minus the means that are estimated from them; cells
    that share a start are not independent.
    """
    several = [float(np.var(sample, ddof=1)) for sample in samples if len(sample) > 1]
    own = [variance for variance in several if variance > 0]  # 0: percentiles are of few buckets
    typical = float(np.quantile(own, TYPICAL)) if own else 0.0
    return Noise(max(typical, RESOLUTION**2), len(several), degrees_max)
