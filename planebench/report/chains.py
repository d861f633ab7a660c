# SPDX-License-Identifier: BSD-3-Clause
"""Chains compared with their functions measured alone: tables of page and terminal, sentences, figures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

from rich.console import RenderableType
from rich.text import Text

from planebench.analysis.answers import Answer
from planebench.analysis.chains import ChainLatency, Chains, ChainThroughput, part_points, told_words
from planebench.model.records import Point
from planebench.model.server import NEAR
from planebench.model.words import ARROWS, NOTHING, frames, load_words, mpps, printable, us
from planebench.report.figure import WHOLE, ChartRow, Figure, frames_key, tip
from planebench.report.page.table import PageColumn, PageTable, number, page_table
from planebench.report.terminal.grid import Glyphs, small_table

LATENCY_TITLE = "Chain latency compared with the sum of its functions measured alone, mean in µs"

THROUGHPUT_TITLE = "Chain throughput compared with its slowest function measured alone"

PAPER = (
    "can17 measured 34.3 µs for a chain of two functions (BESS, 128 B, 2 Mpps), and 46.0 µs for the two alone. "
    "A function measured alone crosses the switch twice and uses two wires; a chain of N crosses it N + 1 "
    "times and uses the same two wires."
)


def latency_columns(unit: str = "") -> tuple[PageColumn, ...]:
    """Return the columns of a table of chain latencies; ``unit`` is in the titles of its first two figures."""
    return (
        *_NAMES,
        PageColumn("load", lambda it: load_words(it.load)),
        number(f"chain{unit}", lambda it: _us(it.mean_us)),
        number(f"parts{unit}", lambda it: " + ".join(us(part.mean_us) for part in it.parts) or NOTHING),
        number("sum", lambda it: _us(it.sum_us)),
        *_EFFECT,
        PageColumn("result", lambda it: NOTHING if it.mean_us is None else told_words(it.effect)),
    )


def _us(value: float | None) -> str:
    return NOTHING if value is None else us(value)


def _result(found: ChainThroughput) -> str:
    """Return the result of a comparison; a dash for a function measured alone, which has none."""
    return told_words(found.effect) if found.against or found.note else NOTHING


_NAMES = (
    PageColumn("switch", lambda it: it.point.switch, "switch", lambda it: (it.point,)),
    PageColumn("chain", lambda it: printable(it.point.chain_label)),
    PageColumn("test point", lambda it: f"{ARROWS[it.point.direction]} {frames(it.point)}"),
)
_EFFECT = number("ratio", lambda it: _ratio(it.effect)), number("95 % CI", lambda it: _interval(it.effect))
_NOTE = PageColumn("note", lambda it: it.note, "text")
THROUGHPUT_COLUMNS = (
    *_NAMES,
    PageColumn("Mpps", lambda it: ("≥" if it.bound else "") + mpps(it.throughput_pps), "strong"),
    PageColumn("compared with", lambda it: printable(it.against) or NOTHING),
    *_EFFECT,
    PageColumn("result", _result),
)


def latency_claim(chains: Chains) -> str:
    """Return the result on latency over all chains, test points and loads as a sentence; empty without chains."""
    return _claim("Chain latency is", "the sum of its functions measured alone", [it.effect for it in chains.latency])


def throughput_claim(chains: Chains) -> str:
    """Return the result on throughput as a sentence; empty without chains."""
    effects = [it.effect for it in chains.throughput if part_points(it.point)]
    return _claim("Chain throughput is", "that of its slowest single function", effects)


def _claim(what: str, against: str, effects: Sequence[Answer | None]) -> str:
    """Return ``Chain latency is significantly below ... in 3 of 4 comparisons (ratio 0.61); 1 is inconclusive.``"""
    if not effects:
        return ""
    known = [effect.ratio for effect in effects if effect is not None and effect.distinguishable]
    sides = {"below": [ratio for ratio in known if ratio < 1], "above": [ratio for ratio in known if ratio >= 1]}
    found = [
        f"significantly {side} {against} in {len(ratios)} of {len(effects)} comparisons (ratio {min(ratios):.2f}"
        f"{f' to {max(ratios):.2f}' if len(ratios) > 1 else ''})"
        for side, ratios in sides.items()
        if ratios
    ]
    unknown = len(effects) - len(known)
    if not found:
        return (
            f"Whether {what[0].lower()}{what[1:]} below or above {against} is inconclusive in all "
            f"{unknown} comparisons."
        )
    rest = f"; {unknown} {'is' if unknown == 1 else 'are'} inconclusive" if unknown else ""
    return f"{what} {', '.join(found)}{rest}."


def chain_tables(chains: Chains) -> list[PageTable]:
    """Return the tables of both claims for the page; only those that have rows."""
    latency = page_table(
        LATENCY_TITLE,
        (*latency_columns(), _NOTE),
        chains.latency,
        f"{latency_claim(chains)} {PAPER}",
        out=lambda it: it.effect is None,
    )
    throughput = page_table(
        THROUGHPUT_TITLE,
        (*THROUGHPUT_COLUMNS, _NOTE),
        chains.throughput,
        throughput_claim(chains),
        out=lambda it: it.throughput_pps is None,
    )
    return [table for table in (latency, throughput) if table.rows]


def stack_rows(found: Sequence[ChainLatency]) -> list[ChartRow]:
    """Return the bars of one test point and load: per switch and chain one for the chain and one for its functions."""
    rows: list[ChartRow] = []
    for it in found:
        if it.mean_us is None or it.sum_us is None:
            continue
        switch, chain = printable(it.point.switch), printable(it.point.chain_label)
        bars = [("chain", WHOLE, it.mean_us), *(("parts", printable(part.name), part.mean_us) for part in it.parts)]
        for order, (bar, name, value) in enumerate(bars):
            rows.append(
                {
                    "switch": switch,
                    "chain": chain,
                    "bar": f"{switch}: {'chain' if bar == 'chain' else 'functions alone'}",
                    "part": name,
                    "order": order,
                    "us": value,
                    "tip": tip(f"{switch}, {chain}: {name} {us(value)} µs", it.point),
                }
            )
    return rows


def _ratio(effect: Answer | None) -> str:
    return NOTHING if effect is None else f"{effect.ratio:.2f}"


def _interval(effect: Answer | None) -> str:
    if effect is None or (effect.low, effect.high) == (None, None):
        return NOTHING
    return " to ".join("open" if side is None else f"{side:.2f}" for side in (effect.low, effect.high))


MAX_ROWS = 24
"""Rows of a table in the terminal; the page has all."""


def chain_blocks(chains: Chains, glyphs: Glyphs, width: int) -> Iterator[RenderableType]:
    """Yield both claims for the terminal, each with its rows, if they fit, and a sentence."""
    if chains.latency or chains.throughput:
        title = Text("\n")
        title.append("chains", style="bold cyan")
        title.append("  chain compared with each function measured alone", style="dim")
        yield title
    latency = page_table(LATENCY_TITLE, latency_columns(" µs"), chains.latency, latency_claim(chains))
    throughput = page_table(THROUGHPUT_TITLE, THROUGHPUT_COLUMNS, chains.throughput, throughput_claim(chains))
    for table in (latency, throughput):
        if table.rows and (drawn := small_table(table, glyphs, width, MAX_ROWS)):
            yield Text(glyphs.text(table.caption), style="dim")
            yield drawn
        elif table.rows:
            yield Text(glyphs.text(f"{table.caption}: {len(table.rows)} rows; see the report"))
        if table.note:
            yield Text(glyphs.text(table.note))


def chain_figures(found: Sequence[ChainLatency]) -> Iterator[Figure]:
    """Yield one figure per direction, frame size and load for which chain and functions are known."""
    from planebench.report.charts import stacked_parts

    cells: dict[tuple[Point, str], list[ChainLatency]] = {}
    for it in found:
        cell = replace(it.point, switch="", chain_length=1, chain="", hosting="process", placement=NEAR)
        cells.setdefault((cell, it.load), []).append(it)
    for (cell, load), members in cells.items():
        rows = stack_rows(members)
        if rows:
            title = f"{ARROWS[cell.direction]} {cell.direction}, {frames(cell)}, {load_words(load)}"
            key = f"parts-{cell.direction}-{frames_key(cell)}-{load}"
            yield Figure(key, "parts", cell.scenario, title, partial(stacked_parts, rows))
