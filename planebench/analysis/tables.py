# SPDX-License-Identifier: BSD-3-Clause
"""Every table there is, as rows, CSV, DuckDB relations, Arrow tables and DataFrames: same columns, same types."""

from __future__ import annotations

import csv
import io
import json
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb

from planebench.analysis.compare import Derived
from planebench.analysis.metrics.column import Table
from planebench.analysis.metrics.results import RESULT_TABLES
from planebench.analysis.metrics.runs import RUN_TABLES
from planebench.model.errors import NotInstalledError, unknown

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa


TABLES_VERSION = 2
"""Version of the columns, in the metadata of Arrow tables and Parquet files. Columns are added without a new one.

History: 1 = first; 2 = every trial that took place counts: no band, no rejected trials.
"""

TABLES: Mapping[str, Table] = {**RESULT_TABLES, **RUN_TABLES}


def table_named(name: str) -> Table:
    """Return the table with this name. Raises UsageError with the valid names for an unknown one."""
    if name not in TABLES:
        raise unknown("table", name, tuple(TABLES))
    return TABLES[name]


def fill_table(
    database: duckdb.DuckDBPyConnection, name: str, types: Mapping[str, str], rows: Iterable[Mapping[str, Any]]
) -> duckdb.DuckDBPyRelation:
    """Make, or replace, a table of plain values. ``types``: column -> DuckDB type."""
    with tempfile.TemporaryDirectory(prefix="planebench-") as folder:
        file = Path(folder) / "rows.jsonl"
        with file.open("w", encoding="utf-8", errors="replace") as out:
            out.writelines(json.dumps(row, allow_nan=False) + "\n" for row in rows)
        database.execute(
            f'CREATE OR REPLACE TABLE "{name}" AS '
            "SELECT * FROM read_json($rows, format='newline_delimited', columns=$types)",
            {"rows": str(file), "types": dict(types)},
        )
    return database.table(name)


def rows(name: str, sources: Sequence[Derived]) -> list[dict[str, Any]]:
    """Return the rows of a table as plain values, run after run."""
    table = table_named(name)
    return [row for source in sources for row in table.rows(source)]


def table_json(name: str, derived: Derived) -> bytes:
    """Return a JSON array, an object a row; what is not known is null. UsageError for a table that is none."""
    text = json.dumps(rows(name, [derived]), indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    return text.encode("utf-8", errors="replace")


FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")
"""With what a cell begins that spreadsheets take for a formula, or that hides one (OWASP, CSV injection)."""


def table_csv(name: str, derived: Derived) -> bytes:
    """Return a table as CSV (RFC 4180); unknown values are empty, list items are separated by ``; ``.

    A text that a spreadsheet would take for a formula has a ``'`` before it; numbers are what they are.
    """
    out = io.StringIO(newline="")
    writer = csv.writer(out)
    writer.writerow(table_named(name).types)
    for row in rows(name, [derived]):
        cells = ["; ".join(map(str, it)) if isinstance(it, list) else it for it in row.values()]
        writer.writerow([f"'{it}" if isinstance(it, str) and it.startswith(FORMULA) else it for it in cells])
    return out.getvalue().encode("utf-8", errors="replace")


def relation(name: str, sources: Sequence[Derived], database: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyRelation:
    """Return the table as one of a DuckDB connection, by its name."""
    return fill_table(database, name, table_named(name).types, rows(name, sources))


def arrow(found: duckdb.DuckDBPyRelation) -> pa.Table:
    """Return a relation as an Arrow table. NotInstalledError without pyarrow."""
    _needs("pyarrow")
    table = found.to_arrow_table()
    return table.replace_schema_metadata({"planebench_tables": str(TABLES_VERSION)})


def frame(table: pa.Table) -> pd.DataFrame:
    """Return an Arrow table as a DataFrame. Integers, flags and text are pandas' nullable types, lists are objects.

    A float that is not known is NaN. NotInstalledError without pandas.
    """
    _needs("pandas")
    import pandas as pd
    import pyarrow as pa

    types: dict[Any, Any] = {
        pa.int64(): pd.Int64Dtype(),
        pa.int32(): pd.Int32Dtype(),
        pa.bool_(): pd.BooleanDtype(),
        pa.string(): pd.StringDtype("pyarrow"),
    }
    made: pd.DataFrame = table.to_pandas(types_mapper=types.get)
    return made


def _needs(package: str) -> None:
    from importlib.util import find_spec

    if find_spec(package) is None:
        raise NotInstalledError(
            f"{package} is not installed, and DataFrames and Arrow tables need it: pip install 'planebench[data]'. "
            "Without it there are run.relation(NAME) (DuckDB) and planebench export --table NAME"
        )
