# SPDX-License-Identifier: BSD-3-Clause
"""A table as plain values: columns with their kind, rows of cells. Page and terminal draw it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, TypeVar

from planebench.analysis.metrics.column import Column, ColumnKind
from planebench.model.records import Point
from planebench.model.words import NOTHING, point_words

MAX_ROWS = 1000
"""Rows of a table: ten switches, five chains, three frame sizes, two directions and three loads need 900."""


@dataclass(frozen=True, slots=True)
class PageColumn:
    """A column of a table. ``shown`` returns the cell for an item, which is what a row stands for."""

    title: str
    shown: Callable[[Any], Any]
    kind: ColumnKind = "plain"
    points: Callable[[Any], tuple[Point, ...]] | None = None
    """Returns the test points that a row is about, by which the page filters it; None in a column that names none."""


@dataclass(frozen=True, slots=True)
class PageRow:
    """One row of cells. ``out``: drawn pale, as it does not count. ``points``: the test points that it is about."""

    cells: tuple[Any, ...]
    out: bool = False
    points: tuple[Point, ...] = ()


@dataclass(frozen=True, slots=True)
class PageTable:
    """A table as plain values. ``note`` stands below; ``left_out`` is the number of rows that are not shown."""

    caption: str
    columns: tuple[PageColumn, ...]
    rows: tuple[PageRow, ...]
    note: str = ""
    left_out: int = 0

    @property
    def head(self) -> int:
        """Return the column whose cells are the heads of their rows: the switch, or the first."""
        return next((number for number, column in enumerate(self.columns) if column.kind == "switch"), 0)


T = TypeVar("T")


def page_table(
    caption: str,
    columns: Sequence[PageColumn],
    items: Sequence[T],
    note: str = "",
    *,
    out: Callable[[T], bool] = lambda _: False,
    max_rows: int = MAX_ROWS,
) -> PageTable:
    """Return a table with a row per item; after ``max_rows`` the items are only counted.

    ``out``: whether the row of an item is drawn pale.
    """
    points = next((column.points for column in columns if column.points), lambda _: ())
    rows = tuple(
        PageRow(tuple(column.shown(item) for column in columns), out(item), points(item)) for item in items[:max_rows]
    )
    return PageTable(caption, tuple(columns), rows, note, len(items) - len(rows))


def named_values(caption: str, values: Mapping[str, Any]) -> PageTable:
    """Return a table of names and their values."""
    columns = PageColumn("name", itemgetter(0)), PageColumn("value", itemgetter(1), "text")
    return page_table(caption, columns, list(values.items()))


def on_page(columns: Iterable[Column], items: Sequence[Any], section: str = "") -> tuple[PageColumn, ...]:
    """Return the columns of the catalog that a table of the page has for some rows, in its order."""
    shown = [(it, it.page) for it in columns if it.page is not None and it.page.section == section]
    there = [it for it in shown if not it[1].optional or any(it[0].value(item) is not None for item in items)]
    return tuple(PageColumn(page.title, it.shown, page.kind) for it, page in sorted(there, key=lambda it: it[1].order))


def known(value: T | None, words: Callable[[T], str], absent: str = NOTHING) -> str:
    """Return a value in words; ``absent`` for None."""
    return absent if value is None else words(value)


def number(title: str, shown: Callable[[Any], Any]) -> PageColumn:
    """Return a column of numbers."""
    return PageColumn(title, shown, "number")


def point_columns(point: Callable[[Any], Point]) -> tuple[PageColumn, PageColumn]:
    """Return the columns that name the test point of an item."""
    return (
        PageColumn("switch", lambda it: point(it).switch, "switch", lambda it: (point(it),)),
        PageColumn("test point", lambda it: point_words(point(it))),
    )
