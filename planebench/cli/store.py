# SPDX-License-Identifier: BSD-3-Clause
"""``planebench lab add``, ``list``, ``query`` and ``trend``: runs of all testbeds of a lab in one folder."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from planebench.analysis.metrics.column import plain
from planebench.analysis.trend import find_trend
from planebench.cli.options import print_json, print_table
from planebench.lab.store import add_run, histories, open_store
from planebench.model.errors import UsageError
from planebench.model.results import Metric
from planebench.report.sections import Sentences
from planebench.report.terminal.table import print_parts
from planebench.report.trend import changes_table, found_in
from planebench.store import find_run

_LIST = """
SELECT testbed, run_id AS run, started_at AS started, array_to_string(switches, ', ') AS switches, status AS ended,
       left(subject_commit, 12) AS "commit"
FROM runs ORDER BY started_at, run_id
"""


def add(store: Path, run: Sequence[str] | None, runs: Path | None, *, json: bool, quiet: bool) -> None:
    """Add runs to a store and print their ids."""
    folders = [find_run(runs, one) for one in run or ("latest",)]
    added = {folder.name: [str(path) for path in add_run(store, folder)] for folder in folders}
    if json:
        print_json({"added": added})
    elif not quiet:
        print("\n".join(added))


def show(store: Path, *, json: bool) -> None:
    """Print the runs of a store, oldest first."""
    query(store, _LIST, json=json, name="runs")


def query(store: Path, sql: str, *, json: bool, name: str = "rows") -> None:
    """Print the rows of an SQL query. Raises UsageError with the words of DuckDB for one that fails."""
    import duckdb

    with open_store(store) as database:
        try:
            found = database.sql(sql)
            columns, rows = found.columns, found.fetchall()
        except duckdb.Error as error:
            raise UsageError(f"the query failed: {error}") from None
    if json:
        print_json({name: [dict(zip(columns, map(_in_json, row), strict=True)) for row in rows]})
    else:
        print_table(columns, rows)


def _in_json(value: Any) -> Any:
    """Return a value of DuckDB as JSON has it: null for what is no number, text for what else there is, as dates."""
    if isinstance(value, list):
        return [_in_json(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if isinstance(value, bool | int | str | None) else str(value)


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
