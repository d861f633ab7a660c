# SPDX-License-Identifier: BSD-3-Clause
"""Rates by search for the page: a column a method, and the bursts of back-to-back frames."""

from __future__ import annotations

from collections.abc import Sequence

from planebench.model.results import Result, SearchResult
from planebench.model.words import METHODS, NOTHING, count, mpps, us
from planebench.report.page_table import Head, PageTable, Row, heads, point_cells, point_heads, verdict_cell
from planebench.report.search_words import methods_of, search_bands, search_counts, search_figure


def search_table(results: Sequence[Result]) -> PageTable:
    """Bounds in Mpps, below them what is forwarded at the lower one and, where it does not simply count, why."""
    members = [r for r in results if r.searches]
    points = [r.point for r in members]
    methods = methods_of(members)
    rows = []
    for result in members:
        found = {s.method: s for s in result.searches}
        cells = (_cell(found[m]) if m in found else (NOTHING, "") for m in methods)
        rows.append(Row((*point_cells(result.point, points), *cells, search_bands(result.searches))))
    titles = [METHODS.get(m, m) for m in methods]
    return PageTable(
        "Rates by search, Mpps",
        (*point_heads(points), *heads(titles, "two"), Head("band")),
        tuple(rows),
        "Highest load that met the goal to lowest that did not; below, the rate forwarded at the former. "
        "First loss: of the loss-rate curve. Back-to-back: frames of the mean longest burst. "
        "In brackets: incomplete, does not count, or of another band than the run.",
    )


def burst_table(results: Sequence[Result]) -> PageTable:
    """Back-to-back frames (RFC 9004): the longest bursts without loss, and the buffer time they imply."""
    members = [(r, s, s.burst) for r in results for s in r.searches if s.burst is not None]
    points = [r.point for r, _, _ in members]
    rows = tuple(
        Row(
            (
                *point_cells(r.point, points),
                mpps(b.rate_pps),
                count(round(b.mean_packets)),
                count(b.min_packets),
                count(b.max_packets),
                count(round(b.stddev_packets)),
                b.repetitions,
                us(b.buffer_ns / 1e3),
                verdict_cell(s.verdict),
            ),
            not search_counts(s),
        )
        for r, s, b in members
    )
    names = ("at Mpps", "mean frames", "min", "max", "sd", "repetitions", "buffer µs")
    return PageTable(
        "Back-to-back frames (RFC 9004)", (*point_heads(points), *heads(names), Head("verdict", "verdict")), rows
    )


def _cell(search: SearchResult) -> tuple[str, str]:
    small = [] if search.conditional_pps is None else [f"forwards {mpps(search.conditional_pps)}"]
    return search_figure(search), "; ".join([*small, *search.verdict.reasons])
