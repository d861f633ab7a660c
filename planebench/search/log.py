# SPDX-License-Identifier: BSD-3-Clause
"""The trial log as what answers a search: which trial is the answer to an ask, and when to stop asking."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from planebench.model.reasons import Reason, ReasonCode
from planebench.model.records import Trial, Verdict, VerdictKind
from planebench.search.ask import Ask
from planebench.search.facts import fits

ASKED_MAX = 4
"""A trial did not take place, or the tester did not keep up, so often in a row at one load: then the search ends."""


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

    ``used`` are in the order of use.
    """

    def __init__(self, trials: Sequence[Trial]) -> None:
        self.trials = [t for t in trials if t.role in ("r_plus", "search")]
        self._used: set[int] = set()
        self.used: list[Trial] = []

    def measure(self, ask: Ask) -> Trial:
        """Return the first trial of this load and duration that took place and is not used yet.

        Raises Unanswered where there is none, GaveUp after ASKED_MAX in a row that are no answer.
        """
        failed: list[Trial] = []
        for i, trial in enumerate(self.trials):
            if not fits(trial, ask.load_pps, ask.duration_s):
                continue
            if i in self._used:
                failed.clear()
            elif _answers(trial, ask):
                self._used.add(i)
                self.used.append(trial)
                return trial
            else:
                failed.append(trial)
        if any(trial.verdict.kind is VerdictKind.FUNCTIONAL for trial in failed):
            raise GaveUp(failed[-1].verdict)  # the next would be, too
        if len(failed) >= ASKED_MAX:
            raise GaveUp(_gave_up(ask, failed))
        raise Unanswered(ask)


def _answers(trial: Trial, ask: Ask) -> bool:
    kind = trial.verdict.kind
    return kind is VerdictKind.VALID or (kind.is_bound and (ask.load_pps is None or ask.rough))


def _gave_up(ask: Ask, failed: Sequence[Trial]) -> Verdict:
    load = "at maximum offered load" if ask.load_pps is None else f"at {ask.load_pps / 1e6:.6g} Mpps"
    kinds = Counter(t.verdict.kind.value for t in failed)
    said = ", ".join(f"{count} {what}" for what, count in sorted(kinds.items()))
    reason = f"gave up {load}, {ask.duration_s:g} s: {len(failed)} trials in a row were no answer ({said})"
    last = failed[-1].verdict
    return Verdict(last.kind, (Reason(ReasonCode.GAVE_UP, reason, {"tries": len(failed)}), *last.reasons[:1]))
