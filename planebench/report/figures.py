# SPDX-License-Identifier: BSD-3-Clause
"""Which figures a run has: chosen, scaled alike, and named. Looks are in charts.py, data in chart_data.py."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

from planebench.model.header import Calibration
from planebench.model.records import Point
from planebench.model.results import Result
from planebench.model.run import Run
from planebench.model.words import ARROWS, frames_words, load_words, printable
from planebench.report import charts, load_charts
from planebench.report.anatomy_charts import anatomy_bars
from planebench.report.anatomy_data import anatomy_rows
from planebench.report.chart_data import Row, latency_rows, percentile_rows, throughput_row
from planebench.report.figure import Figure, cell_key, cell_title, frames_key, full_cell_title, safe
from planebench.report.latency_spread import Spreads, latency_spreads
from planebench.report.load_data import load_rows, loss_rows
from planebench.report.palette import switch_colours
from planebench.report.paper_figures import latency_curves, scatters
from planebench.report.vnfs_figures import over_vnfs
from planebench.stats.ceiling import latency_floor
from planebench.stats.ranking import same_cell
from planebench.stats.results import derive_results


def make_figures(run: Run, results: Sequence[Result] | None = None) -> tuple[Figure, ...]:
    """Every figure that the data of a run allow, by scenario; none for a run without results."""
    results = derive_results(run) if results is None else results
    colours, spreads = _colours(run), latency_spreads(run, results)
    figures: list[Figure] = []
    for scenario in dict.fromkeys(r.point.scenario for r in results):
        members = [r for r in results if r.point.scenario == scenario]
        figures += _throughput(members, colours)
        figures += over_vnfs(members, colours, spreads) if members[0].point.side_by_side else _chains(members, colours)
        figures += _loss(members, colours)
        figures += _latency(members, colours, run.header.calibration)
        figures += _load(members, colours, run.header.calibration, spreads)
        figures += latency_curves(members, colours, spreads)
        figures += _percentiles(run, members, colours)
        figures += _anatomy(members)
        figures += scatters(members, colours, spreads)
    return tuple(figures)


def overview(run: Run) -> Figure | None:
    """Throughput of all scenarios in one picture: smallest frames, both directions if they were run, shortest chain.

    None for a run without results.
    """
    results = [r for r in derive_results(run) if r.point.chain_length in (0, _shortest_chain(run))]
    if not results:
        return None
    size, traffic = min((r.point.frame_size_bytes, r.point.traffic) for r in results)
    members = [r for r in results if (r.point.frame_size_bytes, r.point.traffic) == (size, traffic)]
    directions = [r.point.direction for r in members]
    direction = "bidirectional" if "bidirectional" in directions else directions[0]
    cells = [m for c, m in same_cell(members).items() if c.direction == direction]
    panels = {printable(m[0].point.scenario_label): [throughput_row(r) for r in m] for m in cells}
    title = f"{printable(run.header.name)}: throughput in Mpps, {direction}, {frames_words(traffic, size)} frames"
    top = max(_top(m) for m in cells)
    chart = partial(charts.overview_bars, panels, _colours(run), top)
    return Figure("overview", "overview", results[0].point.scenario, title, chart)


def _colours(run: Run) -> charts.Colours:
    return {printable(label): colour for label, colour in switch_colours(run.switch_labels).items()}


def _shortest_chain(run: Run) -> int:
    return min((t.point.chain_length for t in run.trials if t.point.chain_length), default=0)


def _throughput(results: Sequence[Result], colours: charts.Colours) -> Iterator[Figure]:
    """Bars by direction; for chains only where there is one: otherwise curves, or bars by chain, tell it better."""
    if len({r.point.chain_key for r in results}) > 1:
        return
    top = _top(results)
    for direction in dict.fromkeys(r.point.direction for r in results):
        members = [r for r in results if r.point.direction == direction]
        point = members[0].point
        chart = partial(charts.throughput_bars, [throughput_row(r) for r in members], colours, top)
        key = f"throughput-{point.scenario_slug}-{direction}"
        yield Figure(key, "throughput", point.scenario, f"{ARROWS[direction]} {direction}", chart)


def _chains(results: Sequence[Result], colours: charts.Colours) -> Iterator[Figure]:
    """Curves over the length of chains of one function; bars by chain where they have names."""
    if len({r.point.chain_key for r in results}) < 2:
        return
    if any(r.point.named for r in results):
        yield from _named_chains(results, colours)
        return
    cells: dict[Point, list[Result]] = {}
    for result in results:
        cells.setdefault(replace(result.point, switch="", chain_length=1), []).append(result)
    for cell, members in cells.items():
        rows = [throughput_row(r) for r in members]
        if any(row["counts"] for row in rows):
            key = f"chain-{cell.direction}-{frames_key(cell)}"
            chart = partial(charts.chain_curves, rows, colours, _top(members))
            yield Figure(key, "chain", cell.scenario, cell_title(cell), chart)


def _named_chains(results: Sequence[Result], colours: charts.Colours) -> Iterator[Figure]:
    """Bars by chain, a figure a direction and frame size."""
    cells: dict[Point, list[Result]] = {}
    for result in results:
        cells.setdefault(replace(result.point, switch="", chain_length=1, chain="", hosting="process"), []).append(
            result
        )
    top = _top(results)
    for cell, members in cells.items():
        rows = [{**row, "size": row["chain_label"]} for row in map(throughput_row, members)]
        key = f"chain-{cell.direction}-{frames_key(cell)}"
        yield Figure(key, "chain", cell.scenario, cell_title(cell), partial(charts.throughput_bars, rows, colours, top))


def _loss(results: Sequence[Result], colours: charts.Colours) -> Iterator[Figure]:
    for cell, members in same_cell(results).items():
        rows = loss_rows(members)
        if rows:
            chart = partial(load_charts.loss_curves, rows, colours)
            yield Figure(cell_key("loss", cell), "loss", cell.scenario, full_cell_title(cell), chart)


def _latency(results: Sequence[Result], colours: charts.Colours, calibration: Calibration | None) -> Iterator[Figure]:
    cells = {cell: latency_rows(m, _floor_us(calibration, cell)) for cell, m in same_cell(results).items()}
    domain = _latency_domain([row for rows in cells.values() for row in rows])
    for cell, rows in cells.items():
        if rows:
            chart = partial(charts.latency_ranges, rows, colours, domain)
            yield Figure(cell_key("latency", cell), "latency", cell.scenario, full_cell_title(cell), chart)


def _load(
    results: Sequence[Result], colours: charts.Colours, calibration: Calibration | None, spreads: Spreads
) -> Iterator[Figure]:
    for cell, members in same_cell(results).items():
        rows = load_rows(members, spreads)
        if rows:
            chart = partial(load_charts.latency_load, rows, colours, _floor_us(calibration, cell))
            yield Figure(cell_key("load", cell), "load", cell.scenario, full_cell_title(cell), chart)


def _floor_us(calibration: Calibration | None, cell: Point) -> float | None:
    floor = latency_floor(calibration, cell)
    return floor.p50_ns / 1e3 if floor else None


def _percentiles(run: Run, results: Sequence[Result], colours: charts.Colours) -> Iterator[Figure]:
    for cell, members in same_cell(results).items():
        curves = {load: percentile_rows(run, members, load) for load in _loads(members)}
        values = [row["us"] for rows in curves.values() for row in rows]
        for load, rows in curves.items():
            if rows:
                chart = partial(charts.percentile_curves, rows, colours, (min(values), max(values) * 1.1))
                title = f"{full_cell_title(cell)}, {load_words(load)}"
                yield Figure(
                    f"{cell_key('percentiles', cell)}-{safe(load)}", "percentiles", cell.scenario, title, chart
                )


def _anatomy(results: Sequence[Result]) -> Iterator[Figure]:
    for cell, members in same_cell(results).items():
        rows = anatomy_rows(members)
        if rows:
            yield Figure(
                cell_key("anatomy", cell), "anatomy", cell.scenario, full_cell_title(cell), partial(anatomy_bars, rows)
            )


def _loads(results: Sequence[Result]) -> list[str]:
    return list(dict.fromkeys(s.load for r in results for s in r.latency))


def _top(results: Sequence[Result]) -> float:
    """End of the Mpps axis: room for the label behind the longest bar."""
    highest = max((rate for r in results for rate in r.throughput_trials_pps), default=1e6)
    return max(highest, 1.0) / 1e6 * 1.22


def _latency_domain(rows: Sequence[Row]) -> tuple[float, float]:
    """One axis for all loads and chain lengths of a scenario, with room for labels on the right."""
    low = min((min(row["p50"], row["floor"] or row["p50"]) for row in rows), default=1.0) / 1.3
    high = max((row["p99_9"] for row in rows), default=10.0)
    return low, high * (high / low) ** 0.38 if math.isfinite(high) else low * 100
