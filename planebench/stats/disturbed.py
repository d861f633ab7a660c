# SPDX-License-Identifier: BSD-3-Clause
"""Switches that the host disturbs more often than others: the disturbance is then not independent of the switch.

Its own helper threads may be what took the tester's CPU. So the figure per time that the pollers had may flatter it,
and the figure as counted may charge it with what the host did: its intervals and answers contain both.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from planebench.model.records import Trial
from planebench.stats.answers import ALPHA, holm
from planebench.stats.counting import is_counted
from planebench.stats.host import is_disturbed


@dataclass(frozen=True, slots=True)
class DisturbedSwitch:
    """A switch whose trials are disturbed more often than those of the others. Shares are of 1."""

    switch: str
    share: float
    share_of_others: float


def disturbed_switches(trials: Iterable[Trial]) -> tuple[DisturbedSwitch, ...]:
    """Return the switches whose saturating trials are disturbed more often, by Fisher's exact test for each (Holm)."""
    from scipy.stats import fisher_exact

    measured = [t for t in trials if t.role == "r_plus" and is_counted(t)]
    total = Counter(t.point.switch for t in measured)
    disturbed = Counter(t.point.switch for t in measured if is_disturbed(t))
    if len(total) < 2 or not disturbed:
        return ()
    tables = {}
    for label in total:
        mine, rest = disturbed[label], disturbed.total() - disturbed[label]
        tables[label] = (mine, total[label] - mine), (rest, total.total() - total[label] - rest)
    p_values = holm([float(fisher_exact(table, alternative="greater").pvalue) for table in tables.values()])
    return tuple(
        DisturbedSwitch(label, mine[0] / sum(mine), others[0] / sum(others))
        for (label, (mine, others)), p_value in zip(tables.items(), p_values, strict=True)
        if p_value < ALPHA
    )
