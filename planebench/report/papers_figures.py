# SPDX-License-Identifier: BSD-3-Clause
"""Figures of the section "Against the papers": one a table, of the same data as its table."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from planebench.model.run import Run
from planebench.model.words import printable
from planebench.papers.measured import Measured
from planebench.papers.shape import Entry, Ratio, Shape, shapes
from planebench.report.chart_data import TIP_MARK, Row
from planebench.report.figure import Figure
from planebench.report.papers_charts import shape_dots


def paper_charts(measured: Measured) -> Iterator[Figure]:
    """One chart for each table that is shown."""
    for table in shown_shapes(measured.run, measured):
        title = f"{table.paper}: {table.title}"
        yield Figure(table.key, "papers", "p2p", title, partial(shape_dots, dot_rows(table)))


def shown_shapes(run: Run, found: Measured) -> tuple[Shape, ...]:
    """Tables of the papers that a run reproduces; of another run those with two switches that paper and run have."""
    papers = run.header.papers
    if papers:
        return tuple(table for table in shapes(found) if table.paper in papers)
    return tuple(table for table in shapes(found) if len(_shared(table)) > 1)


def dot_rows(table: Shape) -> list[Row]:
    """One dot a figure; of a table that is normalised within a switch only the switches that we have."""
    rows: list[Row] = []
    for entry in table.entries:
        for whose, ratio in (("the paper", entry.paper), ("here", entry.ours)):
            if ratio is not None and (not table.own or entry.switch in _ours(table)):
                rows.append(_dot(table, entry, whose, ratio))
    return rows


def _dot(table: Shape, entry: Entry, whose: str, ratio: Ratio) -> Row:
    switch = printable(entry.switch)
    return {
        "panel": switch if table.own else entry.cell,
        "line": entry.cell if table.own else switch,
        "whose": whose,
        "ratio": ratio.value,
        "mark": ratio.mark,
        "tip": f"{TIP_MARK}{switch}, {entry.cell}: {whose} {ratio.words}",
    }


def _ours(table: Shape) -> set[str]:
    return {entry.switch for entry in table.entries if entry.ours}


def _shared(table: Shape) -> set[str]:
    return {entry.switch for entry in table.entries if entry.ours and entry.paper}
