# SPDX-License-Identifier: BSD-3-Clause
"""The changes of the figures of a lab in words, and the table of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from planebench.analysis.trend import Trend, TrendPoint, TrendStep
from planebench.report.tables import PageColumn, PageTable, page_table


@dataclass(frozen=True, slots=True)
class TrendChange:
    """A change, and the trend that it is in."""

    trend: Trend
    step: TrendStep


def change_words(step: TrendStep) -> str:
    """Return ``step of -5.2 % (-6.0 to -4.4)``."""
    low, high = ((end - 1) * 100 for end in (step.low, step.high))
    return f"step of {step.percent:+.1f} % ({low:+.1f} to {high:+.1f})"


def commit_words(sample: TrendPoint) -> str:
    """Return the commit of a run, abbreviated; the run id where the run names none."""
    return (sample.commit[:12] + "+" * sample.dirty) if sample.commit else sample.run_id


def range_words(step: TrendStep) -> str:
    """Return the range of commits as git takes it: ``4f1c0e9ab12d..77aa01b2c3d4``."""
    return f"{commit_words(step.before)}..{commit_words(step.after)}"


def cause_words(step: TrendStep) -> str:
    """Return what may be the cause: the commits, or what else changed."""
    if step.cause == "environment":
        same = step.before.commit == step.after.commit
        sure = "not a commit" if same else "probably not a commit"
        return f"{sure}: {'; '.join(step.changed)}"
    if step.cause == "unknown":
        return "unknown: neither the commit nor a recorded fact changed"
    return f"commit, probably {commit_words(step.probable)}"


def found_in(trends: Sequence[Trend]) -> list[TrendChange]:
    """Return the changes of all series, newest first."""
    found = [TrendChange(trend, step) for trend in trends for step in trend.steps]
    return sorted(found, key=lambda it: it.step.probable.started_at, reverse=True)


def changes_table(found: Sequence[TrendChange]) -> PageTable:
    """Return the changes as a table."""
    columns = (
        PageColumn("first run", lambda it: it.step.probable.started_at[:10]),
        PageColumn("switch", lambda it: it.trend.series.switch, "switch"),
        PageColumn("test point", lambda it: f"{it.trend.series.point}, {it.trend.series.testbed}", "text"),
        PageColumn("change", lambda it: change_words(it.step), "strong"),
        PageColumn("cause", lambda it: cause_words(it.step), "text"),
        PageColumn("range", lambda it: range_words(it.step)),
    )
    return page_table("Changes, newest first", columns, found)
