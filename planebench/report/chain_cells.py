# SPDX-License-Identifier: BSD-3-Clause
"""Terminal tables on chains against their parts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.text import Text

from planebench.model.words import ARROWS
from planebench.report.chains_data import (
    LATENCY_HEADS,
    LATENCY_TITLE,
    THROUGHPUT_HEADS,
    THROUGHPUT_TITLE,
    latency_claim,
    latency_words,
    throughput_claim,
    throughput_words,
)
from planebench.report.glyphs import Glyphs
from planebench.report.grid import bare_table
from planebench.stats.chains import Chains

MAX_ROWS = 24
"""Of a table; a run with more has them in the page."""
_TEXTS = ("switch", "chain", "cell", "load", "against", "told")

Rows = Sequence[tuple[str, ...]]


def chain_blocks(chains: Chains, glyphs: Glyphs, width: int) -> Iterator[RenderableType]:
    """Both claims, each with a sentence; its rows are only counted where they do not fit."""
    latency = [(it.point.switch, *latency_words(it)) for it in chains.latency]
    rates = [(it.point.switch, *throughput_words(it)) for it in chains.throughput]
    if latency or rates:
        title = Text("\n")
        title.append("chains", style="bold cyan")
        title.append("  a chain of network functions against its parts alone", style="dim")
        yield title
    yield from _block(LATENCY_TITLE, LATENCY_HEADS, latency, glyphs, width)
    yield from (Text(glyphs.text(claim)) for claim in filter(None, [latency_claim(chains)]))
    yield from _block(THROUGHPUT_TITLE, THROUGHPUT_HEADS, rates, glyphs, width)
    yield from (Text(glyphs.text(claim)) for claim in filter(None, [throughput_claim(chains)]))


def _block(title: str, heads: tuple[str, ...], rows: Rows, glyphs: Glyphs, width: int) -> Iterator[RenderableType]:
    if not rows:
        return
    columns = ("switch", *heads)
    lines = [tuple(_plain(cell, glyphs) for cell in row) for row in rows]
    needed = sum(max(map(len, column)) + 3 for column in zip(columns, *lines, strict=True))
    if len(rows) > MAX_ROWS or needed > width:
        yield Text(glyphs.text(f"{title}: {len(rows)} rows (see the report)"))
        return
    yield Text(glyphs.text(title), style="dim")
    table = bare_table(glyphs)
    for head in columns:
        table.add_column(glyphs.text(head), no_wrap=True, justify="left" if head in _TEXTS else "right")
    for line in lines:
        table.add_row(*map(Text, line))
    yield table


def _plain(cell: str, glyphs: Glyphs) -> str:
    for direction, arrow in ARROWS.items():
        cell = cell.replace(arrow, glyphs.arrow(direction))
    return glyphs.text(cell)
