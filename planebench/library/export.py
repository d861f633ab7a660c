# SPDX-License-Identifier: BSD-3-Clause
"""Tables of a run as files: CSV and JSON with the same rows, Parquet with the same types. None needs pandas."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import duckdb

from planebench.library import tables
from planebench.library.tables import Source
from planebench.report.export import csv_text
from planebench.store import read_run


def source_of(folder: Path) -> Source:
    """Return the run in a folder. StoreError where it cannot be read."""
    return Source(folder, read_run(folder))


def table_json(name: str, source: Source) -> bytes:
    """Return a JSON array, an object a row; what is not known is null. UsageError for a table that is none."""
    text = json.dumps(tables.rows(name, [source]), indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    return text.encode("utf-8", errors="replace")


def table_csv(name: str, source: Source) -> bytes:
    """Return a table as CSV (RFC 4180); unknown values are empty, list items are separated by ``; ``."""
    out = io.StringIO(newline="")
    writer = csv.DictWriter(out, list(tables.table_named(name).types))
    writer.writeheader()
    for row in tables.rows(name, [source]):
        writer.writerow({key: csv_text(value) for key, value in row.items()})
    return out.getvalue().encode("utf-8", errors="replace")


def files_in(folder: Path) -> dict[str, Path]:
    """Return the file of every table."""
    return {name: folder / f"{name}.parquet" for name in tables.TABLES}


def write_tables(source: Source, files: Mapping[str, Path]) -> Iterator[Path]:
    """Write tables as Parquet, each to its file. UsageError for a table that is none, or a file that cannot be."""
    with duckdb.connect() as database:
        for name, path in files.items():
            yield tables.write_parquet(tables.relation(name, [source], database), path)
