# SPDX-License-Identifier: BSD-3-Clause
"""Steps of the level of a series whose values are not independent. docs/trends.md.

Runs that follow each other are correlated, and each boot of a machine has a level of its own. The values of one boot
are levels with steps, and a first-order autoregression around them that begins anew at each step (after Chakar,
Lebarbier, Lévy-Leduc and Robin, "A robust approach for estimating change-points in the mean of an AR(1) process",
Bernoulli 23, 2017). Steps and correlation are the most likely ones together: where correlation alone is as likely,
there is no step. Between boots, the values are the means of the boots.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from planebench.stats.noise import RESOLUTION, Estimate

VALUES_MIN = 3
"""Values of a level; fewer are outliers, or a change that is too new."""
SERIES_MIN = 2 * VALUES_MIN
STEPS_MAX = 20
PENALTY = 16.0
"""By how much a step must raise twice the logarithm of the likelihood: then at most 5 % of the histories of
bench/trends.py that have no step are said to have one, however correlated their runs are."""
CORRELATIONS = (0.0, 0.2, 0.4, 0.6, 0.8, 0.9)
OUTLIER = 3.0
"""Standard deviations from the median of its neighbors beyond which a value is moved to there."""
PLACE = 5.4
"""Likelihood ratio within which another place of a step is possible: 98 % of chi-squared, as places are discrete."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Change:
    """A step between the values with the indices ``first`` and ``last``; ``at``: probably the first value after it.

    ``estimate``: log(level after / level before). ``deviation``: of a value from one next to it, over the root of two.
    """

    at: int
    first: int
    last: int
    estimate: Estimate
    deviation: float


def find_changes(values: Sequence[float], boots: Sequence[str] = ()) -> tuple[Change, ...]:
    """Return the steps of a series of positive values, oldest first. ``boots``: that of each value; none: all of one.

    Steps within a boot are found among its values. What is left is averaged by boot, and has the steps between boots.
    """
    logs = np.log(np.asarray(values, dtype=np.float64))
    spans = list(_spans(boots or [""] * len(logs)))
    found = []
    for begin, end in spans:
        for step in _steps(logs[begin:end]):
            found.append(Change(begin + step.at, begin + step.first, begin + step.last, step.estimate, step.deviation))
            logs[begin + step.at :] -= step.estimate.mean
    for step in _steps(np.array([np.mean(logs[begin:end]) for begin, end in spans])):
        at, first, last = spans[step.at][0], spans[step.first][0], spans[step.last][1] - 1
        found.append(Change(at, first, last, step.estimate, step.deviation))
    return tuple(sorted(found, key=lambda it: it.at))


def _spans(boots: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield the first index of each boot and that after its last."""
    begin = 0
    for _, same in groupby(boots):
        end = begin + len(list(same))
        yield begin, end
        begin = end


def _steps(logs: Floats) -> Iterator[Change]:
    if len(logs) < SERIES_MIN:
        return
    n, logs = len(logs), _without_outliers(logs)
    best, correlation, borders = math.inf, 0.0, list[int]()
    most = min(n // VALUES_MIN - 1, STEPS_MAX)
    for tried in CORRELATIONS:
        for found, squares in _partitions(_costs(logs, tried), most):
            levels = len(found) + 1
            likelihood = n * math.log(max(squares / n, RESOLUTION**2)) - levels * math.log(1 - tried**2)
            if likelihood + PENALTY * levels < best:
                best, correlation, borders = likelihood + PENALTY * levels, tried, found
    costs, ends = _costs(logs, correlation), [0, *borders, n]
    squares = max(sum(float(costs[a, b - 1]) for a, b in pairwise(ends)), n * RESOLUTION**2)
    degrees = max(n - len(ends), 1)
    variance = squares / degrees
    # Levels that are estimated take some of the correlation with them (Kendall 1954): each this much.
    likely = min(correlation + (1 + 3 * correlation) * (len(ends) - 1) / n, CORRELATIONS[-1])
    worth = max(n * (1 - likely) / (1 + likely) - len(ends) + 1, 1.0)
    for a, at, b in zip(ends, ends[1:], ends[2:], strict=False):
        places = np.arange(a + 1, b)
        of_places = costs[a, places - 1] + costs[places, b - 1]
        more = of_places - of_places[at - a - 1]
        possible = places[n * np.log(np.maximum(squares + more, squares * 1e-9) / squares) < PLACE]
        before, after = logs[a:at], logs[at:b]
        error = math.sqrt(variance * (1 / _worth(len(before), likely) + 1 / _worth(len(after), likely)))
        mean = _level(after, correlation) - _level(before, correlation)
        estimate = Estimate(mean, error, worth, min(len(before), len(after)))
        deviation = math.sqrt(variance / (1 + correlation))
        yield Change(at, int(min(possible)) - 1, int(max(possible)), estimate, deviation)


def _without_outliers(logs: Floats) -> Floats:
    """Return the values, each within OUTLIER standard deviations of the median of itself and its neighbors."""
    around = min(VALUES_MIN, (len(logs) - 1) // 2)
    windows = np.lib.stride_tricks.sliding_window_view(np.pad(logs, around, mode="reflect"), 2 * around + 1)
    centers = np.median(windows, axis=-1)
    spread = max(float(np.quantile(np.abs(logs - centers), 0.75)) / 1.15, RESOLUTION)
    return np.clip(logs, centers - OUTLIER * spread, centers + OUTLIER * spread)


def _costs(logs: Floats, correlation: float) -> Floats:
    """Return the squared innovations of each part [i, j] that is one level; infinite if it has too few values."""
    n, centred = len(logs), logs - np.mean(logs)
    innovations = centred[1:] - correlation * centred[:-1]
    sums, squares = (np.concatenate([[0.0], np.cumsum(it)]) for it in (innovations, innovations**2))
    length = np.arange(n)[None, :] - np.arange(n)[:, None] + 1
    first = (1 - correlation**2) * centred[:, None]
    total = first + (1 - correlation) * (sums[None, :] - sums[:, None])
    power = first * centred[:, None] + squares[None, :] - squares[:, None]
    return np.where(length >= VALUES_MIN, power - total**2 / _worth(np.maximum(length, 1), correlation), np.inf)


def _worth(length: Any, correlation: float) -> Any:
    """Return the weight of the level of so many values: their number, if they are independent."""
    return 1 - correlation**2 + (length - 1) * (1 - correlation) ** 2


def _level(logs: Floats, correlation: float) -> float:
    """Return the most likely level of values; the first and the last count for more than those between."""
    inner = (1 - correlation) ** 2
    weights = np.full(len(logs), inner)
    weights[[0, -1]] += correlation * (1 - correlation)
    return float(np.average(logs, weights=weights))


def _partitions(costs: Floats, most: int) -> Iterator[tuple[list[int], float]]:
    """Yield the borders of the best partition in 1, 2, ... levels, and its squares."""
    n, best = len(costs), costs[0]
    chosen: list[NDArray[np.intp]] = []
    for steps in range(most + 1):
        borders, end = list[int](), n - 1
        for choice in reversed(chosen):
            borders.insert(0, int(choice[end]) + 1)
            end = borders[0] - 1
        yield borders, float(best[-1])
        if steps < most:
            total = best[:-1, None] + costs[1:]
            chosen.append(np.argmin(total, axis=0))
            best = np.min(total, axis=0)
