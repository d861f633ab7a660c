# SPDX-License-Identifier: BSD-3-Clause
"""A page as text for a golden file: what it says, a line a heading, paragraph, item and row; no markup, no drawing."""

from __future__ import annotations

import json
from collections.abc import Sequence
from html.parser import HTMLParser
from typing import Any

from planebench.report.figure import Figure

LINES = {"h1", "h2", "h3", "h4", "p", "li", "tr", "caption", "figcaption", "summary", "dt", "dd", "pre", "footer"}
SILENT = {"style", "svg", "title", "script", "template"}
MARKS = {"h1": "# ", "h2": "## ", "h3": "### ", "h4": "#### "}


class _Words(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []
        self.line: list[str] = []
        self.silent = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.silent += tag in SILENT
        if tag in LINES:
            self._end()
            self.line.append(MARKS.get(tag, ""))
        if tag in ("td", "th"):
            self.line.append(" | ")

    def handle_endtag(self, tag: str) -> None:
        self.silent -= tag in SILENT
        if tag in LINES:
            self._end()

    def handle_data(self, data: str) -> None:
        if not self.silent:
            self.line.append(data)

    def _end(self) -> None:
        text = " ".join("".join(self.line).split())
        if text.strip("# "):
            self.lines.append(text)
        self.line = []


def page_words(page: bytes) -> str:
    """The text of a page."""
    words = _Words()
    words.feed(page.decode("utf-8"))
    return "\n".join(words.lines) + "\n"


def figure_words(figures: Sequence[Figure]) -> str:
    """Every figure with the rows that it draws, figures of rows to six digits."""
    lines = []
    for figure in figures:
        lines.append(f"{figure.key} [{figure.kind}] {figure.title}")
        lines += (f"  {json.dumps(_rounded(row), ensure_ascii=False, sort_keys=True)}" for row in figure.rows)
    return "\n".join(lines) + "\n"


def _rounded(row: dict[str, Any]) -> dict[str, Any]:
    """Without what only the page needs: tooltips, which say the same again, and the names of results."""
    return {k: float(f"{v:.6g}") if isinstance(v, float) else v for k, v in row.items() if k not in ("tip", "cell")}
