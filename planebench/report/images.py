# SPDX-License-Identifier: BSD-3-Clause
"""Charts as SVG in a page, and as files for a paper: SVG, PDF and PNG of one drawing, as wide as asked for.

A PDF has its fonts embedded; a PNG has 300 dots per inch.
"""

from __future__ import annotations

import copy
import math
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, get_args

import altair as alt

from planebench.analysis.compare import Derived
from planebench.model.errors import UsageError, unknown, unwritable
from planebench.model.words import ARROWS
from planebench.report.charts import FONT
from planebench.report.drawing import draw
from planebench.report.figure import INK, KINDS, TIP_MARK, Figure
from planebench.report.figures import FIGURES, make_figures

_SVG = "http://www.w3.org/2000/svg"
ET.register_namespace("", _SVG)

_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f]")

_NUMBER = re.compile(r"-?\d+\.\d{3,}")

_DROPPED = ("aria-hidden", "aria-roledescription", "role", "pointer-events", "class", "font-family")

_USUAL = {
    "opacity": "1",
    "fill-opacity": "1",
    "stroke-opacity": "1",
    "font-size": "11px",
    "transform": "translate(0,0)",
}
"""Attributes with their default values, which are redundant; the style sheet of the page sets the size of text."""


Marks = Mapping[str, tuple[str, str]]
"""The attribute, and its value, of marks whose description names a test point or a switch."""


def inline_svg(chart: alt.TopLevelMixin, title: str, prefix: str, marks: Marks | None = None) -> str:
    """Return a chart as an SVG element of a page: accessible name, tooltips, ids that start with ``prefix``.

    The words of a mark become a <title> child, which browsers show as a tooltip, and what it stands for an attribute of
    ``marks``, by which the page filters it; redundant attributes go.
    """
    svg: str = draw("vegalite_to_svg", chart.to_dict(validate=False))
    root = ET.fromstring(_CONTROL.sub("?", svg))
    for element in root.iter():
        _simplify(element, marks or {})
        _prefix_ids(element, prefix)
    _drop_empty(root)
    root.set("role", "img")
    root.set("aria-label", title)
    return _NUMBER.sub(lambda m: f"{float(m.group()):.2f}", ET.tostring(root, encoding="unicode"))


def _simplify(element: ET.Element, marks: Marks) -> None:
    name, _, words = element.attrib.pop("aria-label", "").partition(TIP_MARK)
    if words:
        ET.SubElement(element, f"{{{_SVG}}}title").text = words
    if name in marks:
        element.set(*marks[name])
    for name in _DROPPED:
        element.attrib.pop(name, None)
    for name, value in _USUAL.items():
        if element.get(name) == value:
            del element.attrib[name]


def _prefix_ids(element: ET.Element, prefix: str) -> None:
    """Make the ids of clip paths unique among all charts of a page."""
    for name, value in element.attrib.items():
        if name == "id":
            element.set(name, f"{prefix}-{value}")
        elif "url(#" in value:
            element.set(name, value.replace("url(#", f"url(#{prefix}-"))


def _drop_empty(parent: ET.Element) -> None:
    """Remove frames without area, groups without content, and groups that say nothing around their content."""
    for child in list(parent):
        _drop_empty(child)
        tag = child.tag.rpartition("}")[2]
        invisible = tag == "path" and (child.get("display") == "none" or child.get("d", "").endswith("h0v0h0Z"))
        if invisible or (tag == "g" and len(child) == 0):
            parent.remove(child)
        elif tag == "g" and not child.attrib:
            place = list(parent).index(child)
            parent[place : place + 1] = list(child)


PX_PER_MM = 96 / 25.4
"""CSS and SVG: 96 px an inch."""

MIN_PLOT_PX = 60
"""A narrower plot shows nothing; the drawing is then scaled down."""

_SIZE = re.compile(r'<svg([^>]*?) width="([\d.]+)" height="([\d.]+)"')

Spec = dict[str, Any]


def drawn(spec: Spec, width_mm: float | None) -> str:
    """Return the chart as SVG text of exactly this width; None keeps its own width."""
    svg: str = draw("vegalite_to_svg", spec)
    if width_mm is None:
        return svg
    lacking = width_mm * PX_PER_MM - _size_px(svg)[0]
    fitted: str = draw("vegalite_to_svg", _widened(spec, lacking))
    return scaled(fitted, width_mm * PX_PER_MM / _size_px(fitted)[0])


