# SPDX-License-Identifier: BSD-3-Clause
"""One outcome for each claim from several runs, and what is missing for the claims that stay open. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from planebench.papers.claims import Claim, all_claims
from planebench.papers.judge import judge
from planebench.papers.measured import Measured
from planebench.papers.told import Judgement, Outcome, Why

_NEAREST: tuple[Why, ...] = ("insufficient data", "not testable on this host", "not covered by this run")
"""The reasons of open judgements: of several runs, the one that came nearest to an answer tells its own."""


@dataclass(frozen=True, slots=True)
class Conclusion:
    """A claim, its outcome by several runs, and the judgements that it rests on, each with the id of its run.

    ``absent``: the switches, by adapter, for want of which no run covers the claim.
    """

    claim: Claim
    outcome: Outcome
    why: Why
    judgements: tuple[tuple[str, Judgement], ...]
    absent: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        """Return the outcome and its reason: ``inconclusive: runs disagree``."""
        return f"{self.outcome.value}: {self.why}" if self.why else self.outcome.value

    @property
    def evidence(self) -> str:
        """Return the evidence of the judgements; where there are several, each after the id of its run."""
        if len(self.judgements) == 1:
            return self.judgements[0][1].evidence
        return " ".join(f"{run_id}: {judged.evidence}" for run_id, judged in self.judgements)


def conclude(runs: Sequence[Measured]) -> tuple[Conclusion, ...]:
    """Return a conclusion for every claim from one run or several.

    A claim is confirmed if a run confirms it and none contradicts it, and the other way round. Every run that tests a
    claim gets an equal share of the level, so several are wrong together no more often than one.
    """
    return tuple(_conclusion(claim, runs) for claim in all_claims())


def _conclusion(claim: Claim, runs: Sequence[Measured]) -> Conclusion:
    found = [judge(claim, it) for it in runs]
    testing = sum(bool(it.compared) for it in found)
    if testing > 1:
        found = [judge(claim, it, testing) for it in runs]
    named = [(it.derived.run.header.run_id, judged) for it, judged in zip(runs, found, strict=True)]
    decided = tuple(it for it in named if it[1].outcome is not Outcome.CANNOT_BE_TESTED)
    outcomes = {judged.outcome for _, judged in decided}
    if len(outcomes) == 1:
        return Conclusion(claim, outcomes.pop(), "", decided)
    if outcomes:
        return Conclusion(claim, Outcome.CANNOT_BE_TESTED, "runs disagree", decided)
    why = next(reason for reason in _NEAREST if any(it.why == reason for it in found))
    of_why = [it for it in named if it[1].why == why]
    if why != "insufficient data":
        of_why.sort(key=lambda it: len(it[1].absent))
        of_why = of_why[:1]
    wanted = set.intersection(*(set(it.absent) for it in found))
    absent = tuple(name for name in of_why[0][1].absent if name in wanted)
    return Conclusion(claim, Outcome.CANNOT_BE_TESTED, why, tuple(of_why), absent)


def open_words(conclusions: Iterable[Conclusion]) -> str:
    """Return why claims stay open, with their numbers; empty if none does.

    ``12 for want of a switch (bess 9, vale 7), 9 not testable on this host``: 9 of the 12 are also about BESS.
    """
    undecided = [it for it in conclusions if it.outcome is Outcome.CANNOT_BE_TESTED]
    of_switch = Counter(name for it in undecided for name in it.absent)
    switches = ", ".join(f"{name} {number}" for name, number in of_switch.most_common())
    reasons = Counter(f"for want of a switch ({switches})" if it.absent else it.why for it in undecided)
    return ", ".join(f"{number} {reason}" for reason, number in reasons.most_common())
