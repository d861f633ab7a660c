# SPDX-License-Identifier: BSD-3-Clause
"""Terminal tables on what throughput rests on: where the tester limits, and the same at the other core distance."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from planebench.metrics.column import in_terminal
from planebench.metrics.results import RESULT, OfResult
from planebench.model.records import VerdictKind
from planebench.model.results import Result
from planebench.model.words import UNKNOWN, estimate, mpps
from planebench.report.cells import BEST
from planebench.report.glyphs import Glyphs
from planebench.report.grid import column_of, column_tables
from planebench.stats.counting import counts
from planebench.stats.derived import Derived
from planebench.stats.ranking import level_with_first, rank

_ESTIMATE_WIDTH = 9


def limit_tables(derived: Derived, results: Sequence[Result], glyphs: Glyphs, width: int) -> list[Table]:
    """Return columns with a tester-limited throughput: what the switch reports of its core, and an estimate.

    Green: fewest cycles. A switch that reports nothing is there all the same, as unknown.
    """
    columns = {column_of(r) for r in results if r.verdict.kind is VerdictKind.TESTER_LIMITED and _known(r)}
    members = [r for r in results if column_of(r) in columns and counts(r)]
    cycles_decide = [r for r in rank(results) if r.by == "cycles"]
    leaders = {r.first.point for r in cycles_decide if not level_with_first(r, derived.comparisons)}
    figures = in_terminal(RESULT, (OfResult(derived.run, r) for r in members))

    def cell(result: Result) -> Text:
        if not _known(result):
            return Text(UNKNOWN)
        row = OfResult(derived.run, result)
        parts = [f"{figure.written(row)} {brief.letter}".rstrip().rjust(brief.width) for figure, brief in figures]
        words = " ".join(filter(None, (*parts, estimate(result.capacity_estimate_pps))))
        return Text(glyphs.text(words.rstrip()), style=BEST if result.point in leaders else "")

    cell_width = _ESTIMATE_WIDTH + sum(brief.width + 1 for _, brief in figures)
    return column_tables(members, "tester limits", cell, glyphs, width, cell_width, "left")


def band_tables(results: Sequence[Result], glyphs: Glyphs, width: int) -> list[Table]:
    """Throughput at the other core distance, with the number of trials; only points that have one."""
    members = [r for r in results if r.other_bands]

    def words(result: Result) -> str:
        return ", ".join(f"{band.band} {mpps(band.throughput_pps)} ({band.trials})" for band in result.other_bands)

    def cell(result: Result) -> Text:
        return Text(glyphs.text(words(result)))

    longest = max((len(words(r)) for r in members), default=0)

    return column_tables(members, "other core group", cell, glyphs, width, longest)


def _known(result: Result) -> bool:
    return result.switch_busy_share is not None or result.switch_cycles_per_packet is not None
