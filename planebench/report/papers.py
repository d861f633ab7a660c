# SPDX-License-Identifier: BSD-3-Clause
"""Published results: claims with their outcome, and published tables beside this run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from planebench.analysis.compare import Derived
from planebench.model.words import NOTHING
from planebench.papers.claims import Claim, all_papers
from planebench.papers.judge import Conclusion, judge_all, shown
from planebench.papers.measured import RunFigures
from planebench.papers.shape import Shape, shapes
from planebench.papers.told import ClaimOutcome, Compared, Judgement
from planebench.report.tables import PageColumn, PageTable, page_table


@dataclass(frozen=True, slots=True)
class PapersFound:
    """What a run has to say of the papers: the number of claims by outcome, the claims by paper, and tables."""

    counts: str
    claims: tuple[PageTable, ...]
    tables: tuple[PageTable, ...]


def papers_found(derived: Derived) -> PapersFound:
    """Return the claims that a run tests with their evidence, and the shapes."""
    found = RunFigures(derived)
    judgements = shown(derived.run.header, judge_all(found))
    shaped = shown_shapes(found)
    columns = (
        PageColumn("outcome", lambda it: it.words, "strong"),
        PageColumn("claim", lambda it: it.claim.id, "text"),
        PageColumn("what it says", lambda it: f"{it.claim.sentence} ({it.claim.where})", "text"),
        PageColumn("evidence", lambda it: it.evidence, "text"),
    )
    return PapersFound(
        counts(judgements) if judgements else "",
        tuple(
            page_table(f"{name}: {all_papers()[name]}", columns, [it for it in judgements if it.claim.paper == name])
            for name in dict.fromkeys(it.claim.paper for it in judgements)
        ),
        tuple(map(shape_table, shaped)),
    )


def counts(judgements: Sequence[Judgement | Conclusion]) -> str:
    """Return the number of claims with each outcome, in words."""
    number = Counter(it.outcome for it in judgements)
    return ", ".join(f"{number[outcome]} {outcome.value}" for outcome in ClaimOutcome)


def _claim_record(claim: Claim) -> dict[str, Any]:
    return {"id": claim.id, "paper": claim.paper, "where": claim.where, "claim": claim.sentence}


def record(judgement: Judgement) -> dict[str, Any]:
    """Return a judgement as plain values for JSON."""
    claim = judgement.claim
    return {
        **_claim_record(claim),
        "switches": list(claim.switches),
        "outcome": judgement.outcome.value,
        "why": judgement.why,
        "evidence": judgement.evidence,
        "missing": list(judgement.missing),
        "compared": [_compared(it) for it in judgement.compared],
        "beside": [_compared(it) for it in judgement.beside],
    }


def conclusion_record(conclusion: Conclusion) -> dict[str, Any]:
    """Return a conclusion as plain values for JSON: its evidence, and the judgement of each run that it rests on."""
    claim = conclusion.claim
    return {
        **_claim_record(claim),
        "outcome": conclusion.outcome.value,
        "why": conclusion.why,
        "absent": list(conclusion.absent),
        "evidence": conclusion.evidence,
        "runs": [{"run": name, **record(judged)} for name, judged in conclusion.judgements],
    }


def shape_table(table: Shape) -> PageTable:
    """Return a row per switch and a column per cell: ours, and the paper's below it."""
    entries = {(entry.switch, entry.cell): entry for entry in table.entries}

    def column(cell: str) -> PageColumn:
        def both(switch: str) -> tuple[str, str]:
            entry = entries.get((switch, cell))
            ratios = (None, None) if entry is None else (entry.ours, entry.paper)
            ours, theirs = (NOTHING if ratio is None else ratio.words for ratio in ratios)
            return ours, "" if entry is None else theirs

        return PageColumn(cell, both, "two")

    columns = (PageColumn("switch", str, "switch"), *map(column, table.cells))
    note = f"{table.note} Above: this run. Below: published."
    return page_table(f"{table.paper}: {table.title}", columns, table.switches, note)


def _compared(it: Compared) -> dict[str, Any]:
    return {
        "what": it.what,
        "words": it.words,
        "holds": it.holds,
        "ratio": it.told.ratio,
        "low": it.told.low,
        "high": it.told.high,
        "paper_ratio": it.paper,
        "why": it.told.why,
    }


def shown_shapes(found: RunFigures) -> tuple[Shape, ...]:
    """Return the tables of the papers that a run reproduces; else those with two switches in paper and run."""
    tables, papers = shapes(found), found.derived.run.header.papers
    if papers:
        return tuple(table for table in tables if table.paper in papers)
    return tuple(it for it in tables if len({entry.switch for entry in it.entries if entry.ours and entry.paper}) > 1)
