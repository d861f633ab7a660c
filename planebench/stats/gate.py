# SPDX-License-Identifier: BSD-3-Clause
"""``--fail-below``: rates pass, fail, or are inconclusive against the baseline (docs/design/results.md)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from planebench.model.results import Comparison, Metric
from planebench.stats.answers import ALPHA, holm
from planebench.stats.compare import RATES, Outcome
from planebench.stats.noise import Estimate, factor

JudgementKind = Literal["passes", "fails", "inconclusive"]


@dataclass(frozen=True, slots=True)
class Judgement:
    """The result for one rate at one point. ``metric`` is cycles_per_packet if cycles replace the rate.

    ``limit`` is the minimum of ``ratio`` for a rate, the maximum for cycles; ``ratio`` is None without a comparison.
    ``detectable``: a true ratio as far from 1 as this one fails with probability 80 %; None where it cannot fail.
    """

    kind: JudgementKind
    metric: Metric
    a: str
    b: str
    point: str
    limit: float
    ratio: float | None = None
    why: str = ""
    detectable: float | None = None


@dataclass(frozen=True, slots=True)
class _Tested:
    """A judgement that is not made yet, with the p-values of both hypotheses: not within the limit, and within it.

    ``may_fail``: the estimate of the ratio, if its bounds allow a failure.
    """

    judgement: Judgement
    p_passes: float
    p_fails: float
    may_fail: Estimate | None = None

    def detectable(self, comparisons: int) -> float | None:
        """Return the ratio that fails among so many comparisons with probability 80 %."""
        if self.may_fail is None:
            return None
        beyond = factor(self.may_fail.detectable(2 * ALPHA / comparisons))
        return self.judgement.limit / beyond if self.judgement.metric in RATES else self.judgement.limit * beyond


def judge(
    outcome: Outcome, limit: float, baseline: str | None = None, metric: Metric | None = None
) -> tuple[Judgement, ...]:
    """Return one judgement for each rate of which the baseline has an accepted figure.

    A test of non-inferiority: a rate passes where it is shown to be above the limit, and fails where it is shown to be
    below. All pass wrongly with probability ALPHA at most; any fails wrongly with probability ALPHA at most, because
    failures are corrected for their number (Holm). ``baseline``: the switch that the others of a run are measured by;
    None for two runs. ``metric``: only this rate.
    """
    watched = RATES if metric is None else (metric,)
    mine = [c for c in outcome.comparisons if baseline in (None, c.a)]
    cycles = {(c.a, c.b, c.point): c for c in mine if c.metric == "cycles_per_packet"}
    tested = [_tested(c, cycles.get((c.a, c.b, c.point)), limit) for c in mine if c.metric in watched]
    found = [replace(it, why=outcome.not_in_intervals) for it in (t.judgement for t in tested)]
    if not outcome.not_in_intervals:
        found = list(_judged(tested))
    return tuple(dict.fromkeys((*found, *_left_out(outcome, limit, baseline, watched))))


def _judged(tested: Sequence[_Tested]) -> Iterator[Judgement]:
    for it, p_fails in zip(tested, holm([it.p_fails for it in tested]), strict=True):
        kind: JudgementKind = "fails" if p_fails < ALPHA else "passes" if it.p_passes < ALPHA else "inconclusive"
        yield replace(it.judgement, kind=kind, detectable=it.detectable(len(tested)))


def _left_out(outcome: Outcome, limit: float, baseline: str | None, watched: tuple[Metric, ...]) -> Iterator[Judgement]:
    for skipped in outcome.skipped:
        if skipped.baseline and baseline in (None, skipped.a):
            for metric in (m for m in skipped.has if m in watched):
                what = (metric, skipped.a, skipped.b, skipped.point, limit)
                yield Judgement("inconclusive", *what, why=skipped.reason)


def _tested(rate: Comparison, cycles: Comparison | None, limit: float) -> _Tested:
    """Test a rate, or the cycles per packet where the tester limits the rate so that it tells nothing.

    An open end of the interval means a lower bound: then the ratio proves only one direction.
    """
    found = _of(rate, limit)
    if found.p_passes < ALPHA or found.p_fails < ALPHA or (rate.low is not None and rate.high is not None):
        return found
    if rate.log_error is None or cycles is None or cycles.log_error is None:
        lacking = (
            "no cycles per packet to test" if cycles is None else "too few starts for a test of the cycles per packet"
        )
        why = "; ".join(text for text in (rate.note, lacking) if text)
        return replace(found, judgement=replace(found.judgement, why=why))
    return _of(cycles, 1 / limit)


def _of(comparison: Comparison, limit: float) -> _Tested:
    c, more_is_better = comparison, comparison.metric in RATES
    judgement = Judgement("inconclusive", c.metric, c.a, c.b, c.point, limit, c.ratio, c.note)
    if c.log_error is None or c.degrees is None or c.ratio <= 0:
        return _Tested(judgement, 1.0, 1.0)
    estimate = Estimate(math.log(c.ratio), c.log_error, c.degrees, min(c.starts_a, c.starts_b))
    above = 1.0 if c.low is None else estimate.p_above(math.log(limit))
    below = 1.0 if c.high is None else estimate.p_below(math.log(limit))
    may_fail = None if (c.high if more_is_better else c.low) is None else estimate
    return _Tested(judgement, *((above, below) if more_is_better else (below, above)), may_fail)
