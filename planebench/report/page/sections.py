# SPDX-License-Identifier: BSD-3-Clause
"""The sections of the page. An entry of :data:`SECTIONS` is all that a section needs to be drawn and to be linked.

Contents and page follow from it. How to add one is in docs/design/adding-a-report-section.md.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from planebench.analysis.compare import Derived
from planebench.model.records import VerdictKind
from planebench.model.results import Result
from planebench.model.scenario import scenario_named
from planebench.model.words import (
    NOTHING,
    VERDICT_WORDS,
    WIDE,
    throughput,
)
from planebench.report.anatomy import anatomy_table
from planebench.report.answers import STATES, Standings, limits_words, needs, path_answers
from planebench.report.calibration import calibration_tables, calibration_words
from planebench.report.chains import chain_tables
from planebench.report.charts.figure import Figure
from planebench.report.comparison import comparison_tables
from planebench.report.conditions import conditions_page, cores_sentence
from planebench.report.cores import cores_table
from planebench.report.hosting import hosting_page
from planebench.report.latency import batching_sentence, clock_sentences, host_sentences, load_sentences, v2v_sentence
from planebench.report.ledger import policy_sentences, unexplained_sentences
from planebench.report.outages import TITLE as OUTAGES
from planebench.report.outages import outage_table
from planebench.report.page import scenario
from planebench.report.page.panels import FigureGroup, groups
from planebench.report.page.table import PageTable, some
from planebench.report.papers import paper_tables, papers_page
from planebench.report.reproduce import commands, remedies
from planebench.report.searches import burst_table, deviations, search_table
from planebench.report.throughput import strata_sentences
from planebench.report.traffic import traffic_table
from planebench.report.trials import cause_table, trial_table, verdict_counts
from planebench.report.trust import trust

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
