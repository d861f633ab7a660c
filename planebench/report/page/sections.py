# SPDX-License-Identifier: BSD-3-Clause
"""The sections of the page. An entry of :data:`SECTIONS` is all that a section needs to be drawn and to be linked.

Contents and page follow from it. How to add one is in docs/design/adding.md.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from markupsafe import Markup

from planebench.analysis.compare import Derived
from planebench.analysis.standings import Standings
from planebench.model.records import Point, VerdictKind
from planebench.model.results import Result
from planebench.model.scenario import scenario_named
from planebench.model.words import NOTHING, VERDICT_WORDS, WIDE, frames, printable, throughput
from planebench.report.anatomy import anatomy_table
from planebench.report.answers import STATES, limits_words, needs, path_answers
from planebench.report.chains import chain_tables
from planebench.report.comparison import comparison_tables
from planebench.report.figure import Figure, point_name
from planebench.report.figures import FIGURES, FigureKind
from planebench.report.images import Marks, inline_svg
from planebench.report.latency import batching_sentence, clock_sentences, host_sentences, load_sentences, v2v_sentence
from planebench.report.page import scenario
from planebench.report.page.table import PageTable, some
from planebench.report.papers import paper_tables, papers_page
from planebench.report.searches import burst_table, deviations, search_table
from planebench.report.setup import (
    calibration_tables,
    calibration_words,
    commands,
    conditions_page,
    cores_sentence,
    hosting_page,
    remedies,
)
from planebench.report.throughput import strata_sentences, throughput_tip
from planebench.report.traffic import traffic_table
from planebench.report.trials import cause_table, policy_sentences, trial_table, unexplained_sentences, verdict_counts
from planebench.report.trust import trust
from planebench.report.vnfs import TITLE as OUTAGES
from planebench.report.vnfs import cores_table, outage_table

# The charts of the page: drawn once, grouped by kind, and as many as the file has room for.


@dataclass(frozen=True, slots=True)
class FigureGroup:
    """The figures of one kind in one section. The template shows those that were drawn and counts the others."""

    kind: FigureKind
    figures: tuple[Figure, ...]


def draw(figures: Sequence[Figure], room_bytes: int, marks: Marks | None = None) -> Mapping[str, Markup]:
    """Draw the charts that there is room for, as markup by key; kinds that are rarely read come last."""
    last = {kind.id: kind.last for kind in FIGURES}
    drawn: dict[str, Markup] = {}
    for figure in sorted(figures, key=lambda f: last.get(f.kind, 0)):
        if room_bytes <= 0:
            break
        drawn[figure.key] = Markup(inline_svg(figure.chart, figure.full_title, figure.key, marks))
        room_bytes -= len(drawn[figure.key])
    return drawn


def groups(figures: Sequence[Figure], section: str) -> list[FigureGroup]:
    """Return the groups of charts of a section that have any, in the order of the registry."""
    found = []
    for kind in FIGURES:
        members = tuple(f for f in figures if f.kind == kind.id and (kind.section or f.scenario) == section)
        if members:
            found.append(FigureGroup(kind, members))
    return found


TABLES = "tables.html.j2"
"""The template of sections that are sentences, charts and tables, in this order."""


@dataclass(frozen=True, slots=True)
class Page:
    """The input of sections: a run with everything derived from it, and its figures."""

    derived: Derived
    figures: Sequence[Figure]

    @property
    def unexplained(self) -> list[str]:
        """Return one sentence per point with losses that no counter explains."""
        return unexplained_sentences(self.derived.results)


@dataclass(frozen=True, slots=True)
class Section:
    """A section of the page: its anchor, its title and what it draws.

    ``build`` returns the values that ``template`` (a file of this folder) knows as ``content``; a section whose
    content is empty is neither drawn nor listed in the contents. ``closed``: the reader opens it.
    """

    id: str
    title: str
    build: Callable[[Page], Any]
    template: str = TABLES
    subtitle: str = ""
    is_there: Callable[[Any], bool] = bool
    closed: bool = False


@dataclass(frozen=True, slots=True)
class Built:
    """A section with its content."""

    section: Section
    content: Any


SectionEntry = Section | Callable[[Page], Iterable[Section]]
"""A section, or a function that gives the sections of a page, in their order."""


def build(page: Page, entries: Sequence[SectionEntry]) -> list[Built]:
    """Build the sections of a page and return those that are there."""
    sections = [s for entry in entries for s in ([entry] if isinstance(entry, Section) else entry(page))]
    built = [Built(section, section.build(page)) for section in sections]
    return [each for each in built if each.section.is_there(each.content)]


LINKS = ("conditions", "warnings", "trials", "papers", "setup")
"""The sections that the first screen links to."""


def _answers(page: Page) -> dict[str, Any]:
    derived, found = page.derived, Standings(page.derived)
    return {
        "trust": trust(found),
        "answers": path_answers(found),
        "states": STATES,
        "groups": groups(page.figures, "answers"),
        "needs": needs(found),
        "limits": limits_words(derived),
        "marks": _marks(derived.results),
        "links": LINKS,
    }


def _notices(page: Page) -> int:
    run = page.derived.run
    return len(set(run.warnings)) + len(run.skipped) + len(page.unexplained)


def _cores(page: Page) -> dict[str, Any]:
    return tables_content(some([cores_table(page.derived.run, page.derived.results)]))


def tables_content(tables: Sequence[PageTable], lead: str = "", charts: Sequence[FigureGroup] = ()) -> dict[str, Any]:
    """Return the content of a section of sentences, charts and tables; empty where it has no table."""
    return {"lead": lead, "groups": charts, "tables": tables} if tables else {}


def _papers(page: Page) -> dict[str, Any]:
    content = papers_page(page.derived)
    return {**content, "groups": groups(page.figures, "papers")} if content else {}


def _scenarios(page: Page) -> Iterator[Section]:
    """Yield a section for each scenario that was measured."""
    for name in dict.fromkeys(result.point.scenario for result in page.derived.results):
        path = scenario_named(name).drawn_path
        yield Section(name, name, partial(_scenario, name), "scenario.html.j2", path)


def _scenario(name: str, page: Page) -> dict[str, Any]:
    run = page.derived.run
    members = [r for r in page.derived.results if r.point.scenario == name]
    return {
        "meaning": scenario_named(name).meaning,
        "groups": groups(page.figures, name),
        "sentences": [
            *policy_sentences(members),
            *strata_sentences(members),
            *host_sentences(members),
            *load_sentences(members),
            *clock_sentences(members),
            *filter(None, [says(run.header.plan, members) for says in (v2v_sentence, batching_sentence)]),
        ],
        "searches": some([search_table(members), burst_table(members)]),
        "deviations": deviations(members),
        "bands": some([scenario.strata_table(members)]),
        "tables": some(
            [
                scenario.throughput_table(run, members),
                scenario.ledger_table(run, members),
                scenario.latency_table(run, members),
                scenario.jitter_table(run, members),
                anatomy_table(members),
                traffic_table(members),
            ]
        ),
    }


def _chains(page: Page) -> dict[str, Any]:
    return tables_content(chain_tables(page.derived.chains), charts=groups(page.figures, "chains"))


def _against(page: Page) -> dict[str, Any]:
    decides, others = comparison_tables(page.derived)
    return {"decides": decides, "others": others} if decides.rows or others.rows else {}


def _warnings(page: Page) -> dict[str, Any]:
    return {"unexplained": page.unexplained} if _notices(page) else {}


def _trials(page: Page) -> dict[str, Any]:
    run = page.derived.run
    return {
        "verdicts": verdict_counts(run),
        "verdict_words": {kind.value: VERDICT_WORDS[kind] for kind in VerdictKind},
        "causes": cause_table(page.derived.invalid),
        "trials": trial_table(run),
    }


def _calibration(page: Page) -> dict[str, Any]:
    found = page.derived.run.header.calibration
    return tables_content(calibration_tables(found), calibration_words(found)) if found else {}


def _setup(page: Page) -> dict[str, Any]:
    header = page.derived.run.header
    return {"command": shlex.join(header.command), "again": commands(header), "remedies": remedies(header)}


SECTIONS: tuple[SectionEntry, ...] = (
    Section("answers", "Answers", _answers, "answers.html.j2"),
    _scenarios,
    Section("cores", "Per-core performance", _cores, subtitle="and estimated core count", closed=True),
    Section("chains", "Service chains", _chains, subtitle="chain compared with each function measured alone"),
    Section("against", "Pairwise comparison", _against, "against.html.j2", closed=True),
    Section(
        "outages",
        OUTAGES,
        lambda page: tables_content(some([outage_table(page.derived.run)])),
        subtitle="a VNF, or the switch, restarted under traffic",
    ),
    Section(
        "hosting",
        "VNF isolation",
        lambda page: hosting_page(page.derived.run),
        "hosting.html.j2",
        "VNFs outside the tester process",
    ),
    Section(
        "conditions",
        "Test conditions",
        lambda page: conditions_page(page.derived),
        "conditions.html.j2",
        "what is equal and what differs between switches",
        closed=True,
    ),
    Section("warnings", "Warnings", _warnings, "warnings.html.j2", "limits on how these results may be used"),
    Section("trials", "Trials", _trials, "trials.html.j2", closed=True),
    Section("papers", "Reproduction of published results", _papers, "papers.html.j2", "claim by claim", closed=True),
    Section(
        "tables",
        "Results in the format of the papers",
        lambda page: paper_tables(page.derived.results),
        "matrices.html.j2",
        closed=True,
    ),
    Section("calibration", "Tester calibration", _calibration, subtitle="no switch in the path", closed=True),
    Section("method", "Method in brief", lambda page: {"cores": cores_sentence(page.derived.run)}, "method.html.j2"),
    Section("setup", "Reproduce this run", _setup, "reproduce.html.j2", closed=True),
)
"""Every section, in the order of the page."""


def _marks(results: Sequence[Result]) -> dict[str, str]:
    """Return the marks in use and what they say."""
    kinds = {r.verdict.kind for r in results} | {s.verdict.kind for r in results for s in r.latency}
    marks = {}
    if VerdictKind.TESTER_LIMITED in kinds:
        marks["≥"] = (
            "tester-limited (lower bound): the tester, not the switch, was the bottleneck (pale bar, hollow point)"
        )
    if VerdictKind.LINE_RATE in kinds:
        line = "line rate (lower bound): the links, not the switch, were the limit"
        marks["≥"] = f"{marks['≥']}; or {line}" if "≥" in marks else line
    if any(r.capacity_estimate_pps is not None for r in results):
        marks["est."] = (
            "estimated capacity in Mpps, at full batches, with its 95 % interval: cycles per packet fitted over the "
            "batch sizes of all trials"
        )
    if any(throughput(r).startswith("~") for r in results):
        marks["~"] = f"an end of its 95 % interval is more than {WIDE:.0%} away"
    if any(r.throughput_pps is None for r in results):
        marks[NOTHING] = "no trial counts; see Trials"
    if any(s.verdict.kind is not VerdictKind.VALID for r in results for s in r.latency):
        marks["( )"] = "the latency of a load that was not carried, shown for information only (dimmed)"
    return marks


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
    def marks(self) -> Marks:
        """Return the attributes of the marks of charts: the number of their result, or of their switch."""
        switches = {label: ("data-switch", str(number)) for number, label in enumerate(self.switches)}
        return switches | {name: ("data-cells", str(number)) for name, number in self.numbers.items()}

    def places(self, points: Iterable[Point]) -> str:
        """Return the numbers of the results at some test points: ``3 9``; empty where one has no result."""
        found = [self.numbers.get(point_name(point)) for point in points]
        return "" if None in found else " ".join(map(str, found))


def explored(results: Sequence[Result], labels: Iterable[str]) -> Explored:
    """Return what the script knows of some results; ``labels`` are the switches of the run, in its order."""
    cells = [
        (
            printable(r.point.switch),
            r.point.scenario,
            frames(r.point),
            point_name(r.point),
            throughput_tip(r),
        )
        for r in results
    ]
    return Explored(cells, [printable(label) for label in labels], {cell[3]: n for n, cell in enumerate(cells)})
