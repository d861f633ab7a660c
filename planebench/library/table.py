# SPDX-License-Identifier: BSD-3-Clause
"""What a table is: columns with types and units in their names, and where its rows come from."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from planebench.library.source import Source

Item = TypeVar("Item")
Column = tuple[str, Callable[[Item], Any]]
"""(DuckDB type, how to get the value from what a row stands for)."""

TEXTS, NUMBERS = "VARCHAR[]", "DOUBLE[]"


@dataclass(frozen=True, slots=True)
class Table(Generic[Item]):
    """``what``: one row of it, in words. ``items``: what its rows stand for."""

    what: str
    columns: Mapping[str, Column[Item]]
    items: Callable[[Source], Iterable[Item]]

    @property
    def types(self) -> dict[str, str]:
        """Column -> DuckDB type."""
        return {name: kind for name, (kind, _) in self.columns.items()}

    def rows(self, source: Source) -> Iterator[dict[str, Any]]:
        """The rows of one run as plain values: a list is a list; what is not known, or no finite number, is None."""
        return map(self.row, self.items(source))

    def row(self, item: Item) -> dict[str, Any]:
        """One row."""
        return {name: _finite(get(item)) for name, (_, get) in self.columns.items()}


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value
