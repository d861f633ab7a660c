# SPDX-License-Identifier: BSD-3-Clause
"""The drawings of docs/results, for record.py: one for each question of the page."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import resources

from record_kept import CHAINS, ENDS, MAIN, RESULTS, chosen, costs, path, run_of, small

from planebench.model.results import Result
from planebench.model.words import cycles
from planebench.report.charts import grouped_bars
from planebench.report.figure import DARK_COLORS, SWITCH_COLORS, Figure, switch_colors
from planebench.report.images import figure_svg
from planebench.report.latency import load_figures
from planebench.report.svg import GRID, INK, MUTED, Canvas, ChartRow, Scale, text_px
from planebench.report.throughput import chain_length_figures, throughput_row
from planebench.report.vnfs import over_vnfs

IMAGES = RESULTS / "img"


def switch_rows(*paths: str, line: bool = False) -> list[tuple[Result, str]]:
    """Return the results of the main suite on some paths, each with its path."""
    return [(r, path(it.point)) for it in chosen(MAIN, *paths, line=line) for r in (*it.results, *it.missing)]


def draw_throughput() -> str:
    """Draw the throughput of single hops, and of the shortest and the longest chain."""
    rows = [{**throughput_row(result), "path": where} for result, where in switch_rows(*ENDS)]
    look = partial(grouped_bars, colors=colors())
    return figure_svg(Figure("throughput", "overview", "p2p", "Throughput, 64 B, one direction", rows, look))


def draw_cost() -> str:
    """Draw the cycles per packet of p2p."""
    (hop,) = chosen(MAIN, "p2p →")
    rows = [
        {"switch": name, "cycles": value, "label": cycles(value) if counted else f"({cycles(value)})"}
        for name, (value, counted) in sorted(costs(MAIN, hop.point).items(), key=lambda it: it[1])
    ]
    svg = figure_svg(Figure("cost", "overview", "p2p", "Cycles per packet, p2p, 64 B", rows, cost_bars))
    words = "In parentheses: all cycles of the core; the switch counts none."
    return re.sub("<desc>.*?</desc>", f"<desc>{words}</desc>", svg, count=1, flags=re.DOTALL)


def cost_bars(rows: Sequence[ChartRow], width: float) -> Canvas:
    """Draw a bar a switch, with its cycles behind it."""
    left, bottom = text_px(row["switch"] for row in rows) + 10, 19.0 * len(rows) + 4
    canvas = Canvas(width, bottom + 36)
    x = Scale(0.0, max(row["cycles"] for row in rows), left, width - 50)
    canvas.axis(x, "cycles", bottom, 0.0, upright=False)
    for number, row in enumerate(rows):
        y = 19.0 * number + 13
        canvas.text(left - 6, y + 4, row["switch"], "end")
        canvas.add("rect", x=left, y=y - 7, width=x(row["cycles"]) - left, height=14, fill=colors()[row["switch"]])
        canvas.text(x(row["cycles"]) + 6, y + 4, row["label"])
    return canvas


def draw_latency() -> str:
    """Draw latency against load of p2p."""
    found = [result for result, _ in switch_rows("p2p →", line=True)]
    return figure_svg(next(load_figures(found, colors(), run_of(MAIN).run.header.calibration)))


def draw_chains() -> str:
    """Draw the throughput by the length of the chain."""
    found = [result for result, _ in switch_rows(*CHAINS)]
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
