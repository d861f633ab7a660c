# SPDX-License-Identifier: BSD-3-Clause
"""The last screen of a run: a column a switch, a row a test point, who is first, by how much, and how sure that is.

It fits 80 columns and 24 lines with the prompt, or 120 and 31; ``planebench.report.terminal.table`` has everything.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from rich.console import Console
from rich.text import Text

from planebench.analysis.answers import MARGIN
from planebench.analysis.search.methods import B2B, CARRIED, short_name
from planebench.analysis.standings import DECIDED, Standing, Standings, latency_at
from planebench.model.grouped import grouped
from planebench.model.header import Run
from planebench.model.records import Point
from planebench.model.results import Comparison, Result
from planebench.model.scenario import Direction
from planebench.model.words import (
    NOTHING,
    WIDE,
    cycles,
    frames,
    listed,
    load_words,
    point_words,
    throughput,
    us,
)
from planebench.report.answers import in_order, missing_words, winner_sentence
from planebench.report.searches import methods_of, search_figure
from planebench.report.setup import conditions_warnings
from planebench.report.terminal.grid import Glyphs
from planebench.report.throughput import short_mpps
from planebench.report.trust import trust

BEST = "bold green"
TRUST_STYLES = {"high": "bold green", "medium": "bold yellow", "low": "bold red"}
MORE = "planebench report --all"
WIDE_SCREEN = 120
"""Columns from which on the screen has more lines, and as many switches as there is room for."""
LINES, LINES_WIDE = 23, 30
MAX_ROWS = 14
EXTREMES = 5
"""Rows with the greatest lead, and with the least, of a run that has more than MAX_ROWS."""
MAX_SWITCHES = 5
MAX_NOTES = 2
MIN_BAR, MAX_BAR = 3, 8
MAX_NAME, MAX_PATH = 14, 30
"""Characters of the name of a switch, and of a path."""
GAP = "  "
WAYS: tuple[Direction, ...] = ("unidirectional", "bidirectional")
"""The directions that may share a row."""


@dataclass(frozen=True, slots=True)
class ScreenRow:
    """A row of rates: its name, and the test points that share it, None where one was not measured."""

    name: str
    standings: tuple[Standing | None, ...]

    @property
    def there(self) -> tuple[Standing, ...]:
        """Return the standings that were measured."""
        return tuple(it for it in self.standings if it is not None)

    @property
    def lead(self) -> float:
        """Return how far the first is ahead where that is least; without another switch, its rate."""
        leads = [it.lead.ratio for it in self.there if it.lead is not None]
        rates = [r.throughput_pps or 0.0 for it in self.there for r in it.results[:1]]
        return min(leads or rates, default=0.0)


@dataclass(frozen=True, slots=True)
class Shared:
    """The rows of a run when test points share one: ``head`` says by what, ``slots`` how many do."""

    head: str
    slots: int
    rows: tuple[ScreenRow, ...]


def print_where(where: str, console: Console | None = None) -> None:
    """Print the last line: where the files of a run are, and the command that shows more."""
    console = console or Console(markup=False, highlight=False)
    together = f"{where}{Glyphs(not console.options.ascii_only).text(' · ')}{MORE}"
    for line in (together,) if len(together) <= console.width else (f"more: {MORE}", where):
        console.print(line, highlight=False, soft_wrap=True)


def screen_lines(standings: Standings, width: int, glyphs: Glyphs) -> list[Text]:
    """Return the lines of the screen but the last: title, rates, latency and cycles at a point, winner, notes."""
    grid = fitting(standings, width, glyphs)
    lines = [title_line(standings, width, glyphs), *grid.lines()]
    for line in lines:
        line.truncate(width)
    winner = glyphs.text(glyphs.arrows(winner_sentence(standings)))
    lines += [Text(line, style="bold") for line in textwrap.wrap(winner, width)]
    room = (LINES if width < WIDE_SCREEN else LINES_WIDE) - len(lines) - 2
    for note, style in notes(standings, grid):
        if room <= 0:
            break
        found = textwrap.wrap(glyphs.text(glyphs.arrows(note)), width, max_lines=room, placeholder=glyphs.text(" …"))
        lines += [Text(line, style=style) for line in found]
        room -= len(found)
    return lines


def title_line(standings: Standings, width: int, glyphs: Glyphs) -> Text:
    """Return name, how the run ended, and how much of it is decided; then what there is room for."""
    run, found = standings.derived.run, trust(standings)
    text = Text(glyphs.text(run.header.name), style="bold")
    status = "incomplete" if run.finished is None else ""
    if run.finished is not None and run.finished.status == "interrupted":
        status = f"interrupted{f': {run.finished.note}' if run.finished.note else ''}"
    several = len(run.switch_labels) > 1
    trials = sum(trial.role != "warmup" for trial in run.trials)
    host = run.header.host
    facts = (
        (status, "yellow"),
        (found.title if several else run.switch_labels[0], TRUST_STYLES[found.level] if several else ""),
        (f"{trials} trials", ""),
        (f"{host['cores_allowed']} CPUs" if host.get("cores_allowed") else "", ""),
        (str(run.header.settings.get("wire") or ""), ""),
        (run.header.run_id, "dim"),
    )
    for words, style in facts:
        part = glyphs.text(f" · {words}") if words else ""
        if words == status or len(text) + len(part) <= width:
            text.append(part, style=style or "not bold")
    return text


# Which test points share a row, which rows there are, and which switches have a column.


def _shared(found: Sequence[Standing], glyphs: Glyphs) -> Iterator[Shared]:
    """Yield the rows with both directions in one, with both kinds of frames in one, and with one test point each."""
    kinds = list(dict.fromkeys(frames(it.point) for it in found))
    head, sizes = (f"Mpps, {kinds[0]}", False) if len(kinds) == 1 else ("Mpps", True)

    def name(point: Point, *, arrow: bool = True, size: bool = sizes) -> str:
        path = point.scenario_label
        if len(path) > MAX_PATH:
            path = path[: MAX_PATH - 1] + "…"
        way = f" {glyphs.arrow(point.direction)}" if arrow or point.direction not in WAYS else ""
        return path + way + (f" {frames(point)}" if size else "")

    if {it.point.direction for it in found}.issuperset(WAYS):
        pairs: dict[Point, list[Standing | None]] = {}
        for it in found:
            shares = it.point.direction in WAYS
            key = replace(it.point, direction=WAYS[0]) if shares else it.point
            pairs.setdefault(key, [None, None])[WAYS.index(it.point.direction) if shares else 0] = it
        rows = tuple(ScreenRow(name(key, arrow=False), tuple(pair)) for key, pair in pairs.items())
        yield Shared(f"{head}: {' | '.join(map(glyphs.arrow, WAYS))}", 2, rows)
    if len(kinds) == 2:
        pairs = {}
        for it in found:
            key = replace(it.point, frame_size_bytes=0, traffic="")
            pairs.setdefault(key, [None, None])[kinds.index(frames(it.point))] = it
        rows = tuple(ScreenRow(name(key, size=False), tuple(pair)) for key, pair in pairs.items())
        yield Shared(f"Mpps: {' | '.join(kinds)}", 2, rows)
    yield Shared(head, 1, tuple(ScreenRow(name(it.point), (it,)) for it in found))


def _few(rows: Sequence[ScreenRow], run: Run) -> Sequence[ScreenRow]:
    """Return at most MAX_ROWS rows: of too many the ends of the frame sizes, of the chains, and then of the leads.

    Where the ports of a wire are those of VNFs, the paths without a chain are one experiment: one hop.
    """

    def ends(alike: Callable[[Point], Point]) -> list[ScreenRow]:
        groups = grouped((alike(row.there[0].point), row) for row in rows)
        kept = {id(row) for group in groups.values() for row in (group[0], group[-1])}
        return [row for row in rows if id(row) in kept]

    def hop(point: Point) -> Point:
        return point if point.chained or point.side_by_side else replace(point, scenario="p2p", chain_length=0)

    if len(rows) > MAX_ROWS and run.header.wire is not None and run.header.wire.vnf_ports:
        first: dict[Point, ScreenRow] = {}
        for row in rows:
            first.setdefault(hop(row.there[0].point), row)
        rows = list(first.values())
    if len(rows) > MAX_ROWS:
        rows = ends(lambda point: replace(point, frame_size_bytes=0, traffic=""))
    if len(rows) > MAX_ROWS:
        rows = ends(lambda point: replace(point, chain_length=1, chain="") if point.chained else point)
    if len(rows) > MAX_ROWS:
        by_lead = sorted(rows, key=lambda row: row.lead)
        kept = {id(row) for row in (*by_lead[:EXTREMES], *by_lead[-EXTREMES:])}
        rows = [row for row in rows if id(row) in kept]
    return rows


def fitting(standings: Standings, width: int, glyphs: Glyphs) -> Grid:
    """Return the grid with the most switches that fits, and of these the one with the fewest rows."""
    order, run = in_order(standings), standings.derived.run
    own = next((it.label for it in run.header.switches if it.adapter == "planed"), run.switch_labels[0])
    most = len(order) if width >= WIDE_SCREEN else min(len(order), MAX_SWITCHES)
    for count in range(most, 0, -1):
        labels = order[:count]
        if own not in labels:
            labels = [*labels[:-1], own]
        for shared in _shared(standings.throughput, glyphs):
            grid = Grid(standings, shared, labels, width, glyphs)
            if grid.needed <= width:
                return grid
    return grid


# The grid: how wide it is, and its lines.


@dataclass(frozen=True, slots=True)
class ScreenCell:
    """A figure on the screen. ``share`` of the best, for its bar; None without one. ``point``: whose figure it is."""

    text: str
    style: str = ""
    share: float | None = None
    point: Point | None = None


@dataclass(frozen=True, slots=True)
class GridRow:
    """A line of the grid: its name, the figures of each switch, how far the first is ahead, and what it is about."""

    name: str
    figures: Sequence[Sequence[ScreenCell]]
    leads: Sequence[ScreenCell]
    points: Sequence[Point] = ()


class Grid:
    """The rates of some switches in rows; below them latency and cycles at one test point."""

    def __init__(self, standings: Standings, shared: Shared, labels: Sequence[str], width: int, glyphs: Glyphs) -> None:
        run = standings.derived.run
        self.labels, self.glyphs = labels, glyphs
        self.signs = ""
        """The figures as they are written, whose signs the notes explain."""
        self.hidden = [label for label in in_order(standings) if label not in labels]
        self.is_alone = len(run.switch_labels) == 1
        shown = _few(shared.rows, run)
        self.rows_left = sum(len(row.there) for row in shared.rows) - sum(len(row.there) for row in shown)
        self.rates = [self._rates(row) for row in shown]
        self.caption, self.below = self._below(standings)
        self.slot = max(len(cell.text) for row in self.rates for cells in row.figures for cell in cells)
        self.heads = (shared.head, [self._label(it) for it in labels], "95 %" if self.is_alone else "best / next")
        every = [*self.rates, *self.below]
        self.names = max(len(it) for it in (shared.head, *(row.name for row in every)))
        self.lead_slot = max((len(cell.text) for row in self.rates for cell in row.leads), default=0)
        leads = (" ".join(cell.text.rjust(self.lead_slot) for cell in row.leads) for row in every)
        self.leads = max(map(len, (self.heads[2], *leads)))
        self.bar = 0
        room = (width - self.needed) // (len(labels) * shared.slots) - 1
        self.bar = min(MAX_BAR, room) if room >= MIN_BAR and not self.is_alone else 0

    @property
    def needed(self) -> int:
        """Return the columns that the grid needs."""
        columns = sum(len(GAP) + self._column(number) for number in range(len(self.labels)))
        return self.names + columns + len(GAP) + self.leads

    def _column(self, number: int) -> int:
        """Return the width of the column of a switch."""
        cells = (row.figures[number] for row in self.rates)
        rates = max(len(found) * (self.slot + (self.bar + 1 if self.bar else 0) + 1) - 1 for found in cells)
        return max([rates, len(self.heads[1][number]), *(len(row.figures[number][0].text) for row in self.below)])

    def _cell(self, words: str, style: str = "", share: float | None = None, point: Point | None = None) -> ScreenCell:
        self.signs += words
        return ScreenCell(self.glyphs.text(words), style, share, point)

    def _label(self, label: str) -> str:
        label = self.glyphs.text(label)
        return label if len(label) <= MAX_NAME else label[: MAX_NAME - 1] + self.glyphs.text("…")[:1]

    def lines(self) -> Iterator[Text]:
        """Yield the lines: the switches, the rates, and at one test point latency and cycles."""
        name, labels, lead = self.heads
        head = name.ljust(self.names)
        for number, label in enumerate(labels):
            head += GAP + label.rjust(self._column(number))
        yield Text(f"{head}{GAP}{lead.rjust(self.leads)}".rstrip(), style="dim")
        yield from map(self._line, self.rates)
        if self.rows_left:
            yield Text(self.glyphs.text(f"… {self.rows_left} more test points: {MORE}"), style="dim")
        if self.below:
            yield Text(self.caption, style="dim")
            yield from map(self._line, self.below)

    def _line(self, row: GridRow) -> Text:
        line = Text(row.name.ljust(self.names))
        for number, cells in enumerate(row.figures):
            found = Text()
            for cell in cells:
                found.append(" " if len(found) else "")
                found.append(cell.text.rjust(self.slot) if cell.share is not None else cell.text, style=cell.style)
                if cell.share is not None and self.bar:
                    bar = self.glyphs.bar(cell.share, self.bar)
                    found.append(f" {bar}", style="green" if cell.style == BEST else "blue")
            line.append(GAP + " " * (self._column(number) - len(found))).append_text(found)
        leads = Text(" ").join(Text(cell.text.rjust(self.lead_slot), style=cell.style) for cell in row.leads)
        line.append(GAP + " " * (self.leads - len(leads))).append_text(leads)
        line.rstrip()
        return line

    def _rates(self, row: ScreenRow) -> GridRow:
        figures = [[self._rate(it, label) for it in row.standings] for label in self.labels]
        leads = [self._rate_lead(it) for it in row.standings]
        points = [r.point for it in row.there for r in it.results]
        return GridRow(self.glyphs.text(row.name), figures, leads, points)

    def _rate(self, standing: Standing | None, label: str) -> ScreenCell:
        results = standing.results if standing is not None else ()
        found = next((r for r in results if r.point.switch == label), None)
        if standing is None or found is None:
            return self._cell("" if standing is None else NOTHING, "dim", 0.0)
        best = max(r.throughput_pps or 0.0 for r in results)
        leads = standing.state == "different" and found is results[0]
        share = (found.throughput_pps or 0.0) / best if best else 0.0
        return self._cell(rate_words(found), BEST if leads else "", share, found.point)

    def _rate_lead(self, standing: Standing | None) -> ScreenCell:
        if standing is None or not standing.results:
            return ScreenCell("")
        if self.is_alone:
            first = standing.results[0]
            return self._cell(within(first.throughput_pps, first.throughput_low_pps, first.throughput_high_pps))
        return self._lead(standing)

    def _lead(self, standing: Standing) -> ScreenCell:
        pair = standing.lead
        style = "green" if pair is not None and pair.answer in DECIDED else "yellow"
        return self._cell(lead_words(pair), style)

    def _below(self, standings: Standings) -> tuple[str, list[GridRow]]:
        """Return the caption and the rows of searches, latency and cycles, at the first test point that most switches
        have. The carried load, which latencies are shares of, is no search that was asked for.
        """
        latencies = {it.point: it for it in standings.latency}

        def known(point: Point) -> int:
            of_latency = latencies[point].results if point in latencies else ()
            return len(of_latency) + sum(cost is not None for cost in _costs(standings.cost[point]).values())

        point = max((it.point for it in standings.throughput), key=known)
        latency, cost, rows = latencies.get(point), standings.cost[point], []
        caption = f"At {point_words(point)}"
        rates = next(it for it in standings.throughput if it.point == point)
        members = [r for r in (*rates.results, *rates.missing) if r.searches]
        for method in methods_of(members):
            if method != CARRIED.name:
                unit = "" if method == B2B.name else ", Mpps"
                figures = {
                    r.point.switch: search_figure(r, method)[0]
                    for r in members
                    if any(s.method == method for s in r.searches)
                }
                self.signs += "".join("unconverged" if it.startswith("(") else it for it in figures.values())
                cells = [[ScreenCell(self.glyphs.text(figures.get(label, NOTHING)))] for label in self.labels]
                rows.append(GridRow(self.glyphs.text(f"{short_name(method)}{unit}"), cells, []))
        if latency is not None and latency.results:
            found = {r.point.switch: latency_at(r, latency.load) for r in latency.results}
            p99 = {label: us(summary.p99) for label, summary in found.items() if summary is not None}
            rows.append(self._row_below("p99, µs", latency, p99))
            load = load_words(latency.load)
            caption, self.signs = f"{caption}, latency at {load}", self.signs + load
        costs = {label: words for label, words in _costs(cost).items() if words is not None}
        if costs:
            rows.append(self._row_below("cycles/packet", cost, costs))
        return self.glyphs.text(self.glyphs.arrows(f"{caption}:")), rows

    def _row_below(self, name: str, standing: Standing, figures: dict[str, str]) -> GridRow:
        styles = {standing.results[0].point.switch: BEST} if standing.state == "different" else {}
        cells = [[self._cell(figures.get(label, NOTHING), styles.get(label, ""))] for label in self.labels]
        leads = [] if self.is_alone or len(standing.results) < 2 else [self._lead(standing)]
        return GridRow(self.glyphs.text(name), cells, leads)


def _costs(standing: Standing) -> dict[str, str | None]:
    """Return the cycles per packet of each switch, in parentheses where it was not saturated."""
    known = {r.point.switch: cycles(r.switch_cycles_per_packet) for r in standing.results}
    others = {
        r.point.switch: f"({cycles(r.switch_cycles_per_packet)})" if r.switch_cycles_per_packet else None
        for r in standing.missing
    }
    return {**known, **others}


def rate_words(result: Result) -> str:
    """Return a throughput in Mpps with its mark and three digits: ``12.5``, ``≥135``, ``~0.98``."""
    if result.throughput_pps is None:
        return NOTHING
    return throughput(result).rstrip("0123456789.") + short_mpps(result.throughput_pps)


def within(figure: float | None, low: float | None, high: float | None) -> str:
    """Return how far the farther end of an interval is from its figure: ``±4%``; empty where one is not known."""
    if not (figure and low and high):
        return ""
    error = max(high / figure, figure / low) - 1
    return "±<1%" if error < 0.005 else f"±{error:.0%}" if error < 1 else "±>99%"


def lead_words(pair: Comparison | None) -> str:
    """Return how far the first is ahead of the next: ``2.50±4%``, ``≥2.28``, ``=1.01±2%``, ``?1.08±12%``.

    ``?``: not decided; without a factor, where chance alone may be as much as a factor of two. ``≈``: by the
    capacities estimated.
    """
    if pair is None:
        return NOTHING
    sign = {"different": "", "same": "=", "open": "?", "untested": "?"}[pair.answer]
    sign += "≈" if pair.metric == "capacity" else ""
    if pair.low is not None and pair.high is None:
        return f"{sign}≥{us(pair.low)}"
    if pair.low is None and pair.high is not None:
        return f"{sign}≤{us(pair.high)}"
    error = within(pair.ratio, pair.low, pair.high)
    return "?" if pair.answer == "open" and error == "±>99%" else f"{sign}{us(pair.ratio)}{error}"


# What to know: the signs, what is not on the screen, what the host did, and what would help.

_SIGNS = {
    "≥": "≥ lower bound: the tester or the links were the limit",
    "~": f"~ ±{WIDE:.0%} or more",
    "?": "? not decided",
    "=": f"= the same within {MARGIN * 100:.0f} %",
    "≈": "≈ by estimated capacity",
    "(": "(…) not saturated",
    "unconverged": "(a–b) search did not converge",
    "R+": "R+ rate at maximum load (MRR)",
    "carried": "carried load: highest tried that lost 0.1 % at most",
}


def notes(standings: Standings, grid: Grid) -> Iterator[tuple[str, str]]:
    """Yield the notes with their styles, the most important first."""
    run, found = standings.derived.run, trust(standings)
    if grid.hidden:
        yield f"! {len(grid.hidden)} more switches: {listed(grid.hidden)}", "yellow"
    warnings = (it for it in run.warnings if it not in run.header.warnings)
    for warning in (*warnings, *conditions_warnings(standings.derived)):
        yield f"! {' '.join(warning.split())}", "yellow"
    for skipped in run.skipped[:1]:
        more = f" (and {len(run.skipped) - 1} more)" if len(run.skipped) > 1 else ""
        yield f"! Left out: {skipped.what}: {' '.join(skipped.reason.split())}{more}", "yellow"
    without = [it for it in standings.throughput if it.missing]
    if without:
        more = f" (and at {len(without) - 1} more)" if len(without) > 1 else ""
        words = listed(missing_words(without[0]))
        yield f"! Without a rate at {point_words(without[0].point)}: {words}{more}", "yellow"
    signs = [words for sign, words in _SIGNS.items() if sign in grid.signs]
    if signs:
        yield " · ".join(signs), "dim"
    several = found.advice[:1] + found.facts[: MAX_NOTES - 1] if found.advice else found.facts[:MAX_NOTES]
    yield from ((f"! {note}", "") for note in several)
