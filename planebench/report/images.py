# SPDX-License-Identifier: BSD-3-Clause
"""Charts as files for a paper: SVG, PDF and PNG of one drawing, as wide as asked for.

A PDF has its fonts embedded; a PNG has 300 dots per inch.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path
from typing import Literal, get_args

from planebench.analysis.compare import Derived
from planebench.model.errors import UsageError, unknown, unwritable
from planebench.model.words import ARROWS, ASCII_ARROWS, printable
from planebench.report.drawing import Conversion, convert
from planebench.report.figure import KINDS, Figure
from planebench.report.figures import FIGURES, make_figures
from planebench.report.svg import FONT, INK

PX_PER_MM = 96 / 25.4
"""CSS and SVG: 96 px an inch."""
HEAD_PX, MARGIN_PX = 22, 4
"""Height of the title, and the margin around the drawing."""

Format = Literal["svg", "pdf", "png"]
FORMATS: tuple[Format, ...] = get_args(Format)
WIDTHS_MM = (40, 1000)
"""The least and the greatest width that may be asked for; a column of a paper has about 84, two have 178."""

_PT_PER_PX = 72 / 96
_PNG_PPI = 300
_CAPTIONS = {kind.id: kind.caption for kind in FIGURES}
_SIZE = re.compile(r'<svg [^>]*?width="([\d.]+)" height="([\d.]+)"[^>]*>')


def write_figures(
    derived: Derived,
    out_dir: Path,
    formats: Iterable[str] = FORMATS,
    only: Sequence[str] = (),
    width_mm: float | None = None,
) -> tuple[Path, ...]:
    """Write every figure of a run, and ``overview``, as ``out_dir/<figure>.<format>``; returns the files.

    ``only``: kinds of figures; all if empty. Raises UsageError for a format, a kind or a width that is not known, and
    where nothing can be written.
    """
    wanted = _known("format", formats, FORMATS) or list(FORMATS)
    kinds = _known("kind of figure", only, KINDS) or list(KINDS)
    if width_mm is not None and not (math.isfinite(width_mm) and WIDTHS_MM[0] <= width_mm <= WIDTHS_MM[1]):
        raise UsageError(f"width {width_mm:g} mm is not valid. Valid: {WIDTHS_MM[0]} to {WIDTHS_MM[1]}")
    figures = [figure for figure in make_figures(derived) if figure.kind in kinds]
    drawn = {figure.key: figure_svg(figure, width_mm) for figure in figures}
    wished = [(key, name) for key in drawn for name in wanted]
    others = [it for it in wished if it[1] != "svg"]
    try:
        out_dir.mkdir(parents=True, exist_ok=True)
        for key, name in wished:
            if name == "svg":
                (out_dir / f"{key}.svg").write_text(drawn[key], encoding="utf-8")
        made = convert([_conversion(name, drawn[key]) for key, name in others]) if others else []
        for (key, name), data in zip(others, made, strict=True):
            (out_dir / f"{key}.{name}").write_bytes(data)
    except OSError as error:
        raise unwritable(f"figures to {out_dir}", error) from None
    return tuple(out_dir / f"{key}.{name}" for key, name in wished)


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


def _conversion(name: str, svg: str) -> Conversion:
    """Return how a drawing becomes a PNG or a PDF."""
    if name == "png":
        return "svg_to_png", svg, {"scale": _PT_PER_PX, "ppi": _PNG_PPI}
    found = _SIZE.match(svg)
    assert found, "a drawing has its size in px"
    width, height = (f"{float(size) * _PT_PER_PX:.2f}" for size in found.groups())  # the library takes a px for a point
    smaller = found[0].replace(f'width="{found[1]}" height="{found[2]}"', f'width="{width}" height="{height}"')
    return "svg_to_pdf", smaller + svg[found.end() :], {}


def _known(what: str, wanted: Iterable[str], valid: Sequence[str]) -> list[str]:
    names = [name.strip() for name in wanted if name.strip()]
    for name in names:
        if name not in valid:
            raise unknown(what, name, valid)
    return list(dict.fromkeys(names))
