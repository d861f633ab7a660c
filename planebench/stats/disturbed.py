# SPDX-License-Identifier: BSD-3-Clause
"""Disturbances that go with one switch: then they are a property of the switch and not of the machine."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from planebench.model.records import Evidence, VerdictKind
from planebench.model.run import Run
from planebench.stats.answers import ALPHA, holm

_NOT_MEASURED = (VerdictKind.INVALID, VerdictKind.FUNCTIONAL)


@dataclass(frozen=True, slots=True)
class DisturbedSwitch:
    """A switch whose trials are disturbed more often than those of the others. Shares are of 1.

    ``own_threads``: the share of its disturbed trials in which its own threads lost most of the time.
    """

    switch: str
    share: float
    share_of_others: float
    own_threads: float


def disturbed_switches(run: Run) -> tuple[DisturbedSwitch, ...]:
    """Return the switches whose trials are disturbed more often, by Fisher's exact test; for all switches (Holm)."""
    from scipy.stats import fisher_exact

    measured = [t for t in run.trials if t.role != "warmup" and t.verdict.kind not in _NOT_MEASURED]
    trials = Counter(t.point.switch for t in measured)
    rejected = [t for t in measured if t.verdict.kind is VerdictKind.DISTURBED]
    disturbed = Counter(t.point.switch for t in rejected)
    own = Counter(t.point.switch for t in rejected if lost_by_switch(t.evidence))
    if len(trials) < 2:
        return ()
    tables = {label: _table(label, trials, disturbed) for label in trials}
    p_values = holm([float(fisher_exact(table, alternative="greater").pvalue) for table in tables.values()])
    return tuple(
        DisturbedSwitch(label, mine[0] / sum(mine), others[0] / sum(others), own[label] / mine[0])
        for (label, (mine, others)), p_value in zip(tables.items(), p_values, strict=True)
        if p_value < ALPHA
    )


def lost_by_switch(evidence: Evidence) -> bool:
    """Return whether the threads of the switch waited longer for a CPU than tester and hypervisor took from it."""
    waited: Counter[str] = Counter()
    for thread in evidence.threads:
        waited[thread.owner] += thread.wait_ns
    return waited["switch"] > max(waited["tester"], evidence.poll_gap_sum_ns) + evidence.steal_ns


def _table(label: str, trials: Counter[str], disturbed: Counter[str]) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return disturbed and other trials, of the switch and of all others."""
    mine, rest = disturbed[label], disturbed.total() - disturbed[label]
    return (mine, trials[label] - mine), (rest, trials.total() - trials[label] - rest)
