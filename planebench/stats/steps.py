# SPDX-License-Identifier: BSD-3-Clause
"""Changes of the level of a series: steps, and ramps that are spread over many values. docs/trends.md.

Two methods look for steps. The first groups values by minimum description length (jumpavg, the detector of FD.io CSIT).
The second splits groups further where the greatest t statistic of all splits is significant, and rejects steps between
groups that do not differ significantly. A step that only one of them finds says so.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
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
_PLACE, _SUSPECT = (float(stats.chi2.ppf(share, 1)) for share in (0.98, 0.999))
"""Likelihood ratio within which another place of a step is possible; and a place that is expected. The first gives
ranges that contain the step in 95 % of the histories of bench/trends.py: places are discrete."""

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


def find_changes(values: Sequence[float], suspects: Collection[int] = ()) -> Changes:
    """Return the changes of a series of positive values, oldest first.

    ``suspects``: places where a change is expected, which are tested alone.
    """
    if len(values) < SERIES_MIN:
        return Changes()
    logs = np.log(np.asarray(values, dtype=np.float64))
    first = _by_description_length(values)
    borders = _without_outliers(logs, first)
    borders = sorted({*borders, *_further(logs, borders), *_apart(suspects, len(logs))})
    borders = _significant(logs, borders, suspects)
    borders = _settled(logs, borders, suspects)
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


def _apart(places: Collection[int], n: int) -> list[int]:
    return [place for place in places if VALUES_MIN <= place <= n - VALUES_MIN]


def _further(logs: Floats, borders: Sequence[int]) -> Iterator[int]:
    """Yield the significant borders within the groups, until no group has one.

    A group is split in two, or its middle is split from both sides (circular binary segmentation: Olshen et al.,
    Biostatistics 5, 2004). Values at its ends that are no level are left out.
    """
    groups = list(pairwise([0, *borders, len(logs)]))
    while groups:
        begin, end = _without_ends(logs, *groups.pop())
        if end - begin < SERIES_MIN:
            continue
        at = _best_place(logs, begin, end)
        found = [at] if _p_value(logs[begin:at], logs[at:end]) * (end - begin) < ALPHA else _middle(logs, begin, end)
        yield from found
        if found:
            groups += pairwise([begin, *found, end])


def _without_ends(logs: Floats, begin: int, end: int) -> tuple[int, int]:
    """Return the group without the few values at an end that a split would best separate."""
    while end - begin >= SERIES_MIN:
        at = min(range(begin + 1, end), key=lambda k: _squares(logs, begin, k, end))
        if at - begin < VALUES_MIN:
            begin = at
        elif end - at < VALUES_MIN:
            end = at
        else:
            break
    return begin, end


def _middle(logs: Floats, begin: int, end: int) -> list[int]:
    """Return both borders of the part that differs most from the rest of the group; empty if it is not significant."""
    part, n = logs[begin:end], end - begin
    sums = np.concatenate([[0.0], np.cumsum(part - np.mean(part))])
    first, last = np.triu_indices(n + 1, VALUES_MIN)
    length = last - first
    inside = (first >= VALUES_MIN) & (last <= n - VALUES_MIN)
    if not inside.any():
        return []
    first, last, length = first[inside], last[inside], length[inside]
    best = int(np.argmax((sums[last] - sums[first]) ** 2 / (length * (n - length) / n)))
    a, b = int(first[best]), int(last[best])
    rest = np.concatenate([part[:a], part[b:]])
    return [begin + a, begin + b] if _p_value(rest, part[a:b]) * len(first) < ALPHA else []


def _best_place(logs: Floats, begin: int, end: int) -> int:
    return min(range(begin + VALUES_MIN, end - VALUES_MIN + 1), key=lambda k: _squares(logs, begin, k, end))


def _significant(logs: Floats, borders: Sequence[int], suspects: Collection[int]) -> list[int]:
    """Return the borders whose two groups differ; the least significant goes first, so that its groups become one."""
    left = list(borders)
    while left:
        places = [(a, k, b, 1 if k in suspects else b - a) for a, k, b in _around(left, len(logs))]
        p_values = [_p_value(logs[a:k], logs[k:b]) * number for a, k, b, number in places]
        worst = int(np.argmax(p_values))
        if p_values[worst] < ALPHA:
            break
        del left[worst]
    return left


def _settled(logs: Floats, borders: Sequence[int], suspects: Collection[int]) -> list[int]:
    """Return the borders, each at its most probable place between the other two.

    A suspect stays where it is, and takes the place of a border near it unless that is much more probable.
    """
    left = list(borders)
    for _ in range(3):
        for i, (a, k, b) in enumerate(list(_around(left, len(logs)))):
            begin = a if i == 0 else left[i - 1]
            if k not in suspects:
                best = _best_place(logs, begin, b)
                near = {
                    it: _squares(logs, begin, it, b)
                    for it in suspects
                    if abs(it - best) < VALUES_MIN and begin < it < b
                }
                near = {
                    it: at
                    for it, at in near.items()
                    if _possible(at, _squares(logs, begin, best, b), b - begin, _SUSPECT)
                }
                left[i] = min(near, key=near.__getitem__, default=best)
    return left


def _possible(squares: float, least: float, n: int, ratio: float) -> bool:
    """Return whether the likelihood of a place with these squares is within ``ratio`` of that of the best place."""
    least = max(least, RESOLUTION**2 * n)
    return n * math.log(max(squares, least) / least) < ratio


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
    places = {k: _squares(logs, begin, k, end) for k in range(begin + 1, end)}
    least = min(it for k, it in places.items() if k == at or VALUES_MIN <= k - begin <= end - begin - VALUES_MIN)
    possible = [k for k, it in places.items() if k == at or _possible(it, least, end - begin, _PLACE)]
    opinion: Opinion = "both" if any(border in possible for border in first) else "t-test"
    deviation = math.sqrt(max(_squares(logs, begin, at, end) / (end - begin), RESOLUTION**2))
    return Change("step", at, min(possible) - 1, max(possible), estimate, opinion, deviation)


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
