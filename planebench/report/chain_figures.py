# SPDX-License-Identifier: BSD-3-Clause
"""Figures of the section on chains: latency of a chain beside the stacked latencies of its parts alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

import altair as alt

from planebench.model.records import Point
from planebench.model.words import ARROWS, frames, load_words
from planebench.report.chains_data import WHOLE, stack_rows
from planebench.report.chart_data import Row
from planebench.report.charts import BAR_STEP, INK_LABELS, plain, table
from planebench.report.figure import Figure, frames_key
from planebench.report.palette import INK, MUTED, PARTS
from planebench.stats.chains import ChainLatency


def chain_figures(found: Sequence[ChainLatency]) -> Iterator[Figure]:
    """One for each direction, frame size and load of which both sides are known."""
    cells: dict[tuple[Point, str], list[ChainLatency]] = {}
    for it in found:
        cell = replace(it.point, switch="", chain_length=1, chain="", hosting="process")
        cells.setdefault((cell, it.load), []).append(it)
    for (cell, load), members in cells.items():
        rows = stack_rows(members)
        if rows:
            title = f"{ARROWS[cell.direction]} {cell.direction}, {frames(cell)}, {load_words(load)}"
            key = f"parts-{cell.direction}-{frames_key(cell)}-{load}"
            yield Figure(key, "parts", cell.scenario, title, partial(stacked_parts, rows))


def stacked_parts(rows: Sequence[Row]) -> alt.TopLevelMixin:
    """Two bars a switch and chain: the chain, and its parts one behind the other."""
    names = list(dict.fromkeys([WHOLE, *(row["part"] for row in rows)]))
    scale = alt.Scale(domain=names, range=[PARTS[i % len(PARTS)] for i in range(len(names))])
    order = list(dict.fromkeys(row["bar"] for row in rows))
    y = alt.Y("bar:N", sort=order, axis=alt.Axis(title=None, **INK_LABELS))
    base = alt.Chart(table(rows)).encode(y=y)
    bars = base.mark_bar(height={"band": 0.74}).encode(
        x=alt.X("us:Q", title="mean latency, µs", stack="zero", axis=alt.Axis(tickCount=5)),
        color=alt.Color(
            "part:N", scale=scale, legend=alt.Legend(title=None, orient="bottom", columns=2, labelColor=INK)
        ),
        order="order:Q",
        description="tip:N",
    )
    labels = base.mark_text(align="left", dx=4, fontSize=11, color=INK).encode(
        x=alt.X("sum(us):Q", stack=False), text=alt.Text("sum(us):Q", format=".3~g")
    )
    layered = alt.layer(bars, labels).properties(width=200, height=alt.Step(BAR_STEP))
    header = alt.Header(title=None, labelOrient="top", labelAnchor="start", labelPadding=3, labelColor=MUTED)
    facets = list(dict.fromkeys(row["chain"] for row in rows))
    facet = layered.facet(row=alt.Row("chain:N", sort=facets, header=header), spacing=8)
    return plain(facet.resolve_scale(y="independent"))
