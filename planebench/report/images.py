# SPDX-License-Identifier: BSD-3-Clause
"""Charts as SVG files for a paper, as wide as asked for."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from html import escape
from pathlib import Path

from planebench.analysis.compare import Derived
from planebench.model.errors import UsageError, unknown, unwritable
from planebench.model.words import ARROWS, ASCII_ARROWS, printable
from planebench.report.figure import Figure, safe
from planebench.report.figures import FIGURES, make_figures
from planebench.report.svg import FONT, INK
from planebench.store.writer import write_output

PX_PER_MM = 96 / 25.4
"""CSS and SVG: 96 px an inch."""
HEAD_PX, MARGIN_PX = 22, 4
"""Height of the title, and the margin around the drawing."""
WIDTHS_MM = (40, 1000)
"""The least and the greatest width that may be asked for; a column of a paper has about 84, two have 178."""

_CAPTIONS = {kind.id: kind.caption for kind in FIGURES}
_SIZE = re.compile(r'<svg [^>]*?width="([\d.]+)" height="([\d.]+)"[^>]*>')


def write_figures(
    derived: Derived, out_dir: Path, only: Sequence[str] = (), width_mm: float | None = None
) -> tuple[Path, ...]:
    """Write every figure of a run, and ``overview``, as ``out_dir/<figure>.svg``; returns the files.

    ``only``: kinds of figures; all if empty. Raises UsageError for a kind or a width that is not known, and where
    nothing can be written.
    """
    wanted = [name.strip() for name in only if name.strip()]
    for name in wanted:
        if name not in _CAPTIONS:
            raise unknown("kind of figure", name, tuple(_CAPTIONS))
    if width_mm is not None and not (math.isfinite(width_mm) and WIDTHS_MM[0] <= width_mm <= WIDTHS_MM[1]):
        raise UsageError(f"width {width_mm:g} mm is not valid. Valid: {WIDTHS_MM[0]} to {WIDTHS_MM[1]}")
    written = []
    try:
        out_dir.mkdir(parents=True, exist_ok=True)
        for figure in make_figures(derived):
            if figure.kind in (wanted or _CAPTIONS):
                written.append(out_dir / f"{safe(figure.key)}.svg")
                write_output(written[-1], figure_svg(figure, width_mm).encode(), named=False)
    except OSError as error:
        raise unwritable(f"figures to {out_dir}", error) from None
    return tuple(written)


def figure_svg(figure: Figure, width_mm: float | None = None) -> str:
    """Return a figure as SVG text with its title and caption, on white; ``width_mm`` None keeps its own width.

    Its arrows are words, as not every font has them.
    """
    inner_px = figure.width_px if width_mm is None else width_mm * PX_PER_MM - 2 * MARGIN_PX
    drawn = re.sub(r' data-about="[^"]*"', "", figure.svg(inner_px))
    found = _SIZE.match(drawn)
    assert found, "a drawing has its size in px"
    width, height = inner_px + 2 * MARGIN_PX, float(found[2]) + HEAD_PX + 2 * MARGIN_PX
    said, inside = figure.full_title, drawn[found.end() :].removesuffix("</svg>")
    body = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.2f}" height="{height:.2f}" '
        f'viewBox="0 0 {width:.2f} {height:.2f}" font-family="{FONT}" font-size="11" role="img">'
        f"<title>{escape(said)}</title><desc>{escape(_CAPTIONS[figure.kind])}</desc>"
        f'<rect width="100%" height="100%" fill="white"/>'
        f'<text x="{MARGIN_PX}" y="16" font-size="13" font-weight="600" fill="{INK}">{escape(said)}</text>'
        f'<g transform="translate({MARGIN_PX} {HEAD_PX + MARGIN_PX})">{inside}</g></svg>'
    )
    for direction, arrow in ARROWS.items():
        body = body.replace(f"{arrow} {direction}", direction).replace(arrow, ASCII_ARROWS[direction])
    return printable(body, keep="\n\t")
