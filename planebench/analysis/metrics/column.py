# SPDX-License-Identifier: BSD-3-Clause
"""A column of the catalog: name, type, where its value comes from, in which outputs it is and how it is written."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from types import SimpleNamespace, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from planebench.analysis.compare import Derived
from planebench.analysis.conditions import Condition, ConditionCell
from planebench.analysis.trend import TrendPoint
from planebench.model.header import Run
from planebench.model.outage import Restart
from planebench.model.plan import Skipped
from planebench.model.records import POINT_KEY, DirectionCounts, Point, ThreadEvidence, TrafficSent, Trial
from planebench.model.results import (
    AnatomySummary,
    Comparison,
    LatencySummary,
    Ledger,
    Loss,
    PartSummary,
    Result,
    SearchFigure,
    SearchResult,
)
from planebench.model.words import NOTHING, UNKNOWN

ColumnOutput = Literal["json", "table"]
"""The JSON export, and the tables (CSV, JSON, Parquet, DataFrame)."""
EVERYWHERE: frozenset[ColumnOutput] = frozenset(get_args(ColumnOutput))
JSON: frozenset[ColumnOutput] = frozenset({"json"})
TABLE: frozenset[ColumnOutput] = frozenset({"table"})

ColumnKind = Literal["plain", "switch", "number", "strong", "text", "verdict", "two"]
"""How the page draws a column. Cells of ``verdict`` are (kind, reasons), cells of ``two`` are (figure, small print)."""

Int32 = Annotated[int, "INTEGER"]
"""A whole number that needs 32 bits in a table."""


ADDED: Mapping[type, tuple[str, ...]] = {
    Ledger: ("unexplained_packets",),
    TrafficSent: ("mean_frame_bytes",),
    AnatomySummary: ("mean",),
    Comparison: ("distinguishable",),
}
"""The properties of a record that the JSON export has beside its fields."""
LEFT_OUT: Mapping[type, tuple[str, ...]] = {SearchResult: ("point", "start"), TrendPoint: ("facts",)}
"""The fields of a record that are not in its JSON."""

Number = float | None
Texts = tuple[str, ...]


class TableRow(SimpleNamespace):
    """A row of a table stands for ``run`` and those of these records that the columns of the table name."""

    run: Run
    result: Result
    summary: LatencySummary
    anatomy: AnatomySummary
    part: PartSummary
    search: SearchResult
    figure: SearchFigure | None
    ledger: Ledger
    loss: Loss | None
    trial: Trial
    direction: DirectionCounts
    thread: ThreadEvidence
    restart: Restart
    comparison: Comparison
    condition: Condition
    cell: ConditionCell
    switch: str
    kind: str
    skipped: Skipped


@dataclass(frozen=True, slots=True)
class OnPage:
    """How the page shows a figure: ``title`` and ``order`` in the main table of its rows, or in the table ``section``.

    ``words`` writes a value, ``cell`` a row. An ``optional`` column is left out where no row has a value.
    """

    title: str
    order: int
    words: Callable[[Any], Any] | None = None
    kind: ColumnKind = "number"
    section: str = ""
    cell: Callable[[Any], Any] | None = None
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Column:
    """One figure of a row.

    ``get`` is a path of attributes, as ``result.point.switch``, in which None stays None; or a function of the row.
    ``unit`` is added to the name in flat outputs, where the JSON export has it in a key above.
    ``page`` is there for a figure in the tables of the report.
    ``by_switch``: the switch itself reports the figure, so it is "unknown" where trials are accepted without it.
    """

    name: str
    type: Any
    get: str | Callable[[Any], Any]
    outputs: frozenset[ColumnOutput] = EVERYWHERE
    unit: str = ""
    page: OnPage | None = None
    by_switch: bool = False

    @property
    def flat_name(self) -> str:
        """Return the name with its unit: ``p50_us``."""
        return f"{self.name}_{self.unit}" if self.unit else self.name

    def value(self, item: Any) -> Any:
        """Return the value for a row as JSON has it; None is "not known"."""
        return plain(self._raw(item))

    def shown(self, item: Any) -> Any:
        """Return the cell of the page for a row: the value in words, a dash where it is not known."""
        if self.page is not None and self.page.cell is not None:
            return self.page.cell(item)
        if self.by_switch and self._raw(item) is None and item.result.throughput_pps is not None:
            return UNKNOWN
        value = self._raw(item)
        if value is None:
            return NOTHING
        return value if self.page is None or self.page.words is None else self.page.words(value)

    def _raw(self, item: Any) -> Any:
        if not isinstance(self.get, str):
            return self.get(item)
        for name in self.get.split("."):
            if item is None:
                break
            item = getattr(item, name)
        return item


@dataclass(frozen=True, slots=True)
class Table:
    """A table of the library. ``what`` describes one row; ``items`` yields the rows."""

    what: str
    columns: tuple[Column, ...]
    items: Callable[[Derived], Iterable[Any]]

    @property
    def types(self) -> dict[str, str]:
        """Return the DuckDB type of each column."""
        return {column.flat_name: sql_type(column.type) for column in self.columns}

    def rows(self, derived: Derived) -> Iterator[dict[str, Any]]:
        """Yield the rows of one run as plain values: a list is a list; None is not known, or not finite."""
        return map(self.row, self.items(derived))

    def row(self, item: Any) -> dict[str, Any]:
        """Return one row."""
        return {column.flat_name: column.value(item) for column in self.columns}


def attribute(path: str, name: str, kind: Any, **more: Any) -> Column:
    """Return the column of an attribute of the record at ``path``, which names it; ``more``: what else a column has."""
    return Column(name, kind, f"{path}.{name}", **more)


def attributes(path: str, /, **types: Any) -> tuple[Column, ...]:
    """Return one column for each attribute of the record at ``path``."""
    return tuple(attribute(path, name, kind, outputs=TABLE) for name, kind in types.items())


def point_columns(path: str) -> dict[str, Column]:
    """Return the columns of the key of the test point at ``path``, by name."""
    types = {**get_type_hints(Point, include_extras=True), "chain_length": Int32, "frame_size_bytes": Int32}
    paths = {"chain": "chain_text"}
    return {name: Column(name, types[name], f"{path}.{paths.get(name, name)}") for name in POINT_KEY}


def verdict_columns(path: str) -> tuple[Column, ...]:
    """Return the columns of the verdict at ``path``: its kind, and the texts and codes of its reasons."""
    return (
        Column("verdict", str, f"{path}.kind", outputs=TABLE),
        Column("verdict_reasons", Texts, f"{path}.texts", outputs=TABLE),
        Column("verdict_codes", Texts, f"{path}.codes", outputs=TABLE),
    )


def having(columns: Iterable[Column], output: ColumnOutput) -> tuple[Column, ...]:
    """Return the columns that an output has."""
    return tuple(column for column in columns if output in column.outputs)


def row(columns: Iterable[Column], item: Any) -> dict[str, Any]:
    """Return the values of some columns for a row, by the names of the columns."""
    return {column.name: column.value(item) for column in columns}


def plain(value: Any) -> Any:
    """Return a value as JSON has it: dictionaries, lists, and null for a float that is not finite."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, tuple | list):
        return [plain(item) for item in value]
    if dataclasses.is_dataclass(value):
        names = [field.name for field in dataclasses.fields(value) if field.name not in LEFT_OUT.get(type(value), ())]
        return {name: plain(getattr(value, name)) for name in (*names, *ADDED.get(type(value), ()))}
    return value


def sql_type(kind: Any) -> str:
    """Return the type in DuckDB of values of a type."""
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return arguments[1] if isinstance(arguments[1], str) else sql_type(arguments[0])
    if origin in (Union, UnionType):
        return sql_type(next(it for it in arguments if it is not type(None)))
    if origin in (tuple, list):
        return f"{sql_type(arguments[0])}[]"
    if origin is Literal or issubclass(kind, str):
        return "VARCHAR"
    return {bool: "BOOLEAN", int: "BIGINT", float: "DOUBLE"}[kind]
