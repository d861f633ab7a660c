# SPDX-License-Identifier: BSD-3-Clause
"""Runs to keep: the records of a run in one compressed Parquet file, its header and end as they are.

The reader of run folders takes a kept run like any other.
"""

from __future__ import annotations

import json
import shutil
from itertools import product
from pathlib import Path

from planebench.model.errors import StoreError
from planebench.store.folder import CONDITIONS_FILE, FINISHED_FILE, HEADER_FILE, SKIPPED_FILE, TRIALS_FILE

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
