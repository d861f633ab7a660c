# SPDX-License-Identifier: BSD-3-Clause
"""What counted, for the page: verdicts by switch, causes, rejected trials and all trials with their evidence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from planebench.model.records import Trial, VerdictKind
from planebench.model.run import Run
from planebench.model.words import NOTHING, load_words, mpps, point_words, reasons
from planebench.report.evidence import causes, evidence_text, why_rejected
from planebench.report.page_table import Head, PageTable, Row, verdict_cell

Record = dict[str, Any]

MAX_REJECTED = 300
"""Rows of the table of rejected trials; the rest is only counted."""

MAX_TRIALS = 1000
"""Rows of the table of all trials."""

_HEADS = (
    Head("#", "number"),
    Head("switch", "switch"),
    Head("point"),
    Head("load"),
    Head("Mpps", "number"),
    Head("core group"),
    Head("verdict", "verdict"),
    Head("evidence", "text"),
)


def verdict_counts(run: Run) -> list[Record]:
    """How many trials got which verdict, by switch, in the order of VerdictKind; warm-ups are left out."""
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
    """Why trials did not count, most frequent cause first."""
    rows = tuple(
        Row(
            (
                group.trials,
                (group.kind.value, (reasons((group.text,), 300),)),
                ", ".join(f"{n} {label}" for label, n in group.switches),
            )
        )
        for group in causes(rejected)
    )
    heads = (Head("trials", "strong"), Head("verdict and cause", "verdict"), Head("by switch", "text"))
    note = "N stands for a number that differs between trials. A trial with two causes is listed under both."
    return PageTable("Reasons for rejected trials", heads, rows, note)


def rejected_table(rejected: Sequence[Trial]) -> PageTable:
    """Every trial that no result rests on, in the order of the run, why, and its evidence."""
    rows = tuple(
        Row((*_cells(t), (t.verdict.kind.value, why_rejected(t)), evidence_text(t))) for t in rejected[:MAX_REJECTED]
    )
    return PageTable("", _HEADS, rows, left_out=max(0, len(rejected) - MAX_REJECTED))


def trial_table(run: Run, rejected: Sequence[Trial]) -> PageTable:
    """All trials but warm-ups, with verdict and evidence; pale where no result rests on it."""
    trials = [t for t in run.trials if t.role != "warmup"]
    out = {t.index for t in rejected}
    rows = tuple(
        Row((*_cells(t), verdict_cell(t.verdict), evidence_text(t)), t.index in out or _no_figure(t))
        for t in trials[:MAX_TRIALS]
    )
    return PageTable("", _HEADS, rows, left_out=max(0, len(trials) - MAX_TRIALS))


def _no_figure(trial: Trial) -> bool:
    return trial.verdict.kind is VerdictKind.FUNCTIONAL


def _cells(trial: Trial) -> tuple[Any, ...]:
    flat_out = trial.load.pps_per_direction is None
    load = "maximum offered load" if flat_out else load_words(trial.load.label)
    searched = f"{trial.search}: {load}" if trial.search else load
    return (
        trial.index,
        trial.point.switch,
        point_words(trial.point),
        searched,
        NOTHING if _no_figure(trial) else mpps(trial.throughput_pps),
        trial.band or NOTHING,
    )
