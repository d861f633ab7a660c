# SPDX-License-Identifier: BSD-3-Clause
"""The characters of a terminal, and the tables of the report in them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rich.table import Table
from rich.text import Text

from planebench.analysis.metrics.column import ColumnKind
from planebench.model.scenario import Direction
from planebench.model.words import ARROWS, ASCII_ARROWS, NOTHING, reasons
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


TEXT_WIDTH = 24
"""The least width of a column of sentences."""
MAX_PARTS = 2
"""Tables that one table of the page becomes where it is too wide."""
GAP = 2
"""Characters between two columns."""


def cell_words(kind: ColumnKind, value: Any) -> str:
    """Return a cell of a table as one text."""
    if kind == "verdict":
        return f"{value[0]}: {reasons(value[1])}" if value[1] else str(value[0])
    if kind == "two":
        return " ".join(filter(None, value))
    return NOTHING if value is None else str(value)


def drawn_tables(table: PageTable, glyphs: Glyphs, width: int, max_rows: int) -> tuple[list[Table], list[str]]:
    """Return a table of the report for the terminal, and the titles of the columns that it has no room for.

    Columns that do not fit are in a second table, whose rows have the same names; the page has all.
    """
    kinds = [column.kind for column in table.columns]
    heads = [glyphs.text(column.title) for column in table.columns]
    lines = [
        [glyphs.text(glyphs.arrows(cell_words(kind, it))) for kind, it in zip(kinds, row.cells, strict=True)]
        for row in table.rows[:max_rows]
    ]
    widths = [max(len(it) for it in (head, *(line[i] for line in lines))) + GAP for i, head in enumerate(heads)]
    lead = 1 + next((i for i, kind in enumerate(kinds[1:]) if kind != "plain"), 0)
    lead = lead if sum(widths[:lead]) <= width / 2 else 1
    is_whole = sum(widths[:lead]) <= width / 2
    parts: list[list[int]] = []
    room = 0
    for i in range(lead, len(heads)):
        needed = widths[i] if kinds[i] not in ("text", "verdict") else min(widths[i], TEXT_WIDTH)
        if not parts or needed > room:
            parts.append([])
            room = width - sum(widths[:lead])
        parts[-1].append(i)
        room -= needed
    found = []
    for part in parts[:MAX_PARTS] or [[]]:
        drawn = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0), header_style="dim")
        for i in (*range(lead), *part):
            is_text = kinds[i] in ("plain", "switch", "text", "verdict")
            drawn.add_column(
                heads[i], justify="left" if is_text else "right", overflow="fold", no_wrap=i < lead and is_whole
            )
        for line, row in zip(lines, table.rows, strict=False):
            drawn.add_row(*(Text(line[i]) for i in (*range(lead), *part)), style="dim" if row.out else "")
        found.append(drawn)
    return found, [heads[i] for part in parts[MAX_PARTS:] for i in part]
