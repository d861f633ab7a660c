# SPDX-License-Identifier: BSD-3-Clause
"""The history of a figure over the runs of a testbed: steps, their commits, what else changed (docs/ci.md)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby, pairwise
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from planebench.analysis.noise import RESOLUTION, Estimate, figure_of
from planebench.model.results import Metric

# Steps of the level of a series whose values are not independent. docs/ci.md.
#
# Runs that follow each other are correlated, and each boot of a machine has a level of its own. The values of one boot
# are levels with steps, and a first-order autoregression around them that begins anew at each step (after Chakar,
# Lebarbier, Lévy-Leduc and Robin, "A robust approach for estimating change-points in the mean of an AR(1) process",
# Bernoulli 23, 2017). Steps and correlation are the most likely ones together: where correlation alone is as likely,
# there is no step. Between boots, the values are the means of the boots.

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

    ``estimate``: log(level after / level before).
    """

    at: int
    first: int
    last: int
    estimate: Estimate


def find_changes(values: Sequence[float], boots: Sequence[str] = ()) -> tuple[Change, ...]:
    """Return the steps of a series of positive values, oldest first. ``boots``: that of each value; none: all of one.

    Steps within a boot are found among its values. What is left is averaged by boot, and has the steps between boots.
    """
    logs = np.log(np.asarray(values, dtype=np.float64))
    spans: list[tuple[int, int]] = []  # the first index of each boot, and that after its last
    end = 0
    for _, same in groupby(boots or [""] * len(logs)):
        begin, end = end, end + len(list(same))
        spans.append((begin, end))
    found = []
    for begin, end in spans:
        for step in _steps(logs[begin:end]):
            found.append(Change(begin + step.at, begin + step.first, begin + step.last, step.estimate))
            logs[begin + step.at :] -= step.estimate.mean
    for step in _steps(np.array([np.mean(logs[begin:end]) for begin, end in spans])):
        at, first, last = spans[step.at][0], spans[step.first][0], spans[step.last][1] - 1
        found.append(Change(at, first, last, step.estimate))
    return tuple(sorted(found, key=lambda it: it.at))


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
        yield Change(at, int(min(possible)) - 1, int(max(possible)), estimate)


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


Cause = Literal["commit", "environment", "unknown"]

VOLATILE = frozenset(
    {
        *("load_average_1m", "steal_share", "memory_available_bytes", "hugepages_2m_free", "hugepages_1g_free"),
        *("memory_total_bytes", "is_root", "boot_id", "folder"),
    }
)
"""Facts of a host that differ between any two runs, or do not matter as such; for boots see Sample.boot."""


@dataclass(frozen=True, slots=True)
class Series:
    """One figure of one switch at one test point on one testbed."""

    testbed: str
    switch: str
    point: str
    metric: Metric


@dataclass(frozen=True, slots=True)
class TrendPoint:
    """The figure of one run. ``facts``: what may move it beside the commit, by name. Times are RFC 3339.

    ``boot``: of the machine; empty if it is not known. Runs that follow each other without one are taken for one boot.
    """

    run_id: str
    started_at: str
    value: float
    commit: str = ""
    committed_at: str = ""
    repository: str = ""
    dirty: bool = False
    facts: Mapping[str, str] = field(default_factory=dict)
    boot: str = ""


@dataclass(frozen=True, slots=True)
class TrendStep:
    """A change of the level of a series: ``ratio`` = after / before, with its 95 % interval.

    It is later than the run ``before``, and not later than the run ``after``; it probably begins with ``probable``.
    ``changed``: a sentence for each fact that changed between these runs.
    """

    ratio: float
    low: float
    high: float
    before: TrendPoint
    after: TrendPoint
    probable: TrendPoint
    cause: Cause
    changed: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Trend:
    """A series with its steps, oldest first.

    ``left_out``: runs of commits older than those before them, which measure again and are no history. ``problem``: why
    there may be steps that are not found.
    """

    series: Series
    samples: tuple[TrendPoint, ...]
    steps: tuple[TrendStep, ...] = ()
    left_out: tuple[TrendPoint, ...] = ()
    problem: str = ""


def find_trend(series: Series, samples: Sequence[TrendPoint]) -> Trend:
    """Return the trend of the samples of a series, in the order in which they were measured."""
    ordered = sorted(samples, key=lambda it: (it.started_at, it.run_id))
    # The runs that go forward in the repository, and those that measure an older commit again.
    forward: list[TrendPoint] = []
    older: list[TrendPoint] = []
    newest = ""
    for sample in ordered:
        (older if sample.committed_at and sample.committed_at < newest else forward).append(sample)
        newest = max(newest, sample.committed_at)
    history, again = tuple(forward), tuple(older)
    if len(history) < SERIES_MIN:
        return Trend(series, history, left_out=again, problem=f"{len(history)} runs; steps need {SERIES_MIN}")
    boots = [sample.boot for sample in history]
    changes = find_changes([sample.value for sample in history], boots)
    steps = tuple(_step(change, history) for change in changes)
    number = len(list(groupby(boots)))
    few = f"{number} boots; steps from one to the next need {SERIES_MIN}" if 1 < number < SERIES_MIN else ""
    return Trend(series, history, steps, again, few)


def _step(change: Change, history: Sequence[TrendPoint]) -> TrendStep:
    low, high = change.estimate.interval()
    before, after = history[change.first], history[change.last]
    changed = []
    for a, b in pairwise(history[change.first : change.last + 1]):  # if both runs tell the fact
        for name, value in a.facts.items():
            if b.facts.get(name, value) != value:
                changed.append(f"{name}: {value or 'none'} → {b.facts[name] or 'none'} in {b.run_id}")
    new_commit = (before.repository, before.commit, before.dirty) != (after.repository, after.commit, after.dirty)
    return TrendStep(
        figure_of(change.estimate.mean),
        low,
        high,
        before,
        after,
        history[change.at],
        "environment" if changed else "commit" if new_commit else "unknown",
        tuple(changed),
    )
