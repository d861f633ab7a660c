# SPDX-License-Identifier: BSD-3-Clause
"""The report: one HTML file with charts, tables and evidence; nothing fetched, all text escaped.

Its only script is ``explore.js``; the browser runs no other, and the page is complete without it.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from html import unescape
from importlib import resources
from typing import Any

import jinja2
from markupsafe import Markup

from planebench.analysis.compare import Derived
from planebench.model.records import Point
from planebench.model.results import Result
from planebench.model.words import NOTHING, frames, point_name, printable
from planebench.report.answers import title_facts, title_words, winner_sentence
from planebench.report.figure import DARK_COLORS, NARROW_PX, SWITCH_COLORS, Figure, switch_colors
from planebench.report.figures import FIGURES, make_figures
from planebench.report.sections import SECTIONS, SectionEntry, Source, build
from planebench.report.svg import GRID, INK, MUTED
from planebench.report.terminal.grid import Glyphs
from planebench.report.terminal.screen import Grid, fitting, notes
from planebench.report.throughput import throughput_tip
from planebench.report.trust import Trust, trust

PALETTE = {
    "ink": INK,
    "muted": MUTED,
    "grid": GRID,
    "switches": tuple(zip(SWITCH_COLORS, DARK_COLORS, strict=True)),
}
"""Colors of charts that the style sheet replaces in dark mode."""
MAX_PAGE_BYTES = 4_700_000
"""Limit for drawing charts: with the markup around each chart, the page stays below 5 MB."""
SCREEN_COLUMNS = 200
"""The room of the table of the first screen, in characters of the terminal."""
MAX_NOTES = 4
ABOUT = re.compile(r' data-about="([^"]*)"')


@dataclass(frozen=True, slots=True)
class FirstScreen:
    """What the page says first: who won, by how much, how sure that is; the rates; what to know."""

    answer: str
    trust: Trust
    grid: Grid
    signs: str
    notes: Sequence[str]


def to_html(derived: Derived, sections: Sequence[SectionEntry] = SECTIONS, max_bytes: int = MAX_PAGE_BYTES) -> bytes:
    """Return the report of a run, complete or not, as a self-contained UTF-8 HTML page.

    Charts are drawn as long as the page is smaller than ``max_bytes``; the page says how many are omitted.
    """
    figures = make_figures(derived)
    source = Source(derived, figures)
    screen = first_screen(source)
    source.shown = frozenset() if screen is None else frozenset(screen.notes)
    run, (script, digest) = derived.run, _script()
    known = explored(derived.results, run.switch_labels)
    context = {
        "title": f"{run.header.name} ({run.header.run_id})",
        "heading": title_words(derived),
        "palette": PALETTE,
        "run": run,
        "header": run.header,
        "colors": {
            label: f"s{SWITCH_COLORS.index(color)}" for label, color in switch_colors(run.switch_labels).items()
        },
        "explored": known,
        "script": script,
        "script_digest": digest,
        "facts": title_facts(derived),
        "screen": screen,
        "first": [figure for figure in figures if figure.kind in ("overview", "p99")],
        "captions": {kind.id: kind.caption for kind in FIGURES},
        "sections": build(source, sections),
    }
    bare = render({**context, "drawn": {}})
    return render({**context, "drawn": draw(figures, max_bytes - len(bare), known.marks)})


def first_screen(source: Source) -> FirstScreen | None:
    """Return what the page says first; None for a run that ranks nothing."""
    if not any(it.results for it in source.standings.throughput):
        return None
    grid = fitting(source.standings, SCREEN_COLUMNS, Glyphs(True))
    said = [(note.removeprefix("! "), style == "dim") for note, style in notes(source.standings, grid)]
    signs = " ".join(note for note, is_sign in said if is_sign)
    known = [note for note, is_sign in said if not is_sign][:MAX_NOTES]
    return FirstScreen(winner_sentence(source.standings), trust(source.standings), grid, signs, known)


def draw(figures: Sequence[Figure], room_bytes: int, marks: Mapping[str, str]) -> Mapping[str, Markup]:
    """Draw the charts that there is room for, as markup by key; kinds that are rarely read come last.

    The figure of the first screen is drawn for a phone, too.
    """
    last = {kind.id: kind.last for kind in FIGURES}
    drawn: dict[str, Markup] = {}
    for figure in sorted(figures, key=lambda f: last[f.kind]):
        for key, width in ((figure.key, None), (f"{figure.key}-narrow", NARROW_PX)):
            if room_bytes > 0 and (width is None or (figure.width_px > NARROW_PX and figure.kind != "p99")):
                svg = figure.svg(width).replace(' xmlns="http://www.w3.org/2000/svg"', "", 1)  # HTML knows it
                drawn[key] = Markup(ABOUT.sub(lambda found: marks.get(unescape(found[1]), ""), svg))
                room_bytes -= len(drawn[key])
    return drawn


@cache
def _script() -> tuple[Markup, str]:
    """Return the script of the page, and the digest by which the browser knows that it is ours."""
    text = resources.files("planebench.report").joinpath("explore.js").read_text(encoding="utf-8")
    return Markup(text), base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def render(context: Mapping[str, Any]) -> bytes:
    """Return the page as UTF-8, made of its template; everything but markup is escaped.

    Control and direction-changing characters of text from outside are made visible, once, in the whole page.
    """
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("planebench.report", package_path="."),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=lambda value: NOTHING if value is None else value,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    page = environment.get_template("report.html.j2").render(context)
    return printable(page, keep="\n\t").encode("utf-8", errors="replace")


# The results as the script of the page has them: names, by which it filters, and words.

ExploreCell = tuple[str, str, str, str, str]
"""Switch, scenario, frames, name and words of a result."""


@dataclass(frozen=True, slots=True)
class Explored:
    """The results of a page by number. A row or a mark with the number of a result is about it."""

    cells: Sequence[ExploreCell]
    switches: Sequence[str]
    numbers: Mapping[str, int]

    @property
    def choices(self) -> list[tuple[int, str, list[str]]]:
        """Return what a reader can filter by: the place in a cell, a title, and the values."""
        titles = enumerate(("Switch", "Scenario", "Frames"))
        return [(part, title, list(dict.fromkeys(cell[part] for cell in self.cells))) for part, title in titles]

    @property
    def marks(self) -> Mapping[str, str]:
        """Return the attribute of the marks of charts: the number of their result, or of their switch."""
        switches = {label: f' data-switch="{number}"' for number, label in enumerate(self.switches)}
        return switches | {name: f' data-cells="{number}"' for name, number in self.numbers.items()}

    def places(self, points: Iterable[Point]) -> str:
        """Return the numbers of the results at some test points: ``3 9``; empty where one has no result."""
        found = [self.numbers.get(point_name(point)) for point in points]
        return "" if None in found else " ".join(map(str, found))


def explored(results: Sequence[Result], labels: Iterable[str]) -> Explored:
    """Return what the script knows of some results; ``labels`` are the switches of the run, in its order."""
    cells = [
        (r.point.switch, r.point.scenario, frames(r.point), point_name(r.point), throughput_tip(r)) for r in results
    ]
    return Explored(cells, list(labels), {cell[3]: n for n, cell in enumerate(cells)})
