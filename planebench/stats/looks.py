# SPDX-License-Identifier: BSD-3-Clause
"""Comparisons that are looked at several times while a run goes on: what is still open, and what more starts cost."""

from __future__ import annotations

import statistics
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

from planebench.model.header import RunHeader
from planebench.model.quantity import seconds_since_epoch
from planebench.model.records import Point, Trial
from planebench.model.run import Run
from planebench.stats.answers import look_alpha
from planebench.stats.ranking import cell_id

if TYPE_CHECKING:
    from planebench.stats.derived import Derived

GAP_MAX_S = 60.0
"""More time than this between two trials was between two sessions of a run."""


@dataclass(frozen=True, slots=True)
class Open:
    """An open comparison. ``point`` is without its switch, ``labels`` are the switches of the pair.

    ``more_starts``: how many more starts of each would probably decide it.
    """

    point: Point
    labels: tuple[str, str]
    more_starts: int


@dataclass(frozen=True, slots=True)
class Price:
    """The minutes of one start of a switch, and of one saturating trial in it."""

    start: float
    trial: float

    def minutes(self, wanted: Iterable[Open]) -> float:
        """Return the minutes that decide some comparisons together: those of a topology share their starts."""
        starts: dict[Hashable, int] = {}
        trials: dict[Hashable, int] = {}
        for it in wanted:
            for label in it.labels:
                for found, key in ((starts, (label, it.point.topology)), (trials, (label, it.point))):
                    found[key] = max(found.get(key, 0), it.more_starts)
        return self.start * sum(starts.values()) + self.trial * sum(trials.values())


def still_open(derived: Derived) -> tuple[Open, ...]:
    """Return the comparisons that more starts may decide, in the order of the results.

    They are those by throughput, and by the capacity estimated where the tester limits the throughput.
    """
    points = {cell_id(result.point): replace(result.point, switch="") for result in derived.results}
    return tuple(
        Open(points[c.point], (c.a, c.b), c.more_starts)
        for c in derived.comparisons
        if c.metric in ("throughput", "capacity") and c.more_starts is not None
    )


def each_look_alpha(header: RunHeader) -> float:
    """Return the level of each look at the comparisons of a run, of which the plan has one or more."""
    return look_alpha(len(header.plan.throughput.looks))


def price(runs: Sequence[Run]) -> Price | None:
    """Return what one more start costs in these runs; None where they do not say it.

    The time of a saturating trial is that from the end of the trial before it to its own end, whatever that trial was.
    Half of the trials take no longer than the median; the rest of the time is that of the starts.
    """
    gaps = [
        (_seconds(before, after), after)
        for run in runs
        for before, after in pairwise(run.trials)
        if after.role == "r_plus"
    ]
    if not any(seconds for seconds, _ in gaps):
        return None
    of_trials = statistics.median(seconds for seconds, _ in gaps) * len(gaps)
    of_starts = max(sum(seconds for seconds, _ in gaps) - of_trials, 0.0)
    starts = {(trial.point.switch, trial.point.topology, trial.start) for _, trial in gaps}
    return Price(of_starts / len(starts) / 60, of_trials / len(gaps) / 60)


def _seconds(before: Trial, after: Trial) -> float:
    passed = seconds_since_epoch(after.started_at) - seconds_since_epoch(before.started_at)
    passed += (after.intended_duration_ns - before.intended_duration_ns) / 1e9
    return min(max(passed, 0.0), GAP_MAX_S)
