# SPDX-License-Identifier: BSD-3-Clause
"""Chains compared with their functions measured alone: tables, sentences, figures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from planebench.analysis.answers import Answer
from planebench.analysis.chains import ChainLatency, Chains, part_points, told_words
from planebench.model.records import Point
from planebench.model.server import NEAR
from planebench.model.words import ARROWS, NOTHING, frames, load_words, mpps, us
from planebench.report.charts import stacked_parts
from planebench.report.figure import WHOLE, Figure, frames_key, point_name
from planebench.report.svg import ChartRow
from planebench.report.tables import PageColumn, PageTable, known, number, page_table

LATENCY_TITLE = "Chain latency compared with the sum of its functions measured alone, mean in µs"

THROUGHPUT_TITLE = "Chain throughput compared with its slowest function measured alone"

PAPER = (
    "can17 measured 34.3 µs for a chain of two functions (BESS, 128 B, 2 Mpps), and 46.0 µs for the two alone. "
    "A function measured alone crosses the switch twice and uses two wires; a chain of N crosses it N + 1 "
    "times and uses the same two wires."
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
    """Return the tables of both claims, each with its claim below."""
    names = (
        PageColumn("switch", lambda it: it.point.switch, "switch", lambda it: (it.point,)),
        PageColumn("chain", lambda it: it.point.chain_label),
        PageColumn("test point", lambda it: f"{ARROWS[it.point.direction]} {frames(it.point)}"),
    )
    effect = (
        number("ratio", lambda it: known(it.effect, lambda effect: f"{effect.ratio:.2f}")),
        number("95 % CI", lambda it: _interval(it.effect)),
    )
    note = PageColumn("note", lambda it: it.note, "text")
    latency = page_table(
        LATENCY_TITLE,
        (
            *names,
            PageColumn("load", lambda it: load_words(it.load)),
            number("chain", lambda it: known(it.mean_us, us)),
            number("parts", lambda it: " + ".join(us(part.mean_us) for part in it.parts) or NOTHING),
            number("sum", lambda it: known(it.sum_us, us)),
            *effect,
            PageColumn("result", lambda it: NOTHING if it.mean_us is None else told_words(it.effect)),
            note,
        ),
        chains.latency,
        f"{latency_claim(chains)} {PAPER}",
        out=lambda it: it.effect is None,
    )
    throughput = page_table(
        THROUGHPUT_TITLE,
        (
            *names,
            PageColumn("Mpps", lambda it: ("≥" if it.bound else "") + mpps(it.throughput_pps), "strong"),
            PageColumn("compared with", lambda it: it.against or NOTHING),
            *effect,
            # A function measured alone is compared with nothing.
            PageColumn("result", lambda it: told_words(it.effect) if it.against or it.note else NOTHING),
            note,
        ),
        chains.throughput,
        throughput_claim(chains),
        out=lambda it: it.throughput_pps is None,
    )
    return [latency, throughput]


def stack_rows(found: Sequence[ChainLatency]) -> list[ChartRow]:
    """Return the bars of one test point and load: per switch and chain one for the chain and one for its functions."""
    rows: list[ChartRow] = []
    for it in found:
        if it.mean_us is None or it.sum_us is None:
            continue
        switch, chain = it.point.switch, it.point.chain_label
        for bar, parts in (
            ("chain", [(WHOLE, it.mean_us)]),
            ("functions alone", [(p.name, p.mean_us) for p in it.parts]),
        ):
            start = 0.0
            for place, (name, mean_us) in enumerate(parts, start=1):
                rows.append(
                    {
                        "switch": switch,
                        "chain": chain,
                        "bar": f"{switch}: {bar}",
                        "part": name,
                        "start": start,
                        "end": start + mean_us,
                        "last": place == len(parts),
                        "cell": point_name(it.point),
                        "tip": f"{switch}, {chain}: {name} {us(mean_us)} µs",
                    }
                )
                start += mean_us
    return rows


def _interval(effect: Answer | None) -> str:
    if effect is None or (effect.low, effect.high) == (None, None):
        return NOTHING
    return " to ".join("open" if side is None else f"{side:.2f}" for side in (effect.low, effect.high))


def chain_figures(found: Sequence[ChainLatency]) -> Iterator[Figure]:
    """Yield one figure per direction, frame size and load for which chain and functions are known."""
    cells: dict[tuple[Point, str], list[ChainLatency]] = {}
    for it in found:
        cell = replace(it.point, switch="", chain_length=1, chain="", hosting="process", placement=NEAR)
        cells.setdefault((cell, it.load), []).append(it)
    for (cell, load), members in cells.items():
        rows = stack_rows(members)
        if rows:
            title = f"{ARROWS[cell.direction]} {cell.direction}, {frames(cell)}, {load_words(load)}"
            key = f"parts-{cell.direction}-{frames_key(cell)}-{load}"
            yield Figure(key, "parts", cell.scenario, title, rows, stacked_parts)
