# SPDX-License-Identifier: BSD-3-Clause
"""The terminal table: a run at a glance, in 100 columns or fewer, with or without colour and Unicode."""

from __future__ import annotations

import io
import math
from collections import Counter
from collections.abc import Iterator, Sequence

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from planebench.model.records import Point, VerdictKind
from planebench.model.results import Result
from planebench.model.run import Run
from planebench.report.cells import Notes, latency_tables, throughput_tables
from planebench.report.glyphs import Glyphs
from planebench.report.wording import ARROW_WORDS, NOTHING, PATHS
from planebench.stats.results import DIRECTION_ORDER, derive_results

MAX_WIDTH = 140
"""Wider terminals get no wider table: the eye loses the row."""


def print_table(run: Run, console: Console | None = None) -> None:
    """Print the table of a run, complete or not. Without ``console``: to stdout, colours as the terminal has them."""
    console = console or Console(highlight=False)
    width = min(console.width, MAX_WIDTH)
    glyphs = Glyphs(unicode=not console.options.ascii_only)
    console.print(render(run, width, glyphs), width=width, highlight=False)


def table_text(run: Run, width: int = 100, unicode: bool = True) -> str:
    """The table as plain text without colour, no line longer than ``width``."""
    out = io.StringIO()
    console = Console(file=out, width=width, no_color=True, color_system=None, highlight=False, legacy_windows=False)
    console.print(render(run, width, Glyphs(unicode)))
    return out.getvalue()


def render(run: Run, width: int, glyphs: Glyphs) -> RenderableType:
    """Everything as one rich renderable: heading, a block a scenario, notes, legend, what did not run."""
    results = derive_results(run)
    notes = Notes(glyphs)
    parts: list[RenderableType] = [_heading(run, glyphs)]
    for scenario in dict.fromkeys(r.point.scenario for r in results):
        members = [r for r in results if r.point.scenario == scenario]
        parts.append(_title(members[0].point, glyphs))
        parts += throughput_tables(members, notes, width)
        parts += latency_tables(members, notes, width)
    if not results:
        parts.append(Text("\nNo trial has been measured.", style="yellow"))
    parts += _footer(run, results, notes, glyphs)
    return Group(*parts)


def _heading(run: Run, glyphs: Glyphs) -> Text:
    kinds = Counter(t.verdict.kind for t in run.trials if t.role != "warmup")
    total = sum(kinds.values())
    verdicts = ", ".join(f"{kinds[k]} {k.value}" for k in VerdictKind if kinds[k])
    text = Text()
    text.append(glyphs.text(run.header.name), style="bold")
    text.append(glyphs.text(f" · {run.header.run_id} · {total} trials"))
    text.append(glyphs.text(f" ({verdicts})" if verdicts else ""), style="dim")
    if run.finished is None:
        text.append(glyphs.text(" · not finished"), style="yellow")
    elif run.finished.status == "interrupted":
        note = f": {run.finished.note}" if run.finished.note else ""
        text.append(glyphs.text(f" · interrupted{note}"), style="yellow")
    return text


def _title(point: Point, glyphs: Glyphs) -> Text:
    title = Text("\n")
    title.append(point.scenario, style="bold cyan")
    title.append("  " + glyphs.text(PATHS[point.scenario]), style="dim")
    return title


def _footer(run: Run, results: Sequence[Result], notes: Notes, glyphs: Glyphs) -> Iterator[RenderableType]:
    if results:
        yield Text("\n" + glyphs.text(" · ".join(_legend(results, notes, glyphs))), style="dim")
    for number, text in notes.numbered():
        yield Padding(Text(f"{glyphs.text(str(number))}) {glyphs.text(text)}", style="dim"), (0, 0, 0, 2))
    for skipped in run.skipped:
        yield Text(glyphs.text(f"Skipped {skipped.what}: {' '.join(skipped.reason.split())}"), style="yellow")
    for warning in dict.fromkeys(run.warnings):
        yield Text(glyphs.text(f"Warning: {' '.join(warning.split())}"), style="yellow")


def _legend(results: Sequence[Result], notes: Notes, glyphs: Glyphs) -> Iterator[str]:
    directions = {r.point.direction for r in results}
    yield "Mpps, bar = share of the best"
    yield from (f"{glyphs.arrow(d)} {ARROW_WORDS[d]}" for d in DIRECTION_ORDER if d in directions)
    if any(s.samples and math.isfinite(s.mean) for r in results for s in r.latency):
        yield "latency: mean / p99 in µs"
    if any(r.verdict.kind is VerdictKind.TESTER_LIMITED and r.throughput_pps is not None for r in results):
        yield "≥ at least: the tester was the limit"
    if any(r.verdict.kind is VerdictKind.UNSTABLE for r in results):
        yield "~ unstable"
    if any(r.throughput_pps is None for r in results):
        yield f"{NOTHING} no trial counts"
    if notes.struck:
        yield "(...) does not count"
