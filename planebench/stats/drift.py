# SPDX-License-Identifier: BSD-3-Clause
"""A drift of the rates of a run with time. Interleaved comparisons cancel it; single figures do not."""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Iterable
from itertools import combinations

from planebench.model.quantity import seconds_since_epoch
from planebench.model.reasons import Reason, ReasonCode
from planebench.model.records import Point, TopologyKey, Trial

DRIFT_ALPHA = 0.01
DRIFT_MIN = 0.005
"""A smaller change over the whole run is not worth a word."""

Series = list[tuple[float, float]]
"""Seconds and logarithms of rates relative to their mean."""


def drift(trials: Iterable[Trial]) -> Reason | None:
    """Return the drift of the saturating trials of a run, if there is one; ``trials`` are those that count.

    A seasonal Kendall test (Hirsch, Slack and Smith, Water Resources Research 18(1), 1982): the signs of all pairs
    within each series are added up. A series is one switch on one topology; its test points share a start, and are
    averaged, because they are not independent. The slope is the median over these pairs.
    """
    found = list(_series(trials))
    pairs = [(b[0] - a[0], b[1] - a[1]) for series in found for a, b in combinations(sorted(series), 2)]
    variance = sum(n * (n - 1) * (2 * n + 5) / 18 for n in map(len, found))
    score = sum((change > 0) - (change < 0) for _, change in pairs)
    if not variance or math.erfc(max(abs(score) - 1, 0) / math.sqrt(2 * variance)) >= DRIFT_ALPHA:
        return None
    slope = statistics.median([change / seconds for seconds, change in pairs if seconds] or [0.0])
    times = [seconds for series in found for seconds, _ in series]
    if abs(slope) * (max(times) - min(times)) < DRIFT_MIN:
        return None
    per_minute = math.expm1(60 * slope)
    text = f"the rates of all switches drifted by {per_minute:+.2%} per minute"
    return Reason(ReasonCode.DRIFT, text, {"per_minute": per_minute})


def _series(trials: Iterable[Trial]) -> Iterable[Series]:
    """Yield the rates of each switch on each topology, a value for each start, relative to the mean of its cell."""
    cells: dict[Point, list[Trial]] = defaultdict(list)
    for trial in trials:
        if trial.role == "r_plus" and trial.throughput_pps > 0:
            cells[trial.point].append(trial)
    blocks: dict[tuple[TopologyKey, str], dict[int, Series]] = defaultdict(lambda: defaultdict(list))
    for point, members in cells.items():
        mean = statistics.fmean(math.log(trial.throughput_pps) for trial in members)
        for trial in members:
            sample = seconds_since_epoch(trial.started_at), math.log(trial.throughput_pps) - mean
            blocks[point.topology, point.switch][trial.repetition].append(sample)
    for of_topology in blocks.values():
        yield [(min(block)[0], statistics.fmean(change for _, change in block)) for block in of_topology.values()]
