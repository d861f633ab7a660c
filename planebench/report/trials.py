# SPDX-License-Identifier: BSD-3-Clause
"""Trials, for the page: verdicts by switch, evidence, losses, and why some did not take place."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter

from planebench.analysis.ledger import describe
from planebench.analysis.metrics.results import DROPS, RESULT, OfResult
from planebench.model.header import Run
from planebench.model.reasons import REMARKS, ReasonCode
from planebench.model.records import CoreDistance, Trial, VerdictKind
from planebench.model.results import Ledger, Loss, Result
from planebench.model.time_had import stood_in
from planebench.model.words import (
    NOTHING,
    VERDICT_WORDS,
    count,
    load_words,
    mpps,
    percent,
    point_words,
    reasons,
    result_words,
)
from planebench.report.tables import PageColumn, PageTable, number, on_page, page_table, point_columns, verdict_cell

# The evidence for the verdict of a trial in one line, and why trials did not take place.

_DIGITS = re.compile(r"\d+")

MOST_INTERRUPTS = 4
"""Kinds of interrupts that are named, the most frequent ones."""
WAITED = 0.01
"""The share of a trial from which on the wait of each thread is told."""
SLOWER = 0.05
"""A core that adds by less than this more slowly than another one is as fast."""


@dataclass(frozen=True, slots=True)
class TrialCause:
    """Trials of one verdict and cause. ``switches``: labels and trials."""

    kind: VerdictKind
    text: str
    trials: int
    switches: tuple[tuple[str, int], ...]


def evidence_text(trial: Trial) -> str:
    """Return one line: what was not sent, waits of polling threads, core latency, start; and what else is not zero."""
    return "; ".join(_parts(trial))


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


def _parts(trial: Trial) -> Iterator[str]:
    duration_ns = trial.offered_duration_ns or trial.intended_duration_ns
    evidence = trial.evidence
    intended, attempted, unsent, refused = (
        sum(getattr(d, f"{name}_packets") for d in trial.directions)
        for name in ("intended", "attempted", "unsent", "refused")
    )
    if unsent:
        yield f"unsent {percent(unsent / intended) if intended else count(unsent)}"
    if refused:
        yield f"ring full {percent(refused / attempted)}"
    longest_ns = max((it.wait_ns for it in evidence.threads), default=0)
    if evidence.threads and longest_ns < WAITED * duration_ns:
        yield f"pollers waited {percent(longest_ns / duration_ns)} at most"
    for it in evidence.threads if longest_ns >= WAITED * duration_ns else ():
        waited = percent(it.wait_ns / duration_ns) if duration_ns else _ms(it.wait_ns)
        yield f"{it.owner} {it.thread} waited {waited}, preempted {count(it.involuntary_switches)} times"
    if evidence.poll_gaps:
        gaps = f"{count(evidence.poll_gaps)} poll gaps over {evidence.poll_gap_threshold_ns / 1e3:g} µs"
        yield f"{gaps}, {_ms(evidence.poll_gap_sum_ns)} in sum"
    if evidence.steal_ns:
        yield f"steal {_ms(evidence.steal_ns)}"
    if evidence.interrupts and longest_ns >= WAITED * duration_ns:
        most = Counter(evidence.interrupts).most_common(MOST_INTERRUPTS)
        yield f"interrupts {', '.join(f'{name} {count(number)}' for name, number in most)}"
    if evidence.smis is not None:
        yield f"{count(evidence.smis)} system management interrupts"
    before, after = evidence.distance_before, evidence.distance_after
    if before and after and before.band == after.band:
        yield f"core-to-core latency {before.median_ns:.0f} → {after.median_ns:.0f} ns"
    else:
        yield f"core-to-core latency {_distance(before)} → {_distance(after)}"
    speeds = [it.additions_per_cycle for it in (before, after) if it is not None and it.additions_per_cycle]
    if speeds and min(map(min, speeds)) < (1 - SLOWER) * max(map(max, speeds)):
        words = " → ".join(" and ".join(f"{speed:.2f}" for speed in both) for both in speeds)
        yield f"additions per cycle, switch and tester {words}"
    if evidence.shared_cpu:
        yield "switch and tester on one CPU"
    for packets, words in (
        (evidence.foreign_packets, "that the tester had not sent"),
        (evidence.stale_packets, "of another trial"),
    ):
        if packets:
            yield f"{count(packets)} frames {words}"
    yield f"start {trial.start}"


def _distance(distance: CoreDistance | None) -> str:
    return "unknown" if distance is None else f"{distance.median_ns:.0f} ns ({distance.band})"


def _ms(value_ns: int) -> str:
    return "0" if value_ns == 0 else f"{value_ns / 1e6:.3g} ms"


MAX_TRIALS = 150
"""Rows of the table of trials: half a page of 1 MB would be evidence of trials to which nothing happened."""

_COLUMNS = (
    PageColumn("#", lambda it: it.index, "number"),
    PageColumn("switch", lambda it: it.point.switch),
    PageColumn("point", lambda it: point_words(it.point), points=lambda it: (it.point,)),
    PageColumn("load", lambda it: _load(it)),
    PageColumn("Mpps", lambda it: NOTHING if _no_figure(it) else mpps(it.throughput_pps), "number"),
    PageColumn("host took", lambda it: percent(1 - stood_in(it).had), "number"),
    PageColumn("core group", lambda it: it.band or NOTHING),
)
_VERDICT = PageColumn(  # remarks on a valid trial are in its evidence
    "verdict", lambda it: ("valid", ()) if it.verdict.kind is VerdictKind.VALID else verdict_cell(it.verdict), "verdict"
)
_EVIDENCE = PageColumn("evidence", evidence_text, "text")


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


def trial_table(run: Run) -> PageTable:
    """Return all trials but warm-ups, with verdict and evidence; pale where it has no figure.

    Of many those are left out from which the host took least.
    """
    trials = [t for t in run.trials if t.role != "warmup"]
    if len(trials) > MAX_TRIALS:
        trials.sort(key=lambda it: (it.verdict.kind is not VerdictKind.INVALID, stood_in(it).had))
    return page_table(
        "All trials",
        (*_COLUMNS, _VERDICT, _EVIDENCE),
        trials,
        out=_no_figure,
        max_rows=MAX_TRIALS,
    )


def _no_figure(trial: Trial) -> bool:
    return trial.verdict.kind in (VerdictKind.FUNCTIONAL, VerdictKind.INVALID)


def _load(trial: Trial) -> str:
    at_maximum = trial.load.pps_per_direction is None
    load = "saturating" if at_maximum else load_words(trial.load.label)
    return f"{trial.search}: {load}" if trial.search else load


# Losses in sentences, for page and terminal.

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
        PageColumn("lost where and why", lambda it: "; ".join(map(_loss, it.result.ledger.losses)) or NOTHING, "text"),
        PageColumn("unexplained", lambda it: _unexplained(it.result.ledger)),
    )
    return page_table("Loss accounting of the saturating trials, in frames", columns, items)


def _loss(loss: Loss) -> str:
    return f"{count(loss.packets)} {loss.place}: {loss.cause}"


def _unexplained(ledger: Ledger) -> str:
    uncounted = " (some switches report no drop counters)" * (not ledger.counted)
    return f"{'⚠ ' * bool(ledger.unexplained_packets)}{count(ledger.unexplained_packets)}{uncounted}"
