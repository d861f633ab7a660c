# SPDX-License-Identifier: BSD-3-Clause
"""One outcome for each claim from several runs, and what is missing for the claims that stay open. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from planebench.model.words import listed
from planebench.papers.claims import Claim, all_claims
from planebench.papers.judge import judge, judge_order
from planebench.papers.measured import RunFigures
from planebench.papers.told import ClaimOutcome, Judgement, Why

_NEAREST: tuple[Why, ...] = ("insufficient data", "not testable on this host", "not covered by this run")
"""The reasons of open judgements: of several runs, the one that came nearest to an answer tells its own."""


@dataclass(frozen=True, slots=True)
class Conclusion:
    """A claim, its outcome by several runs, and the judgements that it rests on, each with the name of its run.

    ``absent``: the switches, by adapter, for want of which no run covers the claim. ``together``: the evidence of a
    ranking, which is of the pairs of all these runs; empty where each run is judged alone.
    """

    claim: Claim
    outcome: ClaimOutcome
    why: Why
    judgements: tuple[tuple[str, Judgement], ...]
    absent: tuple[str, ...] = ()
    together: str = ""

    @property
    def words(self) -> str:
        """Return the outcome and its reason: ``inconclusive: runs disagree``."""
        return f"{self.outcome.value}: {self.why}" if self.why else self.outcome.value

    @property
    def runs(self) -> str:
        """Return the names of the runs that it rests on: ``conext19 and netsoft19``."""
        return listed([name for name, _ in self.judgements])

    @property
    def evidence(self) -> str:
        """Return the evidence of the first run; of all where none decides, each after the name of its run."""
        if self.together:
            return self.together
        if not self.why or len(self.judgements) == 1:
            return self.judgements[0][1].evidence
        return " ".join(f"{name}: {judged.evidence}" for name, judged in self.judgements)


def conclude(runs: Mapping[str, RunFigures]) -> tuple[Conclusion, ...]:
    """Return a conclusion for every claim from one run or several, by name.

    A claim is confirmed if a run confirms it and none contradicts it, and the other way round. Where both happen, a
    comparison that contradicts it in one run and is confirmed in no other decides against it: the others lack that
    switch or test point. The order of switches is judged by the pairs of all runs as one ranking, in which a pair is
    inconclusive that two runs tell differently. The runs that test a claim share the level, each in proportion to the
    starts that its plan asks for, so several are wrong together no more often than one. Runs that reproduce the paper
    of a claim come first in what it rests on.
    """
    return tuple(_conclusion(claim, runs) for claim in all_claims())


def _conclusion(claim: Claim, runs: Mapping[str, RunFigures]) -> Conclusion:
    order = sorted(runs.items(), key=lambda it: claim.paper not in it[1].derived.run.header.papers)
    found = [(name, judge(claim, measured)) for name, measured in order]
    starts = {name: planned_starts(runs[name]) for name, judged in found if judged.compared}
    if claim.order is not None and len(starts) > 1:
        ranked = tuple(it for it in found if it[0] in starts)
        judged = judge_order(claim, claim.order, [runs[name] for name in starts])
        return Conclusion(claim, judged.outcome, judged.why, ranked, together=judged.evidence)
    if len(starts) > 1:
        shares = {name: number / sum(starts.values()) for name, number in starts.items()}
        found = [(name, judge(claim, measured, shares.get(name, 1.0))) for name, measured in order]
    decided = tuple(it for it in found if it[1].outcome is not ClaimOutcome.CANNOT_BE_TESTED)
    outcomes = {judged.outcome for _, judged in decided}
    if len(outcomes) == 1:
        return Conclusion(claim, outcomes.pop(), "", decided)
    if outcomes and (against := _against(claim, decided)):
        return Conclusion(claim, ClaimOutcome.NOT_CONFIRMED, "", against)
    if outcomes:
        return Conclusion(claim, ClaimOutcome.CANNOT_BE_TESTED, "runs disagree", decided)
    _, nearest = min(found, key=lambda it: _NEAREST.index(it[1].why))
    open_judgements = [it for it in found if it[1].why == nearest.why]
    if nearest.why != "insufficient data":
        del open_judgements[1:]
    wanted = set.intersection(*(set(judged.absent) for _, judged in found))
    absent = tuple(name for name in nearest.absent if name in wanted)
    return Conclusion(claim, ClaimOutcome.CANNOT_BE_TESTED, nearest.why, tuple(open_judgements), absent)


def planned_starts(measured: RunFigures) -> int:
    """Return how many starts of each switch the plan of a run asks for: known before it measures anything."""
    return measured.derived.run.header.plan.throughput.repetitions


def _against(claim: Claim, decided: Sequence[tuple[str, Judgement]]) -> tuple[tuple[str, Judgement], ...]:
    """Return the judgements with a comparison that contradicts the claim and that holds in no other run."""
    if not claim.of_all:
        return ()
    held = {it.what for _, judged in decided for it in judged.compared if it.holds}
    return tuple(
        (name, judged)
        for name, judged in decided
        if any(it.holds is False and it.what not in held for it in judged.compared)
    )


def open_words(conclusions: Iterable[Conclusion]) -> str:
    """Return why claims stay open, with their numbers; empty if none does.

    ``12 for want of a switch (bess 9, vale 7), 9 not testable on this host``: 9 of the 12 are also about BESS.
    """
    undecided = [it for it in conclusions if it.outcome is ClaimOutcome.CANNOT_BE_TESTED]
    of_switch = Counter(name for it in undecided for name in it.absent)
    switches = ", ".join(f"{name} {number}" for name, number in of_switch.most_common())
    reasons = Counter(f"for want of a switch ({switches})" if it.absent else it.why for it in undecided)
    return ", ".join(f"{number} {reason}" for reason, number in reasons.most_common())
