# SPDX-License-Identifier: BSD-3-Clause
"""The characters a terminal can show: Unicode where it can, plain ASCII where it cannot."""

from __future__ import annotations

from dataclasses import dataclass

from planebench.model.records import Direction
from planebench.model.words import ARROWS, ASCII_ARROWS, NOTHING

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
