# SPDX-License-Identifier: BSD-3-Clause
"""The rules by which a figure is accepted: one set for tables, charts, comparisons and exports."""

from __future__ import annotations

from planebench.model.records import VerdictKind
from planebench.model.results import LatencySummary, Result, SearchResult
from planebench.stats.choose import of_other_band

ACCEPTED = (VerdictKind.VALID, VerdictKind.TESTER_LIMITED, VerdictKind.LINE_RATE, VerdictKind.UNSTABLE)
"""Verdicts with which a throughput may be shown as one; all but the first with a mark."""


def counts(result: Result) -> bool:
    """Return whether a result has a throughput that may be shown as one."""
    return result.throughput_pps is not None and result.verdict.kind in ACCEPTED


def latency_counts(summary: LatencySummary) -> bool:
    """Return whether a latency may be shown as one; that of an overload has a remark."""
    return summary.verdict.kind in (VerdictKind.VALID, VerdictKind.OVERLOAD)


def latency_compares(summary: LatencySummary) -> bool:
    """Return whether a latency may be compared: its load was carried, with probes, in the band of the run."""
    return summary.verdict.kind is VerdictKind.VALID and summary.samples > 0 and not of_other_band(summary.verdict)


def search_ended(search: SearchResult) -> bool:
    """Return whether a search came to a figure that may be compared with one of the same band."""
    return search.complete and (search.verdict.kind is VerdictKind.VALID or search.verdict.kind.is_bound)


def search_counts(search: SearchResult) -> bool:
    """Return whether the figure of a search is accepted: it came to one, in the band of the run."""
    return search_ended(search) and not of_other_band(search.verdict)
