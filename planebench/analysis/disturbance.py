# SPDX-License-Identifier: BSD-3-Clause
"""What the host did over a run: switches that it disturbs more than others, a drift of rates, shared cores.

A switch's own helper threads may be what took the tester's CPU. So the figure per time that the pollers had may flatter
it, and the figure as counted may charge it with what the host did: its intervals and answers contain both.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from itertools import combinations
from statistics import fmean, median
from typing import Literal

from planebench.analysis.answers import ALPHA, holm
from planebench.analysis.counting import saturating
from planebench.model.grouped import grouped
from planebench.model.reasons import Reason, ReasonCode
from planebench.model.records import TopologyKey, Trial
from planebench.model.text import seconds_since_epoch
from planebench.model.time_had import stood_in

LEAST = 0.005
"""A switch that loses less of its time than this beyond the others is not worth a word."""
BLOCKS_MIN = 3
RESOLUTION = 1e-6


@dataclass(frozen=True, slots=True)
class DisturbedSwitch:
    """A switch that lost more of its time than the others in the same blocks. Shares are of 1."""

    switch: str
    share: float
    share_of_others: float


def disturbed_switches(trials: Iterable[Trial]) -> tuple[DisturbedSwitch, ...]:
    """Return the switches that lost more of their time than the others, by a t test over the blocks (Holm).

    A block of a topology, in which each switch has one start, is one observation: what the host does lasts for
    several trials.
    """
    blocks: dict[Hashable, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for trial in saturating(trials).trials:
        key = trial.point.topology, trial.repetition
        blocks[key][trial.point.switch].append(1 - stood_in(trial).had)
    pairs: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for block in blocks.values():
        for label, mine in block.items():
            if others := [fmean(them) for other, them in block.items() if other != label]:
                pairs[label].append((fmean(mine), fmean(others)))
    found = [
        DisturbedSwitch(label, fmean(mine for mine, _ in both), fmean(others for _, others in both))
        for label, both in pairs.items()
    ]
    p_values = []
    for both in pairs.values():
        more = [mine - others for mine, others in both]
        if len(more) < BLOCKS_MIN or max(more) <= LEAST:
            p_values.append(1.0)
        elif max(more) - min(more) < RESOLUTION:  # without any noise no t tells
            p_values.append(0.0)
        else:
            from scipy.stats import ttest_1samp  # a quarter of a short run, which needs none

            p_values.append(float(ttest_1samp(more, LEAST, alternative="greater").pvalue))
    return tuple(it for it, p_value in zip(found, holm(p_values), strict=True) if p_value < ALPHA)


# A drift of the rates of a run with time. Interleaved comparisons cancel it; single figures do not.

DRIFT_ALPHA = 0.01
DRIFT_MIN = 0.005
"""A smaller change over the whole run is not worth a word."""

RateSeries = list[tuple[float, float]]
"""Seconds and logarithms of rates relative to their mean."""


def drift(trials: Iterable[Trial]) -> Reason | None:
    """Return the drift of the saturating trials of a run, if there is one; ``trials`` are those that count.

    A seasonal Kendall test (Hirsch, Slack and Smith, Water Resources Research 18(1), 1982): the signs of all pairs
    within each series are added up. A series is one switch on one topology; its test points share a start, and are
    averaged, because they are not independent. The slope is the median over these pairs.
    """
    # The rates of each switch on each topology, a value for each start, relative to the mean of its cell.
    cells = grouped((it.point, it) for it in trials if it.role == "r_plus" and it.throughput_pps > 0)
    blocks: dict[tuple[TopologyKey, str], dict[int, RateSeries]] = defaultdict(lambda: defaultdict(list))
    for point, members in cells.items():
        mean = fmean(math.log(trial.throughput_pps) for trial in members)
        for trial in members:
            sample = seconds_since_epoch(trial.started_at), math.log(trial.throughput_pps) - mean
            blocks[point.topology, point.switch][trial.repetition].append(sample)
    found = [
        [(min(block)[0], fmean(change for _, change in block)) for block in of_topology.values()]
        for of_topology in blocks.values()
    ]
    pairs = [(b[0] - a[0], b[1] - a[1]) for series in found for a, b in combinations(sorted(series), 2)]
    variance = sum(n * (n - 1) * (2 * n + 5) / 18 for n in map(len, found))
    score = sum((change > 0) - (change < 0) for _, change in pairs)
    if not variance or math.erfc(max(abs(score) - 1, 0) / math.sqrt(2 * variance)) >= DRIFT_ALPHA:
        return None
    slope = median([change / seconds for seconds, change in pairs if seconds] or [0.0])
    times = [seconds for series in found for seconds, _ in series]
    if abs(slope) * (max(times) - min(times)) < DRIFT_MIN:
        return None
    per_minute = math.expm1(60 * slope)
    text = f"the rates of all switches drifted by {per_minute:+.2%} per minute"
    return Reason(ReasonCode.DRIFT, text, {"per_minute": per_minute})


# How much of their cores switch and tester had: another hyperthread takes of them what no guest of a host can see.
#
# Before and after each trial a plain loop is timed on the first CPU of the switch and of the tester
# (``CoreDistance.additions_per_cycle``). What it reaches at best in a run is taken for a core alone, so a core that is
# shared in all of a run, and always alike, is not found.

CoreOwner = Literal["switch", "tester"]
OWNERS: tuple[CoreOwner, ...] = ("switch", "tester")
ALONE = 0.95
"""The share of the best figure from which on a core counts as alone."""


@dataclass(frozen=True, slots=True)
class SharedCore:
    """How often the core of the switch, or of the tester, was shared. ``least``: the least share of it that was had."""

    owner: CoreOwner
    trials: int
    shared: int
    least: float


def core_shares(trials: Iterable[Trial]) -> dict[int, tuple[float, float]]:
    """Return the share of their cores that switch and tester had in each trial, by its index.

    It is the smaller one of before and after. Trials in which it is not known have none.
    """
    known: dict[int, tuple[float, float]] = {}
    for trial in trials:
        both = [at.additions_per_cycle for at in (trial.evidence.distance_before, trial.evidence.distance_after) if at]
        if len(both) == 2 and all(len(speeds) == 2 and min(speeds) > 0 for speeds in both):
            switch, tester = (min(speeds) for speeds in zip(*both, strict=True))
            known[trial.index] = switch, tester
    best = max((speed for pair in known.values() for speed in pair), default=0.0)
    return {index: (switch / best, tester / best) for index, (switch, tester) in known.items() if best > 0}


def shared_cores(trials: Iterable[Trial]) -> tuple[SharedCore, ...]:
    """Return how often the cores of switch and tester were shared; () where it is not known."""
    shares = core_shares(trial for trial in trials if trial.role != "warmup")
    of_owner = zip(*shares.values(), strict=True)
    return tuple(
        SharedCore(owner, len(found), sum(share < ALONE for share in found), min(found))
        for owner, found in zip(OWNERS, of_owner, strict=False)
    )
