# SPDX-License-Identifier: BSD-3-Clause
"""``--fail-below``: rates pass, fail, or are inconclusive against the baseline (docs/design/results.md)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from planebench.analysis.answers import ALPHA
from planebench.analysis.compare import RATES, Comparisons
from planebench.analysis.noise import Estimate, factor
from planebench.model.results import Comparison, Metric

JudgementKind = Literal["passes", "fails", "inconclusive"]

NOISY_ALPHA = 0.01
"""Level of a pass where the noise is such that an unchanged rate would hardly pass: that one passes may be luck. A rate
that is 5 % lower then passes a limit of 0.97 with a probability of 1 %, whatever the noise is."""


@dataclass(frozen=True, slots=True)
class GateResult:
    """The result for one rate at one point. ``metric`` is capacity where its estimate replaces a bound.

    ``limit`` is the minimum of ``ratio``, which is None without a comparison. ``detectable``: a true ratio as low as
    this one fails with probability 80 %; None where it cannot fail.
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


def judge(
    outcome: Comparisons, limit: float, baseline: str | None = None, metric: Metric | None = None
) -> tuple[GateResult, ...]:
    """Return one judgement for each rate of which the baseline has a figure.

    A test of non-inferiority: a rate passes where it is shown to be above the limit, and fails where it is shown to be
    below. All pass wrongly with probability ALPHA at most; any fails wrongly with probability ALPHA at most, because
    failures are corrected for their number (Hochberg). Where the tester hides the rate, the capacity estimated is
    tested, if it is known. ``baseline``: the switch that the others of a run are measured by; None for two runs.
    ``metric``: only this rate.
    """
    watched = RATES if metric is None else (metric,)
    mine = [c for c in outcome.comparisons if baseline in (None, c.a)]
    capacities = {(c.a, c.b, c.point): c for c in mine if c.metric == "capacity"}
    rates = []
    for c in (it for it in mine if it.metric in watched):
        capacity = capacities.get((c.a, c.b, c.point)) if c.metric == "throughput" else None
        # The capacity is tested where a bound of the throughput decides nothing.
        decided = capacity is None or _passes(c, limit) or _p_values(c, limit)[1] < ALPHA
        rates.append(c if decided or capacity is None else capacity)
    found = []
    for c, p_fails in zip(rates, _hochberg([_p_values(c, limit)[1] for c in rates]), strict=True):
        what, why = (c.metric, c.a, c.b, c.point, limit, c.ratio), outcome.not_in_intervals or c.note
        kind: JudgementKind = "inconclusive"
        detectable, estimate = None, _estimate(c)
        if not outcome.not_in_intervals:
            lives = c.failed_b <= c.failed_a  # a rate of the starts that lived says nothing of the others
            kind = "fails" if p_fails < ALPHA else "passes" if lives and _passes(c, limit) else "inconclusive"
            if estimate is not None and c.high is not None:
                detectable = limit / factor(estimate.detectable(2 * ALPHA / len(rates)))
        found.append(GateResult(kind, *what, why, detectable))
    left_out = [
        GateResult("inconclusive", rate, it.a, it.b, it.point, limit, why=it.reason)
        for it in outcome.skipped
        if it.baseline and baseline in (None, it.a)
        for rate in it.has
        if rate in watched
    ]
    return tuple(dict.fromkeys((*found, *left_out)))


def _hochberg(p_values: Sequence[float]) -> list[float]:
    """Return p-values corrected for their number: Hochberg, Biometrika 75, 1988.

    It is Holm's correction, unless all are low: then each counts alone. Rates that share their runs are wrong together.
    """
    corrected, least = [1.0] * len(p_values), 1.0
    for rank, index in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__, reverse=True), start=1):
        least = min(least, rank * p_values[index])
        corrected[index] = least
    return corrected


def _passes(comparison: Comparison, limit: float) -> bool:
    estimate = _estimate(comparison)
    noisy = estimate is not None and estimate.half_width(2 * ALPHA) > -math.log(limit)
    return _p_values(comparison, limit)[0] < (NOISY_ALPHA if noisy else ALPHA)


def _p_values(comparison: Comparison, limit: float) -> tuple[float, float]:
    """Return the p-values of both hypotheses: at most the limit, and at least.

    An open end of the interval means a lower bound: then the ratio proves only one direction. Where a side is disturbed
    more often than the other, the figure with what the host took must say the same.
    """
    c, estimate = comparison, _estimate(comparison)
    if estimate is None:
        return 1.0, 1.0
    both = [estimate]
    if c.counted_ratio is not None and c.counted_log_error is not None:
        both.append(replace(estimate, mean=math.log(c.counted_ratio), error=c.counted_log_error))
    return (
        1.0 if c.low is None else max(it.p_above(math.log(limit)) for it in both),
        1.0 if c.high is None else max(it.p_below(math.log(limit)) for it in both),
    )


def _estimate(comparison: Comparison) -> Estimate | None:
    c = comparison
    if c.log_error is None or c.degrees is None or c.ratio <= 0:
        return None
    return Estimate(math.log(c.ratio), c.log_error, c.degrees, min(c.starts_a, c.starts_b))
