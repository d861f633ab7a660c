# SPDX-License-Identifier: BSD-3-Clause
"""Reading a run folder back, whatever state its writer left it in."""

from __future__ import annotations

import json
import shutil
from itertools import product
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
    FINISHED_FILE,
    HEADER_FILE,
    SKIPPED_FILE,
    TRIALS_FILE,
    read_finished,
    read_header,
)

# Runs to keep: the records of a run in one compressed Parquet file, its header and end as they are.
#
# The reader of run folders takes a kept run like any other.

_RECORDS = (TRIALS_FILE, CONDITIONS_FILE, SKIPPED_FILE)
RECORDS_FILE = "records.parquet"
"""A row per record: ``file`` and ``line`` that it comes from, and ``record``, its JSON text."""


def keep(folder: Path, out: Path) -> Path:
    """Write the run in ``folder`` into ``out``; replace what is there.

    Of the paths that its environment and its command name, the last part stays.
    Raises StoreError for a run that has not finished.
    """
    import duckdb

    if not (folder / FINISHED_FILE).is_file():
        raise StoreError(f"run {folder.name} is not finished: finish it with the same command and --resume first")
    header = json.loads((folder / HEADER_FILE).read_bytes())
    named = [*header["environment"].values(), *(it for it in header["command"] if it.startswith("/"))]
    paths = sorted((it for it in named if it.count("/") > 1), key=len, reverse=True)
    header["environment"] = {name: it for name, it in header["environment"].items() if it not in paths}
    texts = {HEADER_FILE: json.dumps(header, indent=1, ensure_ascii=False) + "\n"}
    for name in (FINISHED_FILE, *_RECORDS):
        if (folder / name).is_file():
            texts[name] = (folder / name).read_text(encoding="utf-8")
    for name, path in product(texts, paths):
        texts[name] = texts[name].replace(path, Path(path).name)
    lines = {name: filter(None, texts.pop(name, "").split("\n")) for name in _RECORDS}
    rows = [(name, *it) for name, found in lines.items() for it in enumerate(found, 1)]
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    for name, text in texts.items():
        (out / name).write_text(text, encoding="utf-8")
    with duckdb.connect() as database:
        database.execute(
            "COPY (SELECT unnest($files) AS file, unnest($lines)::INTEGER AS line, unnest($records) AS record) "
            "TO $out (FORMAT parquet, COMPRESSION zstd)",
            {
                "files": [file for file, _, _ in rows],
                "lines": [line for _, line, _ in rows],
                "records": [record for _, _, record in rows],
                "out": str(out / RECORDS_FILE),
            },
        )
    return out


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
