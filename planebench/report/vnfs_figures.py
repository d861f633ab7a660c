# SPDX-License-Identifier: BSD-3-Clause
"""Figures of many VNFs side by side, as ic16 has them: throughput, latency and jitter over the number of VNFs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

from planebench.model.chain_name import chain_label, chain_slug
from planebench.model.records import Point
from planebench.model.results import Result
from planebench.model.words import load_words, printable
from planebench.report.charts import Colours
from planebench.report.curve_charts import curves_over_vnfs
from planebench.report.curve_data import Look, jitter_of, latency_over_vnfs, mean_of, throughput_over_vnfs
from planebench.report.figure import Figure, cell_title, frames_key, safe
from planebench.report.latency_spread import Spreads
from planebench.report.page_data import JITTERS

_THROUGHPUT, _LATENCY = "throughput, Mpps (log scale)", "mean latency, µs (log scale)"
_JITTER = "mean jitter, µs (log scale)"


def over_vnfs(results: Sequence[Result], colours: Colours, spreads: Spreads) -> Iterator[Figure]:
    """Each for every kind of VNF, frame size and traffic with several numbers of VNFs; none for one number."""
    for cell, members in _same_but_count(results).items():
        rows = throughput_over_vnfs(members)
        if rows:
            chart = partial(curves_over_vnfs, rows, colours, _THROUGHPUT)
            yield Figure(_key(cell, "throughput"), "vnfs", cell.scenario, _title(cell, "throughput"), chart)
        yield from _latencies(cell, members, colours, spreads)


def _latencies(cell: Point, members: Sequence[Result], colours: Colours, spreads: Spreads) -> Iterator[Figure]:
    looks: list[tuple[str, str, Look]] = [("mean latency", _LATENCY, mean_of(spreads))]
    looks += [(name, _JITTER, jitter_of(field)) for name, field in JITTERS if field != "pdv"]
    for load in dict.fromkeys(summary.load for result in members for summary in result.latency):
        for name, y_title, look in looks:
            rows = latency_over_vnfs(members, load, look)
            if rows:
                chart = partial(curves_over_vnfs, rows, colours, y_title)
                words = f"{name}, {load_words(load)}"
                yield Figure(_key(cell, safe(words)), "vnfs", cell.scenario, _title(cell, words), chart)


def _same_but_count(results: Sequence[Result]) -> dict[Point, list[Result]]:
    cells: dict[Point, list[Result]] = {}
    for result in results:
        cells.setdefault(replace(result.point, switch="", chain_length=1), []).append(result)
    return cells


def _key(cell: Point, what: str) -> str:
    kind = f"{chain_slug(cell.chain, 1)}-" if cell.chain else ""
    kind += f"{cell.hosting}-" if cell.hosting_words else ""
    return f"vnfs-{kind}{frames_key(cell)}-{what}"


def _title(cell: Point, what: str) -> str:
    kind = f"each {printable(chain_label(cell.chain, 1))}{cell.hosting_words}, " if cell.named else ""
    return f"{kind}{cell_title(cell)}, {what}"
