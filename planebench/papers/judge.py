# SPDX-License-Identifier: BSD-3-Clause
"""From a claim and one run or several to a judgement, with its evidence. The rules are docs/papers.md. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from planebench.model.header import RunHeader
from planebench.model.words import listed
from planebench.papers import comparing
from planebench.papers.claims import IP_PIPELINE, Claim, all_claims
from planebench.papers.conditions import differing
from planebench.papers.measured import RunFigures
from planebench.papers.ordering import Ranked, order_holds, rank_order, ranked_switches, ranked_together, ranks, too_few
from planebench.papers.told import ClaimOutcome, Compared, Judgement, Why, corrected, weakest_first

MAX_EVIDENCE = 3
"""Comparisons in the line of evidence; the rest is counted."""
MAX_MISSING = 2

_OUTCOMES = {True: ClaimOutcome.CONFIRMED, False: ClaimOutcome.NOT_CONFIRMED, None: ClaimOutcome.CANNOT_BE_TESTED}


def judge_all(measured: RunFigures) -> tuple[Judgement, ...]:
    """Return a judgement for every claim of every paper."""
    return tuple(judge(claim, measured) for claim in all_claims())


def shown(header: RunHeader, judgements: Iterable[Judgement]) -> tuple[Judgement, ...]:
    """Return all judgements of the papers that a run reproduces; of other papers, those that are conclusive."""
    return tuple(it for it in judgements if it.claim.paper in header.papers or it.outcome.decides)


def judge(claim: Claim, measured: RunFigures, share: float = 1.0) -> Judgement:
    """Return the judgement on a claim by a run, which has this share of the level of all runs that test it."""
    labels, beside = measured.labels(claim.switches), list[Compared]()
    of_planed = Claim.model_validate_json(claim.model_dump_json().replace(IP_PIPELINE, ""))
    header = measured.derived.run.header
    of_ranks = claim.order is not None or claim.correlation is not None
    # Other switches can be tested too, beside, unless the claim sets switches against others.
    if not of_ranks and not (claim.compare and claim.compare.rivals):
        beside += comparing.compared(claim, measured, [it for it in measured.adapters if it not in labels]).compared
        if of_planed != claim:
            beside += comparing.compared(of_planed, measured, labels).compared
    if of_planed.clocks is not None:
        beside += comparing.clocks(of_planed, of_planed.clocks, measured, labels, emulated=True).compared
    # Of the host of the switch and the VNFs, where another one sends.
    if unmet := claim.needs.unmet(header.host if header.switch_host is None else header.switch_host.host):
        return _untestable(claim, "not testable on this host", f"it takes {unmet}", beside)
    if of_ranks:
        ranked, holds = ranks(claim, measured)
        if missing := too_few(ranked):
            return _uncovered(claim, measured, missing, absent=measured.absent(ranked_switches(claim)))
        return _by_pairs(claim, ranked, holds, differing(claim, measured))
    if not labels:
        named = ", ".join(claim.switches)
        missing = (f"a switch that the claim is about ({named})",)
        return _uncovered(claim, measured, missing, beside, claim.switches)
    found = comparing.compared(claim, measured, labels)
    missing = tuple(dict.fromkeys(found.missing))
    steps = corrected([*found.compared, *found.steps], share)[len(found.compared) :]
    compared = weakest_first([*corrected(found.compared, share), *(it for it in steps if it.holds is False)])
    if not compared or (claim.of_rivals and missing and all(it.holds is not False for it in compared)):
        return _uncovered(claim, measured, missing, [*compared, *beside], found.absent)
    held = [it.holds for it in compared]
    support, against = held.count(True), held.count(False)
    if claim.share is not None and not claim.share.everywhere:  # one that supports it is enough
        holds = True if support else False if against == len(held) else None
    else:  # all, or a majority, support it, and none contradicts it
        each = claim.of_rivals or claim.line_rate is not None  # one of those that it names may not be open
        enough = support == len(held) or (support > 0.5 * len(held) and not each)
        holds = False if against else True if enough else None
    evidence = _evidence(compared, beside)
    unlike = differing(claim, measured)
    return _judgement(claim, holds, unlike, evidence, compared, tuple(beside), missing)


def _judgement(
    claim: Claim, holds: bool | None, unlike: Mapping[str, str], evidence: str, *rest: tuple[Any, ...], why: Why = ""
) -> Judgement:
    """Return the judgement by what was compared: none where the run has other conditions, which are ``unlike``."""
    if not unlike:
        why = (why or "insufficient data") if holds is None else ""
        return Judgement(claim, _OUTCOMES[holds], why, evidence, *rest)
    here = {True: "confirmed", False: "not confirmed", None: "inconclusive"}[holds]
    words = f"{'; '.join(unlike.values())}. With these {here}: {evidence}"
    return Judgement(claim, ClaimOutcome.OTHER_CONDITIONS, ", ".join(unlike), words, *rest)


def _by_pairs(claim: Claim, ranked: Ranked, holds: bool | None, unlike: Mapping[str, str]) -> Judgement:
    """Return the judgement on the ranks of switches."""
    compared = weakest_first(ranked.compared)
    evidence = f"{ranked.words}. {_evidence(compared, ())}"
    return _judgement(claim, holds, unlike, evidence, compared, why="runs disagree" if ranked.disputed else "")


def _untestable(
    claim: Claim,
    why: Why,
    words: str,
    beside: Sequence[Compared] = (),
    missing: tuple[str, ...] = (),
    absent: Sequence[str] = (),
) -> Judgement:
    beside = weakest_first(beside)
    evidence = f"{words}. Beside it: {_joined(beside)}" if beside else words
    return Judgement(claim, ClaimOutcome.CANNOT_BE_TESTED, why, evidence, (), beside, missing, tuple(absent))


def _uncovered(
    claim: Claim,
    measured: RunFigures,
    missing: tuple[str, ...],
    beside: Sequence[Compared] = (),
    absent: Sequence[str] = (),
) -> Judgement:
    """Return the judgement on a claim that a run does not cover, with the reason of the plan if it left that out."""
    more = f" and {len(missing) - MAX_MISSING} more" if len(missing) > MAX_MISSING else ""
    header, places = measured.derived.run.header, claim.where.split(", ")
    # An entry that names no paper belongs to the paper of the claim, if the plan has no other.
    wanted = {f"{claim.paper} {place}" for place in places}
    if header.papers == (claim.paper,):
        wanted.update(places)
    reasons = [f"{entry.what}: {entry.reason}" for entry in header.left_out if entry.what in wanted]
    words = "; ".join([f"missing: {'; '.join(missing[:MAX_MISSING])}{more}", *(f"left out: {it}" for it in reasons)])
    return _untestable(claim, "not covered by this run", words, beside, missing, absent)


def _evidence(compared: Sequence[Compared], beside: Sequence[Compared]) -> str:
    """Return the evidence in words: how many comparisons support the claim, then those that contradict it."""
    held = [it.holds for it in compared]
    counted = (("holds", held.count(True)), ("does not hold", held.count(False)), ("inconclusive", held.count(None)))
    count = ", ".join(f"{words} in {n}" for words, n in counted if n)
    lead = f"{count} of {len(held)}. " if len(held) > 1 else ""
    tail = f" Beside it: {_joined(weakest_first(beside))}" if beside else ""
    return f"{lead}{_joined(compared)}.{tail}"


def _joined(compared: Sequence[Compared]) -> str:
    """Return the first comparisons in words, and the number of the others."""
    sentences = []
    for it in compared[:MAX_EVIDENCE]:
        paper = f", the paper's {it.paper:.2f}" if it.paper is not None else ""
        ends = {True: "confirmed", False: "not confirmed", None: it.told.why or "inconclusive"}[it.holds]
        sentences.append(f"{it.what}: {it.words}{paper}: {ends}")
    more = f"; and {len(compared) - MAX_EVIDENCE} more" if len(compared) > MAX_EVIDENCE else ""
    return "; ".join(sentences) + more


# One outcome for each claim from several runs, and what is missing for the claims that stay open.

_NEAREST = ("insufficient data", ClaimOutcome.OTHER_CONDITIONS, "not testable on this host", "not covered by this run")
"""Why judgements are open: of several runs, the one that came nearest to an answer tells its own."""


@dataclass(frozen=True, slots=True)
class Conclusion:
    """A claim, its outcome by several runs, and the judgements that it rests on, each with the name of its run.

    ``absent``: the switches, by adapter, for want of which no run covers the claim. ``together``: the evidence of a
    ranking, which is of the pairs of all these runs; empty where each run is judged alone.
    """

    claim: Claim
    outcome: ClaimOutcome
    why: str
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
        """Return the evidence of the first run; of all whose trials do not decide, each after the name of its run."""
        if self.together:
            return self.together
        if self.outcome is not ClaimOutcome.CANNOT_BE_TESTED or len(self.judgements) == 1:
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
    other = ClaimOutcome.OTHER_CONDITIONS
    # Runs under other conditions tell something where there are no others.
    telling = [it for it in found if it[1].compared and it[1].outcome is not other] or [
        it for it in found if it[1].compared
    ]
    starts = {name: runs[name].derived.run.header.plan.throughput.repetitions for name, _ in telling}
    if claim.order is not None and len(telling) > 1:
        together = ranked_together([rank_order(claim, claim.order, runs[name]) for name, _ in telling])
        judged = _by_pairs(claim, together, order_holds(together), differing(claim, runs[telling[0][0]]))
        return Conclusion(claim, judged.outcome, judged.why, tuple(telling), together=judged.evidence)
    if len(starts) > 1:
        shares = {name: number / sum(starts.values()) for name, number in starts.items()}
        found = [(name, judge(claim, measured, shares.get(name, 1.0))) for name, measured in order]
    decided = tuple(it for it in found if it[1].outcome.decides)
    outcomes = {judged.outcome for _, judged in decided}
    if len(outcomes) == 1:
        return Conclusion(claim, outcomes.pop(), "", decided)
    if outcomes and (against := _against(claim, decided)):
        return Conclusion(claim, ClaimOutcome.NOT_CONFIRMED, "", against)
    if outcomes:
        return Conclusion(claim, ClaimOutcome.CANNOT_BE_TESTED, "runs disagree", decided)
    _, nearest = min(found, key=lambda it: _distance(it[1]))
    open_judgements = [it for it in found if (it[1].outcome, it[1].why) == (nearest.outcome, nearest.why)]
    if nearest.why in _NEAREST[-2:]:
        del open_judgements[1:]
    wanted = set.intersection(*(set(judged.absent) for _, judged in found))
    absent = tuple(name for name in nearest.absent if name in wanted)
    return Conclusion(claim, nearest.outcome, nearest.why, tuple(open_judgements), absent)


def _distance(judged: Judgement) -> tuple[int, int]:
    """Return how far a judgement is from an answer: why it has none, and in how many conditions its run differs."""
    other = judged.outcome is ClaimOutcome.OTHER_CONDITIONS
    return _NEAREST.index(judged.outcome if other else judged.why), judged.why.count(",")


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
