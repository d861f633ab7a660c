# SPDX-License-Identifier: BSD-3-Clause
"""The grid of terminal tables: a row per switch (by chain length); columns that do not fit are in a second table."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from rich import box
from rich.console import JustifyMethod
from rich.table import Table
from rich.text import Text

from planebench.model.records import Point
from planebench.model.results import Result
from planebench.model.scenario import Direction
from planebench.model.words import ARROWS, ASCII_ARROWS, NOTHING, frames
from planebench.report.page.table import PageTable

# The characters a terminal can show: Unicode where it can, plain ASCII where it cannot.

_EIGHTHS = " ▏▎▍▌▋▊▉█"
_TO_ASCII = str.maketrans(
    {
        "≥": ">=",
        NOTHING: "-",
        "…": "...",
        "µ": "u",
        "→": "->",
        "⇄": "<->",
        "←": "<-",
        "·": "-",
        "\u202f": "",
        "✓": "*",
        "×": "x",
        "±": "+-",
        "≈": "est.",
        "≤": "<=",
    }
)


@dataclass(frozen=True, slots=True)
class Glyphs:
    """One set of characters."""

    unicode: bool

    def arrow(self, direction: Direction) -> str:
        """Return the sign of a direction mode: an arrow, or ``uni``, ``bidi``, ``rev``."""
        return (ARROWS if self.unicode else ASCII_ARROWS)[direction]

    def arrows(self, text: str) -> str:
        """Return a text with the arrows of directions as :meth:`arrow` has them."""
        for direction, arrow in ARROWS.items():
            text = text.replace(arrow, self.arrow(direction))
        return text

    def text(self, text: str) -> str:
        """Return text as this terminal can show it; control characters (hostile log tails) become ``?``."""
        printable = "".join(c if c.isprintable() or c == "\u202f" else "?" for c in text)
        if self.unicode:
            return printable
        return printable.translate(_TO_ASCII).encode("ascii", errors="replace").decode("ascii")

    def bar(self, share: float, width: int) -> str:
        """Return a bar of ``share`` (0..1) of ``width`` characters, in steps of an eighth, padded to the width."""
        if width <= 0:
            return ""
        eighths = round(max(0.0, min(share, 1.0)) * width * 8)
        if not self.unicode:
            return ("#" * round(eighths / 8)).ljust(width)
        full, part = divmod(eighths, 8)
        return ("█" * full + (_EIGHTHS[part] if part else "")).ljust(width)


T = TypeVar("T")

LoadColumn = tuple[Direction, str]
"""Direction mode and what is sent: a frame size, with the name of a traffic profile."""


def chunks(items: Sequence[T], fitting: int) -> list[Sequence[T]]:
    """Return parts of about equal length, none longer than ``fitting`` (but at least one item)."""
    number = math.ceil(len(items) / max(1, fitting))
    size = math.ceil(len(items) / number)
    return [items[i : i + size] for i in range(0, len(items), size)]


def column_of(result: Result) -> LoadColumn:
    """Return the column of a result."""
    return (result.point.direction, frames(result.point))


def columns_of(results: Sequence[Result]) -> list[LoadColumn]:
    """Return the columns of some results, in their order."""
    return list(dict.fromkeys(column_of(r) for r in results))


def column_title(column: LoadColumn, glyphs: Glyphs) -> str:
    """Return ``→ 64 B``."""
    return f"{glyphs.arrow(column[0])} {column[1]}"


def row_name_width(results: Sequence[Result]) -> int:
    """Return the width of the widest row name with its chain length, in characters."""
    chain = max(len(chain_words(r.point, results)) for r in results)
    switch = max(len(r.point.switch) for r in results)
    return max(switch, len("switch")) + max(chain, len("chain")) + 2 if chain > 1 else switch + 3 * chain


def chain_words(point: Point, results: Sequence[Result]) -> str:
    """Return the chain in a table: its name if a result has one, else its length. Empty without a chain."""
    if any(r.point.named for r in results):
        return point.chain_label
    return str(point.chain_length or "")


def bare_table(glyphs: Glyphs) -> Table:
    """Return an empty table in the common style."""
    return Table(
        box=box.SIMPLE_HEAD if glyphs.unicode else box.ASCII2, pad_edge=False, padding=(0, 1), header_style="dim"
    )


def new_table(results: Sequence[Result], glyphs: Glyphs, title: str = "switch") -> Table:
    """Return a table with the columns that name a row."""
    table = bare_table(glyphs)
    if any(r.point.named for r in results):
        table.add_column("chain", no_wrap=True)
    elif results[0].point.chain_length:
        table.add_column("N", justify="right", no_wrap=True)
    table.add_column(title, no_wrap=True, overflow="ellipsis" if glyphs.unicode else "crop")
    return table


def rows(results: Sequence[Result]) -> Iterator[tuple[list[Text], list[Result], bool]]:
    """Yield ``(leading cells, results of the row, last of its chain)``."""
    keys = list(dict.fromkeys((r.point.chain_key, r.point.switch) for r in results))
    for i, (chain, switch) in enumerate(keys):
        starts, ends = i == 0 or keys[i - 1][0] != chain, i + 1 == len(keys) or keys[i + 1][0] != chain
        members = [r for r in results if (r.point.chain_key, r.point.switch) == (chain, switch)]
        words = chain_words(members[0].point, results)
        lead = [Text(words if starts else "")] if words else []
        yield [*lead, Text(switch)], members, ends


def column_tables(
    results: Sequence[Result],
    title: str,
    cell: Callable[[Result], Text],
    glyphs: Glyphs,
    width: int,
    cell_width: int,
    justify: JustifyMethod = "right",
) -> list[Table]:
    """Return tables with a cell per result: switches by direction and frame size; empty without results."""
    if not results:
        return []
    name_width = max(len(title), row_name_width(results)) + 4
    tables = []
    for part in chunks(columns_of(results), (width - name_width) // (cell_width + 2)):
        table = new_table(results, glyphs, title)
        for column in part:
            table.add_column(column_title(column, glyphs), justify=justify, no_wrap=True)
        for lead, members, ends in rows(results):
            by_column = {column_of(r): cell(r) for r in members}
            table.add_row(*lead, *(by_column.get(column, Text("")) for column in part), end_section=ends)
        tables.append(table)
    return tables


def small_table(table: PageTable, glyphs: Glyphs, width: int, max_rows: int) -> Table | None:
    """Return a table of the page for the terminal; None if it has too many rows, or is wider than ``width``."""
    heads = [glyphs.text(column.title) for column in table.columns]
    lines = [[glyphs.text(glyphs.arrows(cell)) for cell in row.cells] for row in table.rows]
    needed = sum(max(map(len, column)) + 3 for column in zip(heads, *lines, strict=True))
    if len(lines) > max_rows or needed > width:
        return None
    drawn = bare_table(glyphs)
    for head, column in zip(heads, table.columns, strict=True):
        drawn.add_column(head, no_wrap=True, justify="left" if column.kind in ("plain", "switch") else "right")
    for line, row in zip(lines, table.rows, strict=True):
        drawn.add_row(*map(Text, line), style="dim" if row.out else "")
    return drawn
