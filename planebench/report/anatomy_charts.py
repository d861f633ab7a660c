# SPDX-License-Identifier: BSD-3-Clause
"""Stacked bars of the parts of latency, in the order of the path, coloured by whose they are."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt

from planebench.report.anatomy_data import KINDS
from planebench.report.chart_data import Row
from planebench.report.charts import BAR_STEP, by_row, table
from planebench.report.palette import INK, PART_COLOURS


def anatomy_bars(rows: Sequence[Row]) -> alt.TopLevelMixin:
    """A bar a switch (and direction, where both send), by load; an axis of its own, as parts tell, not lengths."""
    order = list(dict.fromkeys(row["bar"] for row in rows))
    present = [kind for kind in KINDS.values() if any(row["kind"] == kind for row in rows)]
    scale = alt.Scale(domain=present, range=[PART_COLOURS[kind] for kind in present])
    axis = alt.Axis(title=None, grid=False, ticks=False, domain=False, labelPadding=6, labelColor=INK, labelLimit=130)
    bars = (
        alt.Chart(table(rows))
        .mark_bar(height={"band": 0.74}, stroke="white", strokeWidth=0.6)
        .encode(
            y=alt.Y("bar:N", sort=order, axis=axis),
            x=alt.X("start:Q", title="mean latency, µs", axis=alt.Axis(tickCount=5)),
            x2="end:Q",
            color=alt.Color("kind:N", scale=scale, legend=alt.Legend(orient="bottom", title=None, labelColor=INK)),
            description="tip:N",
        )
    )
    return by_row(bars.properties(width=235, height=alt.Step(BAR_STEP)), "load", rows)
