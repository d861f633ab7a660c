# SPDX-License-Identifier: BSD-3-Clause
"""The trial log as what answers a search: which trial is the answer to an ask, and when to stop asking."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from planebench.model.reasons import Reason, ReasonCode
from planebench.model.records import Trial, Verdict, VerdictKind
from planebench.search.ask import Ask
from planebench.search.facts import fits, has_gaps, is_stretched

TRIES_MAX = 8
"""Maximum number of successive rejected trials of a load; then the search ends."""

PASSED_OVER_MAX = 5
PASSED_OVER_SHARE = 0.25
"""So many trials of a search with gaps of the pollers, and this share of those used, are passed over, because the next
may be free of gaps. Further ones are accepted: on a host that always has gaps there are no better trials."""


class Unanswered(Exception):
    """The log does not hold the answer: ``ask`` is the next trial to measure."""

    def __init__(self, ask: Ask) -> None:
        super().__init__(str(ask))
        self.ask = ask


class GaveUp(Exception):
    """The search cannot go on; ``verdict`` says why."""

    def __init__(self, verdict: Verdict) -> None:
        super().__init__("; ".join(verdict.texts))
        self.verdict = verdict


class TrialLog:
    """The trials of one point in the order in which they were measured, and which of them one search has used.

    ``used`` are in the order of use; ``passed_over`` would have been accepted, but the pollers stood still.
    """

    def __init__(self, trials: Sequence[Trial], band: str | None) -> None:
        self._trials = [t for t in trials if t.role in ("r_plus", "search")]
        self._band = band
        self._used: set[int] = set()
        self._passed_over: set[int] = set()
        self.used: list[Trial] = []

    @property
    def trials(self) -> Sequence[Trial]:
        """Return all that can answer, whether they count or not."""
        return self._trials

    @property
    def passed_over(self) -> list[Trial]:
        """Return the trials with gaps, lossy or not: another trial replaced them, or was requested."""
        return [self._trials[i] for i in sorted(self._passed_over)]

    def measure(self, ask: Ask) -> Trial:
        """Return the first trial of this load and duration that is accepted, not used yet, and not passed over.

        Raises Unanswered where there is none, GaveUp after TRIES_MAX in a row that do not count.
        """
        tries: list[Trial] = []
        for i, trial in enumerate(self._trials):
            if i in self._passed_over or not fits(trial, ask.load_pps, ask.duration_s):
                continue
            if i in self._used:
                tries.clear()
            elif not self._counts(trial, ask):
                tries.append(trial)
            elif self._passes_over(trial, ask):
                self._passed_over.add(i)
            else:
                return self._use(i)
        if any(trial.verdict.kind is VerdictKind.FUNCTIONAL for trial in tries):
            raise GaveUp(tries[-1].verdict)  # the next would be, too
        if len(tries) >= TRIES_MAX:
            raise GaveUp(_gave_up(ask, tries))
        raise Unanswered(ask)

    def _passes_over(self, trial: Trial, ask: Ask) -> bool:
        most = PASSED_OVER_MAX + PASSED_OVER_SHARE * len(self.used)
        return ask.goal is not None and has_gaps(trial, ask.goal) and len(self._passed_over) < most

    def _use(self, i: int) -> Trial:
        self._used.add(i)
        self.used.append(self._trials[i])
        return self._trials[i]

    def _counts(self, trial: Trial, ask: Ask) -> bool:
        if ask.rough:
            return trial.verdict.kind not in (VerdictKind.INVALID, VerdictKind.FUNCTIONAL)
        if self._band is not None and trial.band != self._band:
            return False
        if ask.load_pps is None:
            return trial.verdict.kind is VerdictKind.VALID or trial.verdict.kind.is_bound
        return trial.verdict.kind is VerdictKind.VALID and not is_stretched(trial)


def _gave_up(ask: Ask, tries: Sequence[Trial]) -> Verdict:
    load = "at maximum offered load" if ask.load_pps is None else f"at {ask.load_pps / 1e6:.6g} Mpps"
    kinds = Counter(_worth(t) for t in tries)
    said = ", ".join(f"{count} {what}" for what, count in sorted(kinds.items()))
    invalid = all(t.verdict.kind is VerdictKind.INVALID for t in tries)
    kind = VerdictKind.INVALID if invalid else VerdictKind.DISTURBED
    reason = f"gave up {load}, {ask.duration_s:g} s: {len(tries)} trials in a row were rejected ({said})"
    return Verdict(kind, (Reason(ReasonCode.GAVE_UP, reason, {"tries": len(tries)}), *tries[-1].verdict.reasons[:1]))


def _worth(trial: Trial) -> str:
    """Return why a trial was rejected, in two words."""
    if trial.verdict.kind is not VerdictKind.VALID:
        return trial.verdict.kind.value
    if trial.load.pps_per_direction is not None and is_stretched(trial):
        return "stretched"
    return f"in band {trial.band or 'unknown'}"
