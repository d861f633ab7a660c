# SPDX-License-Identifier: BSD-3-Clause
"""Chains against their parts: rows of words for table and page, and of values for charts."""

from __future__ import annotations

from collections.abc import Sequence

from planebench.model.records import Point
from planebench.model.words import ARROWS, NOTHING, frames, load_words, mpps, printable, us
from planebench.report.chart_data import TIP_MARK, Row
from planebench.report.page_table import Head, PageTable, heads
from planebench.report.page_table import Row as PageRow
from planebench.stats.chains import ChainLatency, Chains, ChainThroughput, part_points, told_words
from planebench.stats.effect import Effect

LATENCY_TITLE = "Latency of a chain against the sum of its parts alone, mean in µs"
THROUGHPUT_TITLE = "Throughput by chain, against the slowest part alone"
PAPER = (
    "can17 measured 34.3 µs for a chain of two functions (BESS, 128 B, 2 Mpps), and 46.0 µs for the two alone. "
    "A part alone has two hops of the switch and two wires; a chain of N has N + 1 hops and the same two wires."
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


LATENCY_HEADS = ("chain", "cell", "load", "chain µs", "parts µs", "sum", "ratio", "95 %", "told")
THROUGHPUT_HEADS = ("chain", "cell", "Mpps", "against", "ratio", "95 %", "told")


def latency_claim(chains: Chains) -> str:
    """The first claim in a sentence, over all chains, cells and loads; empty where there is none."""
    return _claim("Latency of a chain is", "the sum of its parts alone", [it.effect for it in chains.latency])


def throughput_claim(chains: Chains) -> str:
    """The second one."""
    effects = [it.effect for it in chains.throughput if part_points(it.point)]
    return _claim("Throughput of a chain is", "that of its slowest part alone", effects)


def _claim(what: str, against: str, effects: Sequence[Effect | None]) -> str:
    """``Latency of a chain is less than ... in 3 of 4 comparisons (ratio 0.61 to 0.80); it cannot be told in 1.``"""
    if not effects:
        return ""
    told = [effect.ratio for effect in effects if effect is not None and effect.distinguishable]
    sides = {"less": [ratio for ratio in told if ratio < 1], "more": [ratio for ratio in told if ratio >= 1]}
    found = [
        f"{side} than {against} in {len(ratios)} of {len(effects)} comparisons (ratio {min(ratios):.2f}"
        f"{f' to {max(ratios):.2f}' if len(ratios) > 1 else ''})"
        for side, ratios in sides.items()
        if ratios
    ]
    unknown = len(effects) - len(told)
    if not found:
        return f"Whether {what[0].lower()}{what[1:]} less or more than {against} cannot be told in any of {unknown}."
    rest = f"; it cannot be told in {unknown}" if unknown else ""
    return f"{what} {', '.join(found)}{rest}."


def chain_tables(chains: Chains) -> list[PageTable]:
    """Both claims for the page; only those that have rows."""
    latency = tuple(PageRow((it.point.switch, *latency_words(it), it.note), it.effect is None) for it in chains.latency)
    rates = tuple(
        PageRow((it.point.switch, *throughput_words(it), it.note), it.throughput_pps is None)
        for it in chains.throughput
    )
    columns = (Head("switch", "switch"), Head("chain"), Head("cell"))
    note, tail = Head("note", "text"), (*heads(("ratio", "95 %")), Head("told"))
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
            (*columns, Head("Mpps", "strong"), Head("against"), *tail, note),
            rates,
            throughput_claim(chains),
        ),
    )
    return [table for table in tables if table.rows]


def stack_rows(found: Sequence[ChainLatency]) -> list[Row]:
    """Bars of one cell and load: for each switch and chain one of the chain, one of its parts, stacked."""
    rows: list[Row] = []
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
                    "bar": f"{switch}: {'chain' if bar == 'chain' else 'parts alone'}",
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
