# SPDX-License-Identifier: BSD-3-Clause
"""Terminal tables on what throughput rests on: where the tester limits, and the same at the other core distance."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from planebench.model.records import VerdictKind
from planebench.model.results import Comparison, Result
from planebench.model.words import UNKNOWN, batch, cycles, estimate, mpps, percent
from planebench.report.cells import BEST
from planebench.report.glyphs import Glyphs
from planebench.report.grid import column_of, column_tables
from planebench.stats.ranking import counts, level_with_first, rank

_LIMIT_WIDTH = 20


def limit_tables(
    results: Sequence[Result], comparisons: Sequence[Comparison], glyphs: Glyphs, width: int
) -> list[Table]:
    """Columns with a tester-limited throughput: busy share, cycles, batch size, estimate. Green: fewest cycles.

    A switch that tells none of them is there all the same, as unknown.
    """
    columns = {column_of(r) for r in results if r.verdict.kind is VerdictKind.TESTER_LIMITED and _known(r)}
    members = [r for r in results if column_of(r) in columns and counts(r)]
    leaders = {r.first.point for r in rank(results) if r.by == "cycles" and not level_with_first(r, comparisons)}

    batches = any(r.switch_batch_size is not None for r in members)

    def cell(result: Result) -> Text:
        if not _known(result):
            return Text(UNKNOWN)
        parts = (
            percent(result.switch_busy_share).rjust(4),
            f"{cycles(result.switch_cycles_per_packet)} c".rjust(5),
            f"{batch(result.switch_batch_size)} b".rjust(4) if batches else "",
            estimate(result.capacity_estimate_pps),
        )
        return Text(glyphs.text(" ".join(filter(None, parts)).rstrip()), style=BEST if result.point in leaders else "")

    return column_tables(members, "tester limits", cell, glyphs, width, _LIMIT_WIDTH + 5 * batches, "left")


def band_tables(results: Sequence[Result], glyphs: Glyphs, width: int) -> list[Table]:
    """Throughput at the other core distance, with the number of trials; only points that have one."""
    members = [r for r in results if r.other_bands]

    def words(result: Result) -> str:
        return ", ".join(f"{band.band} {mpps(band.throughput_pps)} ({band.trials})" for band in result.other_bands)

    def cell(result: Result) -> Text:
        return Text(glyphs.text(words(result)))

    longest = max((len(words(r)) for r in members), default=0)

    return column_tables(members, "other core distance", cell, glyphs, width, longest)


def _known(result: Result) -> bool:
    return result.switch_busy_share is not None or result.switch_cycles_per_packet is not None
