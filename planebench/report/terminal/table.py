# SPDX-License-Identifier: BSD-3-Clause
"""The terminal table: a run at a glance, in 100 columns or fewer, with or without color and Unicode."""

from __future__ import annotations

import io
import math
from collections import Counter
from collections.abc import Iterator, Sequence

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from planebench.analysis.compare import Derived
from planebench.analysis.metrics.column import in_terminal
from planebench.analysis.metrics.results import RESULT, OfResult
from planebench.analysis.results import DIRECTION_ORDER
from planebench.analysis.standings import Standings
from planebench.model.header import Run
from planebench.model.records import Point, VerdictKind
from planebench.model.results import Result
from planebench.model.scenario import scenario_named
from planebench.model.words import ARROW_WORDS, NOTHING, WIDE, load_words, reasons, throughput
from planebench.report.anatomy import anatomy_sentences
from planebench.report.answers import STATES, Line, PathAnswer, limits_words, needs, path_answers
from planebench.report.chains import chain_blocks
from planebench.report.comparison import brief_comparison_table
from planebench.report.latency import (
    batching_sentence,
    clock_sentences,
    floor_sentence,
    host_sentences,
    load_sentences,
    v2v_sentence,
)
from planebench.report.searches import deviations, search_tables
from planebench.report.setup import (
    FUNCTIONAL,
    TITLE,
    conditions_remark,
    conditions_table,
    conditions_warnings,
    functional_sentences,
    hosting_lines,
)
from planebench.report.terminal.cells import Notes, latency_tables, limit_tables, throughput_tables
from planebench.report.terminal.grid import Glyphs, bare_table, small_table
from planebench.report.throughput import strata_sentences
from planebench.report.traffic import traffic_sentences
from planebench.report.trials import causes, policy_sentences, unexplained_sentences
from planebench.report.trust import trust
from planebench.report.vnfs import TITLE as OUTAGES
from planebench.report.vnfs import outage_lines

# The answers of a run in the terminal, the last that it prints: what to take, confidence, a row per test point.

TABLE_WIDTH = 90
"""Columns that the table needs; a narrower terminal gets sentences."""
TRUST_STYLES = {"high": "bold green", "medium": "bold yellow", "low": "bold red"}
_STATE_STYLES = {"different": "green", "same": "green", "open": "yellow", "untested": "yellow", "none": "red"}


