# SPDX-License-Identifier: BSD-3-Clause
"""Dots of a paper's table beside ours: hollow what the paper has, filled what was measured here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt

from planebench.report.chart_data import Row
from planebench.report.charts import INK_LABELS, log_ticks, plain, table
from planebench.report.palette import GRID, INK, MUTED, PARTS

LINE_STEP = 16
"""Height of a line in px."""


def shape_dots(rows: Sequence[Row]) -> alt.TopLevelMixin:
    """A panel a cell (or a switch), a line a switch (or a cell); x is the multiple of the reference, 1 is the rule."""
    low, high = min(row["ratio"] for row in rows), max(row["ratio"] for row in rows)
    domain = [min(low, 1.0) / 1.15, max(high, 1.0) * 1.15]
    axis = alt.Axis(format="~g", values=log_ticks(*domain))
    scale = alt.Scale(type="log", domain=domain, nice=False)
    x = alt.X("ratio:Q", title="multiple of the reference (log scale)", scale=scale, axis=axis)
    order = list(dict.fromkeys(row["line"] for row in rows))  # a panel has only the lines that it needs
    y = alt.Y("line:N", sort=order, axis=alt.Axis(title=None, **INK_LABELS))
    base = alt.Chart(table([{**row, "one": 1.0} for row in rows]))
    rule = base.mark_rule(color=MUTED, strokeDash=[2, 2]).encode(x=alt.X("one:Q", scale=scale))
    span = base.mark_line(color=GRID, strokeWidth=3).encode(x=x, y=y, detail="line:N")
    theirs, ours = (f"datum.whose == '{whose}'" for whose in ("the paper", "here"))
    hollow = base.transform_filter(theirs).mark_point(size=52, filled=False, strokeWidth=1.6, color=INK, opacity=1)
    filled = base.transform_filter(ours).mark_point(size=44, filled=True, color=PARTS[0], opacity=1)
    marks = base.mark_text(align="left", dx=6, fontSize=11, color=INK).encode(x=x, y=y, text="mark:N")
    dots = [mark.encode(x=x, y=y, description="tip:N") for mark in (hollow, filled)]
    layered = alt.layer(rule, span, *dots, marks).properties(width=225, height=alt.Step(LINE_STEP))
    return plain(_by_panel(layered, rows))


def _by_panel(chart: Any, rows: Sequence[Row]) -> Any:
    """One below the other, the name above its dots."""
    order = list(dict.fromkeys(row["panel"] for row in rows))
    header = alt.Header(title=None, labelOrient="top", labelAnchor="start", labelColor=MUTED, labelPadding=3)
    return chart.facet(row=alt.Row("panel:N", sort=order, header=header), spacing=8).resolve_scale(y="independent")
