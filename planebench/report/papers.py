# SPDX-License-Identifier: BSD-3-Clause
"""Published results: claims with their outcome, published tables beside this run, and tables in their format."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

from planebench.analysis.compare import Derived
from planebench.analysis.counting import latency_counts
from planebench.model.results import LatencySummary, Result
from planebench.model.words import ARROWS, NOTHING, frames, load_words, printable, throughput, us
from planebench.papers.claims import Claim, all_papers
from planebench.papers.judge import Conclusion, judge_all, shown
from planebench.papers.measured import RunFigures
from planebench.papers.shape import Ratio, Shape, ShapeEntry, shapes
from planebench.papers.told import ClaimOutcome, Compared, Judgement
from planebench.report.figure import ChartRow, Figure, tip
from planebench.report.page.table import PageColumn, PageTable, page_table
from planebench.report.published import published_tables

OUTCOMES: tuple[tuple[ClaimOutcome, str], ...] = (
    (ClaimOutcome.CONFIRMED, "yes"),
    (ClaimOutcome.NOT_CONFIRMED, "no"),
    (ClaimOutcome.CANNOT_BE_TESTED, "open"),
)
"""The outcomes in the order of the page, with the class of their mark."""


def papers_page(derived: Derived) -> dict[str, Any] | None:
    """Return the content of the section: counts, claims by paper, tables. None if there is nothing to show."""
    found = RunFigures(derived)
    judged = judge_all(found)
    judgements = shown(derived.run.header, judged)
    tables = shown_shapes(found)
    if not judgements and not tables:
        return None
    return {
        "counts": counts(judgements),
        "papers": [_paper(name, judgements) for name in dict.fromkeys(it.claim.paper for it in judgements)],
        "tables": [*map(shape_table, tables), *published_tables(derived, judged)],
        "whole": bool(derived.run.header.papers),
    }


def counts(judgements: Sequence[Judgement | Conclusion]) -> list[dict[str, Any]]:
    """Return the number of claims with each outcome."""
    number = Counter(it.outcome for it in judgements)
    return [{"words": outcome.value, "mark": mark, "number": number[outcome]} for outcome, mark in OUTCOMES]


def paper_records(derived: Derived) -> list[dict[str, Any]]:
    """Return the claims that the page shows, as plain values."""
    return [record(it) for it in shown(derived.run.header, judge_all(RunFigures(derived)))]


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
        return PageColumn(cell, lambda switch: _two(entries.get((switch, cell))), "two")

    columns = (PageColumn("switch", printable, "switch"), *map(column, table.cells))
    note = f"{table.note} Above: this run. Below: published."
    return page_table(f"{table.paper}: {table.title}", columns, table.switches, note)


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


def _two(entry: ShapeEntry | None) -> tuple[str, str]:
    if entry is None:
        return NOTHING, ""
    return entry.ours.words if entry.ours else NOTHING, entry.paper.words if entry.paper else NOTHING


def paper_charts(measured: RunFigures) -> Iterator[Figure]:
    """Yield one chart for each table that is shown."""
    from planebench.report.charts import shape_dots

    for table in shown_shapes(measured):
        title = f"{table.paper}: {table.title}"
        yield Figure(table.key, "papers", "p2p", title, partial(shape_dots, dot_rows(table)))


def shown_shapes(found: RunFigures) -> tuple[Shape, ...]:
    """Return the tables of the papers that a run reproduces; else those with two switches in paper and run."""
    papers = found.derived.run.header.papers
    if papers:
        return tuple(table for table in shapes(found) if table.paper in papers)
    return tuple(table for table in shapes(found) if len(_shared(table)) > 1)


def dot_rows(table: Shape) -> list[ChartRow]:
    """Return one dot per figure; in tables normalized per switch only the switches of the run."""
    rows: list[ChartRow] = []
    for entry in table.entries:
        for whose, ratio in (("the paper", entry.paper), ("here", entry.ours)):
            if ratio is not None and (not table.own or entry.switch in _ours(table)):
                rows.append(_dot(table, entry, whose, ratio))
    return rows


def _dot(table: Shape, entry: ShapeEntry, whose: str, ratio: Ratio) -> ChartRow:
    switch = printable(entry.switch)
    return {
        "panel": switch if table.own else entry.cell,
        "line": entry.cell if table.own else switch,
        "whose": whose,
        "ratio": ratio.value,
        "mark": ratio.mark,
        "tip": tip(f"{switch}, {entry.cell}: {whose} {ratio.words}"),
    }


def _ours(table: Shape) -> set[str]:
    return {entry.switch for entry in table.entries if entry.ours}


def _shared(table: Shape) -> set[str]:
    return {entry.switch for entry in table.entries if entry.ours and entry.paper}


_SHARE = " of R+"


PaperMatrix = dict[str, Any]
"""A table with grouped columns: ``groups`` (name, columns), ``rows`` (switch, cells by group) and a note."""

Cells = dict[tuple[str, str, str], str]
"""(switch, group, column) -> what stands there."""


def paper_tables(results: Sequence[Result]) -> list[PaperMatrix]:
    """Return throughput by direction, and latency by direction and frame size if there is any."""
    tables = [_throughput(members) for members in _by(results, lambda r: r.point.direction)]
    measured = [r for r in results if any(s.samples for s in r.latency)]
    kinds = _by(measured, lambda r: (r.point.direction, r.point.traffic, r.point.frame_size_bytes))
    return tables + [_latency(members) for members in kinds]


def _throughput(results: Sequence[Result]) -> PaperMatrix:
    cells = {(r.point.switch, _path(r), frames(r.point)): throughput(r) for r in results}
    direction = results[0].point.direction
    note = (
        "As in conext19, Figs. 4 to 6. R+ (forwarding rate at maximum offered load), aggregate of all "
        "directions. Marks as in the summary."
    )
    return _matrix(f"Throughput, Mpps, {ARROWS[direction]} {direction}", results, cells, note)


def _latency(results: Sequence[Result]) -> PaperMatrix:
    found = [(r, s) for r in results for s in r.latency]
    cells = {(r.point.switch, _path(r), load_words(s.load).removesuffix(_SHARE)): _mean(s) for r, s in found}
    point = results[0].point
    note = (
        "As in conext19, Tables 3 and 4. Columns: share of the R+ of each switch (so at different rates), or a rate. "
        "In parentheses: of a load that was not carried. Dash: no probe was received, or not measured."
    )
    caption = f"RTT latency, mean µs, {ARROWS[point.direction]} {point.direction}, {frames(point)}"
    return _matrix(caption, results, cells, note)


def _matrix(caption: str, results: Sequence[Result], cells: Cells, note: str) -> PaperMatrix:
    columns: dict[str, dict[str, None]] = {}
    for _, group, column in cells:
        columns.setdefault(group, {})[column] = None
    rows = [
        {
            "switch": s,
            "groups": [[cells.get((s, group, c), NOTHING) for c in found] for group, found in columns.items()],
        }
        for s in dict.fromkeys(r.point.switch for r in results)
    ]
    groups = [{"name": name, "columns": list(found)} for name, found in columns.items()]
    return {"caption": caption, "groups": groups, "rows": rows, "note": note}


def _mean(summary: LatencySummary) -> str:
    if not summary.samples:
        return NOTHING
    return us(summary.mean) if latency_counts(summary) else f"({us(summary.mean)})"


def _path(result: Result) -> str:
    return printable(result.point.scenario_label)


def _by(results: Iterable[Result], key: Callable[[Result], object]) -> list[list[Result]]:
    found: dict[object, list[Result]] = {}
    for result in results:
        found.setdefault(key(result), []).append(result)
    return list(found.values())
