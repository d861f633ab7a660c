# SPDX-License-Identifier: BSD-3-Clause
"""Switches that the host disturbs more than others: the disturbance is then not independent of the switch.

Its own helper threads may be what took the tester's CPU. So the figure per time that the pollers had may flatter it,
and the figure as counted may charge it with what the host did: its intervals and answers contain both.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from statistics import fmean

from planebench.model.records import Trial
from planebench.model.time_had import stood_in
from planebench.stats.answers import ALPHA, holm
from planebench.stats.counting import saturating

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
    from scipy.stats import ttest_1samp

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
            p_values.append(float(ttest_1samp(more, LEAST, alternative="greater").pvalue))
    return tuple(it for it, p_value in zip(found, holm(p_values), strict=True) if p_value < ALPHA)
