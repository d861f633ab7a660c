# SPDX-License-Identifier: BSD-3-Clause
"""The report: one HTML file with charts, tables and evidence; no script, nothing fetched, all text escaped."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any

import jinja2
from markupsafe import Markup

from planebench.model.records import ScenarioName, VerdictKind
from planebench.model.results import Result
from planebench.model.run import Run
from planebench.model.scenario import scenario_named
from planebench.model.words import (
    ARROW_WORDS,
    ARROWS,
    NOTHING,
    VERDICT_WORDS,
    printable,
)
from planebench.report import page_data
from planebench.report.anatomy import anatomy_table
from planebench.report.calibration import calibration_page
from planebench.report.chains import chain_figures, chain_tables
from planebench.report.charts.figure import GRID, INK, MUTED, switch_colors
from planebench.report.comparison import comparison_tables
from planebench.report.conditions import conditions_page, cores_sentence
from planebench.report.cores import cores_table
from planebench.report.figures import make_figures
from planebench.report.hosting import hosting_page
from planebench.report.latency import load_sentences, v2v_sentence
from planebench.report.ledger import policy_sentences, unexplained_sentences
from planebench.report.page.panels import Panels, chains_group, draw, scenario_groups
from planebench.report.page.sections import contents
from planebench.report.page_table import some
from planebench.report.papers import paper_tables, papers_page
from planebench.report.recommend import headline, recommendations, summary
from planebench.report.reproduce import commands, remedies
from planebench.report.searches import burst_table, deviations, search_table
from planebench.report.throughput import band_words
from planebench.report.traffic import traffic_table
from planebench.report.trials import cause_table, rejected_table, trial_table, verdict_counts
from planebench.stats.derived import Derived

TEMPLATE = "report.html.j2"
MAX_PAGE_BYTES = 4_700_000
"""A page has to stay under 5 MB; what stands around each chart comes on top."""


def to_html(derived: Derived) -> bytes:
    """Return the report of a run, complete or not, as a self-contained UTF-8 HTML page.

    Charts get the room that everything else leaves: a page without them says how much that is.
    """
    figures = (*make_figures(derived), *chain_figures(derived.chains.latency))
    parts = _parts(derived)
    bare = _page(parts, derived, draw(figures, 0))
    return _page(parts, derived, draw(figures, MAX_PAGE_BYTES - len(bare)))


def _page(parts: dict[str, Any], derived: Derived, panels: Panels) -> bytes:
    everything = {**parts, **_charted(derived, panels)}
    page = _environment().get_template(TEMPLATE).render(everything, contents=contents(everything))
    return page.encode("utf-8", errors="replace")


def _parts(derived: Derived) -> dict[str, Any]:
    """What the sections without charts draw (page/): each by the names of its own part below."""
    run = derived.run
    return {
        "run": run,
        "header": run.header,
        "colors": switch_colors(run.switch_labels),
        "palette": {"ink": INK, "muted": MUTED, "grid": GRID},
        **_first(derived),
        **_evidence(derived),
        **_again(run),
    }


def _first(derived: Derived) -> dict[str, Any]:
    """Summary and tables as in the papers."""
    run, results, comparisons = derived.run, derived.results, derived.comparisons
    return {
        "summary": summary(results, switch_colors(run.switch_labels), comparisons),
        "headline": headline(results, comparisons),
        "recommendations": recommendations(derived),
        "cores": cores_table(run, results),
        "papers": papers_page(derived),
        "paper_tables": paper_tables(results),
        "bands": band_words(results).capitalize(),
        "marks": _marks(results),
        "arrows": {ARROWS[d]: ARROW_WORDS[d] for d in dict.fromkeys(r.point.direction for r in results)},
    }


def _charted(derived: Derived, panels: Panels) -> dict[str, Any]:
    """The sections with charts: scenarios, and chains against their parts."""
    run, results = derived.run, derived.results
    names = dict.fromkeys(r.point.scenario for r in results)
    return {
        "scenarios": [_scenario(name, run, results, panels) for name in names],
        "chains": {"tables": chain_tables(derived.chains), **chains_group(panels)},
    }


def _evidence(derived: Derived) -> dict[str, Any]:
    """What the figures rest on."""
    run = derived.run
    decides, others = comparison_tables(derived)
    unexplained = unexplained_sentences(derived.results)
    return {
        "decides": decides,
        "others": others,
        "verdicts": verdict_counts(run),
        "causes": cause_table(derived.rejected),
        "rejected": rejected_table(derived.rejected),
        "trials": trial_table(run, derived.rejected),
        "calibration": calibration_page(run.header.calibration),
        "verdict_words": {kind.value: VERDICT_WORDS[kind] for kind in VerdictKind},
        "hosting": hosting_page(run),
        "conditions": conditions_page(derived),
        "unexplained": unexplained,
        "notices": len(set(run.warnings)) + len(run.skipped) + len(unexplained),
    }


def _again(run: Run) -> dict[str, Any]:
    """How it was run, and how to run it again."""
    return {
        "command": shlex.join(run.header.command),
        "again": commands(run.header),
        "remedies": remedies(run.header),
        "cores_words": cores_sentence(run),
    }


def _environment() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.PackageLoader("planebench.report", package_path="."),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=_clean,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _clean(value: Any) -> Any:
    """Control and direction-changing characters in text from outside become visible; markup of our own passes."""
    if isinstance(value, Markup) or not isinstance(value, str):
        return NOTHING if value is None else value
    return printable(value, keep="\n\t")


def _scenario(name: ScenarioName, run: Run, results: Sequence[Result], panels: Panels) -> dict[str, Any]:
    members = [r for r in results if r.point.scenario == name]
    return {
        "name": name,
        "path": scenario_named(name).drawn_path,
        "meaning": scenario_named(name).meaning,
        "groups": scenario_groups(panels, name),
        "sentences": _sentences(run, members),
        "searches": some([search_table(members), burst_table(members)]),
        "deviations": deviations(members),
        "bands": some([page_data.band_table(members)]),
        "tables": some(
            [
                page_data.throughput_table(run, members),
                page_data.latency_table(run, members),
                page_data.jitter_table(run, members),
                page_data.ledger_table(run, members),
                anatomy_table(members),
                traffic_table(members),
            ]
        ),
    }


def _sentences(run: Run, results: Sequence[Result]) -> list[str]:
    v2v = v2v_sentence(run.header.settings, results)
    return [*policy_sentences(results), *load_sentences(results), *filter(None, [v2v])]


def _marks(results: Sequence[Result]) -> dict[str, str]:
    """The marks in use and what they say."""
    kinds = {r.verdict.kind for r in results} | {s.verdict.kind for r in results for s in r.latency}
    marks = {}
    if VerdictKind.TESTER_LIMITED in kinds:
        marks["≥"] = "at least: the tester was the limit, not the switch (pale bar, hollow point)"
    if any(r.capacity_estimate_pps is not None for r in results):
        marks["est."] = "an estimate in Mpps: throughput / busy share of the switch, whose idle time may not be free"
    if VerdictKind.UNSTABLE in kinds:
        marks["~"] = "unstable: the trials differ by more than 10 %"
    if any(r.throughput_pps is None for r in results):
        marks[NOTHING] = "no trial counts; the reasons are at the end"
    if any(s.verdict.kind is not VerdictKind.VALID for r in results for s in r.latency):
        marks["( )"] = "a latency that does not count (pale)"
    return marks
