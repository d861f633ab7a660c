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
from planebench.report import page_data
from planebench.report.anatomy_data import NOTE, anatomy_table
from planebench.report.calibration_data import calibration_page
from planebench.report.chain_figures import chain_figures
from planebench.report.chains_data import chain_tables
from planebench.report.comparison_data import comparison_tables
from planebench.report.conditions_data import conditions_page
from planebench.report.derived import Derived, derive
from planebench.report.figure import Figure
from planebench.report.figures import make_figures
from planebench.report.images import inline_svg
from planebench.report.page_table import some
from planebench.report.palette import GRID, INK, MUTED, switch_colours
from planebench.report.papers_data import papers_page
from planebench.report.remarks import band_words, deviations, headline, load_sentences, policy_sentences, v2v_sentence
from planebench.report.searches_data import burst_table, search_table
from planebench.report.summary_data import summary
from planebench.report.traffic_data import traffic_table
from planebench.report.trials_data import cause_table, rejected_table, trial_table, verdict_counts
from planebench.report.wording import ARROW_WORDS, ARROWS, MEANINGS, NOTHING, PATHS, VERDICT_WORDS, printable
from planebench.stats.chains import Chains

TEMPLATE = "report.html.j2"

_GROUPS: tuple[tuple[tuple[str, ...], str, str], ...] = (
    (("throughput",), "Throughput", "Received rate at saturating input. Whiskers: lowest and highest trial."),
    (
        ("chain",),
        "Throughput by chain length",
        "Received rate at saturating input. Whiskers: lowest and highest trial.",
    ),
    (("loss",), "Loss-rate curve", "Share of frames that did not arrive, by load (RFC 2544 section 26.3)."),
    (("latency",), "Latency", "Dot: median. Thick line: to p99. Thin line: to p99.9. Figures: median / p99 in µs."),
    (("load",), "Latency against load", "Line: p50. Dashed: p99. Ring: the knee. Grey: latency floor of the tester."),
    (("percentiles",), "Latency distribution", "Every probe that came back, by percentile. Low and flat is good."),
    (("anatomy",), "Where the time goes", f"Mean latency of the probes, part by part along the path. {NOTE}"),
    (("tradeoff",), "Throughput against mean latency", "Low and to the right is good."),
)


def to_html(run: Run) -> bytes:
    """The report of a run, complete or not, as a self-contained UTF-8 HTML page."""
    return derived_html(derive(run))


def derived_html(derived: Derived) -> bytes:
    """As :func:`to_html`, of what has been derived already."""
    run, results = derived.run, derived.results
    colours = switch_colours(run.switch_labels)
    scenarios = dict.fromkeys(r.point.scenario for r in results)
    figures = make_figures(run, results)
    decides, others = comparison_tables(derived)
    page = (
        _environment()
        .get_template(TEMPLATE)
        .render(
            run=run,
            header=run.header,
            colours=colours,
            summary=summary(results, colours, derived.comparisons),
            headline=headline(results, derived.comparisons),
            scenarios=[_scenario(name, run, results, figures) for name in scenarios],
            chains=_chains(derived.chains),
            decides=decides,
            others=others,
            verdicts=verdict_counts(run),
            causes=cause_table(derived.rejected),
            rejected=rejected_table(derived.rejected),
            trials=trial_table(run, derived.rejected),
            calibration=calibration_page(run.header.calibration),
            bands=band_words(results).capitalize(),
            marks=_marks(results),
            arrows={ARROWS[d]: ARROW_WORDS[d] for d in dict.fromkeys(r.point.direction for r in results)},
            verdict_words={kind.value: VERDICT_WORDS[kind] for kind in VerdictKind},
            command=shlex.join(run.header.command),
            conditions=conditions_page(run),
            papers=papers_page(derived),
            palette={"ink": INK, "muted": MUTED, "grid": GRID},
        )
    )
    return page.encode("utf-8", errors="replace")


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


def _scenario(name: ScenarioName, run: Run, results: Sequence[Result], figures: Sequence[Figure]) -> dict[str, Any]:
    members = [r for r in results if r.point.scenario == name]
    groups = []
    for kinds, title, caption in _GROUPS:
        drawn = [_panel(f) for f in figures if f.scenario == name and f.kind in kinds]
        if drawn:
            groups.append({"kind": kinds[0], "title": title, "caption": caption, "panels": drawn})
    return {
        "name": name,
        "path": PATHS[name],
        "meaning": MEANINGS[name],
        "groups": groups,
        "sentences": _sentences(run, members),
        "searches": some([search_table(members), burst_table(members)]),
        "deviations": deviations(members),
        "bands": some([page_data.band_table(members)]),
        "tables": some(
            [
                page_data.throughput_table(members),
                page_data.latency_table(members, run.header.calibration),
                page_data.jitter_table(members),
                page_data.ledger_table(members),
                anatomy_table(members),
                traffic_table(members),
            ]
        ),
    }


def _sentences(run: Run, results: Sequence[Result]) -> list[str]:
    v2v = v2v_sentence(run.header.settings, results)
    return [*policy_sentences(results), *load_sentences(results), *filter(None, [v2v])]


def _chains(chains: Chains) -> dict[str, Any]:
    """The section on chains: empty where no chain can be set against its parts."""
    return {"tables": chain_tables(chains), "panels": [_panel(figure) for figure in chain_figures(chains.latency)]}


def _panel(figure: Figure) -> dict[str, Any]:
    name = f"{figure.scenario} {figure.kind}, {figure.title}"
    return {"key": figure.key, "title": figure.title, "svg": Markup(inline_svg(figure.chart, name, figure.key))}


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
