# SPDX-License-Identifier: BSD-3-Clause
"""Figures as the papers have them beside bars and ranges: scatter plots (conext19), curves (can17, ic16)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

from planebench.model.records import Point
from planebench.model.results import Result
from planebench.model.words import ARROWS, load_words
from planebench.report.chart_data import deviation_row, scatter_latencies, tradeoff_row
from planebench.report.charts import Colours
from planebench.report.curve_charts import curves_over_load, curves_over_sizes, scatter
from planebench.report.curve_data import Look, jitter_of, mean_of, over_load, over_sizes
from planebench.report.figure import Figure, Kind, cell_key, chain_title, full_cell_title, safe
from planebench.report.latency_spread import Spreads
from planebench.report.page_data import JITTERS
from planebench.stats.ranking import same_cell

_MEAN, _SD = "mean latency, µs (log scale)", "standard deviation, µs (log scale)"
_DRAWN = [(name, field) for name, field in JITTERS if field != "pdv"]
"""The definitions of jitter that are drawn; PDV is the latency moved down, and in the table."""

_JITTER = "mean jitter, µs (log scale)"


def scatters(results: Sequence[Result], colours: Colours, spreads: Spreads) -> Iterator[Figure]:
    """Throughput against mean latency, and mean latency against its deviation, a figure each a cell."""
    for cell, members in same_cell(results).items():
        found = scatter_latencies(members)
        if not found:
            continue
        title = f"{full_cell_title(cell)}, at {load_words(found[0][1].load)}"
        ends = [spreads.get((r.point, s.load)) for r, s in found]
        rows = [tradeoff_row(r, s, e.mean if e else None) for (r, s), e in zip(found, ends, strict=True)]
        chart = partial(scatter, rows, colours, "throughput, Mpps", _MEAN, log_x=False)
        yield Figure(cell_key("tradeoff", cell), "tradeoff", cell.scenario, title, chart)
        rows = [deviation_row(r, s) for r, s in found]
        chart = partial(scatter, rows, colours, _MEAN, _SD, log_x=True)
        yield Figure(cell_key("deviation", cell), "deviation", cell.scenario, title, chart)


def latency_curves(results: Sequence[Result], colours: Colours, spreads: Spreads) -> Iterator[Figure]:
    """Jitter over load; latency and jitter over frame size, of what has enough loads and sizes."""
    for name, field in _DRAWN:
        for cell, members in same_cell(results).items():
            rows = over_load(members, jitter_of(field))
            if rows:
                key = f"{cell_key('jitter', cell)}-{field}"
                chart = partial(curves_over_load, rows, colours, _JITTER)
                yield Figure(key, "jitter", cell.scenario, f"{full_cell_title(cell)}, {name}", chart)
    yield from _sizes("sizes", results, colours, mean_of(spreads), _MEAN, "")
    for name, field in _DRAWN:
        yield from _sizes("jitter-sizes", results, colours, jitter_of(field), _JITTER, name)


def _sizes(
    kind: Kind, results: Sequence[Result], colours: Colours, look: Look, y_title: str, name: str
) -> Iterator[Figure]:
    for cell, members in _same_but_size(results).items():
        loads = list(dict.fromkeys(s.load for r in members for s in r.latency))
        for load in dict.fromkeys([*loads[:1], *loads[-1:]]):  # the lowest and the highest: more says little more
            rows = over_sizes(members, load, look)
            if rows:
                key = "-".join(filter(None, (kind, cell.scenario_slug, cell.direction, safe(load), safe(name))))
                way = f"{chain_title(cell)}{ARROWS[cell.direction]} {cell.direction}"
                title = ", ".join(filter(None, (way, load_words(load), name)))
                yield Figure(key, kind, cell.scenario, title, partial(curves_over_sizes, rows, colours, y_title))


def _same_but_size(results: Sequence[Result]) -> dict[Point, list[Result]]:
    """Plain frames by everything but their size; profiles are no sizes of each other."""
    cells: dict[Point, list[Result]] = {}
    for result in results:
        if not result.point.traffic:
            cells.setdefault(replace(result.point, switch="", frame_size_bytes=64), []).append(result)
    return cells
