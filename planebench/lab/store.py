# SPDX-License-Identifier: BSD-3-Clause
"""The store of a lab: tables of the runs of all testbeds as partitioned Parquet, read by DuckDB (docs/jobs.md).

Series of its figures over the runs are for trends (docs/ci.md).
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

import duckdb

from planebench.analysis import tables
from planebench.analysis.compare import Derived
from planebench.analysis.counting import cell_id
from planebench.analysis.metrics.results import POINT
from planebench.analysis.trend import VOLATILE, Series, TrendPoint
from planebench.model.errors import StoreError, UsageError, unknown
from planebench.model.header import RunHeader, Subject
from planebench.model.records import Point
from planebench.model.results import Metric
from planebench.model.text import FILES, named_digests, without_folders
from planebench.model.words import load_words
from planebench.store import read_run
from planebench.store.writer import write_parquet

RUNS = "runs"
BY_SWITCH = ("results", "latency", "searches", "trials")
STORED = (*BY_SWITCH, RUNS)
"""Tables of the store. ``runs`` is written last: a run is in the store once its file there exists."""

UNNAMED = "unknown"
"""Testbed of runs whose header names none."""

_SUFFIX = ".parquet"


def add_run(store: Path, folder: Path) -> tuple[Path, ...]:
    """Write the tables of a finished run into the store, and return the files; a run that is there is replaced.

    Files are replaced whole, and their name follows from testbed and run id. Therefore a run is
    never in the store twice, however often it is added, and no reader sees half of it. Raises StoreError for an invalid
    run or an unusable store, UsageError for an unfinished run.
    """
    run = read_run(folder)
    if run.finished is None:
        raise UsageError(
            f"run {folder.name} is in progress or was killed: finish it with the same command and --resume first"
        )
    where = run.header.testbed or UNNAMED
    source = Derived(run)
    written: list[Path] = []
    with duckdb.connect() as database:
        for name in STORED:
            found = tables.relation(name, [source], database)
            for switch in run.switch_labels if name in BY_SWITCH else (None,):
                path = _path(store, name, where, switch, run.header.started_at[:10], run.header.run_id)
                mine = found if switch is None else found.filter(f"switch = {_text(switch)}")
                try:
                    written.append(write_parquet(mine, path, durable=True))
                except UsageError as error:  # not of what the user typed: of what is in the store
                    raise StoreError(str(error)) from error
    return tuple(written)


def has_run(store: Path, header: RunHeader) -> bool:
    """Return whether a run that names its testbed is in the store."""
    return _path(store, RUNS, header.testbed or UNNAMED, None, header.started_at[:10], header.run_id).exists()


def open_store(store: Path) -> duckdb.DuckDBPyConnection:
    """Return a database with a view of each table of the store. Raises UsageError for a folder that is no store.

    A view has the columns of the table (docs/library.md), ``testbed`` and ``date``. Only whole runs are in it.
    """
    if next((store / RUNS).glob(f"*/*/*{_SUFFIX}"), None) is None:
        raise UsageError(f"{store} is not the store of a lab: planebench lab add {store} RUN adds a run to it")
    database = duckdb.connect()
    with _of_strangers(store):
        database.execute("SET TimeZone = 'UTC'")
        _view(database, store, RUNS, depth=2)
        for name in BY_SWITCH:
            _view(database, store, name, depth=3)
    return database


@contextlib.contextmanager
def _of_strangers(store: Path) -> Iterator[None]:
    """Make a StoreError of what files do that :func:`add_run` has not written, whatever they hold."""
    try:
        yield
    except (duckdb.Error, ValueError, TypeError, LookupError, AttributeError, RecursionError, MemoryError) as error:
        what = " ".join(f"{type(error).__name__}: {error}".split())[:300]
        raise StoreError(f"{store} holds what planebench lab add has not written: {what}") from error


def _path(store: Path, table: str, testbed: str, switch: str | None, date: str, run_id: str) -> Path:
    parts = {"testbed": testbed, "switch": switch, "date": date}
    folders = [f"{key}={quote(value, safe='')}" for key, value in parts.items() if value is not None]
    return store.joinpath(table, *folders, run_id + _SUFFIX)


def _view(database: duckdb.DuckDBPyConnection, store: Path, table: str, depth: int) -> None:
    """Make the view of a table; of another than ``runs``, of the runs that are there."""
    files = str(store / table / "/".join("*" * depth) / f"*{_SUFFIX}")
    options: Mapping[str, str] = {"hive_partitioning": "true", "hive_types_autocast": "false", "union_by_name": "true"}
    given = ", ".join(f"{key} = {value}" for key, value in options.items())
    whole = "" if table == RUNS else f" SEMI JOIN {RUNS} USING (testbed, run_id)"
    database.execute(f'CREATE VIEW "{table}" AS SELECT * FROM read_parquet({_text(files)}, {given}){whole}')


def _text(value: str) -> str:
    """Return a text as SQL has it; views take no parameters."""
    return "'" + value.replace("'", "''") + "'"


# The figures of a lab over its runs: series of the store, for trends (docs/ci.md).

_OF_RESULT = "{} AS figure, '' AS load FROM results WHERE counts AND NOT is_lower_bound"
_OF_SEARCH = (
    "figure_pps AS figure, '' AS load FROM searches WHERE repetition = 0 AND NOT is_lower_bound AND method = '{}'"
)
_FIGURES: Mapping[Metric, str] = {
    "throughput": _OF_RESULT.format("throughput_pps"),
    "cycles_per_packet": _OF_RESULT.format("switch_cycles_per_packet"),
    "ndr": _OF_SEARCH.format("ndr"),
    "pdr": _OF_SEARCH.format("pdr"),
    "latency_p50": "p50_us AS figure, load FROM latency WHERE verdict = 'valid'",
    "latency_p99": "p99_us AS figure, load FROM latency WHERE verdict = 'valid'",
}
"""Where the figures of each metric are: no lower bounds, and no latency of an overload."""

METRICS: tuple[Metric, ...] = tuple(_FIGURES)

_OF_SUBJECT = ("repository", "commit", "committed_at", "dirty", "switch")
_POINT = tuple(column.name for column in POINT if column.name not in ("run_id", "version"))


def histories(store: Path, metric: Metric = "throughput") -> dict[Series, list[TrendPoint]]:
    """Return the series of a metric, by testbed, switch and test point. Raises UsageError for an unknown metric."""
    if metric not in _FIGURES:
        raise unknown("metric", metric, METRICS)
    with _of_strangers(store):
        return _histories(store, metric)


def _histories(store: Path, metric: Metric) -> dict[Series, list[TrendPoint]]:
    with open_store(store) as database:
        runs = {(run["testbed"], run["run_id"]): run for run in _rows(database.sql("SELECT * FROM runs"))}
        found = _rows(database.sql(f"SELECT *, {_FIGURES[metric]}"))
    series: dict[Series, list[TrendPoint]] = {}
    for row in found:
        if row["figure"] is not None and row["figure"] > 0:
            run = runs[row["testbed"], row["run_id"]]
            row["chain"] = without_folders(row["chain"], json.loads(run["settings"]))
            cell = cell_id(Point(**{name: row[name] for name in _POINT}))
            key = Series(
                row["testbed"], row["switch"], f"{cell} at {load_words(row['load'])}" if row["load"] else cell, metric
            )
            subject = Subject(**{name: run[f"subject_{name}"] for name in _OF_SUBJECT})
            mine = run["subject_commit"] is not None and subject.builds(row["switch"])
            settings = json.loads(run["settings"])
            chains = {"chains": without_folders(settings["chains"], settings)} if settings.get("chains") else {}
            kept = {key: value for key, value in settings.items() if key not in FILES}
            facts = {
                **json.loads(run["host"]),
                **{**kept, **chains, **named_digests(settings)},
                "planebench": run["planebench_version"],
            }
            if not mine:
                facts[f"version of {row['switch']}"] = row["version"]
            series.setdefault(key, []).append(
                TrendPoint(
                    run["run_id"],
                    run["started_at"],
                    row["figure"],
                    commit=run["subject_commit"] if mine else "",
                    committed_at=run["subject_committed_at"] if mine else "",
                    repository=run["subject_repository"] if mine else "",
                    dirty=bool(mine and run["subject_dirty"]),
                    facts={name: str(value) for name, value in facts.items() if name not in VOLATILE},
                    boot=str(json.loads(run["host"]).get("boot_id") or ""),
                )
            )
    return series


def _rows(found: Any) -> list[dict[str, Any]]:
    return [dict(zip(found.columns, row, strict=True)) for row in found.fetchall()]
