# SPDX-License-Identifier: BSD-3-Clause
"""Chains against their parts: tables of page and terminal, sentences, figures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

from rich.console import RenderableType
from rich.text import Text

from planebench.model.records import Point
from planebench.model.words import ARROWS, NOTHING, frames, load_words, mpps, printable, us
from planebench.report.charts.figure import TIP_MARK, ChartRow, Figure, frames_key
from planebench.report.glyphs import Glyphs
from planebench.report.grid import bare_table
from planebench.report.page_table import Head, PageTable, Row, heads
from planebench.stats.chains import ChainLatency, Chains, ChainThroughput, part_points, told_words
from planebench.stats.effect import Effect

LATENCY_TITLE = "Chain latency compared with the sum of its functions measured alone, mean in µs"

THROUGHPUT_TITLE = "Chain throughput compared with its slowest function measured alone"

PAPER = (
    "can17 measured 34.3 µs for a chain of two functions (BESS, 128 B, 2 Mpps), and 46.0 µs for the two alone. "
    "A function measured alone crosses the switch twice and uses two wires; a chain of N crosses it N + 1 "
    "times and uses the same two wires."
)

WHOLE = "chain"
"""Of a bar: the chain itself, not one of its parts."""


def latency_words(found: ChainLatency) -> tuple[str, ...]:
    """chain, cell, load, mean, parts, sum, ratio, interval, told."""
    known = found.mean_us is not None
    parts = " + ".join(us(part.mean_us) for part in found.parts)
    return (
        printable(found.point.chain_label),
        _cell(found.point),
        load_words(found.load),
        us(found.mean_us) if found.mean_us is not None else NOTHING,
        parts or NOTHING,
        us(found.sum_us) if found.sum_us is not None else NOTHING,
        *_effect_words(found.effect),
        told_words(found.effect) if known else NOTHING,
    )


def throughput_words(found: ChainThroughput) -> tuple[str, ...]:
    """chain, cell, Mpps, against, ratio, interval, told. Parts have no ratio."""
    alone = not found.against and not found.note
    return (
        printable(found.point.chain_label),
        _cell(found.point),
        ("≥" if found.bound else "") + mpps(found.throughput_pps),
        printable(found.against) or NOTHING,
        *_effect_words(found.effect),
        NOTHING if alone else told_words(found.effect),
    )


LATENCY_HEADS = ("chain", "test point", "load", "chain µs", "parts µs", "sum", "ratio", "95 % CI", "result")

THROUGHPUT_HEADS = ("chain", "test point", "Mpps", "compared with", "ratio", "95 % CI", "result")


def latency_claim(chains: Chains) -> str:
    """Return the result on latency over all chains, test points and loads as a sentence; empty without chains."""
    return _claim("Chain latency is", "the sum of its functions measured alone", [it.effect for it in chains.latency])


def throughput_claim(chains: Chains) -> str:
    """Return the result on throughput as a sentence; empty without chains."""
    effects = [it.effect for it in chains.throughput if part_points(it.point)]
    return _claim("Chain throughput is", "that of its slowest single function", effects)


def _claim(what: str, against: str, effects: Sequence[Effect | None]) -> str:
    """``Chain latency is significantly below ... in 3 of 4 comparisons (ratio 0.61 to 0.80); 1 is inconclusive.``"""
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
    """Both claims for the page; only those that have rows."""
    latency = tuple(Row((it.point.switch, *latency_words(it), it.note), it.effect is None) for it in chains.latency)
    rates = tuple(
        Row((it.point.switch, *throughput_words(it), it.note), it.throughput_pps is None) for it in chains.throughput
    )
    columns = (Head("switch", "switch"), Head("chain"), Head("test point"))
    note, tail = Head("note", "text"), (*heads(("ratio", "95 % CI")), Head("result"))
    numbers = heads(("chain", "parts", "sum"))
    tables = (
        PageTable(
            LATENCY_TITLE,
            (*columns, Head("load"), *numbers, *tail, note),
            latency,
            f"{latency_claim(chains)} {PAPER}",
        ),
        PageTable(
            THROUGHPUT_TITLE,
            (*columns, Head("Mpps", "strong"), Head("compared with"), *tail, note),
            rates,
            throughput_claim(chains),
        ),
    )
    return [table for table in tables if table.rows]


def stack_rows(found: Sequence[ChainLatency]) -> list[ChartRow]:
    """Bars of one cell and load: for each switch and chain one of the chain, one of its parts, stacked."""
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
                    "tip": f"{TIP_MARK}{switch}, {chain}: {name} {us(value)} µs",
                }
            )
    return rows


def _cell(point: Point) -> str:
    return f"{ARROWS[point.direction]} {frames(point)}"


def _effect_words(effect: Effect | None) -> tuple[str, str]:
    if effect is None:
        return NOTHING, NOTHING
    sides = ("open" if side is None else f"{side:.2f}" for side in (effect.low, effect.high))
    bounds = " to ".join(sides) if (effect.low, effect.high) != (None, None) else NOTHING
    return f"{effect.ratio:.2f}", bounds


MAX_ROWS = 24
"""Of a table; a run with more has them in the page."""

_TEXTS = ("switch", "chain", "test point", "load", "compared with", "result")

Rows = Sequence[tuple[str, ...]]


def chain_blocks(chains: Chains, glyphs: Glyphs, width: int) -> Iterator[RenderableType]:
    """Both claims, each with a sentence; its rows are only counted where they do not fit."""
    latency = [(it.point.switch, *latency_words(it)) for it in chains.latency]
    rates = [(it.point.switch, *throughput_words(it)) for it in chains.throughput]
    if latency or rates:
        title = Text("\n")
        title.append("chains", style="bold cyan")
        title.append("  chain compared with each function measured alone", style="dim")
        yield title
    yield from _block(LATENCY_TITLE, LATENCY_HEADS, latency, glyphs, width)
    yield from (Text(glyphs.text(claim)) for claim in filter(None, [latency_claim(chains)]))
    yield from _block(THROUGHPUT_TITLE, THROUGHPUT_HEADS, rates, glyphs, width)
    yield from (Text(glyphs.text(claim)) for claim in filter(None, [throughput_claim(chains)]))


def _block(title: str, heads: tuple[str, ...], rows: Rows, glyphs: Glyphs, width: int) -> Iterator[RenderableType]:
    if not rows:
        return
    columns = ("switch", *heads)
    lines = [tuple(_plain(cell, glyphs) for cell in row) for row in rows]
    needed = sum(max(map(len, column)) + 3 for column in zip(columns, *lines, strict=True))
    if len(rows) > MAX_ROWS or needed > width:
        yield Text(glyphs.text(f"{title}: {len(rows)} rows; see the report"))
        return
    yield Text(glyphs.text(title), style="dim")
    table = bare_table(glyphs)
    for head in columns:
        table.add_column(glyphs.text(head), no_wrap=True, justify="left" if head in _TEXTS else "right")
    for line in lines:
        table.add_row(*map(Text, line))
    yield table


def _plain(cell: str, glyphs: Glyphs) -> str:
    for direction, arrow in ARROWS.items():
        cell = cell.replace(arrow, glyphs.arrow(direction))
    return glyphs.text(cell)


def chain_figures(found: Sequence[ChainLatency]) -> Iterator[Figure]:
    """One for each direction, frame size and load of which both sides are known."""
    from planebench.report.charts.bars import stacked_parts

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
