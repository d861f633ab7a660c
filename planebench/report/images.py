# SPDX-License-Identifier: BSD-3-Clause
"""Charts as SVG, for a page and of a width in millimetres."""

from __future__ import annotations

import copy
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from typing import Any

import altair as alt
import vl_convert

from planebench.report.charts.figure import TIP_MARK

_SVG = "http://www.w3.org/2000/svg"

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
"""What an element has that does not say otherwise; the size of text is that of the page's style sheet."""


def inline_svg(chart: alt.TopLevelMixin, title: str, prefix: str) -> str:
    """A chart as an SVG element for an HTML page: accessible name, tooltips, ids that start with ``prefix``.

    Our description of a mark becomes a <title> child, which browsers show as a tooltip; what only bloats is dropped.
    """
    svg = vl_convert.vegalite_to_svg(chart.to_dict(validate=False))
    ET.register_namespace("", _SVG)
    root = ET.fromstring(_CONTROL.sub("?", svg))
    for element in root.iter():
        _simplify(element)
        _prefix_ids(element, prefix)
    _drop_empty(root)
    root.set("role", "img")
    root.set("aria-label", title)
    return _NUMBER.sub(lambda m: f"{float(m.group()):.2f}", ET.tostring(root, encoding="unicode"))


def _simplify(element: ET.Element) -> None:
    label = element.attrib.pop("aria-label", None)
    if label and label.startswith(TIP_MARK):
        tip = ET.SubElement(element, f"{{{_SVG}}}title")
        tip.text = label.removeprefix(TIP_MARK)
    for name in _DROPPED:
        element.attrib.pop(name, None)
    for name, value in _USUAL.items():
        if element.get(name) == value:
            del element.attrib[name]


def _prefix_ids(element: ET.Element, prefix: str) -> None:
    """Clip paths of several charts on one page would otherwise share their ids."""
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
    """The chart as an SVG text of exactly this width; of its own width for None."""
    svg = vl_convert.vegalite_to_svg(spec)
    if width_mm is None:
        return svg
    lacking = width_mm * PX_PER_MM - _size_px(svg)[0]
    fitted = vl_convert.vegalite_to_svg(_widened(spec, lacking))
    return scaled(fitted, width_mm * PX_PER_MM / _size_px(fitted)[0])


def scaled(svg: str, factor: float) -> str:
    """The same drawing, larger or smaller."""
    width, height = _size_px(svg)
    return _SIZE.sub(rf'<svg\1 width="{width * factor:.2f}" height="{height * factor:.2f}"', svg, count=1)


def _widened(spec: Spec, by_px: float) -> Spec:
    """The chart with its plots wider (or narrower) by so much together; side by side they share it."""
    made = copy.deepcopy(spec)
    for plot in _plots(made):
        plot["width"] = max(MIN_PLOT_PX, plot["width"] + by_px / _beside(made))
    return made


def _plots(spec: Spec) -> Iterator[Spec]:
    """Every part of a chart that has a width in px."""
    if isinstance(spec.get("width"), (int, float)):
        yield spec
    for name in ("spec", "concat"):
        inner = spec.get(name, ())
        for part in (inner,) if isinstance(inner, dict) else inner:
            yield from _plots(part)


def _beside(spec: Spec) -> int:
    """How many plots stand side by side."""
    return min(len(spec.get("concat", ())), int(spec.get("columns", 1))) or 1


def _size_px(svg: str) -> tuple[float, float]:
    found = _SIZE.search(svg)
    assert found, "vl-convert draws an SVG with its size in px"
    return float(found[2]), float(found[3])
