# SPDX-License-Identifier: BSD-3-Clause
"""The whole report in a terminal, in 140 columns or fewer, with or without color and Unicode: all sections, then the
last screen."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from planebench.analysis.compare import Derived
from planebench.analysis.standings import Standings
from planebench.report.sections import Fold, SectionPart, Sentences, Source, build, with_content
from planebench.report.tables import PageTable
from planebench.report.terminal.grid import Glyphs, drawn_tables
from planebench.report.terminal.screen import screen_lines, title_line

MAX_WIDTH = 140
"""Wider terminals get no wider table: the eye loses the row."""
MAX_LINES = 24
"""Rows of a table, and sentences of a part; the page has all."""


def print_table(derived: Derived, console: Console | None = None, printed: Sequence[str] = ()) -> None:
    """Print everything of a run, complete or not. Without ``console``: to stdout, colors as the terminal has them.

    ``printed``: warnings that were printed before, which are left out here.
    """
    console, width, glyphs = _terminal(console)
    console.print(render(derived, width, glyphs, printed), width=width, highlight=False)


def print_screen(derived: Derived, console: Console | None = None, printed: Sequence[str] = ()) -> None:
    """Print the last screen of a run; of one that ranks nothing, everything. Arguments as of :func:`print_table`."""
    console, width, glyphs = _terminal(console)
    standings = Standings(derived)
    if not any(it.results for it in standings.throughput):
        print_table(derived, console, printed)
        return
    for line in screen_lines(standings, width, glyphs):
        console.print(line, highlight=False, soft_wrap=True)


def print_parts(parts: Iterable[SectionPart], console: Console | None = None) -> None:
    """Print sentences and tables as in the report."""
    console, width, glyphs = _terminal(console)
    console.print(Group(*_drawn(with_content(parts), glyphs, width, ())), width=width, highlight=False)


def _terminal(console: Console | None) -> tuple[Console, int, Glyphs]:
    """Return the terminal, by default that of stdout, its width for tables, and the characters that it can show."""
    console = console or Console(markup=False, highlight=False)
    return console, min(console.width, MAX_WIDTH), Glyphs(not console.options.ascii_only)


def render(derived: Derived, width: int, glyphs: Glyphs, printed: Collection[str] = ()) -> RenderableType:
    """Return everything as one rich renderable: the sections, then the last screen; ``printed`` as above."""
    source = Source(derived, shown=printed)
    parts: list[RenderableType] = []
    for section in build(source):
        parts.append(Text("\n" + glyphs.text(section.title), style="bold cyan"))
        parts += _drawn(section.parts, glyphs, width, printed)
    parts.append(Text())
    if any(it.results for it in source.standings.throughput):
        parts += screen_lines(source.standings, width, glyphs)
    else:
        parts.append(title_line(source.standings, width, glyphs))
    if not derived.run.trials:
        parts.append(Text("No trial has been measured.", style="yellow"))
    return Group(*parts)


def _drawn(
    parts: Iterable[SectionPart], glyphs: Glyphs, width: int, printed: Collection[str]
) -> Iterator[RenderableType]:
    """Yield sentences and tables; charts are the page's."""
    for part in parts:
        if isinstance(part, Fold) and not part.terminal:
            yield Text(f"{glyphs.text(part.title)}: see the report", style="dim")
        elif isinstance(part, Fold):
            if isinstance(part.parts[0], Sentences):
                yield Text("\n" + glyphs.text(part.title), style="bold")
            yield from _drawn(part.parts, glyphs, width, printed)
        elif isinstance(part, Sentences):
            style = "yellow" if part.style == "alert" else ""
            shown = [line.replace("\n", " ") for line in part.lines if line not in printed]
            more = [f"and {len(shown) - MAX_LINES} more; see the report"] if len(shown) > MAX_LINES else []
            for line in (*shown[:MAX_LINES], *more):
                yield Padding(Text(glyphs.text(glyphs.arrows(line)), style=style), (0, 0, 0, 2))
        elif isinstance(part, PageTable):
            yield Text("\n" + glyphs.text(part.caption), style="bold")
            tables, columns = drawn_tables(part, glyphs, width, MAX_LINES)
            yield from tables
            rows = len(part.rows) + part.left_out - MAX_LINES
            more = [*([f"{rows} more rows"] if rows > 0 else []), *columns]
            for note in filter(None, (f"in the report, too: {', '.join(more)}" if more else "", part.note)):
                yield Text(glyphs.text(note), style="dim")
