# SPDX-License-Identifier: BSD-3-Clause
"""Reading a run folder back, whatever state its writer left it in."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TypeVar

from planebench.host.files import open_file
from planebench.model.conditions import Conditions
from planebench.model.errors import StoreError
from planebench.model.header import Run, RunHeader
from planebench.model.plan import Skipped
from planebench.model.records import Trial
from planebench.store.codec import from_json, unsealed
from planebench.store.folder import (
    CONDITIONS_FILE,
    SKIPPED_FILE,
    TRIALS_FILE,
    read_finished,
    read_header,
    read_if_there,
)

# Runs to keep: the records of a run in one compressed Parquet file, its header and end as they are.
#
# The reader of run folders takes a kept run like any other.

RECORDS_FILE = "records.parquet"
"""A row per record: ``file`` and ``line`` that it comes from, and ``record``, its JSON text."""
KEPT_MAX_BYTES = 256 << 20
"""The most text that is taken of it: a small file may unpack to any size."""


def kept_lines(folder: Path, name: str) -> bytes:
    """Return what a file of records of a kept run had; empty for another run. Raises StoreError."""
    path = folder / RECORDS_FILE
    try:
        os.close(open_file(path, os.O_RDONLY))
    except FileNotFoundError:
        return b""
    except OSError as error:
        raise StoreError(f"cannot read {path}: {error.strerror or error}") from error
    import duckdb

    source, given = "FROM read_parquet($1) WHERE file = $2", [str(path), name]
    try:
        with duckdb.connect() as database:
            size = database.execute(f"SELECT sum(strlen(record) + 1) {source}", given).fetchall()[0][0] or 0
            if size > KEPT_MAX_BYTES:
                raise StoreError(f"cannot read {path}: its {name} has more than {KEPT_MAX_BYTES} bytes")
            rows = database.execute(f"SELECT record {source} ORDER BY line", given).fetchall()
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
    finished = read_finished(path, checksums=header.checksums)
    trials, torn_trials = _read_lines(path / TRIALS_FILE, Trial, header)
    skipped, torn_skipped = _read_lines(path / SKIPPED_FILE, Skipped, header)
    conditions, torn_conditions = _read_lines(path / CONDITIONS_FILE, Conditions, header)
    if finished is not None and finished.trials is not None:
        if finished.trials > len(trials):
            raise StoreError(
                f"{path / TRIALS_FILE}: it ended with {finished.trials} trials, {len(trials)} are here: copy it again"
            )
        for torn in (*torn_skipped, *torn_conditions):  # no writer has opened it since
            raise StoreError(f"{path}: {torn.partition(' (')[0]}, and the run ended in order; it was changed since")
    return Run(
        header=header,
        trials=trials,
        finished=finished,
        skipped=header.skipped + skipped,
        warnings=header.warnings + torn_trials + torn_skipped + torn_conditions,
        conditions=conditions,
    )


def _read_lines(path: Path, kind: type[R], header: RunHeader) -> tuple[tuple[R, ...], tuple[str, ...]]:
    data = read_if_there(path)
    if data is None:
        data = kept_lines(path.parent, path.name)
    *lines, rest = data.split(b"\n")

    def record(number: int, line: bytes) -> R:
        where = f"{path}, line {number}"
        return from_json(kind, unsealed(line, where, required=header.checksums), where)

    read = tuple(record(number, line) for number, line in enumerate(lines, start=1))
    if not rest:
        return read, ()
    return read, (
        f"{path.name}, line {len(lines) + 1} is incomplete (planebench was killed while writing it) and is ignored",
    )
