# SPDX-License-Identifier: BSD-3-Clause
"""Which trials count, and the rules by which a figure is shown: one set for tables, charts, comparisons and exports.

Every trial that took place counts. What the host did meanwhile is in its figure and widens its interval.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from planebench.model.grouped import grouped
from planebench.model.reasons import HOST, Reason, ReasonCode
from planebench.model.records import Point, Trial, Verdict, VerdictKind
from planebench.model.results import LatencySummary, Result, SearchResult

VALID, LIMITED = VerdictKind.VALID, VerdictKind.TESTER_LIMITED
ACCEPTED = (VALID, LIMITED, VerdictKind.LINE_RATE)
"""Verdicts with which a throughput may be shown as one; all but the first with a mark."""
LIMITS: Mapping[VerdictKind, str] = {LIMITED: "tester-limited", VerdictKind.LINE_RATE: "at line rate"}
"""What the verdicts of lower bounds are in words."""
LIMITED_SHARE_MAX = 0.2
"""A figure with more trials than this share that are lower bounds is one. Without those that are limited it would be
the mean of the slowest trials only."""


@dataclass(frozen=True, slots=True)
class Counted:
    """The trials of a point that count for a figure, and their common verdict. Empty: the verdict says why."""

    trials: tuple[Trial, ...]
    verdict: Verdict


def is_counted(trial: Trial) -> bool:
    """Return whether the throughput of a trial is one of the switch, or a lower bound of it."""
    return trial.verdict.kind in ACCEPTED


def saturating(trials: Iterable[Trial]) -> Counted:
    """Return the saturating trials that took place. They are a bound where more than LIMITED_SHARE_MAX of them are."""
    every = [t for t in trials if t.role == "r_plus"]
    chosen = tuple(t for t in every if is_counted(t))
    if not chosen:
        return Counted((), nothing_counts(every))
    bounds = Counter(t.verdict.kind for t in chosen if t.verdict.kind.is_bound)
    is_bound = bounds.total() > LIMITED_SHARE_MAX * len(chosen)
    return Counted(chosen, Verdict(bounds.most_common(1)[0][0] if is_bound else VALID, all_reasons(chosen)))


def of_kinds(trials: Sequence[Trial], kinds: Sequence[VerdictKind]) -> Counted:
    """Return the trials of the first of ``kinds`` that any has."""
    for kind in kinds:
        chosen = tuple(t for t in trials if t.verdict.kind is kind)
        if chosen:
            return Counted(chosen, Verdict(kind, all_reasons(chosen)))
    return Counted((), nothing_counts(trials))


def nothing_counts(trials: Sequence[Trial]) -> Verdict:
    """Return the verdict of a point without trials that count: the mildest kind among them, with every reason."""
    if not trials:
        return Verdict(VerdictKind.INVALID, (Reason(ReasonCode.NO_TRIAL, "no trial was run"),))
    order = (VerdictKind.LINE_RATE, LIMITED, VerdictKind.OVERLOAD, VerdictKind.FUNCTIONAL, VerdictKind.INVALID)
    kinds = [t.verdict.kind for t in trials]
    worst = next((k for k in order if k in kinds), VerdictKind.INVALID)
    none = Reason(ReasonCode.NONE_COUNTS, f"none of {len(trials)} trials counts")
    return Verdict(worst, all_reasons(trials) or (none,))


def all_reasons(trials: Iterable[Trial]) -> tuple[Reason, ...]:
    """Return every reason once, in order, with the number of its trials; what the host did is in the figures."""
    counts = Counter(reason for t in trials for reason in t.verdict.reasons if reason.code not in HOST)
    return tuple(replace(r, values={**r.values, "trials": n}) if n > 1 else r for r, n in counts.items())


def counts(result: Result) -> bool:
    """Return whether a result has a throughput that may be shown as one."""
    return result.throughput_pps is not None and result.verdict.kind in ACCEPTED


def latency_counts(summary: LatencySummary) -> bool:
    """Return whether a latency may be shown as one; that of an overload has a remark."""
    return summary.verdict.kind in (VALID, VerdictKind.OVERLOAD)


def latency_compares(summary: LatencySummary) -> bool:
    """Return whether a latency may be compared: its load was carried, and probes came back."""
    return summary.verdict.kind is VALID and summary.samples > 0


def search_counts(search: SearchResult) -> bool:
    """Return whether a search came to a figure."""
    return search.complete and search.verdict.kind in ACCEPTED


# The results of a test point.


def same_cell(results: Iterable[Result], **alike: Any) -> dict[Point, list[Result]]:
    """Return the results by test point: the key is the point with an empty switch label.

    Points that differ only in the fields ``alike`` are one, e.g. ``chain_length=1``; the key has these values.
    """
    return grouped((replace(result.point, switch="", **alike), result) for result in results)


def reach_pps(result: Result) -> float:
    """Return what a switch is likely to reach: a throughput, or for a lower bound the capacity where it is known."""
    known = result.capacity_estimate_pps if result.verdict.kind.is_bound else None
    return max(result.throughput_pps or 0.0, known or 0.0)


def cell_id(point: Point) -> str:
    """Return the id of the point without its switch, as ``Comparison.point`` has it."""
    return replace(point, switch="").point_id.lstrip("/")
