# SPDX-License-Identifier: BSD-3-Clause
"""Changes of the level of a series: steps, and ramps that are spread over many values. docs/trends.md.

Two methods look for steps. The first groups values by minimum description length (jumpavg, the detector of FD.io CSIT).
The second splits groups further where the greatest t statistic of all splits is significant, and rejects steps between
groups that do not differ significantly. A step that only one of them finds says so.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from planebench.stats.noise import RESOLUTION, Estimate

ALPHA = 0.01
"""Level of a step, for all places of its group together; about one wrong step in 100 histories of one level."""
VALUES_MIN = 3
"""Values of a level; fewer are outliers, or a change that is too new."""
SERIES_MIN = 2 * VALUES_MIN
RAMP_MIN = 8
"""Values from the begin of a ramp to its end; what is shorter is a step."""
RAMP_MARGIN = (6.0, -6.0)
"""By how much the criterion must be better for a ramp in the place of one step, and of more: neighboring steps in one
direction are rarely by chance."""
_CHI2 = float(stats.chi2.ppf(0.95, 1))
"""Likelihood ratio within which another place of a step is possible, at 95 %."""

Opinion = Literal["both", "mdl", "t-test"]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Change:
    """A change of the level of a series between the values with the indices ``first`` and ``last``.

    A step is at ``at``, the most probable index of the first value after it. A ramp goes from ``first`` to ``last``.
    ``estimate``: log(level after / level before).
    """

    kind: Literal["step", "ramp"]
    at: int
    first: int
    last: int
    estimate: Estimate
    opinion: Opinion = "both"
    deviation: float = 0.0
    """Standard deviation of the logarithm of a value around its level."""


@dataclass(frozen=True, slots=True)
class Changes:
    """The changes of a series, and the steps of the first method that the second rejects (as indices)."""

    found: tuple[Change, ...] = ()
    rejected: tuple[int, ...] = ()


def find_changes(values: Sequence[float]) -> Changes:
    """Return the changes of a series of positive values, oldest first."""
    if len(values) < SERIES_MIN:
        return Changes()
    logs = np.log(np.asarray(values, dtype=np.float64))
    first = _by_description_length(values)
    borders = _without_outliers(logs, first)
    borders = sorted({*borders, *_further(logs, borders)})
    borders = _significant(logs, borders)
    borders = _settled(logs, borders)
    steps = [_step(logs, *it, first) for it in _around(borders, len(logs))]
    found = tuple(_with_ramps(logs, steps, borders))
    near = {border for step in steps for border in range(step.first, step.last + 1)}
    return Changes(found, tuple(border for border in first if border not in near))


def _by_description_length(values: Sequence[float]) -> list[int]:
    """Return the index of the first value of each group of jumpavg but the first group."""
    import jumpavg

    unit = float(np.median(values)) * RESOLUTION
    sizes = [len(group.run_list) for group in jumpavg.classify(list(map(float, values)), unit=unit)]
    return [int(border) for border in np.cumsum(sizes)[:-1]]


def _around(borders: Sequence[int], n: int) -> Iterator[tuple[int, int, int]]:
    """Yield each border between those next to it."""
    ends = [0, *borders, n]
    yield from zip(ends, ends[1:], ends[2:], strict=False)


def _without_outliers(logs: Floats, borders: Sequence[int]) -> list[int]:
    """Return the borders without groups of too few values: those go to the neighbor that is nearest in level."""
    left = list(borders)
    while True:
        ends = [0, *left, len(logs)]
        small = [i for i in range(len(ends) - 1) if ends[i + 1] - ends[i] < VALUES_MIN]
        if not small or not left:
            return left
        i = small[0]
        level = [float(np.median(logs[a:b])) for a, b in pairwise(ends)]
        sides = [j for j in (i - 1, i + 1) if 0 <= j < len(level)]
        nearest = min(sides, key=lambda j: abs(level[j] - level[i]))
        left.remove(ends[max(i, nearest)])


def _further(logs: Floats, borders: Sequence[int]) -> Iterator[int]:
    """Yield the significant borders within the groups, until no group has one."""
    ends = [0, *borders, len(logs)]
    groups = list(pairwise(ends))
    while groups:
        begin, end = groups.pop()
        places = range(begin + VALUES_MIN, end - VALUES_MIN + 1)
        if not places:
            continue
        at = _best_place(logs, begin, end)
        if _p_value(logs[begin:at], logs[at:end]) * len(places) < ALPHA:
            yield at
            groups += [(begin, at), (at, end)]


def _best_place(logs: Floats, begin: int, end: int) -> int:
    return min(range(begin + VALUES_MIN, end - VALUES_MIN + 1), key=lambda k: _squares(logs, begin, k, end))


def _significant(logs: Floats, borders: Sequence[int]) -> list[int]:
    """Return the borders whose two groups differ; the least significant goes first, so that its groups become one."""
    left = list(borders)
    while left:
        p_values = [_p_value(logs[a:k], logs[k:b]) * (b - a) for a, k, b in _around(left, len(logs))]
        worst = int(np.argmax(p_values))
        if p_values[worst] < ALPHA:
            break
        del left[worst]
    return left


def _settled(logs: Floats, borders: Sequence[int]) -> list[int]:
    """Return the borders, each at its most probable place between the other two."""
    left = list(borders)
    for _ in range(3):
        for i, (a, _k, b) in enumerate(list(_around(left, len(logs)))):
            left[i] = _best_place(logs, a if i == 0 else left[i - 1], b)
    return left


def _squares(logs: Floats, *ends: int) -> float:
    """Return the sum of the squared distances of values from the mean of their group."""
    return sum(float(np.sum((logs[a:b] - np.mean(logs[a:b])) ** 2)) for a, b in pairwise(ends))


def _difference(before: Floats, after: Floats) -> Estimate:
    """Return the difference of two levels whose values have a common variance, which is not below the resolution."""
    degrees = len(before) + len(after) - 2
    squares = float(np.sum((before - np.mean(before)) ** 2) + np.sum((after - np.mean(after)) ** 2))
    variance = max(squares / degrees, RESOLUTION**2)
    error = math.sqrt(variance * (1 / len(before) + 1 / len(after)))
    return Estimate(float(np.mean(after) - np.mean(before)), error, degrees, min(len(before), len(after)))


def _p_value(before: Floats, after: Floats) -> float:
    return _difference(before, after).p_value()


def _step(logs: Floats, begin: int, at: int, end: int, first: Sequence[int]) -> Change:
    estimate = _difference(logs[begin:at], logs[at:end])
    n, best = end - begin, max(_squares(logs, begin, at, end), RESOLUTION**2 * (end - begin))
    possible = [
        k for k in range(begin + 1, end) if n * math.log(max(_squares(logs, begin, k, end), best) / best) < _CHI2
    ]
    opinion: Opinion = "both" if any(border in possible for border in first) else "t-test"
    return Change("step", at, min(possible) - 1, max(possible), estimate, opinion, math.sqrt(best / n))


def _with_ramps(logs: Floats, steps: Sequence[Change], borders: Sequence[int]) -> Iterator[Change]:
    """Yield the changes in order: steps of one direction whose values a ramp fits better are one ramp."""
    ends = [0, *borders, len(logs)]
    i = 0
    while i < len(steps):
        same = i + 1
        while same < len(steps) and (steps[same].estimate.mean > 0) == (steps[i].estimate.mean > 0):
            same += 1
        for j in range(same, i, -1):
            ramp = _ramp(logs, ends[i : j + 2])
            if ramp is not None:
                yield ramp
                i = j
                break
        else:
            yield steps[i]
            i += 1


def _ramp(logs: Floats, ends: Sequence[int]) -> Change | None:
    """Return the ramp that fits the values from the first to the last end better than levels between all ends.

    Better by the information criterion of Bayes; a ramp has two levels and two places, steps a level and a place each.
    """
    begin, end = ends[0], ends[-1]
    part, n = logs[begin:end], end - begin
    least = n * RESOLUTION**2
    of_steps = n * math.log(max(_squares(logs, *ends), least) / n) + (2 * len(ends) - 3) * math.log(n)
    stride = max(1, n // 60)
    best: tuple[float, int, int, float] | None = None
    for first in range(0, n - RAMP_MIN, stride):
        for last in range(first + RAMP_MIN, n, stride):
            shape = np.clip((np.arange(n) - first) / (last - first), 0, 1)
            found, squares = _fitted(part, shape)
            if best is None or squares < best[0]:
                best = (squares, first, last, found)
    if best is None:
        return None
    squares, first, last, rise = best
    if n * math.log(max(squares, least) / n) + 4 * math.log(n) >= of_steps - RAMP_MARGIN[len(ends) > 3]:
        return None
    deviation = math.sqrt(max(squares, least) / n)
    estimate = Estimate(rise, deviation * math.sqrt(4 / n), n - 2, n // 2)
    return Change("ramp", begin + first, begin + first, begin + last, estimate, "both", deviation)


def _fitted(part: Floats, shape: Floats) -> tuple[float, float]:
    """Return the rise of the ramp with a shape, by least squares, and the sum of the squared residuals."""
    matrix = np.stack([np.ones(len(part)), shape], axis=1)
    levels, *_ = np.linalg.lstsq(matrix, part, rcond=None)
    return float(levels[1]), float(np.sum((part - matrix @ levels) ** 2))
