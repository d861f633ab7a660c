# SPDX-License-Identifier: BSD-3-Clause
"""Every table there is, and tables as DuckDB relations, Arrow tables and DataFrames: same columns, same types."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb

from planebench.metrics.column import Table
from planebench.metrics.results import RESULT_TABLES
from planebench.metrics.runs import RUN_TABLES
from planebench.model.choices import unknown
from planebench.model.errors import NotInstalledError, StoreError, unwritable
from planebench.model.run import Run
from planebench.stats.derived import Derived

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa


class Source(Derived):
    """A run that was read from ``path``, and everything derived from it."""

    def __init__(self, path: Path, run: Run) -> None:
        super().__init__(run)
        self.path = path


TABLES_VERSION = 2
"""Version of the columns, in the metadata of Arrow tables and Parquet files. Columns are added without a new one.

History: 1 = first; 2 = every trial that took place counts: no band, no rejected trials.
"""

TABLES: Mapping[str, Table] = {
    name: {**RESULT_TABLES, **RUN_TABLES}[name]
    for name in (
        *("results", "trials", "latency", "searches", "curve", "ledger", "comparisons"),
        *("conditions", "evidence", "threads", "anatomy", "outages", "skipped", "runs"),
    )
}


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


def rows(name: str, sources: Sequence[Source]) -> list[dict[str, Any]]:
    """Return the rows of a table as plain values, run after run."""
    table = table_named(name)
    return [row for source in sources for row in table.rows(source)]


def relation(name: str, sources: Sequence[Source], database: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyRelation:
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


def write_parquet(found: duckdb.DuckDBPyRelation, path: Path) -> Path:
    """Return a relation as a Parquet file; needs DuckDB alone. Raises an error as unwritable."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # DuckDB takes neither the name of the file nor metadata as a parameter.
        quoted = str(path).replace("'", "''")
        metadata = f"KV_METADATA {{planebench_tables: '{TABLES_VERSION}'}}"
        found.query("made", f"COPY (SELECT * FROM made) TO '{quoted}' (FORMAT parquet, {metadata})")
    except OSError as error:
        raise unwritable(str(path), error) from None
    except duckdb.Error as error:
        raise StoreError(f"cannot write {path}: {error}. Free space, or give a folder that you may write") from None
    return path


def _needs(package: str) -> None:
    from importlib.util import find_spec

    if find_spec(package) is None:
        raise NotInstalledError(
            f"{package} is not installed, and DataFrames and Arrow tables need it: pip install 'planebench[data]'. "
            "Without it there are run.relation(NAME) (DuckDB) and planebench export --table NAME"
        )
