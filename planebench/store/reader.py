# SPDX-License-Identifier: BSD-3-Clause
"""Reading a run folder back, whatever state its writer left it in."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

from planebench.model.conditions import Conditions
from planebench.model.errors import StoreError
from planebench.model.header import Run
from planebench.model.plan import Skipped
from planebench.model.records import Trial
from planebench.store.codec import from_json
from planebench.store.folder import (
    CONDITIONS_FILE,
    SKIPPED_FILE,
    TRIALS_FILE,
    read_finished,
    read_header,
)

# Runs to keep: the records of a run in one compressed Parquet file, its header and end as they are.
#
# The reader of run folders takes a kept run like any other.

RECORDS_FILE = "records.parquet"
"""A row per record: ``file`` and ``line`` that it comes from, and ``record``, its JSON text."""


def kept_lines(folder: Path, name: str) -> bytes:
    """Return what a file of records of a kept run had; empty for another run. Raises StoreError."""
    path = folder / RECORDS_FILE
    if not path.is_file():
        return b""
    import duckdb

    query = "SELECT record FROM read_parquet($1) WHERE file = $2 ORDER BY line"
    try:
        with duckdb.connect() as database:
            rows = database.execute(query, [str(path), name]).fetchall()
        return "".join(f"{record}\n" for (record,) in rows).encode()
    except duckdb.Error as error:
        raise StoreError(f"cannot read {path}: {error}") from error


R = TypeVar("R")


def read_run(path: Path) -> Run:
    """Return the run in a folder.

    A last line without its newline (the writer was killed in it) is left out, with a warning.

    Raises StoreError, naming file and line, for anything else that is not a record of this schema version.
    """
    header = read_header(path)
    trials, torn_trials = _read_lines(path / TRIALS_FILE, Trial)
    skipped, torn_skipped = _read_lines(path / SKIPPED_FILE, Skipped)
    conditions, torn_conditions = _read_lines(path / CONDITIONS_FILE, Conditions)
    return Run(
        header=header,
        trials=trials,
        finished=read_finished(path),
        skipped=header.skipped + skipped,
        warnings=header.warnings + torn_trials + torn_skipped + torn_conditions,
        conditions=conditions,
    )


def _read_lines(path: Path, kind: type[R]) -> tuple[tuple[R, ...], tuple[str, ...]]:
    try:
        data = path.read_bytes() if path.exists() else kept_lines(path.parent, path.name)
    except OSError as error:
        raise StoreError(f"cannot read {path}: {error.strerror or error}") from error
    *lines, rest = data.split(b"\n")
    read = tuple(from_json(kind, line, f"{path}, line {number}") for number, line in enumerate(lines, start=1))
    if not rest:
        return read, ()
    return read, (
        f"{path.name}, line {len(lines) + 1} is incomplete (planebench was killed while writing it) and is ignored",
    )
