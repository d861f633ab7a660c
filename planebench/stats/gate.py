# SPDX-License-Identifier: BSD-3-Clause
"""``--fail-below``: rates pass, fail, or are inconclusive against the baseline (docs/design/results.md)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from planebench.model.results import Comparison, Metric
from planebench.stats.compare import RATES, Outcome

JudgementKind = Literal["passes", "fails", "no significant difference", "inconclusive"]


@dataclass(frozen=True, slots=True)
class Judgement:
    """The result for one rate at one point. ``metric`` is cycles_per_packet if cycles replace the rate.

    ``limit`` is the minimum of ``ratio`` for a rate, the maximum for cycles; ``ratio`` is None without a comparison.
    """

    kind: JudgementKind
    metric: Metric
    a: str
    b: str
    point: str
    limit: float
    ratio: float | None = None
    why: str = ""


def judge(
    outcome: Outcome, limit: float, baseline: str | None = None, metric: Metric | None = None
) -> tuple[Judgement, ...]:
    """Return one judgement for each rate of which the baseline has an accepted figure.

    ``baseline``: the switch that the others of a run are measured by; None for two runs. ``metric``: only this rate.
    """
    watched = RATES if metric is None else (metric,)
    mine = [c for c in outcome.comparisons if baseline in (None, c.a)]
    cycles = {(c.a, c.b, c.point): c for c in mine if c.metric == "cycles_per_packet"}
    found = [_rate(c, cycles.get((c.a, c.b, c.point)), limit) for c in mine if c.metric in watched]
    return tuple(dict.fromkeys((*found, *_left_out(outcome, limit, baseline, watched))))


def _left_out(outcome: Outcome, limit: float, baseline: str | None, watched: tuple[Metric, ...]) -> Iterator[Judgement]:
    for skipped in outcome.skipped:
        if skipped.baseline and baseline in (None, skipped.a):
            for metric in (m for m in skipped.has if m in watched):
                what = (metric, skipped.a, skipped.b, skipped.point, limit)
                yield Judgement("inconclusive", *what, why=skipped.reason)


def _rate(rate: Comparison, cycles: Comparison | None, limit: float) -> Judgement:
    """Judge a rate.

    An open end of the interval means a lower bound or too few trials: then the ratio proves only one direction.
    """
    what = (rate.metric, rate.a, rate.b, rate.point, limit, rate.ratio, rate.note)
    if rate.ratio < limit and rate.distinguishable:
        return Judgement("fails", *what)
    if rate.ratio >= limit and rate.low is not None:
        return Judgement("passes", *what)
    if rate.low is not None and rate.high is not None:
        return Judgement("no significant difference", *what)
    return _by_cycles(rate, cycles, limit)


def _by_cycles(rate: Comparison, cycles: Comparison | None, limit: float) -> Judgement:
    if cycles is None or cycles.low is None or cycles.high is None:
        lacking = (
            "no cycles per packet to test" if cycles is None else "insufficient trials for a cycles-per-packet test"
        )
        why = "; ".join(text for text in (rate.note, lacking) if text)
        return Judgement("inconclusive", rate.metric, rate.a, rate.b, rate.point, limit, rate.ratio, why)
    kind: JudgementKind = "passes"
    if cycles.ratio > 1 / limit:
        kind = "fails" if cycles.distinguishable else "no significant difference"
    return Judgement(kind, cycles.metric, cycles.a, cycles.b, cycles.point, 1 / limit, cycles.ratio, cycles.note)
