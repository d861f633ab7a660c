# SPDX-License-Identifier: BSD-3-Clause
"""A table of the page as plain values: heads with the kind of their column, rows of cells. The template draws it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from planebench.metrics.column import Column, Kind
from planebench.metrics.results import OfResult
from planebench.model.records import Point, Verdict
from planebench.model.words import ARROWS, frames

MAX_ROWS = 1000
"""Of a table of a scenario: ten switches, five chains, three frame sizes, two directions and three loads have 900."""


@dataclass(frozen=True, slots=True)
class Head:
    """The head of a column."""

    name: str
    kind: Kind = "plain"


@dataclass(frozen=True, slots=True)
class Row:
    """One cell a column. ``out``: drawn pale, it does not count."""

    cells: tuple[Any, ...]
    out: bool = False


@dataclass(frozen=True, slots=True)
class PageTable:
    """``note`` stands below; ``left_out`` is the number of rows that are not shown."""

    caption: str
    heads: tuple[Head, ...]
    rows: tuple[Row, ...]
    note: str = ""
    left_out: int = 0


T = TypeVar("T", bound=OfResult)


def page_table(
    caption: str,
    columns: Sequence[Column],
    items: Sequence[T],
    *,
    out: Callable[[T], bool] = lambda _: False,
    note: str = "",
) -> PageTable:
    """Return a table with a row per item: the columns of its point, then ``columns``.

    An optional column is left out where no row has a value. ``out``: whether the row of an item is drawn pale.
    """
    points = [item.result.point for item in items]
    there = [
        column for column in columns if not column.optional or any(column.value(item) is not None for item in items)
    ]
    rows = (
        Row((*point_cells(item.result.point, points), *(column.shown(item) for column in there)), out(item))
        for item in items
    )
    own = (Head(column.title, column.kind) for column in there)
    return PageTable(caption, (*point_heads(points), *own), tuple(rows), note)


def heads(names: Iterable[str], kind: Kind = "number") -> tuple[Head, ...]:
    """Heads of one kind."""
    return tuple(Head(name, kind) for name in names)


def point_heads(points: Sequence[Point]) -> tuple[Head, ...]:
    """Heads of the columns that name a point; N, or the chain's name, only where there are chains."""
    named, chained = _named(points), _chains(points)
    chain = (Head("chain"),) if named else (Head("N", "number"),) if chained else ()
    return (Head("switch", "switch"), *chain, Head("direction"), Head("frame"))


def point_cells(point: Point, points: Sequence[Point]) -> tuple[Any, ...]:
    """The cells under :func:`point_heads` of the same points."""
    chain = (point.chain_label,) if _named(points) else (point.chain_length,) if _chains(points) else ()
    return (point.switch, *chain, f"{ARROWS[point.direction]} {point.direction}", frames(point))


def verdict_cell(verdict: Verdict) -> tuple[str, tuple[str, ...]]:
    """A cell of a column of verdicts."""
    return verdict.kind.value, verdict.texts


def some(tables: Sequence[PageTable]) -> list[PageTable]:
    """The tables that have rows, and of these the first ones: a section without data does not appear."""
    return [replace(t, rows=t.rows[:MAX_ROWS], left_out=max(0, len(t.rows) - MAX_ROWS)) for t in tables if t.rows]


def _named(points: Iterable[Point]) -> bool:
    return any(point.named for point in points)


def _chains(points: Iterable[Point]) -> bool:
    return any(point.chain_length for point in points)
