# SPDX-License-Identifier: BSD-3-Clause
"""Trends in words and as a page: each series with its levels, and the table of its steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from planebench.analysis.trend import Trend, TrendPoint, TrendStep
from planebench.model.words import METRICS, NOTHING
from planebench.report.charts import trend_lines
from planebench.report.figure import switch_colors
from planebench.report.html import ABOUT, PALETTE, page_colors, render
from planebench.report.svg import Canvas
from planebench.report.tables import PageColumn, PageTable, page_table

TEMPLATE = "trend.html.j2"
CHARTS_MAX = 100
"""Charts of the page; series with changes come first."""

_UNITS = {"cycles_per_packet": (1.0, "cycles"), "latency_p50": (1.0, "µs"), "latency_p99": (1.0, "µs")}
"""Divisor and unit of figures; rates are in Mpps."""


@dataclass(frozen=True, slots=True)
class TrendChange:
    """A change, and the trend that it is in."""

    trend: Trend
    step: TrendStep


def change_words(step: TrendStep) -> str:
    """Return ``step of -5.2 % (-6.0 to -4.4)``."""
    low, high = ((end - 1) * 100 for end in (step.low, step.high))
    return f"step of {step.percent:+.1f} % ({low:+.1f} to {high:+.1f})"


def commit_words(sample: TrendPoint) -> str:
    """Return the commit of a run, abbreviated; the run id where the run names none."""
    return (sample.commit[:12] + "+" * sample.dirty) if sample.commit else sample.run_id


def range_words(step: TrendStep) -> str:
    """Return the range of commits as git takes it: ``4f1c0e9ab12d..77aa01b2c3d4``."""
    return f"{commit_words(step.before)}..{commit_words(step.after)}"


def cause_words(step: TrendStep) -> str:
    """Return what may be the cause: the commits, or what else changed."""
    if step.cause == "environment":
        same = step.before.commit == step.after.commit
        sure = "not a commit" if same else "probably not a commit"
        return f"{sure}: {'; '.join(step.changed)}"
    if step.cause == "unknown":
        return "unknown: neither the commit nor a recorded fact changed"
    return f"commit, probably {commit_words(step.probable)}"


def found_in(trends: Sequence[Trend]) -> list[TrendChange]:
    """Return the changes of all series, newest first."""
    found = [TrendChange(trend, step) for trend in trends for step in trend.steps]
    return sorted(found, key=lambda it: it.step.probable.started_at, reverse=True)


def changes_table(found: Sequence[TrendChange]) -> PageTable:
    """Return the changes as a table."""
    columns = (
        PageColumn("first run", lambda it: it.step.probable.started_at[:10]),
        PageColumn("switch", lambda it: it.trend.series.switch, "switch"),
        PageColumn("test point", lambda it: f"{it.trend.series.point}, {it.trend.series.testbed}", "text"),
        PageColumn("change", lambda it: change_words(it.step), "strong"),
        PageColumn("cause", lambda it: cause_words(it.step), "text"),
        PageColumn("range", lambda it: range_words(it.step)),
    )
    return page_table("Changes, newest first", columns, found)


def to_html(trends: Sequence[Trend], store: str, charts: int = CHARTS_MAX) -> bytes:
    """Return the trends of a store as a self-contained UTF-8 HTML page, with so many charts at most."""
    found = found_in(trends)
    shown = sorted((it for it in trends if it.samples), key=lambda it: not it.steps)
    switches = sorted({it.series.switch for it in trends})
    colors = switch_colors(switches)
    drawn = [
        {
            "title": _title(it),
            "notes": [it.problem] * bool(it.problem)
            + [f"{len(it.left_out)} runs of older commits omitted"] * bool(it.left_out),
            "chart": Markup(ABOUT.sub("", trend_chart(it, colors[it.series.switch]).svg(_title(it)))),
        }
        for it in shown[:charts]
    ]
    context = {
        "title": f"trends of {store}",
        "palette": PALETTE,
        "store": store,
        "metrics": sorted({METRICS[it.series.metric] for it in trends}),
        "colors": page_colors(switches),
        "script_digest": "",
        "series": len(trends),
        "runs": len({(it.series.testbed, sample.run_id) for it in trends for sample in it.samples}),
        "changes": changes_table(found),
        "drawn": drawn,
        "left_out": len(shown) - len(drawn),
    }
    return render(TEMPLATE, context)


def _title(trend: Trend) -> str:
    series = trend.series
    return f"{series.switch} {series.point}, {METRICS[series.metric]}, {series.testbed}"


def levels(trend: Trend) -> list[dict[str, Any]]:
    """Return the corners of the line of levels."""
    divisor = _UNITS.get(trend.series.metric, (1e6, ""))[0]
    corners: list[tuple[int, float]] = []
    begin, n = 0, len(trend.samples)
    for step in (*trend.steps, None):
        end = n if step is None else step.change.at
        inside = [sample.value for sample in trend.samples[begin:end]]
        if inside:
            level = sum(inside) / len(inside) / divisor
            corners += [(begin, level), (end - 1, level)]
        if step is not None:
            begin = step.change.at
    return [{"run": run, "level": level} for run, level in corners]


def trend_chart(trend: Trend, color: str) -> Canvas:
    """Draw the figure of each run, the levels, and where they change."""
    divisor, unit = _UNITS.get(trend.series.metric, (1e6, "Mpps"))
    rows = [
        {
            "run": number,
            "figure": sample.value / divisor,
            "tip": f"{sample.started_at} {commit_words(sample)}: {sample.value / divisor:.4g} {unit}",
        }
        for number, sample in enumerate(trend.samples)
    ]
    steps = [
        {"run": step.change.at, "tip": f"{change_words(step)}; {range_words(step)}; {cause_words(step)}"}
        for step in trend.steps
    ]
    corners = [(corner["run"], corner["level"]) for corner in levels(trend)]
    return trend_lines(rows, 480.0, color, unit or NOTHING, corners, steps)
