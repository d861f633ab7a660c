# SPDX-License-Identifier: BSD-3-Clause
"""The answer to one comparison, the side of a limit on which a ratio lies; and the judgement on a claim. Pure.

The rules are those of ``planebench compare`` (stats/effect.py); the trials of an unstable side must not overlap.
"""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from planebench.model.records import VerdictKind
from planebench.papers.claims import Claim
from planebench.stats.effect import MIN_TRIALS, Effect, median_effect, with_bounds


@dataclass(frozen=True, slots=True)
class Sample:
    """A figure with the values of its trials; ``shown`` has its mark and no unit.

    ``values`` is empty for a rejected figure, and ``kind`` is its verdict.
    """

    values: tuple[float, ...]
    kind: VerdictKind
    band: str | None
    shown: str

    @property
    def counts(self) -> bool:
        """Return whether the figure may be compared."""
        return bool(self.values) and min(self.values) > 0


@dataclass(frozen=True, slots=True)
class Told:
    """a / b, its 95 % confidence interval (an open end is None), and its side of the limit; ``why`` if that is None."""

    ratio: float | None
    low: float | None = None
    high: float | None = None
    above: bool | None = None
    why: str = ""


Why = Literal["", "not testable on this host", "not covered by this run", "insufficient data"]
"""Why a claim cannot be tested: the bench or the machine cannot, the run has not got it, the figures do not decide."""


class Outcome(StrEnum):
    """The three outcomes of a claim."""

    CONFIRMED = "confirmed here"
    NOT_CONFIRMED = "not confirmed here"
    CANNOT_BE_TESTED = "inconclusive"


@dataclass(frozen=True, slots=True)
class Compared:
    """One comparison of a claim. ``holds`` is None if it is inconclusive; ``told`` says why.

    ``words`` has both figures with their marks, ratio and interval; ``paper`` the published ratio, if there is one.
    """

    what: str
    words: str
    holds: bool | None
    told: Told
    paper: float | None = None


@dataclass(frozen=True, slots=True)
class Judgement:
    """A claim, its outcome, and the evidence in one line.

    The outcome rests on ``compared``; ``beside`` has the same comparisons for switches that the paper does not have.
    """

    claim: Claim
    outcome: Outcome
    why: Why
    evidence: str
    compared: tuple[Compared, ...] = ()
    beside: tuple[Compared, ...] = ()
    missing: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        """Return the outcome and its reason: ``inconclusive: insufficient data``."""
        return f"{self.outcome.value}: {self.why}" if self.why else self.outcome.value


def told(a: Sample, b: Sample, limit: float = 1.0) -> Told:
    """Return whether a / b lies above or below the limit, or why that is not known."""
    for sample in (a, b):
        if not sample.counts:
            return Told(None, why=f"no accepted trial ({sample.kind.value})")
    if a.band != b.band:
        return Told(None, why=f"core-to-core latency groups differ ({a.band or 'unknown'} and {b.band or 'unknown'})")
    raw = median_effect([value * limit for value in b.values], a.values)
    effect = with_bounds(raw, _bound(b), _bound(a))
    ratio = effect.ratio * limit
    interval = _scaled(effect.low, limit), _scaled(effect.high, limit)
    why = _why_not(raw, effect, a, b, limit)
    return Told(ratio, *interval, None if why else effect.ratio > 1, why)


def reached(sample: Sample, value: float) -> Told:
    """Compare a figure with a value that has no noise."""
    return told(sample, Sample((value,) * max(MIN_TRIALS, len(sample.values)), VerdictKind.VALID, sample.band, ""))


def _why_not(raw: Effect, effect: Effect, a: Sample, b: Sample, limit: float) -> str:
    """Return why the answer is uncertain; empty if it is certain."""
    if min(len(a.values), len(b.values)) < MIN_TRIALS:
        return f"{len(a.values)} and {len(b.values)} accepted trials; at least {MIN_TRIALS} each required"
    if raw.distinguishable and not effect.distinguishable:
        return "tester-limited: the direction is unknown"
    if not effect.distinguishable:
        both = _bound(a) and _bound(b)
        return "both are tester-limited (lower bounds)" if both else "difference below the measurement noise"
    if VerdictKind.UNSTABLE in (a.kind, b.kind) and _overlap(a, b, limit):
        return "unstable, and the trials overlap"
    return ""


def _overlap(a: Sample, b: Sample, limit: float) -> bool:
    return min(a.values) <= max(b.values) * limit and min(b.values) * limit <= max(a.values)


def _bound(sample: Sample) -> bool:
    return sample.kind is VerdictKind.TESTER_LIMITED


def _scaled(side: float | None, limit: float) -> float | None:
    return None if side is None else side * limit


def middle(sample: Sample) -> float:
    """Return the median of the trials; NaN without an accepted one."""
    return statistics.median(sample.values) if sample.counts else math.nan
