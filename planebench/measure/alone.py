# SPDX-License-Identifier: BSD-3-Clause
"""Detect shared cores during a run, and mark trials with a shared core as disturbed if the user asks for it.

A core counts as shared if it has fewer additions per cycle than 95 % of the best value that the run has seen so far.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from planebench.model.reasons import Reason, ReasonCode
from planebench.model.records import CoreDistance, Trial, Verdict, VerdictKind
from planebench.stats.shared_cores import OWNERS, best_speed, core_speeds, is_shared

_STAYS = (VerdictKind.INVALID, VerdictKind.FUNCTIONAL)
"""Verdicts that are worse than disturbed."""

LOOKS, LOOK_S = 20, 0.05
"""How often cores are measured to learn what they have at best, and the pause between two measurements: other guests
use a core for seconds or less, and seldom both cores all the time."""


def several_looks(look: Callable[[], CoreDistance | None]) -> Iterator[CoreDistance]:
    """Yield what several measurements within two seconds find; stop where the additions per cycle are unknown."""
    for number in range(LOOKS):
        if number:
            time.sleep(LOOK_S)
        distance = look()
        if distance is None or not distance.additions_per_cycle:
            return
        yield distance


@dataclass
class AloneCores:
    """Tells whether cores are alone. Not thread-safe. ``best``: additions per cycle of a core that is alone."""

    best: float = 0.0

    def look(self, distance: CoreDistance | None) -> bool:
        """Note what both CPUs had now; return whether no other hyperthread used them. Unknown counts as alone."""
        speeds = distance.additions_per_cycle if distance is not None else ()
        self.best = max(self.best, best_speed((distance,)))
        return not any(is_shared(speed, self.best) for speed in speeds)

    def begin(self, look: Callable[[], CoreDistance | None]) -> None:
        """Measure several times if nothing is known yet, so that the first trial can be compared with something."""
        if self.best == 0:
            self.best = best_speed(several_looks(look))

    def learn(self, trial: Trial) -> None:
        """Note what the CPUs had before and after a trial."""
        for distance in (trial.evidence.distance_before, trial.evidence.distance_after):
            self.look(distance)

    def judge(self, trial: Trial) -> Trial:
        """Return the trial, disturbed where another hyperthread used a core before it or after it."""
        self.learn(trial)
        reasons = tuple(self._reasons(trial))
        verdict = trial.verdict
        if not reasons or verdict.kind in _STAYS:
            return trial
        before = verdict.reasons if verdict.kind is VerdictKind.DISTURBED else ()
        return replace(trial, verdict=Verdict(VerdictKind.DISTURBED, (*before, *reasons)))

    def _reasons(self, trial: Trial) -> Iterator[Reason]:
        for owner, speed in zip(OWNERS, core_speeds(trial) or (), strict=False):
            if is_shared(speed, self.best):
                share = speed / self.best
                text = f"another hyperthread used the core of the {owner}, and left {share:.0%} of it"
                yield Reason(ReasonCode.SHARED_CORE, text, {"share": share})
