# SPDX-License-Identifier: BSD-3-Clause
"""Figures of independent VNFs as in ic16: throughput, latency and jitter over the number of VNFs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from planebench.analysis.counting import counts, same_cell
from planebench.model.chain_name import chain_label, chain_slug
from planebench.model.records import Point
from planebench.model.results import Result
from planebench.model.words import load_words, printable
from planebench.report.charts.curves import curves_over_vnfs
from planebench.report.charts.figure import ChartRow, Colors, Figure, cell_title, frames_key, safe
from planebench.report.latency import DRAWN, JITTER, MEAN, Look, curve_rows, jitter_of, mean_of
from planebench.report.throughput import throughput_row

_THROUGHPUT = "throughput, Mpps (log scale)"


def over_vnfs(results: Sequence[Result], colors: Colors) -> Iterator[Figure]:
    """Yield figures per kind of VNF, frame size and traffic with several numbers of VNFs."""
    for cell, members in same_cell(results, chain_length=1).items():
        rows = throughput_over_vnfs(members)
        if rows:
            chart = partial(curves_over_vnfs, rows, colors, _THROUGHPUT)
            yield Figure(_key(cell, "throughput"), "vnfs", cell.scenario, _title(cell, "throughput"), chart)
        yield from _latencies(cell, members, colors)


def _latencies(cell: Point, members: Sequence[Result], colors: Colors) -> Iterator[Figure]:
    looks: list[tuple[str, str, Look]] = [("mean latency", MEAN, mean_of)]
    looks += [(name, JITTER, jitter_of(field)) for name, field in DRAWN]
    for load in dict.fromkeys(summary.load for result in members for summary in result.latency):
        for name, y_title, look in looks:
            rows = curve_rows(members, lambda r, _: r.point.chain_length, look, MIN_COUNTS, load)
            if rows:
                chart = partial(curves_over_vnfs, rows, colors, y_title)
                words = f"{name}, {load_words(load)}"
                yield Figure(_key(cell, safe(words)), "vnfs", cell.scenario, _title(cell, words), chart)


def _key(cell: Point, what: str) -> str:
    kind = f"{chain_slug(cell.chain, 1)}-" if cell.chain else ""
    kind += f"{cell.where_slug.removeprefix('-')}-" if cell.where_words else ""
    return f"vnfs-{kind}{frames_key(cell)}-{what}"


def _title(cell: Point, what: str) -> str:
    kind = f"each {printable(chain_label(cell.chain, 1))}{cell.where_words}, " if cell.named else ""
    return f"{kind}{cell_title(cell)}, {what}"


MIN_COUNTS = 2
"""Numbers of VNFs for a curve: what lies between one and many is the question."""

SMALLEST_MPPS = 1e-6
"""A log axis has no zero."""


def throughput_over_vnfs(results: Sequence[Result]) -> list[ChartRow]:
    """Return the accepted throughputs of switches with at least MIN_COUNTS numbers of VNFs."""
    rows: dict[str, list[ChartRow]] = {}
    for result in results:
        if counts(result) and result.throughput_pps:
            bar = throughput_row(result)
            x, low = result.point.chain_length, max(bar["low"], SMALLEST_MPPS)
            ends = {"low": low, "high": max(bar["high"], low)}
            rows.setdefault(bar["switch"], []).append({**bar, **ends, "x": x, "y": max(bar["mpps"], low)})
    return [row for found in rows.values() if len(found) >= MIN_COUNTS for row in found]
