# SPDX-License-Identifier: BSD-3-Clause
"""Chains compared with their functions measured alone."""

from __future__ import annotations

from planebench.analysis.answers import Answer
from planebench.analysis.chains import Chains, told_words
from planebench.model.words import ARROWS, NOTHING, frames, load_words, mpps, us
from planebench.report.tables import PageColumn, PageTable, known, number, page_table

PAPER = (
    "can17 measured 34.3 µs for a chain of two functions (BESS, 128 B, 2 Mpps), and 46.0 µs for the two alone. "
    "A function measured alone crosses the switch twice and uses two wires; a chain of N crosses it N + 1 "
    "times and uses the same two wires."
)


def chain_tables(chains: Chains) -> list[PageTable]:
    """Return what chains have beside their functions measured alone: latency, and throughput."""
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
        "Chain latency compared with the sum of its functions measured alone, mean in µs",
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
        PAPER,
        out=lambda it: it.effect is None,
    )
    throughput = page_table(
        "Chain throughput compared with its slowest function measured alone",
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
        out=lambda it: it.throughput_pps is None,
    )
    return [latency, throughput]


def _interval(effect: Answer | None) -> str:
    if effect is None or (effect.low, effect.high) == (None, None):
        return NOTHING
    return " to ".join("open" if side is None else f"{side:.2f}" for side in (effect.low, effect.high))
