# SPDX-License-Identifier: BSD-3-Clause
"""The figures of a run: chosen, scaled alike, and named."""

from __future__ import annotations

from functools import partial

from planebench.model.run import Run
from planebench.model.words import frames_words, printable
from planebench.report.anatomy import _anatomy
from planebench.report.charts.bars import overview_bars
from planebench.report.charts.figure import Colors, Figure, switch_colors
from planebench.report.latency import _latency, _load, _percentiles, latency_curves, latency_spreads, scatters
from planebench.report.searches import _loss
from planebench.report.throughput import _chains, _throughput, _top, throughput_row
from planebench.report.vnfs import over_vnfs
from planebench.stats.derived import Derived
from planebench.stats.ranking import same_cell


def make_figures(derived: Derived) -> tuple[Figure, ...]:
    """Return every figure that the data of a run allow, by scenario; none for a run without results."""
    run, results = derived.run, derived.results
    colors, spreads = _colors(run), latency_spreads(derived)
    figures: list[Figure] = []
    for scenario in dict.fromkeys(r.point.scenario for r in results):
        members = [r for r in results if r.point.scenario == scenario]
        figures += _throughput(members, colors)
        figures += over_vnfs(members, colors, spreads) if members[0].point.side_by_side else _chains(members, colors)
        figures += _loss(members, colors)
        figures += _latency(members, colors, run.header.calibration)
        figures += _load(members, colors, run.header.calibration, spreads)
        figures += latency_curves(members, colors, spreads)
        figures += _percentiles(run, members, colors)
        figures += _anatomy(members)
        figures += scatters(members, colors, spreads)
    return tuple(figures)


def overview(derived: Derived) -> Figure | None:
    """Draw the throughput of all scenarios: smallest frames, shortest chain, both directions if they were measured.

    None for a run without results.
    """
    run = derived.run
    results = [r for r in derived.results if r.point.chain_length in (0, _shortest_chain(run))]
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
    chart = partial(overview_bars, panels, _colors(run), top)
    return Figure("overview", "overview", results[0].point.scenario, title, chart)


def _colors(run: Run) -> Colors:
    return {printable(label): color for label, color in switch_colors(run.switch_labels).items()}


def _shortest_chain(run: Run) -> int:
    return min((t.point.chain_length for t in run.trials if t.point.chain_length), default=0)
