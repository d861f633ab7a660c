# SPDX-License-Identifier: BSD-3-Clause
"""Trials, for the page: verdicts by switch, losses, and why some did not take place."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import itemgetter

from planebench.analysis.ledger import describe
from planebench.analysis.metrics.results import DROPS, RESULT, OfResult
from planebench.model.header import Run
from planebench.model.reasons import REMARKS, ReasonCode
from planebench.model.records import Trial, VerdictKind
from planebench.model.results import Ledger, Result
from planebench.model.words import (
    NOTHING,
    VERDICT_WORDS,
    count,
    percent,
    point_name,
    reasons,
)
from planebench.report.tables import PageColumn, PageTable, number, on_page, page_table, point_columns

# Why trials did not take place.

_DIGITS = re.compile(r"\d+")


@dataclass(frozen=True, slots=True)
class TrialCause:
    """Trials of one verdict and cause. ``switches``: labels and trials."""

    kind: VerdictKind
    text: str
    trials: int
    switches: tuple[tuple[str, int], ...]


def causes(trials: Sequence[Trial]) -> tuple[TrialCause, ...]:
    """Return trials by verdict and cause, most frequent first; a trial with two causes is in both.

    Reasons of one cause have their code in common, errors their words, too. Remarks, as on frames that a firewall
    dropped, are no causes.
    """
    found: dict[tuple[VerdictKind, ReasonCode, str], list[tuple[str, str]]] = {}
    for trial in trials:
        texts = {}
        for it in trial.verdict.reasons:
            if it.code not in REMARKS:
                words = _DIGITS.sub("", it.text) if it.code is ReasonCode.ERROR else ""
                texts[trial.verdict.kind, it.code, words] = str(it)
        for key, text in texts.items():
            found.setdefault(key, []).append((trial.point.switch, text))
    groups = []
    for (kind, *_), of in found.items():
        example = "e.g. " * (len({text for _, text in of}) > 1) + of[0][1]
        groups.append(TrialCause(kind, example, len(of), tuple(Counter(it for it, _ in of).most_common())))
    return tuple(sorted(groups, key=lambda group: -group.trials))


def verdict_table(run: Run) -> PageTable:
    """Return the number of trials with each verdict by switch, in the order of VerdictKind, without warm-ups."""
    trials = [t for t in run.trials if t.role != "warmup"]
    rows = []
    for label in run.switch_labels if trials else ():
        kinds = Counter(t.verdict.kind.value for t in trials if t.point.switch == label)
        bands = Counter(t.band or "unknown" for t in trials if t.point.switch == label)
        by_band = ", ".join(f"{n} {band}" for band, n in bands.most_common())
        numbers = {kind.value: kinds[kind.value] for kind in VerdictKind}
        rows.append({"switch": label, **numbers, "trials": kinds.total(), "core group": by_band})
    present = [kind for kind in VerdictKind if any(row[kind.value] for row in rows)]
    columns = (
        PageColumn("switch", itemgetter("switch"), "switch"),
        *(number(name, itemgetter(name)) for name in (*(kind.value for kind in present), "trials")),
        PageColumn("core group", itemgetter("core group")),
    )
    note = " ".join(f"{kind.value}: {VERDICT_WORDS[kind]}." for kind in present)
    return page_table("Trials by verdict", columns, rows, note)


def cause_table(invalid: Sequence[Trial]) -> PageTable:
    """Return why trials did not take place, most frequent cause first."""
    columns = (
        PageColumn("trials", lambda it: it.trials, "strong"),
        PageColumn("verdict and cause", lambda it: (it.kind.value, (reasons((it.text,), 300),)), "verdict"),
        PageColumn("by switch", lambda it: ", ".join(f"{n} {label}" for label, n in it.switches), "text"),
    )
    note = "A trial with two causes is listed under both."
    return page_table("Trials that did not take place", columns, causes(invalid), note)


# Losses in sentences, for page and terminal.

NO_RATE = " (no trial has a rate; the counts are exact)"


def unexplained_sentences(results: Iterable[Result]) -> list[str]:
    """Return the points with losses that no counter explains although the switch counts its drops."""
    return [
        f"{point_name(r.point)}: {describe(r.ledger)}"
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
                f"{point_name(r.point)}: {share} of the frames were dropped by network functions (policy), not "
                f"by the switch: {causes}{'' if r.throughput_trials_pps else NO_RATE}"
            )
    return found


def ledger_table(run: Run, results: Sequence[Result]) -> PageTable:
    """Return where the frames of the saturating trials went: forwarded, lost by place and cause, unexplained.

    Those of the trials that count; of a point without any, those whose counts are exact.
    """
    items = [OfResult(run, result) for result in results if result.ledger is not None]
    columns = (
        *point_columns(lambda it: it.result.point),
        number("offered", lambda it: count(it.result.ledger.offered_packets)),
        number("forwarded", lambda it: count(it.result.ledger.forwarded_packets)),
        number("lost", lambda it: count(it.result.ledger.lost_packets)),
        *on_page(RESULT, items, DROPS),
        PageColumn(
            "lost where and why",
            lambda it: (
                "; ".join(f"{count(loss.packets)} {loss.place}: {loss.cause}" for loss in it.result.ledger.losses)
                or NOTHING
            ),
            "text",
        ),
        PageColumn("unexplained", lambda it: _unexplained(it.result.ledger)),
    )
    return page_table("Loss accounting of the saturating trials, in frames", columns, items)


def _unexplained(ledger: Ledger) -> str:
    uncounted = " (some switches report no drop counters)" * (not ledger.counted)
    return f"{'⚠ ' * bool(ledger.unexplained_packets)}{count(ledger.unexplained_packets)}{uncounted}"
