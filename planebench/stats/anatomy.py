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
    whole = _weighted_ns([a.sum_ns for a in good], good)
    parts = tuple(_part([a.parts[i] for a in good], good, whole) for i in range(len(good[0].parts)))
    return AnatomySummary(name, sum(a.joined for a in good), dict(missing), parts, left_out=len(every) - len(good))


def _names(anatomy: Anatomy) -> list[str]:
    return [part.name for part in anatomy.parts]


def _weighted_ns(values: Sequence[float], of: Sequence[Anatomy]) -> float:
    """Return the mean over the probes of all trials."""
    probes = sum(anatomy.joined for anatomy in of)
    return sum(value * anatomy.joined for value, anatomy in zip(values, of, strict=True)) / probes


def _part(parts: Sequence[AnatomyPart], of: Sequence[Anatomy], whole_ns: float) -> PartSummary:
    histogram = merge(part.histogram for part in parts)
    mean_ns = _weighted_ns([part.mean_ns for part in parts], of)
    p50, p99 = (percentile_ns(histogram, share) / 1e3 for share in (0.50, 0.99))
    low_ns, high_ns = _weighted_ns([p.low_ns for p in parts], of), _weighted_ns([p.high_ns for p in parts], of)
    share = mean_ns / whole_ns if whole_ns else 0.0
    return PartSummary(parts[0].name, parts[0].kind, mean_ns / 1e3, p50, p99, share, low_ns / 1e3, high_ns / 1e3)
