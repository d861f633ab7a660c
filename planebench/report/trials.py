# SPDX-License-Identifier: BSD-3-Clause
"""Trials, for the page: verdicts by switch, why some did not take place, and all trials with their evidence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from planebench.model.header import Run
from planebench.model.records import Trial, VerdictKind
from planebench.model.time_had import stood_in
from planebench.model.words import NOTHING, load_words, mpps, percent, point_words, reasons
from planebench.report.evidence import causes, evidence_text
from planebench.report.page.table import PageColumn, PageTable, page_table, verdict_cell

Record = dict[str, Any]

MAX_TRIALS = 1000
"""Rows of the table of all trials."""

_COLUMNS = (
    PageColumn("#", lambda it: it.index, "number"),
    PageColumn("switch", lambda it: it.point.switch, "switch"),
    PageColumn("point", lambda it: point_words(it.point), points=lambda it: (it.point,)),
    PageColumn("load", lambda it: _load(it)),
    PageColumn("Mpps", lambda it: NOTHING if _no_figure(it) else mpps(it.throughput_pps), "number"),
    PageColumn("host took", lambda it: percent(1 - stood_in(it).had), "number"),
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
    """Return all trials but warm-ups, with verdict and evidence; pale where it has no figure."""
    trials = [t for t in run.trials if t.role != "warmup"]
    return page_table(
        "All trials",
        (*_COLUMNS, PageColumn("verdict", lambda it: verdict_cell(it.verdict), "verdict"), _EVIDENCE),
        trials,
        out=_no_figure,
        max_rows=MAX_TRIALS,
    )


def _no_figure(trial: Trial) -> bool:
    return trial.verdict.kind in (VerdictKind.FUNCTIONAL, VerdictKind.INVALID)


def _load(trial: Trial) -> str:
    at_maximum = trial.load.pps_per_direction is None
    load = "maximum offered load" if at_maximum else load_words(trial.load.label)
    return f"{trial.search}: {load}" if trial.search else load
