# SPDX-License-Identifier: BSD-3-Clause
"""The answers of a run in the terminal, the last that it prints: what to take, confidence, a row per test point."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from planebench.model.words import NOTHING
from planebench.report.answers import STATES, Line, PathAnswer, Standings, limits_words, needs, path_answers
from planebench.report.terminal.glyphs import Glyphs
from planebench.report.terminal.grid import bare_table
from planebench.report.trust import trust

TABLE_WIDTH = 90
"""Columns that the table needs; a narrower terminal gets sentences."""
_STYLES = {"high": "bold green", "medium": "bold yellow", "low": "bold red"}
_STATE_STYLES = {"different": "green", "same": "green", "open": "yellow", "untested": "yellow", "none": "red"}


def answer_lines(standings: Standings, glyphs: Glyphs, width: int) -> Iterator[RenderableType]:
    """Yield what to take for which need, the confidence in it and what to do, the table of answers, and its remarks."""
    found = trust(standings)
    yield Text("\n" + glyphs.text("Answers"), style="bold")
    for need in needs(standings):
        text = Text(glyphs.text(f"If you need {need.title}: "))
        yield text.append(glyphs.text(need.pick), style="bold").append(glyphs.text(f": {need.why}"))
    yield Text(glyphs.text(f"{found.title}. "), style=_STYLES[found.level]).append(
        glyphs.text(" ".join(found.facts)), style="not bold default"
    )
    if found.advice:
        yield Text(glyphs.text(f"What to do: {' '.join(found.advice)}"))
    lines = [(_point(answer, line, glyphs), line) for answer in path_answers(standings) for line in answer.lines]
    if width >= TABLE_WIDTH:
        yield _table(lines, glyphs)
    for point, line in lines:
        words = line.evidence
        if width < TABLE_WIDTH:
            words = _sentence(line)
        elif line.clear:
            continue
        if words:
            yield Padding(Text(glyphs.text(f"{point}: {words}")), (0, 0, 0, 2))
    yield Text(glyphs.text(limits_words(standings.derived)), style="dim")


def _table(lines: Sequence[tuple[str, Line]], glyphs: Glyphs) -> Table:
    table = bare_table(glyphs)
    for title in ("test point", "order", "Mpps", "times the next", "p50 / p99 / p99.9, µs", "answer"):
        table.add_column(glyphs.text(title), overflow="fold")
    for point, line in lines:
        state = Text(glyphs.text(STATES[line.state]), style=_STATE_STYLES.get(line.state, ""))
        best, rate, ratio, latency, _ = _cells(line)
        table.add_row(point, *(Text(glyphs.text(cell)) for cell in (best, rate, ratio, latency)), state)
    return table


def _cells(line: Line) -> tuple[str, str, str, str, str]:
    """Return the order, the rate of the best, its advantage and its latency, and the answer, in words."""
    return (
        line.order or NOTHING,
        f"{line.rate} {line.rate_interval}".rstrip(),
        f"{line.ratio} {line.ratio_interval}".rstrip(),
        f"{line.latency} {line.latency_note}".rstrip(),
        STATES[line.state],
    )


def _sentence(line: Line) -> str:
    """Return the row of the table in words, with the units that its titles have, without cells that have nothing."""
    best, _, ratio, _, state = _cells(line)
    rate = f"{line.rate} Mpps {line.rate_interval}".rstrip()
    latency = f"p50 / p99 / p99.9 {line.latency} µs {line.latency_note}".rstrip()
    cells = (it for it in (best, rate, ratio, latency, state) if NOTHING not in it.split())
    return ", ".join(filter(None, (*cells, line.evidence)))


def _point(answer: PathAnswer, line: Line, glyphs: Glyphs) -> str:
    return glyphs.arrows(f"{answer.short} {line.frames}")
