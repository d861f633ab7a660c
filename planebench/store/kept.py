# SPDX-License-Identifier: BSD-3-Clause
"""Runs to keep: the records of a run in one compressed Parquet file, its header, plan and end as they are.

The reader of run folders takes a kept run like any other.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from planebench.model.errors import StoreError
from planebench.store.folder import CONDITIONS_FILE, FINISHED_FILE, HEADER_FILE, PLAN_FILE, SKIPPED_FILE, TRIALS_FILE

RECORDS_FILE = "records.parquet"
"""A row per record: ``file`` and ``line`` that it comes from, and ``record``, its JSON text."""


def keep(folder: Path, out: Path) -> Path:
    """Write the run in ``folder`` into ``out``, without paths of its machine; what is there is replaced.

    Raises StoreError for a run that has not finished.
    """
    import duckdb

    if not (folder / FINISHED_FILE).is_file():
        raise StoreError(f"run {folder.name} is not finished: finish it with the same command and --resume first")
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    header = json.loads((folder / HEADER_FILE).read_bytes())
    header["environment"] = {name: it for name, it in header["environment"].items() if "/" not in it}
    (out / HEADER_FILE).write_text(json.dumps(header, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    for name in (PLAN_FILE, FINISHED_FILE):
        if (folder / name).is_file():
            shutil.copyfile(folder / name, out / name)
    there = [folder / name for name in (TRIALS_FILE, CONDITIONS_FILE, SKIPPED_FILE)]
    with duckdb.connect() as database:
        database.execute(
            "COPY (SELECT parse_filename(filename) AS file, unnest(range(1, len(lines) + 1)) AS line, "
            "unnest(lines) AS record FROM (SELECT filename, string_split(rtrim(content, chr(10)), chr(10)) AS lines "
            "FROM read_text($files))) TO $out (FORMAT parquet, COMPRESSION zstd)",
            {"files": [str(path) for path in there if path.is_file()], "out": str(out / RECORDS_FILE)},
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
