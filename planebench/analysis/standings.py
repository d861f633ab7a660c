# SPDX-License-Identifier: BSD-3-Clause
"""The standings of a run: which switch is first at each test point, by how much, how sure that is, and what to take.

No lead is claimed here that a comparison has not shown. ``planebench.report`` has the words for it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

from planebench.analysis.compare import Derived
from planebench.analysis.counting import cell_id, counts, latency_compares, reach_pps, same_cell
from planebench.model.records import Point, VerdictKind
from planebench.model.results import Comparison, LatencySummary, Metric, Result
from planebench.model.words import load_share

AnswerState = Literal["different", "same", "open", "untested", "tester-limited", "alone", "none"]
"""What is known of the first of a standing: it differs from all others; some are the same; more starts would decide it;
some were not tested; the tester hides which is first; it is the only one; there is none."""

DECIDED: tuple[AnswerState, ...] = ("different", "same")

MIDDLE = 0.5
"""The load, as a share, that the latency of the first screen is nearest to."""


ComparisonsByPair = Mapping[tuple[str, Metric, str, frozenset[str]], Comparison]
"""Comparisons by point, metric, load and the two switches."""


def by_pair(comparisons: Iterable[Comparison]) -> ComparisonsByPair:
    """Return comparisons by what they compare."""
    return {(c.point, c.metric, c.load, frozenset((c.a, c.b))): c for c in comparisons}


def versus(
    pairs: ComparisonsByPair, cell: Point, metric: Metric, one: str, other: str, load: str = ""
) -> Comparison | None:
    """Return the comparison with the ratio ``one`` / ``other`` at a test point, whatever the order it was made in.

    The switch of ``cell`` is ignored. None if they were not compared, or if the ratio is not defined.
    """
    found = pairs.get((cell_id(cell), metric, load, frozenset((one, other))))
    if found is None or found.b == one:
        return found
    low, high = (1 / end if end else None for end in (found.high, found.low))
    return replace(found, a=found.b, b=found.a, ratio=1 / found.ratio, low=low, high=high) if found.ratio else None


@dataclass(frozen=True, slots=True)
class Standing:
    """The switches of one test point by one metric, best first.

    A throughput that the tester or the links limit is compared by the capacity estimated, where that is known.
    ``pairs``: the comparison of the first with each other, None where there is none. Their ratio is the advantage of
    the first: above 1 it has the higher throughput, or the lower cost or latency. ``missing``: those without a figure.
    """

    point: Point
    metric: Metric
    load: str
    results: tuple[Result, ...]
    pairs: tuple[Comparison | None, ...]
    second_lead: Comparison | None = None
    """The comparison of the second with the one after it, if it shows that the second is ahead of that."""
    missing: tuple[Result, ...] = ()

    @property
    def lead(self) -> Comparison | None:
        """Return the comparison of the first with the next; None where they were not compared."""
        return self.pairs[0] if self.pairs else None

    @property
    def level(self) -> tuple[tuple[Result, Comparison | None], ...]:
        """Return the others that are not shown to be behind the first, each with its comparison."""
        others = zip(self.results[1:], self.pairs, strict=True)
        return tuple((r, c) for r, c in others if c is None or c.answer != "different" or c.ratio <= 1)

    @property
    def hidden(self) -> tuple[Result, ...]:
        """Return the others whose throughput is a lower bound, so that they may be faster than the first."""
        if self.metric != "throughput":
            return ()
        first = self.results[0].verdict.kind if self.results else VerdictKind.VALID
        return tuple(
            r
            for r, c in self.level
            if r.verdict.kind.is_bound
            and (c is None or c.answer != "same")
            # Two that fill one line are compared by what they do on it.
            and (c is None or not first is r.verdict.kind is VerdictKind.LINE_RATE)
        )

    @property
    def at_line_rate(self) -> bool:
        """Return whether it is the links alone that hide how fast others are."""
        return bool(self.hidden) and all(r.verdict.kind is VerdictKind.LINE_RATE for r in self.hidden)

    @property
    def undecided(self) -> tuple[Comparison | None, ...]:
        """Return the comparisons with the others that are neither shown to be behind the first nor the same."""
        return tuple(c for _, c in self.level if c is None or c.answer != "same")

    @property
    def state(self) -> AnswerState:
        """Return what is known of the first; of several level switches, what is known least."""
        if len(self.results) < 2:
            return "alone" if self.results else "none"
        if not self.undecided:
            return "same" if self.level else "different"
        if self.hidden:
            return "tester-limited"
        return "untested" if any(c is None or c.answer == "untested" for c in self.undecided) else "open"


class Standings:
    """The standings of a run, one per test point in the order of the results; each metric is derived once."""

    def __init__(self, derived: Derived) -> None:
        self.derived = derived

    @cached_property
    def throughput(self) -> tuple[Standing, ...]:
        """Return the standings by throughput."""
        return _standings(self.derived, "throughput")

    @property
    def compared(self) -> tuple[Standing, ...]:
        """Return those by throughput that have several switches, with a figure or without."""
        return tuple(it for it in self.throughput if len(it.results) + len(it.missing) > 1)

    @cached_property
    def cost(self) -> dict[Point, Standing]:
        """Return the standings by cycles per packet, by test point."""
        return {it.point: it for it in _standings(self.derived, "cycles_per_packet")}

    @cached_property
    def latency(self) -> tuple[Standing, ...]:
        """Return the standings by p99 latency, each at :func:`middle_load`, where a latency was measured."""
        return tuple(it for it in _standings(self.derived, "latency_p99") if it.load)


def _standings(derived: Derived, metric: Metric) -> tuple[Standing, ...]:
    pairs = by_pair(c for c in derived.comparisons if c.metric in (metric, "capacity"))
    return tuple(_standing(pairs, metric, cell, members) for cell, members in same_cell(derived.results).items())


def _standing(pairs: ComparisonsByPair, metric: Metric, cell: Point, members: Sequence[Result]) -> Standing:
    load = middle_load(members) if metric == "latency_p99" else ""
    figures = {r.point: _figure(r, metric, load) for r in members}
    known = [r for r in members if figures[r.point] is not None]
    ordered = sorted(known, key=lambda r: figures[r.point] or 0.0, reverse=metric == "throughput")

    def advantage(first: Result, other: Result) -> Comparison | None:
        names = first.point.switch, other.point.switch
        one, two = names if metric == "throughput" else reversed(names)
        found = versus(pairs, cell, metric, one, two, load)
        estimated = versus(pairs, cell, "capacity", one, two) if metric == "throughput" else None
        decided = found is not None and found.answer in DECIDED
        return found if decided or estimated is None or estimated.answer not in DECIDED else estimated

    compared = tuple(advantage(ordered[0], other) for other in ordered[1:])
    behind = advantage(*ordered[1:3]) if len(ordered) > 2 else None
    second_lead = behind if behind is not None and behind.answer == "different" and behind.ratio > 1 else None
    missing = tuple(r for r in members if r not in known)
    return Standing(cell, metric, load, tuple(ordered), compared, second_lead, missing)


def _figure(result: Result, metric: Metric, load: str) -> float | None:
    if metric == "latency_p99":
        found = latency_at(result, load)
        return None if found is None else found.p99
    if not counts(result):
        return None
    if metric == "throughput":
        return reach_pps(result) or None
    return None if result.verdict.kind.is_bound else result.switch_cycles_per_packet


def middle_load(members: Iterable[Result]) -> str:
    """Return the load that most switches carried; of several, the one nearest to MIDDLE."""
    found: dict[str, int] = {}
    for summary in (s for r in members for s in r.latency):
        found[summary.load] = found.get(summary.load, 0) + _has_p99(summary)

    def nearest(load: str) -> tuple[int, float]:
        share = load_share(load)
        return found[load], -math.inf if share is None else -abs(share - MIDDLE)

    return max(found, key=nearest, default="")


def latency_at(result: Result, load: str) -> LatencySummary | None:
    """Return the latency of a result at a load that it carried."""
    return next((s for s in result.latency if s.load == load and _has_p99(s)), None)


def _has_p99(summary: LatencySummary) -> bool:
    return latency_compares(summary) and math.isfinite(summary.p99)  # external testers have no percentiles
