# SPDX-License-Identifier: BSD-3-Clause
"""The report: one HTML file with charts, tables and evidence; nothing fetched, all text escaped.

Its only script is ``explore.js``; the browser runs no other, and the page is complete without it.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Any

import jinja2
from markupsafe import Markup

from planebench.analysis.compare import Derived
from planebench.model.words import NOTHING, printable
from planebench.report.answers import title_facts
from planebench.report.figure import DARK_COLORS, GRID, INK, MUTED, SWITCH_COLORS
from planebench.report.figures import make_figures
from planebench.report.page.sections import SECTIONS, Built, Explored, Page, SectionEntry, build, draw, explored

TEMPLATE = "report.html.j2"
PALETTE = {
    "ink": INK,
    "muted": MUTED,
    "grid": GRID,
    "switches": tuple(zip(SWITCH_COLORS, DARK_COLORS, strict=True)),
}
"""Colors of charts that the style sheet replaces in dark mode."""
MAX_PAGE_BYTES = 4_700_000
"""Limit for drawing charts: with the markup around each chart, the page stays below 5 MB."""


def to_html(derived: Derived, sections: Sequence[SectionEntry] = SECTIONS, max_bytes: int = MAX_PAGE_BYTES) -> bytes:
    """Return the report of a run, complete or not, as a self-contained UTF-8 HTML page.

    Charts are drawn as long as the page is smaller than ``max_bytes``; the page says how many are omitted.
    """
    figures = make_figures(derived)
    built = build(Page(derived, figures), sections)
    known = explored(derived.results, derived.run.switch_labels)
    bare = _page(derived, built, known, {})
    return _page(derived, built, known, draw(figures, max_bytes - len(bare), known.marks))


def _page(derived: Derived, built: Sequence[Built], known: Explored, drawn: Mapping[str, Markup]) -> bytes:
    run, (script, digest) = derived.run, _script()
    context = {
        "title": f"{run.header.name} ({run.header.run_id})",
        "palette": PALETTE,
        "run": run,
        "header": run.header,
        "colors": page_colors(run.switch_labels),
        "explored": known,
        "script": script,
        "script_digest": digest,
        "measured": bool(derived.results),
        "facts": title_facts(derived),
        "sections": built,
        "drawn": drawn,
    }
    return render(TEMPLATE, context)


def page_colors(labels: Iterable[str]) -> dict[str, str]:
    """Return the color of each switch as a variable of the style sheet, which has another one in dark mode."""
    return {label: f"var(--s{number % len(SWITCH_COLORS)})" for number, label in enumerate(labels)}


@cache
def _script() -> tuple[Markup, str]:
    """Return the script of the page, and the digest by which the browser knows that it is ours."""
    text = resources.files("planebench.report").joinpath("explore.js").read_text(encoding="utf-8")
    return Markup(text), base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


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
