# SPDX-License-Identifier: BSD-3-Clause
"""The changes of the figures of a lab in words, and the table of them."""

from __future__ import annotations

from collections.abc import Sequence

from planebench.analysis.trend import Series, Trend, TrendPoint, TrendStep
from planebench.report.tables import PageColumn, PageTable, page_table


def commit_words(sample: TrendPoint) -> str:
    """Return the commit of a run, abbreviated; the run id where the run names none."""
    return (sample.commit[:12] + "+" * sample.dirty) if sample.commit else sample.run_id


def cause_words(step: TrendStep) -> str:
    """Return what may be the cause: the commits, or what else changed."""
    if step.cause == "environment":
        same = step.before.commit == step.after.commit
        sure = "not a commit" if same else "probably not a commit"
        return f"{sure}: {'; '.join(step.changed)}"
    if step.cause == "unknown":
        return "unknown: neither the commit nor a recorded fact changed"
    return f"commit, probably {commit_words(step.probable)}"


def found_in(trends: Sequence[Trend]) -> list[tuple[Series, TrendStep]]:
    """Return the changes of all series, newest first."""
    found = [(trend.series, step) for trend in trends for step in trend.steps]
    return sorted(found, key=lambda it: it[1].probable.started_at, reverse=True)


def changes_table(found: Sequence[tuple[Series, TrendStep]]) -> PageTable:
    """Return the changes as a table: ``step of -5.2 % (-6.0 to -4.4)``, in a range of commits as git takes it."""

    def change(step: TrendStep) -> str:
        percent, low, high = ((ratio - 1) * 100 for ratio in (step.ratio, step.low, step.high))
        return f"step of {percent:+.1f} % ({low:+.1f} to {high:+.1f})"

    columns = (
        PageColumn("first run", lambda it: it[1].probable.started_at[:10]),
        PageColumn("switch", lambda it: it[0].switch, "switch"),
        PageColumn("test point", lambda it: f"{it[0].point}, {it[0].testbed}", "text"),
        PageColumn("change", lambda it: change(it[1]), "strong"),
        PageColumn("cause", lambda it: cause_words(it[1]), "text"),
        PageColumn("range", lambda it: f"{commit_words(it[1].before)}..{commit_words(it[1].after)}"),
    )
    return page_table("Changes, newest first", columns, found)