def described(svg: str, title: str, caption: str) -> str:
    """Return the drawing with a title and a description for readers who do not see it, and words for each mark."""
    root = ET.fromstring(_CONTROL.sub("?", svg))
    for element in root.iter():
        _, named, words = element.attrib.pop("aria-label", "").partition(TIP_MARK)
        if named:
            element.set("aria-label", words)
        elif element.attrib.pop("role", ""):
            element.attrib.pop("aria-roledescription", None)
    root.set("role", "img")
    for tag, text in (("desc", caption), ("title", title)):
        child = ET.Element(f"{{{_SVG}}}{tag}")
        child.text = text
        root.insert(0, child)
    return ET.tostring(root, encoding="unicode")


def scaled(svg: str, factor: float) -> str:
    """Return the same drawing, larger or smaller."""
    width, height = _size_px(svg)
    return _SIZE.sub(rf'<svg\1 width="{width * factor:.2f}" height="{height * factor:.2f}"', svg, count=1)


def _widened(spec: Spec, by_px: float) -> Spec:
    """Return the chart with its plots wider (or narrower) by ``by_px`` in total."""
    made = copy.deepcopy(spec)
    for plot in _plots(made):
        plot["width"] = max(MIN_PLOT_PX, plot["width"] + by_px / _beside(made))
    return made


def _plots(spec: Spec) -> Iterator[Spec]:
    """Yield every part of a chart that has a width in px."""
    if isinstance(spec.get("width"), (int, float)):
        yield spec
    for name in ("spec", "concat"):
        inner = spec.get(name, ())
        for part in (inner,) if isinstance(inner, dict) else inner:
            yield from _plots(part)


def _beside(spec: Spec) -> int:
    """Return the number of plots side by side."""
    return min(len(spec.get("concat", ())), int(spec.get("columns", 1))) or 1


def _size_px(svg: str) -> tuple[float, float]:
    found = _SIZE.search(svg)
    assert found, "vl-convert draws an SVG with its size in px"
    return float(found[2]), float(found[3])


Format = Literal["svg", "pdf", "png"]
FORMATS: tuple[Format, ...] = get_args(Format)
WIDTHS_MM = (40, 1000)
"""The least and the greatest width that may be asked for; a column of a paper has about 84, two have 178."""

_PT_PER_PX = 72 / 96
_PNG_PPI = 300
_CAPTIONS = {kind.id: kind.caption for kind in FIGURES}
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
        raise unwritable(f"figures to {out_dir}", error) from None


def _write(figure: Figure, out_dir: Path, formats: Sequence[str], width_mm: float | None) -> list[Path]:
    svg = figure_svg(figure, width_mm)
    files = []
    for name in formats:
        path = out_dir / f"{figure.key}.{name}"
        path.write_bytes(_MAKERS[name](svg))
        files.append(path)
    return files


def figure_svg(figure: Figure, width_mm: float | None = None) -> str:
    """Return a figure as SVG text with its title and caption; ``width_mm`` None keeps its own width."""
    title = alt.Title(_without_arrow(figure.full_title), anchor="start", fontSize=13, offset=8, color=INK, font=FONT)
    chart: Any = figure.chart
    svg = drawn(chart.properties(title=title, background="white").to_dict(validate=False), width_mm)
    return described(svg, figure.full_title, _CAPTIONS[figure.kind])


def _without_arrow(title: str) -> str:
    """Return the title without its arrow: not every font has it, and the title names the direction in words."""
    return " ".join(title.translate(_ARROWS).split())


def _pdf(svg: str) -> bytes:
    made: bytes = draw("svg_to_pdf", scaled(svg, _PT_PER_PX))  # it takes a px for a point
    return made


def _png(svg: str) -> bytes:
    made: bytes = draw("svg_to_png", svg, scale=_PT_PER_PX, ppi=_PNG_PPI)
    return made


_MAKERS: dict[str, Callable[[str], bytes]] = {"svg": str.encode, "pdf": _pdf, "png": _png}


def _known(what: str, wanted: Iterable[str], valid: Sequence[str]) -> list[str]:
    names = [name.strip() for name in wanted if name.strip()]
    for name in names:
        if name not in valid:
            raise unknown(what, name, valid)
    return list(dict.fromkeys(names))
