# SPDX-License-Identifier: BSD-3-Clause
"""The answer to one comparison, the side of a limit on which a ratio lies; and the judgement on a claim. Pure.

The rules are those of ``planebench compare``; the comparisons of one claim are corrected for their number (Holm).
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Literal

from planebench.analysis.answers import ALPHA, Bounds, effect_of, holm
from planebench.analysis.noise import Estimate
from planebench.model.records import VerdictKind
from planebench.papers.claims import Claim


@dataclass(frozen=True, slots=True)
class FigureSample:
    """A figure with the values of its starts; ``shown`` has its mark and no unit.

    ``values`` is empty where no trial counts, and ``kind`` is its verdict. ``estimate`` is None where nothing is known
    of the noise between starts.
    """

    values: tuple[float, ...]
    kind: VerdictKind
    shown: str
    estimate: Estimate | None = None
    why: str = ""
    """Why it has no values, if not for want of trials that count."""

    @property
    def counts(self) -> bool:
        """Return whether the figure may be compared."""
        return bool(self.values) and min(self.values) > 0


@dataclass(frozen=True, slots=True)
class Told:
    """a / b, its confidence interval (an open end is None), and its side of the limit; ``why`` if that is None.

    The interval is at 95 %, or wider where the claim has several comparisons.
    """

    ratio: float | None
    low: float | None = None
    high: float | None = None
    above: bool | None = None
    why: str = ""
    p_value: float | None = None
    """p-value of the hypothesis that a / b is the limit; None where nothing was tested."""
    estimate: Estimate | None = None
    """Estimate of the logarithm of a / b."""

    @property
    def words(self) -> str:
        """Return the ratio and its interval: ``, 1.57 times (1.50 to 1.60)``; empty where there is no ratio."""
        if self.ratio is None:
            return ""
        if self.low is None and self.high is None:
            return f", {self.ratio:.2f} times"
        low, high = ("open" if side is None else f"{side:.2f}" for side in (self.low, self.high))
        return f", {self.ratio:.2f} times ({low} to {high})"

    def at(self, alpha: float) -> Told:
        """Return the same with its interval at the confidence 1 - ``alpha``."""
        if self.estimate is None:
            return self
        low, high = self.estimate.interval(alpha)
        return replace(self, low=None if self.low is None else low, high=None if self.high is None else high)


Why = Literal["", "not testable on this host", "not covered by this run", "insufficient data", "runs disagree"]
"""Why a claim has no outcome: the bench or the machine cannot test it, the run has no such test points, the figures do
not decide, or one of several runs confirms it and another contradicts it."""


class ClaimOutcome(StrEnum):
    """The outcomes of a claim. Under other conditions than those that it names, a run decides nothing of it."""

    CONFIRMED = "confirmed here"
    NOT_CONFIRMED = "not confirmed here"
    OTHER_CONDITIONS = "other conditions"
    CANNOT_BE_TESTED = "inconclusive"

    @property
    def decides(self) -> bool:
        """Return whether it is one of the first two."""
        return self in (ClaimOutcome.CONFIRMED, ClaimOutcome.NOT_CONFIRMED)


@dataclass(frozen=True, slots=True)
class Compared:
    """One comparison of a claim. ``holds`` is None if it is inconclusive; ``told`` says why.

    ``figures`` are both figures with their marks; ``with_ratio``: their ratio and its interval are shown after them.
    ``paper``: the published ratio, if there is one.
    """

    what: str
    figures: str
    holds: bool | None
    told: Told
    paper: float | None = None
    with_ratio: bool = True

    @property
    def words(self) -> str:
        """Return the figures, their ratio and its interval."""
        return self.figures + (self.told.words if self.with_ratio else "")


@dataclass(frozen=True, slots=True)
class Judgement:
    """A claim, its outcome, and the evidence in one line.

    ``why``: why it decides nothing; of other conditions their names. The outcome rests on ``compared``, in which the
    weakest evidence is first; ``beside`` has the same comparisons for switches that the paper does not have, or
    at emulated clocks. ``absent``: the switches, by adapter, for want of which the run does not cover the claim.
    """

    claim: Claim
    outcome: ClaimOutcome
    why: str
    evidence: str
    compared: tuple[Compared, ...] = ()
    beside: tuple[Compared, ...] = ()
    missing: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        """Return the outcome and its reason: ``inconclusive: insufficient data``."""
        return f"{self.outcome.value}: {self.why}" if self.why else self.outcome.value


def told(a: FigureSample, b: FigureSample, limit: float = 1.0) -> Told:
    """Return whether a / b lies above or below the limit, or why that is not known."""
    for sample in (a, b):
        if not sample.counts:
            counted = sample.kind in (VerdictKind.VALID, VerdictKind.LINE_RATE)  # far cores are another placement
            usual = "no start had near cores" if counted else f"no trial counts ({sample.kind.value})"
            return Told(None, why=sample.why or usual)
    if a.estimate is None or b.estimate is None:
        return Told(middle(a) / middle(b), why="one start each: how starts differ is not known")
    estimate, bounds = a.estimate.minus(b.estimate), Bounds(b.kind.is_bound, a.kind.is_bound)
    above_limit = replace(estimate, mean=estimate.mean - math.log(limit))
    effect = effect_of(above_limit, 1.0, bounds=bounds)
    low, high = (None if end is None else end * limit for end in (effect.low, effect.high))
    why = ""
    if not effect.distinguishable and bounds.a and bounds.b:
        why = "both are tester-limited (lower bounds)"
    elif not effect.distinguishable:
        hidden = bounds.hide(above_limit)
        why = "tester-limited: the direction is unknown" if hidden else "difference below the measurement noise"
    p_value = 1.0 if bounds.hide(above_limit) else above_limit.p_value()
    return Told(math.exp(estimate.mean), low, high, None if why else effect.ratio > 1, why, p_value, estimate)


def reached(sample: FigureSample, value: float) -> Told:
    """Compare a figure with a value that has no noise."""
    exact = Estimate(math.log(value), 0.0, math.inf, sample.estimate.n if sample.estimate else 1)
    return told(sample, FigureSample((value,), VerdictKind.VALID, "", exact))


def corrected(compared: Sequence[Compared], share: float = 1.0) -> list[Compared]:
    """Return the comparisons of a claim; those that are significant alone but not among so many are inconclusive.

    All intervals are at the level at which Holm's procedure ends, so they agree with what is significant. ``share``: of
    the level, where several runs test the claim.
    """
    tested = [it.told.p_value for it in compared if it.told.p_value is not None]
    level, adjusted = ALPHA * share, holm(tested)
    p_values = iter(adjusted)
    rejected = sum(p < level for p in adjusted)
    alpha = level / max(len(tested) - max(rejected, 1) + 1, 1)
    of_level = f" with {share:.0%} of the level, as one run of several" if share < 1 else ""
    why = f"not significant among {len(tested)} comparisons{of_level}"
    found = []
    for it in compared:
        told_wider = it.told.at(alpha)
        if it.told.p_value is not None and next(p_values) >= level and it.holds is not None:
            found.append(replace(it, holds=None, told=replace(told_wider, above=None, why=why)))
        else:
            found.append(replace(it, told=told_wider))
    return found


def weakest_first(compared: Iterable[Compared]) -> tuple[Compared, ...]:
    """Return the comparisons that contradict a claim, then those that tell nothing, then those that confirm it.

    Of those that contradict it the most certain are first, of those that confirm it the least certain.
    """

    def weakness(it: Compared) -> tuple[int, float]:
        p_value = it.told.p_value or 0.0
        return (0, p_value) if it.holds is False else (1, 0.0) if it.holds is None else (2, -p_value)

    return tuple(sorted(compared, key=weakness))


def middle(sample: FigureSample) -> float:
    """Return the geometric mean of the starts; NaN without an accepted trial."""
    return statistics.geometric_mean(sample.values) if sample.counts else math.nan
