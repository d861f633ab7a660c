# SPDX-License-Identifier: BSD-3-Clause
"""The characters of a terminal, and the tables of the report in them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from rich import box
from rich.table import Table
from rich.text import Text

from planebench.analysis.metrics.column import ColumnKind
from planebench.model.results import Result
from planebench.model.scenario import Direction
from planebench.model.words import ARROWS, ASCII_ARROWS, NOTHING, frames, reasons
from planebench.report.tables import PageTable

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


LoadColumn = tuple[Direction, str]
"""Direction mode and what is sent: a frame size, with the name of a traffic profile."""


def column_of(result: Result) -> LoadColumn:
    """Return the column of a result."""
    return (result.point.direction, frames(result.point))


def columns_of(results: Sequence[Result]) -> list[LoadColumn]:
    """Return the columns of some results, in their order."""
    return list(dict.fromkeys(column_of(r) for r in results))


def column_title(column: LoadColumn, glyphs: Glyphs) -> str:
    """Return ``→ 64 B``."""
    return f"{glyphs.arrow(column[0])} {column[1]}"


TEXT_WIDTH = 24
"""The least width of a column of sentences."""


def cell_words(kind: ColumnKind, value: Any) -> str:
    """Return a cell of a table as one text."""
    if kind == "verdict":
        return f"{value[0]}: {reasons(value[1])}" if value[1] else str(value[0])
    if kind == "two":
        return " ".join(filter(None, value))
    return NOTHING if value is None else str(value)


def drawn_tables(table: PageTable, glyphs: Glyphs, width: int, max_rows: int) -> Iterator[Table]:
    """Yield a table of the report for the terminal; columns that do not fit are in a second one, named as the first."""
    kinds = [column.kind for column in table.columns]
    heads = [glyphs.text(column.title) for column in table.columns]
    lines = [
        [glyphs.text(glyphs.arrows(cell_words(kind, it))) for kind, it in zip(kinds, row.cells, strict=True)]
        for row in table.rows[:max_rows]
    ]
    widths = [max(len(it) for it in (head, *(line[i] for line in lines))) + 3 for i, head in enumerate(heads)]
    lead = 1 + next((i for i, kind in enumerate(kinds[1:]) if kind != "plain"), 0)
    lead = lead if sum(widths[:lead]) <= width / 2 else 1
    parts: list[list[int]] = []
    room = 0
    for i in range(lead, len(heads)):
        needed = widths[i] if kinds[i] not in ("text", "verdict") else min(widths[i], TEXT_WIDTH)
        if not parts or needed > room:
            parts.append([])
            room = width - sum(widths[:lead])
        parts[-1].append(i)
        room -= needed
    for part in parts or [[]]:
        drawn = Table(
            box=box.SIMPLE_HEAD if glyphs.unicode else box.ASCII2, pad_edge=False, padding=(0, 1), header_style="dim"
        )
        for i in (*range(lead), *part):
            is_text = kinds[i] in ("plain", "switch", "text", "verdict")
            drawn.add_column(heads[i], justify="left" if is_text else "right", overflow="fold")
        for line, row in zip(lines, table.rows, strict=False):
            drawn.add_row(*(Text(line[i]) for i in (*range(lead), *part)), style="dim" if row.out else "")
        yield drawn
