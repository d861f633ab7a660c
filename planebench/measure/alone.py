# SPDX-License-Identifier: BSD-3-Clause
"""Trials of cores that are alone, where the user asks for them: those with a shared core are disturbed.

What a core that is alone reaches is the best figure so far: of all trials, and of all looks before them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from planebench.model.reasons import Reason, ReasonCode
from planebench.model.records import CoreDistance, Trial, Verdict, VerdictKind
from planebench.stats.shared_cores import ALONE, OWNERS, core_speeds

_STAYS = (VerdictKind.INVALID, VerdictKind.FUNCTIONAL)
"""Verdicts that are worse than disturbed."""


FIRST_LOOKS, FIRST_LOOK_S = 20, 0.1
"""Before the first trial: other guests use a core for seconds, and seldom both cores all the time."""


@dataclass
class AloneCores:
    """Tells whether cores are alone. Not thread-safe. ``best``: additions per cycle of a core that is alone."""

    best: float = 0.0

    def look(self, distance: CoreDistance | None) -> bool:
        """Note what both CPUs had now; return whether no other hyperthread used them. Unknown counts as alone."""
        speeds = distance.additions_per_cycle if distance is not None else ()
        self.best = max(self.best, *speeds, 0.0)
        return all(speed >= ALONE * self.best for speed in speeds)

    def begin(self, look: Callable[[], CoreDistance | None], sleep: Callable[[float], None] = time.sleep) -> None:
        """Look several times if nothing is known yet, so that there is something to compare the first trial with."""
        for number in range(FIRST_LOOKS if self.best == 0 else 0):
            if number:
                sleep(FIRST_LOOK_S)
            distance = look()
            self.look(distance)
            if distance is None or not distance.additions_per_cycle:
                return

    def learn(self, trials: Iterable[Trial]) -> None:
        """Note what the CPUs had before and after trials."""
        for trial in trials:
            for distance in (trial.evidence.distance_before, trial.evidence.distance_after):
                self.look(distance)

    def judge(self, trial: Trial) -> Trial:
        """Return the trial, disturbed where another hyperthread used a core before it or after it."""
        self.learn((trial,))
        reasons = tuple(self._reasons(trial))
        verdict = trial.verdict
        if not reasons or verdict.kind in _STAYS:
            return trial
        before = verdict.reasons if verdict.kind is VerdictKind.DISTURBED else ()
        return replace(trial, verdict=Verdict(VerdictKind.DISTURBED, (*before, *reasons)))

    def _reasons(self, trial: Trial) -> Iterable[Reason]:
        for owner, speed in zip(OWNERS, core_speeds(trial) or (), strict=False):
            if speed < ALONE * self.best:
                share = speed / self.best
                text = f"another hyperthread used the core of the {owner}, and left {share:.0%} of it"
                yield Reason(ReasonCode.SHARED_CORE, text, {"share": share})
