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
from planebench.report.figures import Figure, make_figures
from planebench.report.images import inline_svg
from planebench.report.palette import GRID, INK, MUTED, switch_colours
from planebench.report.wording import ARROW_WORDS, ARROWS, MEANINGS, NOTHING, PATHS, VERDICT_WORDS, printable
from planebench.stats.results import derive_results

TEMPLATE = "report.html.j2"

_GROUPS: tuple[tuple[tuple[str, ...], str, str], ...] = (
    (("throughput",), "Throughput", "Received rate at saturating input. Whiskers: lowest and highest trial."),
    (
        ("chain",),
        "Throughput by chain length",
        "Received rate at saturating input. Whiskers: lowest and highest trial.",
    ),
    (("latency",), "Latency", "Dot: median. Thick line: to p99. Thin line: to p99.9. Figures: median / p99 in µs."),
    (("percentiles",), "Latency distribution", "Every probe that came back, by percentile. Low and flat is good."),
    (("tradeoff",), "Throughput against mean latency", "Low and to the right is good."),
)


def to_html(run: Run) -> bytes:
    """The report of a run, complete or not, as a self-contained UTF-8 HTML page."""
    results = derive_results(run)
    figures = make_figures(run, results)
    colours = switch_colours(run.switch_labels)
    page = (
        _environment()
        .get_template(TEMPLATE)
        .render(
            run=run,
            header=run.header,
            colours=colours,
            summary=page_data.summary(results, colours),
            headline=page_data.headline(results),
            scenarios=[_scenario(name, results, figures) for name in dict.fromkeys(r.point.scenario for r in results)],
            verdicts=page_data.verdict_counts(run),
            rejected=page_data.rejected(run, results),
            max_rejected=page_data.MAX_REJECTED,
            marks=_marks(results),
            arrows={ARROWS[d]: ARROW_WORDS[d] for d in dict.fromkeys(r.point.direction for r in results)},
            verdict_words={kind.value: VERDICT_WORDS[kind] for kind in VerdictKind},
            command=shlex.join(run.header.command),
            setting_names=list(dict.fromkeys(name for s in run.header.switches for name in s.settings)),
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


def _scenario(name: ScenarioName, results: Sequence[Result], figures: Sequence[Figure]) -> dict[str, Any]:
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
        "throughput": [page_data.throughput_record(r) for r in members],
        "latency": [page_data.latency_record(r, s) for r in members for s in r.latency],
    }


def _panel(figure: Figure) -> dict[str, Any]:
    name = f"{figure.scenario} {figure.kind}, {figure.title}"
    return {"key": figure.key, "title": figure.title, "svg": Markup(inline_svg(figure.chart, name, figure.key))}


def _marks(results: Sequence[Result]) -> dict[str, str]:
    """The marks in use and what they say."""
    kinds = {r.verdict.kind for r in results} | {s.verdict.kind for r in results for s in r.latency}
    marks = {}
    if VerdictKind.TESTER_LIMITED in kinds:
        marks["≥"] = "at least: the tester was the limit, not the switch (pale bar, hollow point)"
    if VerdictKind.UNSTABLE in kinds:
        marks["~"] = "unstable: the trials differ by more than 10 %"
    if any(r.throughput_pps is None for r in results):
        marks[NOTHING] = "no trial counts; the reasons are at the end"
    if any(s.verdict.kind is not VerdictKind.VALID for r in results for s in r.latency):
        marks["( )"] = "a latency that does not count (pale)"
    return marks
