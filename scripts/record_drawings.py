# SPDX-License-Identifier: BSD-3-Clause
"""The drawings of docs/results, for record.py: one for each question of the page."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from importlib import resources
from typing import Any

from record_kept import ENDS, MAIN, PATHS, RESULTS, chosen, costs, path, run_of, small

from planebench.model.results import Result
from planebench.model.words import cycles
from planebench.report.figure import DARK_COLORS, GRID, INK, MUTED, SWITCH_COLORS, Figure, switch_colors
from planebench.report.images import described, drawn, figure_svg
from planebench.report.latency import load_figures
from planebench.report.throughput import chain_length_figures, throughput_row
from planebench.report.vnfs import over_vnfs

IMAGES = RESULTS / "img"


def switch_rows(*paths: str) -> list[tuple[Result, str]]:
    """Return the results of the main suite on some paths, each with its path."""
    return [(r, path(it.point)) for it in chosen(MAIN, *paths) for r in (*it.results, *it.missing)]


def draw_throughput() -> str:
    """Draw the throughput of one hop, and of the shortest and the longest chain."""
    from planebench.report.charts import overview_bars

    found = switch_rows(*ENDS)
    rows = [{**throughput_row(result), "path": where} for result, where in found]
    top = 1.2 * max(row["mpps"] for row in rows)  # with room for the figures behind the bars
    make = partial(overview_bars, rows, colors(), top)
    return figure_svg(Figure("throughput", "overview", "p2p", "Throughput, 64 B, one direction", make))


def draw_cost() -> str:
    """Draw the cycles per packet of one hop."""
    import altair as alt

    from planebench.report import charts

    (hop,) = chosen(MAIN, "p2p →")
    rows = [
        {"switch": name, "cycles": value, "label": cycles(value) if counted else f"({cycles(value)})"}
        for name, (value, counted) in sorted(costs(MAIN, hop.point).items(), key=lambda it: it[1])
    ]
    title = "Cycles per packet, one hop, 64 B"
    x = alt.X("cycles:Q", title="cycles", axis=alt.Axis(tickCount=5))
    y = alt.Y("switch:N", sort=[row["switch"] for row in rows], axis=charts.named_axis())
    base = alt.Chart(charts.table(rows)).encode(x=x, y=y)
    bars = base.mark_bar(height={"band": 0.74}).encode(color=charts.color(colors()))
    labels = base.mark_text(align="left", dx=6, fontSize=11, color=INK).encode(text="label:N")
    layered: Any = charts.plain(alt.layer(bars, labels, width=330, height=alt.Step(charts.BAR_STEP)))
    words = alt.Title(title, anchor="start", fontSize=13, offset=8, color=INK, font=charts.FONT)
    spec = layered.properties(title=words, background="white").to_dict(validate=False)
    return described(drawn(spec, None), title, "In parentheses: all cycles of the core; the switch counts none.")


def draw_latency() -> str:
    """Draw latency against load of one hop."""
    found = [result for result, _ in switch_rows("p2p →")]
    return figure_svg(next(load_figures(found, colors(), run_of(MAIN).run.header.calibration)))


def draw_chains() -> str:
    """Draw the throughput by the length of the chain."""
    found = [result for result, _ in switch_rows(*PATHS[1:])]
    return figure_svg(next(chain_length_figures(found, colors())))


def draw_vnfs() -> str:
    """Draw the throughput by the number of L2 VNFs."""
    found = [it for it in run_of("ic16").results if it.point.scenario == "parallel" and small(it.point)]
    return figure_svg(next(over_vnfs(found, switch_colors(run_of("ic16").run.switch_labels))))


def colors() -> dict[str, str]:
    """Return the color of each switch of the main suite."""
    return switch_colors(run_of(MAIN).run.switch_labels)


DRAWINGS: Mapping[str, Callable[[], str]] = {
    "throughput.svg": draw_throughput,
    "cost.svg": draw_cost,
    "latency.svg": draw_latency,
    "chains.svg": draw_chains,
    "vnfs.svg": draw_vnfs,
}


def draw() -> None:
    """Write all drawings as SVG that follow the color scheme of the reader."""
    for name, make in DRAWINGS.items():
        (IMAGES / name).write_text(in_both_schemes(make()) + "\n", encoding="utf-8")


def in_both_schemes(svg: str) -> str:
    """Return a drawing with the colors of the report's dark mode where the reader's scheme is dark."""
    css = resources.files("planebench.report").joinpath("report.css").read_text(encoding="utf-8")
    dark = dict(re.findall(r"--(\w+): (#\w+)", css.partition("prefers-color-scheme: dark")[2].partition("}")[0]))
    swaps = {"white": dark["paper"], INK: dark["ink"], MUTED: dark["muted"], GRID: dark["line"]}
    swaps |= dict(zip(SWITCH_COLORS, DARK_COLORS, strict=True))
    rules = "".join(
        f'[{name}="{light}"]{{{name}:{there}}}' for light, there in swaps.items() for name in ("fill", "stroke")
    )
    style = f"<style>@media (prefers-color-scheme: dark) {{{rules}}}</style>"
    return re.sub(r"(<svg[^>]*>)", rf"\1{style}", svg, count=1)
