# SPDX-License-Identifier: BSD-3-Clause
"""The history of a figure over the runs of a testbed: steps, their commits, what else changed (docs/trends.md)."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from planebench.model.results import Metric
from planebench.stats.noise import Estimate, figure_of
from planebench.stats.steps import SERIES_MIN, Change, find_changes

RUNS_MIN = 3
"""Runs of each side of a confirmation, in turns, as of a comparison of runs."""
RUNS_MAX = 100
"""A confirmation that would need more has no price."""

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
class Sample:
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
    minutes: float | None = None
    boot: str = ""


@dataclass(frozen=True, slots=True)
class Step:
    """A change of the level of a series: ``ratio`` = after / before, with its 95 % interval.

    It is later than the run ``before``, and not later than the run ``after``; it probably begins with ``probable``.
    ``changed``: a sentence for each fact that changed between these runs.
    """

    change: Change
    ratio: float
    low: float
    high: float
    before: Sample
    after: Sample
    probable: Sample
    cause: Cause
    changed: tuple[str, ...]
    confirm_runs: int | None
    confirm_minutes: float | None

    @property
    def percent(self) -> float:
        """Return the change in percent."""
        return (self.ratio - 1) * 100


@dataclass(frozen=True, slots=True)
class Trend:
    """A series with its steps, oldest first.

    ``left_out``: runs of commits older than those before them, which measure again and are no history. ``problem``: why
    there may be steps that are not found.
    """

    series: Series
    samples: tuple[Sample, ...]
    steps: tuple[Step, ...] = ()
    left_out: tuple[Sample, ...] = ()
    problem: str = ""


def find_trend(series: Series, samples: Sequence[Sample]) -> Trend:
    """Return the trend of the samples of a series, in the order in which they were measured."""
    ordered = sorted(samples, key=lambda it: (it.started_at, it.run_id))
    history, again = _history(ordered)
    if len(history) < SERIES_MIN:
        return Trend(series, history, left_out=again, problem=f"{len(history)} runs; steps need {SERIES_MIN}")
    boots = [sample.boot for sample in history]
    changes = find_changes([sample.value for sample in history], boots)
    minutes = [sample.minutes for sample in history if sample.minutes is not None]
    price = statistics.median(minutes) if minutes else None
    steps = tuple(_step(change, history, price) for change in changes)
    number = len(list(itertools.groupby(boots)))
    few = f"{number} boots; steps from one to the next need {SERIES_MIN}" if 1 < number < SERIES_MIN else ""
    return Trend(series, history, steps, again, few)


def _history(samples: Sequence[Sample]) -> tuple[tuple[Sample, ...], tuple[Sample, ...]]:
    """Return the runs that go forward in the repository, and those that measure an older commit again."""
    history: list[Sample] = []
    again: list[Sample] = []
    newest = ""
    for sample in samples:
        (again if sample.committed_at < newest else history).append(sample)
        newest = max(newest, sample.committed_at)
    return tuple(history), tuple(again)


def _step(change: Change, history: Sequence[Sample], price: float | None) -> Step:
    low, high = change.estimate.interval()
    before, after = history[change.first], history[change.last]
    changed = tuple(_changed(history[change.first : change.last + 1]))
    new_commit = (before.repository, before.commit, before.dirty) != (after.repository, after.commit, after.dirty)
    runs = runs_to_confirm(change)
    return Step(
        change,
        figure_of(change.estimate.mean),
        low,
        high,
        before,
        after,
        history[change.at],
        "environment" if changed else "commit" if new_commit else "unknown",
        changed,
        runs,
        None if runs is None or price is None else 2 * runs * price,
    )


def _changed(samples: Sequence[Sample]) -> Iterator[str]:
    """Yield a sentence for each fact that changed from one run to the next, if both runs tell it."""
    for a, b in itertools.pairwise(samples):
        for name, value in a.facts.items():
            if b.facts.get(name, value) != value:
                yield f"{name}: {value or 'none'} → {b.facts[name] or 'none'} in {b.run_id}"


def runs_to_confirm(change: Change) -> int | None:
    """Return how many runs of the old and of the new commit, in turns, show the change with a probability of 80 %.

    None for a change that is too small for RUNS_MAX.
    """
    wanted = abs(change.estimate.mean)
    for runs in range(RUNS_MIN, RUNS_MAX + 1):
        error = change.deviation * math.sqrt(2 / runs)
        if Estimate(wanted, error, runs - 1, runs).detectable() <= wanted:
            return runs
    return None
