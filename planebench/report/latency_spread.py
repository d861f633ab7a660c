# SPDX-License-Identifier: BSD-3-Clause
"""How the latency trials of one point and load differ: lowest and highest mean and p50, for whiskers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from planebench.model.records import Point, Trial
from planebench.model.words import latency_counts
from planebench.stats.derived import Derived
from planebench.stats.histogram import merge, summarise
from planebench.stats.results import latency_groups


@dataclass(frozen=True, slots=True)
class Spread:
    """Lowest and highest of the trials that count, in us."""

    mean: tuple[float, float]
    p50: tuple[float, float]


Spreads = Mapping[tuple[Point, str], Spread]
"""By point and load label; only where two trials or more count."""


def latency_spreads(derived: Derived) -> Spreads:
    """Return the spread of every accepted latency that has several trials."""
    found = {}
    for result in derived.results:
        loads = {s.load for s in result.latency if latency_counts(s)}
        groups = latency_groups(derived.trials.get(result.point, []), result.band or derived.band) if loads else {}
        for load in loads:
            spread = _spread(groups[load].trials)
            if spread is not None:
                found[result.point, load] = spread
    return found


def _spread(trials: Sequence[Trial]) -> Spread | None:
    each = [s for t in trials if t.latency is not None and (s := summarise(merge([t.latency.histogram]))) is not None]
    if len(each) < 2:
        return None
    return Spread(_ends([s.mean for s in each]), _ends([s.p50 for s in each]))


def _ends(values: Sequence[float]) -> tuple[float, float]:
    return min(values), max(values)
