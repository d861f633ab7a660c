# SPDX-License-Identifier: BSD-3-Clause
"""The latency breakdown of a load: the anatomies of its trials as one per direction, with the share of each part."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from planebench.model.anatomy import Anatomy, AnatomyPart
from planebench.model.records import Trial
from planebench.model.results import AnatomySummary, PartSummary
from planebench.stats.histogram import merge, percentile_ns


def summarise_anatomy(trials: Sequence[Trial]) -> tuple[AnatomySummary, ...]:
    """Return one summary per direction, of the trials whose parts add up; empty if no probe was stamped.

    Means are weighted by probes, percentiles are of the merged histograms. Without a trial that adds up there are no
    parts, and ``problem`` says why.
    """
    every = [anatomy for trial in trials for anatomy in trial.anatomy]
    return tuple(
        _direction(name, [a for a in every if a.name == name]) for name in dict.fromkeys(a.name for a in every)
    )


def _direction(name: str, every: Sequence[Anatomy]) -> AnatomySummary:
    good = [a for a in every if not a.problem and _names(a) == _names(every[0])]
    missing: Counter[str] = Counter()
    for anatomy in good or every:
        missing.update(anatomy.not_joined)
    if not good:
        return AnatomySummary(name, 0, dict(missing), (), problem=every[-1].problem)
    means = [_mean_ns([a.parts[i] for a in good], good) for i in range(len(good[0].parts))]
    whole = sum(means)
    parts = tuple(_part([a.parts[i] for a in good], mean, whole) for i, mean in enumerate(means))
    return AnatomySummary(name, sum(a.joined for a in good), dict(missing), parts, left_out=len(every) - len(good))


def _names(anatomy: Anatomy) -> list[str]:
    return [part.name for part in anatomy.parts]


def _mean_ns(parts: Sequence[AnatomyPart], of: Sequence[Anatomy]) -> float:
    probes = sum(anatomy.joined for anatomy in of)
    return sum(part.mean_ns * anatomy.joined for part, anatomy in zip(parts, of, strict=True)) / probes


def _part(parts: Sequence[AnatomyPart], mean_ns: float, whole_ns: float) -> PartSummary:
    histogram = merge(part.histogram for part in parts)
    p50, p99 = (percentile_ns(histogram, share) / 1e3 for share in (0.50, 0.99))
    return PartSummary(parts[0].name, parts[0].kind, mean_ns / 1e3, p50, p99, mean_ns / whole_ns if whole_ns else 0.0)
