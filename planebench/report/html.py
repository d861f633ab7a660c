# SPDX-License-Identifier: BSD-3-Clause
"""The report: one HTML file with charts, tables and evidence; no script, nothing fetched, all text escaped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import jinja2
from markupsafe import Markup

from planebench.model.words import NOTHING, printable
from planebench.report.answers import title_facts
from planebench.report.charts.figure import GRID, INK, MUTED, switch_colors
from planebench.report.figures import make_figures
from planebench.report.page.panels import draw
from planebench.report.page.sections import SECTIONS, Built, Entry, Page, build
from planebench.stats.derived import Derived

TEMPLATE = "report.html.j2"
PALETTE = {"ink": INK, "muted": MUTED, "grid": GRID}
"""Colors of charts that the style sheet replaces in dark mode."""
MAX_PAGE_BYTES = 4_700_000
"""Limit for drawing charts: with the markup around each chart, the page stays below 5 MB."""


def to_html(derived: Derived, sections: Sequence[Entry] = SECTIONS, max_bytes: int = MAX_PAGE_BYTES) -> bytes:
    """Return the report of a run, complete or not, as a self-contained UTF-8 HTML page.

    Charts are drawn as long as the page is smaller than ``max_bytes``; the page says how many are omitted.
    """
    figures = make_figures(derived)
    built = build(Page(derived, figures), sections)
    bare = _page(derived, built, {})
    return _page(derived, built, draw(figures, max_bytes - len(bare)))


def _page(derived: Derived, built: Sequence[Built], drawn: Mapping[str, Markup]) -> bytes:
    run = derived.run
    context = {
        "title": f"{run.header.name} ({run.header.run_id})",
        "palette": PALETTE,
        "run": run,
        "header": run.header,
        "colors": switch_colors(run.switch_labels),
        "measured": bool(derived.results),
        "facts": title_facts(derived),
        "sections": built,
        "drawn": drawn,
    }
    return render(TEMPLATE, context)


def render(template: str, context: Mapping[str, Any]) -> bytes:
    """Return a page as UTF-8, made of a template of this package; everything but markup is escaped."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("planebench.report", package_path="."),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=_clean,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(template).render(context).encode("utf-8", errors="replace")


def _clean(value: Any) -> Any:
    """Return text from outside with control and direction-changing characters made visible; markup passes unchanged."""
    if isinstance(value, Markup) or not isinstance(value, str):
        return NOTHING if value is None else value
    return printable(value, keep="\n\t")
