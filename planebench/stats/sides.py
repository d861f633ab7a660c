# SPDX-License-Identifier: BSD-3-Clause
"""Which of two known levels a few runs belong to: the sequential test of a bisection (docs/trends.md)."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from typing import Literal

from planebench.stats.answers import look_alpha
from planebench.stats.noise import RESOLUTION, Estimate

Side = Literal["good", "bad"]
Logs = Sequence[float]
"""Logarithms of the figure of some runs of one commit."""

ENDS_RUNS_MIN = 3
RUNS_MAX = 8
"""Runs of one commit at most; each after the first, or after ENDS_RUNS_MIN of an end, is a look."""


def ends_differ(good: Logs, bad: Logs, series: int) -> float | None:
    """Return the p-value of the difference of the two ends if they differ at 5 % in all looks, else None.

    ``series``: how many figures are tested; the p-value is corrected for their number.
    """
    error = _noise([good, bad])
    difference = _mean(bad, error).minus(_mean(good, error))
    p_value = difference.p_value() * series
    return p_value if p_value < look_alpha(RUNS_MAX - ENDS_RUNS_MIN + 1) else None


def side_of(here: Logs, good: Logs, bad: Logs, decisions: int) -> Side | None:
    """Return the side of some runs of a commit; None if more runs are needed to tell.

    They are on the side of ``good`` if they are shown to be beyond the middle of both levels. Any of so many
    ``decisions`` is wrong with a probability of 5 % at most.
    """
    error = _noise([here, good, bad])
    middle = (statistics.fmean(good) + statistics.fmean(bad)) / 2
    of_middle = error.error * math.sqrt(1 / len(good) + 1 / len(bad)) / 2
    distance = Estimate(
        statistics.fmean(here) - middle,
        math.hypot(error.error / math.sqrt(len(here)), of_middle),
        error.degrees,
        len(here),
    )
    alpha = look_alpha(RUNS_MAX) / decisions
    return _nearer(distance, good, bad) if distance.p_value() < alpha else None


def nearer_side(here: Logs, good: Logs, bad: Logs) -> Side:
    """Return the side that is nearer, for a commit whose runs decide nothing."""
    middle = (statistics.fmean(good) + statistics.fmean(bad)) / 2
    return _nearer(Estimate(statistics.fmean(here) - middle, 1.0, 1.0, len(here)), good, bad)


def _nearer(distance: Estimate, good: Logs, bad: Logs) -> Side:
    good_is_above = statistics.fmean(good) > statistics.fmean(bad)
    return "good" if (distance.mean > 0) == good_is_above else "bad"


def _noise(samples: Iterable[Logs]) -> Estimate:
    """Return the standard deviation of a run as the error of an estimate, common to all commits."""
    several = [sample for sample in samples if len(sample) > 1]
    degrees = sum(len(sample) - 1 for sample in several)
    squares = sum(statistics.variance(sample) * (len(sample) - 1) for sample in several)
    return Estimate(0.0, math.sqrt(max(squares / degrees, RESOLUTION**2)), degrees, degrees)


def _mean(sample: Logs, noise: Estimate) -> Estimate:
    return Estimate(statistics.fmean(sample), noise.error / math.sqrt(len(sample)), noise.degrees, len(sample))
