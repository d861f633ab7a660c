# SPDX-License-Identifier: BSD-3-Clause
"""Losses in sentences, for page and terminal."""

from __future__ import annotations

from collections.abc import Iterable

from planebench.analysis.ledger import describe
from planebench.model.results import Ledger, Result
from planebench.model.words import count, percent, result_words

NO_RATE = " (no trial has a rate; the counts are exact)"


def unexplained_sentences(results: Iterable[Result]) -> list[str]:
    """Return the points with losses that no counter explains although the switch counts its drops."""
    return [
        f"{result_words(r)}: {describe(r.ledger)}"
        for r in results
        if r.ledger is not None and r.ledger.counted and r.ledger.unexplained_packets
    ]


def policy_sentences(results: Iterable[Result]) -> list[str]:
    """Return the points where network functions dropped frames by policy, which are no losses of the switch.

    Counts are exact in trials without a rate, too; the sentence says where no trial has one.
    """
    found = []
    for r in results:
        losses = [loss for loss in r.ledger.losses if loss.policy] if r.ledger is not None else []
        if r.ledger is not None and losses:
            share = percent(sum(loss.packets for loss in losses) / max(r.ledger.offered_packets, 1))
            causes = ", ".join(f"{count(loss.packets)} {loss.cause}" for loss in losses)
            found.append(
                f"{result_words(r)}: {share} of the frames were dropped by network functions (policy), not "
                f"by the switch: {causes}{'' if r.throughput_trials_pps else NO_RATE}"
            )
    return found


def unexplained_words(ledger: Ledger) -> str:
    """Return the number of unexplained losses, with a remark if the switch does not count its drops."""
    number = count(ledger.unexplained_packets)
    return (
        number
        if ledger.counted or not ledger.unexplained_packets
        else f"{number} (some switches report no drop counters)"
    )
