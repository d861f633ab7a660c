# SPDX-License-Identifier: BSD-3-Clause
"""``planebench lab trend``: when did a figure change, which commits may have done it, and what else changed."""

from __future__ import annotations

from pathlib import Path

from planebench.analysis.metrics.column import plain
from planebench.analysis.trend import find_trend
from planebench.cli.options import print_json
from planebench.lab.store import histories
from planebench.model.results import Metric
from planebench.report.sections import Sentences
from planebench.report.terminal.table import print_parts
from planebench.report.trend import changes_table, found_in


def trend(store: Path, metric: Metric, *, json: bool, quiet: bool) -> None:
    """Print the changes of every series of a store, newest first."""
    series = histories(store, metric)
    trends = [find_trend(key, samples) for key, samples in sorted(series.items(), key=lambda it: str(it[0]))]
    if json:
        names = ("problem", "steps", "samples", "left_out")
        found = [plain(it.series) | {name: plain(getattr(it, name)) for name in names} for it in trends]
        print_json({"trends": found})
    elif not quiet:
        changes = found_in(trends)
        runs = {(it.series.testbed, sample.run_id) for it in trends for sample in it.samples}
        short = sum(bool(it.problem) for it in trends)
        note = f"; {short} with too few runs or boots" if short else ""
        counts = f"{len(changes)} changes in {len(trends)} series of {len(runs)} runs{note}"
        print_parts([changes_table(changes), Sentences([counts])])
