# SPDX-License-Identifier: BSD-3-Clause
"""Accepted and rejected trials, for the page: verdicts by switch, causes, and all trials with their evidence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from planebench.model.records import Trial, VerdictKind
from planebench.model.run import Run
from planebench.model.words import NOTHING, load_words, mpps, point_words, reasons
from planebench.report.evidence import causes, evidence_text, why_rejected
from planebench.report.page.table import PageColumn, PageTable, page_table, verdict_cell

Record = dict[str, Any]

MAX_REJECTED = 300
"""Rows of the table of rejected trials; the rest is only counted."""

MAX_TRIALS = 1000
"""Rows of the table of all trials."""

_COLUMNS = (
    PageColumn("#", lambda it: it.index, "number"),
    PageColumn("switch", lambda it: it.point.switch, "switch"),
    PageColumn("point", lambda it: point_words(it.point), points=lambda it: (it.point,)),
    PageColumn("load", lambda it: _load(it)),
    PageColumn("Mpps", lambda it: NOTHING if _no_figure(it) else mpps(it.throughput_pps), "number"),
    PageColumn("core group", lambda it: it.band or NOTHING),
)
_EVIDENCE = PageColumn("evidence", evidence_text, "text")


def verdict_counts(run: Run) -> list[Record]:
    """Return the number of trials with each verdict by switch, in the order of VerdictKind, without warm-ups."""
    trials = [t for t in run.trials if t.role != "warmup"]
    rows = []
    for label in run.switch_labels:
        kinds = Counter(t.verdict.kind for t in trials if t.point.switch == label)
        bands = Counter(t.band or "unknown" for t in trials if t.point.switch == label)
        by_band = ", ".join(f"{n} {band}" for band, n in bands.most_common())
        rows.append(
            {"switch": label, "kinds": [kinds[k] for k in VerdictKind], "total": kinds.total(), "bands": by_band}
        )
    return rows


def cause_table(rejected: Sequence[Trial]) -> PageTable:
    """Return why trials were rejected, most frequent cause first."""
    columns = (
        PageColumn("trials", lambda it: it.trials, "strong"),
        PageColumn("verdict and cause", lambda it: (it.kind.value, (reasons((it.text,), 300),)), "verdict"),
        PageColumn("by switch", lambda it: ", ".join(f"{n} {label}" for label, n in it.switches), "text"),
    )
    note = "A trial with two causes is listed under both."
    return page_table("Reasons for rejected trials", columns, causes(rejected), note)


def rejected_table(rejected: Sequence[Trial]) -> PageTable:
    """Return every trial that no result rests on, in the order of the run, why, and its evidence."""
    verdict = PageColumn("verdict", lambda it: (it.verdict.kind.value, why_rejected(it)), "verdict")
    return page_table("Rejected trials", (*_COLUMNS, verdict, _EVIDENCE), rejected, max_rows=MAX_REJECTED)


def trial_table(run: Run, rejected: Sequence[Trial]) -> PageTable:
    """Return all trials but warm-ups, with verdict and evidence; pale where no result rests on it."""
    trials = [t for t in run.trials if t.role != "warmup"]
    unused = {t.index for t in rejected}
    return page_table(
        "All trials",
        (*_COLUMNS, PageColumn("verdict", lambda it: verdict_cell(it.verdict), "verdict"), _EVIDENCE),
        trials,
        out=lambda it: it.index in unused or _no_figure(it),
        max_rows=MAX_TRIALS,
    )


def _no_figure(trial: Trial) -> bool:
    return trial.verdict.kind is VerdictKind.FUNCTIONAL


def _load(trial: Trial) -> str:
    at_maximum = trial.load.pps_per_direction is None
    load = "maximum offered load" if at_maximum else load_words(trial.load.label)
    return f"{trial.search}: {load}" if trial.search else load
