# SPDX-License-Identifier: BSD-3-Clause
"""Charts as files for a paper: SVG, PDF and PNG of one drawing, on white, of a width in millimetres if wanted.

PDF has its fonts embedded, PNG has 300 dots an inch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Literal, get_args

import altair as alt
import vl_convert

from planebench.model.choices import unknown
from planebench.model.errors import UsageError
from planebench.model.words import ARROWS
from planebench.report.charts.base import FONT
from planebench.report.charts.figure import INK, Figure
from planebench.report.figures import KINDS, make_figures
from planebench.report.images import drawn, scaled
from planebench.stats.derived import Derived

Format = Literal["svg", "pdf", "png"]
FORMATS: tuple[Format, ...] = get_args(Format)
WIDTHS_MM = (40, 1000)
"""The least and the greatest width that may be asked for; a column of a paper has about 84, two have 178."""

_PT_PER_PX = 72 / 96
_PNG_PPI = 300
_ARROWS = {ord(arrow): None for arrow in ARROWS.values()}


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
    try:
        out_dir.mkdir(parents=True, exist_ok=True)
        return tuple(path for figure in figures for path in _write(figure, out_dir, wanted, width_mm))
    except OSError as error:
        raise UsageError(f"cannot write figures to {out_dir}: {error.strerror}; give a folder you may write") from None


def _write(figure: Figure, out_dir: Path, formats: Sequence[str], width_mm: float | None) -> list[Path]:
    title = alt.Title(_without_arrow(figure.full_title), anchor="start", fontSize=13, offset=8, color=INK, font=FONT)
    chart: Any = figure.chart
    svg = drawn(chart.properties(title=title, background="white").to_dict(validate=False), width_mm)
    files = []
    for name in formats:
        path = out_dir / f"{figure.key}.{name}"
        path.write_bytes(_MAKERS[name](svg))
        files.append(path)
    return files


def _without_arrow(title: str) -> str:
    """The direction is there in words; not every font has the arrows, and another font for one sign shows."""
    return " ".join(title.translate(_ARROWS).split())


def _pdf(svg: str) -> bytes:
    made: bytes = vl_convert.svg_to_pdf(scaled(svg, _PT_PER_PX))  # it takes a px for a point
    return made


def _png(svg: str) -> bytes:
    made: bytes = vl_convert.svg_to_png(svg, scale=_PT_PER_PX, ppi=_PNG_PPI)
    return made


_MAKERS: dict[str, Callable[[str], bytes]] = {"svg": str.encode, "pdf": _pdf, "png": _png}


def _known(what: str, wanted: Iterable[str], valid: Sequence[str]) -> list[str]:
    names = [name.strip() for name in wanted if name.strip()]
    for name in names:
        if name not in valid:
            raise unknown(what, name, valid)
    return list(dict.fromkeys(names))
