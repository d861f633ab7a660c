# SPDX-License-Identifier: BSD-3-Clause
"""The section "Against the papers": claims with their outcome and evidence, the papers' tables beside ours as shape."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from markupsafe import Markup

from planebench.model.words import NOTHING, printable
from planebench.papers import Compared, Judgement, Outcome, all_papers, judge_all, shown
from planebench.papers.measured import Measured
from planebench.papers.shape import Entry, Shape
from planebench.report.figure import Figure
from planebench.report.images import inline_svg
from planebench.report.page_table import Head, PageTable, Row, heads
from planebench.report.papers_figures import paper_charts, shown_shapes
from planebench.stats.derived import Derived

OUTCOMES: tuple[tuple[Outcome, str], ...] = (
    (Outcome.CONFIRMED, "yes"),
    (Outcome.NOT_CONFIRMED, "no"),
    (Outcome.CANNOT_BE_TESTED, "open"),
)
"""In the order in which they are counted, and the class of their mark in the page."""


def papers_page(derived: Derived) -> dict[str, Any] | None:
    """The section of the page: counts, claims by paper, tables. None where there is nothing to show."""
    found = Measured(derived)
    judgements = shown(derived.run.header, judge_all(found))
    tables = shown_shapes(derived.run, found)
    if not judgements and not tables:
        return None
    return {
        "counts": counts(judgements),
        "papers": [_paper(name, judgements) for name in dict.fromkeys(it.claim.paper for it in judgements)],
        "tables": [shape_table(table) for table in tables],
        "panels": [_panel(figure) for figure in paper_charts(found)],
        "whole": bool(derived.run.header.papers),
    }


def counts(judgements: Sequence[Judgement]) -> list[dict[str, Any]]:
    """How many claims have each outcome."""
    number = Counter(it.outcome for it in judgements)
    return [{"words": outcome.value, "mark": mark, "number": number[outcome]} for outcome, mark in OUTCOMES]


def paper_records(derived: Derived) -> list[dict[str, Any]]:
    """Return the claims that the page shows, as plain values."""
    return [record(it) for it in shown(derived.run.header, judge_all(Measured(derived)))]


def record(judgement: Judgement) -> dict[str, Any]:
    """One judgement as plain values: for JSON."""
    claim = judgement.claim
    return {
        "id": claim.id,
        "paper": claim.paper,
        "where": claim.where,
        "claim": claim.sentence,
        "switches": list(claim.switches),
        "outcome": judgement.outcome.value,
        "why": judgement.why,
        "evidence": judgement.evidence,
        "missing": list(judgement.missing),
        "compared": [_compared(it) for it in judgement.compared],
        "beside": [_compared(it) for it in judgement.beside],
    }


def shape_table(table: Shape) -> PageTable:
    """A row a switch, a column a cell: ours, and the paper's below it."""
    entries = {(entry.switch, entry.cell): entry for entry in table.entries}
    rows = tuple(
        Row((printable(switch), *(_two(entries.get((switch, cell))) for cell in table.cells)))
        for switch in table.switches
    )
    columns = (Head("switch", "switch"), *heads(table.cells, "two"))
    return PageTable(f"{table.paper}: {table.title}", columns, rows, f"{table.note} Above: ours. Below: the paper's.")


def _paper(name: str, judgements: Sequence[Judgement]) -> dict[str, Any]:
    return {
        "name": name,
        "title": all_papers()[name].title,
        "claims": [_claim(it) for it in judgements if it.claim.paper == name],
    }


def _claim(judgement: Judgement) -> dict[str, str]:
    return {
        "id": judgement.claim.id,
        "where": judgement.claim.where,
        "says": judgement.claim.sentence,
        "mark": dict(OUTCOMES)[judgement.outcome],
        "words": judgement.words,
        "evidence": judgement.evidence,
    }


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


def _two(entry: Entry | None) -> tuple[str, str]:
    if entry is None:
        return NOTHING, ""
    return entry.ours.words if entry.ours else NOTHING, entry.paper.words if entry.paper else NOTHING


def _panel(figure: Figure) -> dict[str, Any]:
    return {"key": figure.key, "title": figure.title, "svg": Markup(inline_svg(figure.chart, figure.title, figure.key))}
