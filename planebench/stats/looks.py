# SPDX-License-Identifier: BSD-3-Clause
"""Comparisons that are looked at several times while a run goes on: what is still open, and what more starts cost."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

from planebench.model.header import RunHeader
from planebench.model.quantity import seconds_since_epoch
from planebench.model.records import Point
from planebench.model.run import Run
from planebench.stats.answers import look_alpha
from planebench.stats.ranking import cell_id

if TYPE_CHECKING:
    from planebench.stats.derived import Derived


@dataclass(frozen=True, slots=True)
class Open:
    """An open comparison. ``point`` is without its switch, ``labels`` are the switches of the pair.

    ``more_starts``: how many more starts of each would probably decide it.
    """

    point: Point
    labels: tuple[str, str]
    more_starts: int


def still_open(derived: Derived) -> tuple[Open, ...]:
    """Return the comparisons that more starts may decide, in the order of the results.

    They are those by throughput, and by cycles per packet where the tester limits the throughput.
    """
    points = {cell_id(result.point): replace(result.point, switch="") for result in derived.results}
    metrics = {cell_id(ranking.point): ranking.metric for ranking in derived.rankings}
    return tuple(
        Open(points[c.point], (c.a, c.b), c.more_starts)
        for c in derived.comparisons
        if c.metric == metrics.get(c.point, "throughput") and c.more_starts is not None
    )


def each_look_alpha(header: RunHeader) -> float:
    """Return the level of each look at the comparisons of a run, of which the plan has one or more."""
    return look_alpha(1 if header.plan is None else len(header.plan.throughput.looks))


def minutes_per_start(runs: Sequence[Run]) -> float | None:
    """Return the time of one more start with its saturating trial: the mean from one such trial to the next.

    None where the runs do not say it.
    """
    gaps = [
        seconds_since_epoch(after.started_at) - seconds_since_epoch(before.started_at)
        for run in runs
        for before, after in pairwise(run.trials)
        if before.role == after.role == "r_plus"
    ]
    return statistics.fmean(gaps) / 60 if any(gaps) else None
