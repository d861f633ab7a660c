# SPDX-License-Identifier: BSD-3-Clause
"""What explains a wide interval: the core distance, or another hyperthread on a core, differed between the trials."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from planebench.model.records import Trial
from planebench.model.results import Stratum
from planebench.stats.shared_cores import ALONE, OWNERS, core_shares
from planebench.stats.starts import geometric_mean, throughput_blocks


def strata(trials: Sequence[Trial]) -> tuple[Stratum, ...]:
    """Return the throughput by core distance where trials have several; else by whose core was shared, if some were."""
    shares = core_shares(trials)

    def shared(place: int) -> Callable[[Trial], str | None]:
        def of(trial: Trial) -> str | None:
            if trial.index not in shares:
                return None
            alone = shares[trial.index][place] >= ALONE
            return f"core of the {OWNERS[place]} {'alone' if alone else 'shared'}"

        return of

    for of in (lambda trial: trial.band, *map(shared, range(len(OWNERS)))):
        groups: dict[str, list[Trial]] = {}
        for trial in trials:
            if (name := of(trial)) is not None:
                groups.setdefault(name, []).append(trial)
        found = [
            Stratum(name, rate, len(members))
            for name, members in groups.items()
            if (rate := geometric_mean(throughput_blocks(members))) is not None
        ]
        if len(found) > 1:
            return tuple(sorted(found, key=lambda it: -it.throughput_pps))
    return ()
