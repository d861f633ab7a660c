# SPDX-License-Identifier: BSD-3-Clause
"""Charts as SVG for a page. As image files: image_files.py."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import altair as alt
import vl_convert

from planebench.report.chart_data import TIP_MARK

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
