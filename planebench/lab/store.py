# SPDX-License-Identifier: BSD-3-Clause
"""The store of a lab: tables of the runs of all testbeds as partitioned Parquet, read by DuckDB (docs/jobs.md)."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import quote

import duckdb

from planebench.analysis import tables
from planebench.analysis.tables import RunSource
from planebench.model.errors import StoreError, UsageError
from planebench.model.header import RunHeader
from planebench.store import read_run
from planebench.store.writer import write_parquet

RUNS = "runs"
BY_SWITCH = ("results", "latency", "searches", "trials")
STORED = (*BY_SWITCH, RUNS)
"""Tables of the store. ``runs`` is written last: a run is in the store once its file there exists."""

UNNAMED = "unknown"
"""Testbed of runs whose header names none."""

_SUFFIX = ".parquet"


def add_run(store: Path, folder: Path, testbed: str = "") -> tuple[Path, ...]:
    """Write the tables of a finished run into the store, and return the files; a run that is there is replaced.

    Files are replaced whole, and their name follows from testbed and run id. Therefore a run is
    never in the store twice, however often it is added, and no reader sees half of it. ``testbed``: the name for a run
    whose header has none. Raises StoreError for an invalid run or an unusable store, UsageError for an unfinished run.
    """
    run = read_run(folder)
    if run.finished is None:
        raise UsageError(
            f"run {folder.name} is in progress or was killed: finish it with the same command and --resume first"
        )
    where = run.header.testbed or testbed or UNNAMED
    source = RunSource(folder, run)
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