def answer_lines(standings: Standings, glyphs: Glyphs, width: int) -> Iterator[RenderableType]:
    """Yield what to take for which need, the confidence in it and what to do, the table of answers, and its remarks."""
    found = trust(standings)
    yield Text("\n" + glyphs.text("Answers"), style="bold")
    for need in needs(standings):
        text = Text(glyphs.text(f"If you need {need.title}: "))
        yield text.append(glyphs.text(need.pick), style="bold").append(glyphs.text(f": {need.why}"))
    yield Text(glyphs.text(f"{found.title}. "), style=TRUST_STYLES[found.level]).append(
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


MAX_WIDTH = 140
"""Wider terminals get no wider table: the eye loses the row."""
MAX_SENTENCES = 6
"""On latency and load, of a scenario."""
MAX_LINES = 24
"""Lines of a block; the page has all."""


def print_table(derived: Derived, console: Console | None = None, printed: Sequence[str] = ()) -> None:
    """Print the table of a run, complete or not. Without ``console``: to stdout, colors as the terminal has them.

    ``printed``: warnings that were printed before, which are only counted here.
    """
    console = console or Console(markup=False, highlight=False)
    width = min(console.width, MAX_WIDTH)
    glyphs = Glyphs(unicode=not console.options.ascii_only)
    console.print(render(derived, width, glyphs, printed), width=width, highlight=False)


def print_conditions(derived: Derived, console: Console | None = None) -> None:
    """Print the fairness manifest of a run: conditions of its switches side by side."""
    console = console or Console(markup=False, highlight=False)
    width = min(console.width, MAX_WIDTH)
    for part in conditions_table(derived, Glyphs(unicode=not console.options.ascii_only), width):
        console.print(part, width=width, highlight=False)


def table_text(derived: Derived, width: int = 100, unicode: bool = True) -> str:
    """Return the table as plain text without color, no line longer than ``width``."""
    out = io.StringIO()
    console = Console(
        file=out, width=width, no_color=True, color_system=None, markup=False, highlight=False, legacy_windows=False
    )
    console.print(render(derived, width, Glyphs(unicode)))
    return out.getvalue()


def render(derived: Derived, width: int, glyphs: Glyphs, printed: Sequence[str] = ()) -> RenderableType:
    """Return everything as one rich renderable: heading, a block per scenario, comparisons, notes, the answers last.

    ``printed`` is as in :func:`print_table`.
    """
    run, results = derived.run, derived.results
    notes, standings = Notes(glyphs), Standings(derived)
    parts: list[RenderableType] = [_heading(run, glyphs)]
    for scenario in dict.fromkeys(r.point.scenario for r in results):
        parts += _scenario(standings, [r for r in results if r.point.scenario == scenario], notes, width)
    parts += chain_blocks(derived.chains, glyphs, width)
    parts += _block(FUNCTIONAL, functional_sentences(run), glyphs)
    parts += _block(TITLE, hosting_lines(run), glyphs)
    outages = outage_lines(run)
    parts += _block(OUTAGES, outages, glyphs)
    if not (results or outages):
        parts.append(Text("\nNo trial has been measured.", style="yellow"))
    parts += against_table(derived, glyphs, width)
    if results:
        parts.append(Text("\n" + glyphs.text(" · ".join(legend(derived, notes))), style="dim"))
    parts += _footer(derived, notes, printed)
    if results:
        parts += answer_lines(standings, glyphs, width)
    return Group(*parts)


def _scenario(standings: Standings, results: Sequence[Result], notes: Notes, width: int) -> Iterator[RenderableType]:
    glyphs = notes.glyphs
    yield _title(results[0].point, glyphs)
    yield from throughput_tables(standings, results, notes, width)
    yield from limit_tables(standings, results, glyphs, width)
    yield from search_tables(results, notes, width)
    yield from latency_tables(results, notes, width)
    for sentence in cut([*policy_sentences(results), *strata_sentences(results)], MAX_SENTENCES):
        yield Text(glyphs.text(sentence))
    yield from _block("Latency breakdown", anatomy_sentences(results), glyphs)
    yield from _block("Offered traffic", traffic_sentences(results), glyphs)
    for sentence in cut([*host_sentences(results), *load_sentences(results), *clock_sentences(results)], MAX_SENTENCES):
        yield Text(glyphs.text(sentence))
    plan = standings.derived.run.header.plan
    for sentence in filter(None, [v2v_sentence(plan, results), batching_sentence(plan, results)]):
        yield Text(glyphs.text(sentence))


def _block(title: str, lines: Sequence[str], glyphs: Glyphs) -> Iterator[RenderableType]:
    """Yield a title and its lines; nothing without lines."""
    if lines:
        yield Text("\n" + glyphs.text(title), style="bold")
        yield from (Padding(Text(glyphs.text(line)), (0, 0, 0, 2)) for line in cut(lines, MAX_LINES))


def _heading(run: Run, glyphs: Glyphs) -> Text:
    kinds = Counter(t.verdict.kind for t in run.trials if t.role != "warmup")
    total = sum(kinds.values())
    verdicts = ", ".join(f"{kinds[k]} {k.value}" for k in VerdictKind if kinds[k])
    text = Text()
    text.append(glyphs.text(run.header.name), style="bold")
    text.append(glyphs.text(f" · {run.header.run_id} · {total} trials"))
    text.append(glyphs.text(f" ({verdicts})" if verdicts else ""), style="dim")
    if run.finished is None:
        text.append(glyphs.text(" · incomplete"), style="yellow")
    elif run.finished.status == "interrupted":
        note = f": {run.finished.note}" if run.finished.note else ""
        text.append(glyphs.text(f" · interrupted{note}"), style="yellow")
    return text


def _title(point: Point, glyphs: Glyphs) -> Text:
    title = Text("\n")
    title.append(point.scenario, style="bold cyan")
    title.append("  " + glyphs.text(scenario_named(point.scenario).drawn_path), style="dim")
    return title


def _footer(derived: Derived, notes: Notes, printed: Sequence[str]) -> Iterator[RenderableType]:
    glyphs = notes.glyphs
    for number, text in notes.numbered():
        yield Padding(Text(f"{glyphs.text(str(number))}) {glyphs.text(text)}", style="dim"), (0, 0, 0, 2))
    for title, lines in endnotes(derived):
        yield Text(glyphs.text(title), style="dim")
        yield from (Padding(Text(glyphs.text(line), style="dim"), (0, 0, 0, 2)) for line in lines)
    for skipped in derived.run.skipped:
        yield Text(glyphs.text(f"Skipped {skipped.what}: {' '.join(skipped.reason.split())}"), style="yellow")
    warnings = dict.fromkeys((*derived.run.warnings, *conditions_warnings(derived)))
    for warning in (it for it in warnings if it not in printed):
        yield Text(glyphs.text(f"Warning: {' '.join(warning.split())}"), style="yellow")
    if before := sum(it in printed for it in warnings):
        text = f"{before} note{'s' * (before > 1)}: planebench report --all"
        yield Text(text, style="yellow")


MAX_COMPARISONS = 16
"""Rows of the table of comparisons; a run with more has them in the page."""
MAX_CAUSES = 8
MAX_UNEXPLAINED = 4

TextBlock = tuple[str, list[str]]
"""A title and its lines."""


def against_table(derived: Derived, glyphs: Glyphs, width: int) -> Iterator[Table | Text]:
    """Yield the comparisons by ranking metrics; only their number if they are too many or the terminal too narrow."""
    found = brief_comparison_table(derived)
    if found.rows:
        drawn = small_table(found, glyphs, width, MAX_COMPARISONS)
        yield drawn or Text(f"{found.caption} (see the report)")


def legend(derived: Derived, notes: Notes) -> Iterator[str]:
    """Yield the meaning of every sign in use."""
    results, glyphs = derived.results, notes.glyphs
    directions = {r.point.direction for r in results}
    yield "Mpps, bar = share of the best"
    yield from (f"{glyphs.arrow(d)} {ARROW_WORDS[d]}" for d in DIRECTION_ORDER if d in directions)
    if any(s.samples and math.isfinite(s.p50) for r in results for s in r.latency):
        yield "latency: p50 / p99 / p99.9 in µs"
    loads = {load_words(s.load).partition(" of ")[2] for r in results for s in r.latency}
    if "R+" in loads:
        yield "R+ rate at maximum load (MRR)"
    if "the carried load" in loads:
        yield "carried: highest load tried that lost 0.1 % at most"
    bounds = {r.verdict.kind for r in results if r.verdict.kind.is_bound and r.throughput_pps is not None}
    if bounds:
        names = ("tester-limited" if kind is VerdictKind.TESTER_LIMITED else "line rate" for kind in sorted(bounds))
        yield f"≥ {' or '.join(names)} (lower bound)"
        figures = in_terminal(RESULT, (OfResult(derived.run, r) for r in results))
        yield from (brief.legend for _, brief in figures if brief.legend)
    if any(r.capacity_estimate_pps is not None for r in results):
        yield "est.: capacity at full batches, ± half of its 95 % interval: cycles per packet fitted over batch sizes"
    if any(throughput(r).startswith("~") for r in results):
        yield f"~ an end of the 95 % interval is more than {WIDE:.0%} away"
    if any(r.throughput_pps is None for r in results):
        yield f"{NOTHING} no trial counts"
    if notes.struck:
        yield "(...) the load was not carried, shown for information only"


def endnotes(derived: Derived) -> Iterator[TextBlock]:
    """Yield blocks of small print: trials that did not take place, deviations, latency baseline, unexplained losses."""
    if derived.invalid:
        n = len(derived.invalid)
        yield f"{n} trial{'s' * (n > 1)} did not take place:", list(cut(_cause_lines(derived), MAX_CAUSES))
    found = deviations(derived.results)
    if found:
        yield "Deviations from the standard:", found
    floors = floor_sentence(
        derived.run.header.calibration, (r.point.frame_size_bytes for r in derived.results if not r.point.traffic)
    )
    if floors:
        yield floors[0].upper() + floors[1:], []
    if remark := conditions_remark(derived):
        yield f"{remark}; see `planebench report --conditions`", []
    open_ = unexplained_sentences(derived.results)
    if open_:
        yield "Unaccounted losses:", list(cut(open_, MAX_UNEXPLAINED))


def _cause_lines(derived: Derived) -> list[str]:
    return [
        f"{group.trials} {group.kind.value}: {reasons((group.text,), 110)} "
        f"({', '.join(f'{label} {n}' for label, n in group.switches)})"
        for group in causes(derived.invalid)
    ]


def cut(lines: Sequence[str], limit: int) -> Iterator[str]:
    """Yield the first lines, and the number of the others."""
    yield from lines[:limit]
    if len(lines) > limit:
        yield f"and {len(lines) - limit} more; see the report"
