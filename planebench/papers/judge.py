# SPDX-License-Identifier: BSD-3-Clause
"""From a claim and a run to a judgement, with its evidence. The rules are docs/papers.md. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from planebench.model.header import RunHeader
from planebench.papers import across, comparing, single
from planebench.papers.claims import Claim, Order, all_claims
from planebench.papers.comparing import PairsFound, all_words
from planebench.papers.measured import RunFigures
from planebench.papers.ordering import (
    Ranked,
    correlation_holds,
    order_holds,
    rank_correlation,
    rank_order,
    ranked_switches,
    ranked_together,
    too_few,
)
from planebench.papers.told import ClaimOutcome, Compared, Judgement, Why, corrected

MAX_EVIDENCE = 3
"""Comparisons in the line of evidence; the rest is counted."""
MAX_MISSING = 2


def judge_all(measured: RunFigures) -> tuple[Judgement, ...]:
    """Return a judgement for every claim of every paper."""
    return tuple(judge(claim, measured) for claim in all_claims())


def shown(header: RunHeader, judgements: Iterable[Judgement]) -> tuple[Judgement, ...]:
    """Return all judgements of the papers that a run reproduces; of other papers, those that are conclusive."""
    wanted = header.papers
    return tuple(it for it in judgements if it.claim.paper in wanted or it.outcome is not ClaimOutcome.CANNOT_BE_TESTED)


def judge(claim: Claim, measured: RunFigures, share: float = 1.0) -> Judgement:
    """Return the judgement on a claim by a run, which has this share of the level of all runs that test it."""
    emulated = [] if claim.clocks is None else single.clocks(claim, claim.clocks, measured, emulated=True).compared
    if unmet := claim.needs.unmet(_facts(measured.derived.run.header)):
        return _untestable(claim, "not testable on this host", f"it takes {unmet}", emulated)
    if claim.order is not None:
        return _ranked(claim, measured, rank_order(claim, claim.order, measured), order_holds)
    if claim.correlation is not None:
        ranked = rank_correlation(claim, claim.correlation, measured)
        return _ranked(claim, measured, ranked, partial(correlation_holds, claim.correlation))
    if missing := _missing_settings(claim, measured.derived.run.header):
        words = _missing_words(claim, measured, missing)
        return _untestable(claim, "not covered by this run", words, (), missing)
    labels = measured.labels(claim.switches)
    others = _compared(claim, measured, measured.others(claim.switches)).compared if _has_beside(claim) else []
    beside = [*others, *emulated]
    if not labels:
        return _no_switch(claim, measured, beside)
    return _judgement(claim, measured, _compared(claim, measured, labels), beside, share)


def judge_order(claim: Claim, shape: Order, runs: Sequence[RunFigures]) -> Judgement:
    """Return the judgement on an order by the pairs of all runs, each of which has enough switches to judge it."""
    ranked = ranked_together([rank_order(claim, shape, measured) for measured in runs])
    return _by_pairs(claim, ranked, order_holds(ranked))


def _facts(header: RunHeader) -> Mapping[str, Any]:
    """Return the facts of the host of the switch and the VNFs."""
    return header.host if header.switch_host is None else header.switch_host.host


def _missing_settings(claim: Claim, header: RunHeader) -> tuple[str, ...]:
    """Return what the settings of a run lack for a claim."""
    settings = header.settings
    alike = header.wire is not None and header.wire.vnf_ports
    lacking = (
        ("VNFs that send in batches (send_burst of the plan)", claim.batching and not settings.get("send_burst")),
        ("ports of NICs that differ from those of VNFs (another wire)", claim.nic_ports and alike),
    )
    return tuple(words for words, lacks in lacking if lacks)


def _has_beside(claim: Claim) -> bool:
    """Return whether the claim can be tested on other switches too; not if it compares one switch with others."""
    of_one_switch = (claim.trend, claim.line_rate, claim.no_leader, claim.minimum, claim.spread)
    return any(of_one_switch) or (claim.compare is not None and not claim.compare.b.switches)


def _compared(claim: Claim, measured: RunFigures, labels: Sequence[str]) -> PairsFound:
    shapes: tuple[tuple[Any, Callable[[Any], PairsFound]], ...] = (
        (claim.compare, lambda shape: comparing.compare(claim, shape, measured, labels)),
        (claim.trend, lambda shape: comparing.trend(claim, shape, measured, labels)),
        (claim.line_rate, lambda shape: single.line_rate(claim, shape, measured, labels)),
        (claim.no_leader, lambda shape: across.no_leader(claim, shape, measured, labels)),
        (claim.minimum, lambda shape: across.minimum(claim, shape, measured, labels)),
        (claim.spread, lambda shape: across.spread(claim, shape, measured, labels)),
        (claim.predicted, lambda shape: across.predicted(claim, shape, measured, labels)),
        (claim.share, lambda shape: single.share(claim, shape, measured)),
        (claim.chain_below_parts, lambda _: single.chain_below_parts(claim, measured)),
        (claim.far_cores, lambda shape: single.far_cores(claim, shape, measured)),
        (claim.clocks, lambda shape: single.clocks(claim, shape, measured, emulated=False)),
    )
    return next(make(shape) for shape, make in shapes if shape is not None)


def _judgement(
    claim: Claim, measured: RunFigures, found: PairsFound, beside: Sequence[Compared], share: float = 1.0
) -> Judgement:
    missing = tuple(dict.fromkeys(found.missing))
    compared = corrected(found.compared, share)
    if not compared:
        words = _missing_words(claim, measured, missing)
        return _untestable(claim, "not covered by this run", words, beside, missing, found.absent)
    if claim.share is not None and not claim.share.everywhere:
        outcome = _somewhere(compared)
    else:
        outcome = _everywhere(compared, least=1.0 if claim.no_leader else 0.5)
    why: Why = "insufficient data" if outcome is ClaimOutcome.CANNOT_BE_TESTED else ""
    evidence = _evidence(compared, beside)
    return Judgement(claim, outcome, why, evidence, tuple(compared), tuple(beside), missing)


def _everywhere(compared: Sequence[Compared], least: float) -> ClaimOutcome:
    """Return confirmed if no comparison contradicts the claim and all, or more than the share ``least``, support it."""
    held = [it.holds for it in compared]
    if False in held:
        return ClaimOutcome.NOT_CONFIRMED
    support = held.count(True)
    return (
        ClaimOutcome.CONFIRMED if support == len(held) or support > least * len(held) else ClaimOutcome.CANNOT_BE_TESTED
    )


def _somewhere(compared: Sequence[Compared]) -> ClaimOutcome:
    """Return confirmed if one comparison supports the claim; not confirmed only if all contradict it."""
    held = {it.holds for it in compared}
    if True in held:
        return ClaimOutcome.CONFIRMED
    return ClaimOutcome.NOT_CONFIRMED if held == {False} else ClaimOutcome.CANNOT_BE_TESTED


def _ranked(claim: Claim, measured: RunFigures, ranked: Ranked, decide: Callable[[Ranked], bool | None]) -> Judgement:
    """Return the judgement on the ranks of switches, by ``decide`` where there are enough of them."""
    missing = tuple(too_few(ranked))
    if missing:
        absent, words = measured.absent(ranked_switches(claim)), _missing_words(claim, measured, missing)
        return _untestable(claim, "not covered by this run", words, (), missing, absent)
    return _by_pairs(claim, ranked, decide(ranked))


def _by_pairs(claim: Claim, ranked: Ranked, holds: bool | None) -> Judgement:
    outcome = {True: ClaimOutcome.CONFIRMED, False: ClaimOutcome.NOT_CONFIRMED, None: ClaimOutcome.CANNOT_BE_TESTED}[
        holds
    ]
    open_why: Why = "runs disagree" if ranked.disputed else "insufficient data"
    evidence = f"{ranked.words}. {_evidence(ranked.compared, ())}"
    return Judgement(claim, outcome, open_why if holds is None else "", evidence, ranked.compared)


def _no_switch(claim: Claim, measured: RunFigures, beside: Sequence[Compared]) -> Judgement:
    named = ", ".join(claim.switches)
    missing = (f"a switch that the claim is about ({named})" if named else "a switch that is not simulated",)
    words = _missing_words(claim, measured, missing)
    return _untestable(claim, "not covered by this run", words, beside, missing, claim.switches)


def _untestable(
    claim: Claim,
    why: Why,
    words: str,
    beside: Sequence[Compared] = (),
    missing: tuple[str, ...] = (),
    absent: Sequence[str] = (),
) -> Judgement:
    evidence = f"{words}. Beside it: {_joined(beside)}" if beside else words
    return Judgement(claim, ClaimOutcome.CANNOT_BE_TESTED, why, evidence, (), tuple(beside), missing, tuple(absent))


def _missing_words(claim: Claim, measured: RunFigures, missing: Sequence[str]) -> str:
    """Return what is missing in words, with the reason of the plan if it left that table or figure out."""
    more = f" and {len(missing) - MAX_MISSING} more" if len(missing) > MAX_MISSING else ""
    reasons = _left_out(claim, measured.derived.run.header)
    return f"missing: {'; '.join(missing[:MAX_MISSING])}{more}" + "".join(f"; left out: {reason}" for reason in reasons)


def _left_out(claim: Claim, header: RunHeader) -> list[str]:
    """Return the reasons of the plan for leaving out a table or figure of the claim: ``Table 4``, ``conext19 Table 4``.

    An entry that names no paper belongs to the paper of the claim, if the plan has no other.
    """
    places = claim.where.split(", ")
    wanted = {f"{claim.paper} {place}" for place in places}
    if header.papers == (claim.paper,):
        wanted.update(places)
    return [f"{entry.what}: {entry.reason}" for entry in header.left_out if entry.what in wanted]


def _evidence(compared: Sequence[Compared], beside: Sequence[Compared]) -> str:
    """Return the evidence in words: how many comparisons support the claim, then those that contradict it."""
    held = [it.holds for it in compared]
    counted = (("holds", held.count(True)), ("does not hold", held.count(False)), ("inconclusive", held.count(None)))
    count = ", ".join(f"{words} in {n}" for words, n in counted if n)
    lead = f"{count} of {len(held)}. " if len(held) > 1 else ""
    tail = f" Beside it: {_joined(beside)}" if beside else ""
    return f"{lead}{_joined(compared)}.{tail}"


def _joined(compared: Sequence[Compared]) -> str:
    """Return the comparisons in words: those that contradict the claim first, inconclusive ones last."""
    rank = {False: 0, True: 1, None: 2}
    ordered = sorted(compared, key=lambda it: rank[it.holds])
    more = f"; and {len(ordered) - MAX_EVIDENCE} more" if len(ordered) > MAX_EVIDENCE else ""
    return "; ".join(all_words(ordered[:MAX_EVIDENCE])) + more
