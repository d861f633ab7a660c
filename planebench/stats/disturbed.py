# SPDX-License-Identifier: BSD-3-Clause
"""Disturbances that go with one switch: then they are a property of the switch and not of the machine."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from planebench.model.records import VerdictKind
from planebench.model.run import Run
from planebench.stats.answers import ALPHA, holm

_NOT_MEASURED = (VerdictKind.INVALID, VerdictKind.FUNCTIONAL)


@dataclass(frozen=True, slots=True)
class DisturbedSwitch:
    """A switch whose trials are disturbed more often than those of the others. Shares are of 1."""

    switch: str
    share: float
    share_of_others: float


def disturbed_switches(run: Run) -> tuple[DisturbedSwitch, ...]:
    """Return the switches whose trials are disturbed more often, by Fisher's exact test; for all switches (Holm)."""
    from scipy.stats import fisher_exact

    measured = [t for t in run.trials if t.role != "warmup" and t.verdict.kind not in _NOT_MEASURED]
    trials = Counter(t.point.switch for t in measured)
    disturbed = Counter(t.point.switch for t in measured if t.verdict.kind is VerdictKind.DISTURBED)
    if len(trials) < 2:
        return ()
    tables = {label: _table(label, trials, disturbed) for label in trials}
    p_values = holm([float(fisher_exact(table, alternative="greater").pvalue) for table in tables.values()])
    return tuple(
        DisturbedSwitch(label, mine[0] / sum(mine), others[0] / sum(others))
        for (label, (mine, others)), p_value in zip(tables.items(), p_values, strict=True)
        if p_value < ALPHA
    )


def _table(label: str, trials: Counter[str], disturbed: Counter[str]) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return disturbed and other trials, of the switch and of all others."""
    mine, rest = disturbed[label], disturbed.total() - disturbed[label]
    return (mine, trials[label] - mine), (rest, trials.total() - trials[label] - rest)
