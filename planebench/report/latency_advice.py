# SPDX-License-Identifier: BSD-3-Clause
"""Who has the lowest latency at a cell, load by load, in words; and where that cannot be told."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from planebench.model.records import Point
from planebench.model.results import Comparison, LatencySummary, Result
from planebench.model.words import latency_counts, load_words, printable, us
from planebench.report.versus import Versus, versus
from planebench.stats.choose import is_foreign

Found = tuple[str, LatencySummary]
"""A switch and its latency at a load."""


def latency_advice(members: Sequence[Result], comparisons: Sequence[Comparison], pick: str) -> Iterator[str]:
    """Sentences on the lowest p50 at each load where two switches have one that counts.

    ``pick``: the switch that leads by throughput, which a lower latency elsewhere is set against; may be empty.
    """
    cell = members[0].point
    told: dict[str, list[str]] = {}
    open_: list[str] = []
    for load in dict.fromkeys(s.load for r in members for s in r.latency):
        found = _ordered(members, load)
        if len(found) > 1:
            words = _lead(cell, load, found, comparisons)
            if words:
                told.setdefault(found[0][0], []).append(words)
            else:
                open_.append(_open(cell, load, found, comparisons))
    for switch, found_at in told.items():
        also = "also has" if switch == pick else "has"
        yield f"{printable(switch)} {also} the lowest latency at {_some(found_at)}."
    if open_:
        yield f"Lowest latency not told apart at {_some(open_)}."


def _some(loads: Sequence[str]) -> str:
    """The lowest and the highest of some loads with their words, and how many lie between."""
    between = len(loads) - 2
    middle = [f"{between} load{'s' * (between > 1)} between"] if between > 0 else []
    return "; at ".join([*loads[:1], *middle, *loads[1:][-1:]])


def _ordered(members: Sequence[Result], load: str) -> list[Found]:
    """Latencies that count at a load, lowest p50 first."""
    found = [(r.point.switch, s) for r in members for s in r.latency if s.load == load and latency_counts(s)]
    found = [(switch, s) for switch, s in found if not is_foreign(s.verdict)]
    return sorted(((switch, s) for switch, s in found if s.samples), key=lambda pair: pair[1].p50)


def _lead(cell: Point, load: str, found: Sequence[Found], comparisons: Sequence[Comparison]) -> str:
    """Load, p50 and ratio to the next, where the first is told apart from every other; else empty."""
    first, second = found[0], found[1]
    pairs = [_pair(cell, load, first[0], other, comparisons) for other, _ in found[1:]]
    if not pairs or any(pair is None or not pair.distinguishable or pair.ratio >= 1 for pair in pairs):
        return ""
    assert pairs[0] is not None
    ratio = f"{pairs[0].words} that of {printable(second[0])}"
    return f"{load_words(load)} (p50 {us(first[1].p50)} µs, {ratio}{_loads(pairs[0])})"


def _open(cell: Point, load: str, found: Sequence[Found], comparisons: Sequence[Comparison]) -> str:
    """``0.10 R+ (p50: a 3.10, b 3.20 µs; one trial each)``."""
    figures = ", ".join(f"{printable(switch)} {us(s.p50)}" for switch, s in found[:2])
    pair = _pair(cell, load, found[0][0], found[1][0], comparisons)
    why = f"; {pair.note}" if pair and pair.note else ""
    return f"{load_words(load)} (p50: {figures} µs{why})"


def _loads(pair: Versus) -> str:
    return f"; {pair.note}" if pair.note else ""


def _pair(cell: Point, load: str, one: str, other: str, comparisons: Sequence[Comparison]) -> Versus | None:
    return versus(comparisons, cell, "latency_p50", one, other, load)
