# SPDX-License-Identifier: BSD-3-Clause
"""Charts as SVG for a page, and as image files."""

from __future__ import annotations

import io
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal

import altair as alt

from planebench.model.errors import UsageError
from planebench.model.run import Run
from planebench.papers.measured import Measured
from planebench.report.chain_figures import chain_figures
from planebench.report.chart_data import TIP_MARK
from planebench.report.charts import FONT
from planebench.report.figure import Figure
from planebench.report.figures import make_figures, overview
from planebench.report.palette import INK
from planebench.report.papers_figures import paper_charts
from planebench.stats.chains import derive_chains
from planebench.stats.results import derive_results

Format = Literal["svg", "png", "pdf"]
FORMATS: tuple[Format, ...] = ("svg", "png", "pdf")

_SVG = "http://www.w3.org/2000/svg"
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f]")
_NUMBER = re.compile(r"-?\d+\.\d{3,}")
_DROPPED = ("aria-hidden", "aria-roledescription", "role", "pointer-events", "class")


def chart_images(run: Run, out_dir: Path, formats: Iterable[str] = ("svg", "png")) -> tuple[Path, ...]:
    """Write every figure of a run, and ``overview``, as ``out_dir/<figure>.<format>`` on white; returns the files.

    Raises UsageError for a format other than svg, png, pdf.
    """
    wanted = tuple(formats)
    for name in wanted:
        if name not in FORMATS:
            raise UsageError(f"image format {name!r} is not known. Give one or more of: {', '.join(FORMATS)}")
    out_dir.mkdir(parents=True, exist_ok=True)
    results, first = derive_results(run), overview(run)
    chains = derive_chains(run, results)
    papers = paper_charts(Measured(run, results, chains))
    parts = chain_figures(chains.latency)
    figures = (*make_figures(run, results), *parts, *papers, *([first] if first else []))
    return tuple(_write(figure, out_dir, name) for figure in figures for name in wanted)


def inline_svg(chart: alt.TopLevelMixin, title: str, prefix: str) -> str:
    """A chart as an SVG element for an HTML page: accessible name, tooltips, ids that start with ``prefix``.

    Our description of a mark becomes a <title> child, which browsers show as a tooltip; what only bloats is dropped.
    """
    out = io.StringIO()
    chart.save(out, format="svg")
    ET.register_namespace("", _SVG)
    root = ET.fromstring(_CONTROL.sub("?", out.getvalue()))
    for element in root.iter():
        _simplify(element)
        _prefix_ids(element, prefix)
    _drop_empty(root)
    root.set("role", "img")
    root.set("aria-label", title)
    return _NUMBER.sub(lambda m: f"{float(m.group()):.2f}", ET.tostring(root, encoding="unicode"))


def _write(figure: Figure, out_dir: Path, name: str) -> Path:
    path = out_dir / f"{figure.key}.{name}"
    title = alt.Title(figure.full_title, anchor="start", fontSize=13, offset=8, color=INK, font=FONT)
    chart: Any = figure.chart
    chart.properties(title=title, background="white").save(path, format=name, scale_factor=2 if name == "png" else 1)
    return path


def _simplify(element: ET.Element) -> None:
    label = element.attrib.pop("aria-label", None)
    if label and label.startswith(TIP_MARK):
        tip = ET.SubElement(element, f"{{{_SVG}}}title")
        tip.text = label.removeprefix(TIP_MARK)
    for name in _DROPPED:
        element.attrib.pop(name, None)


def _prefix_ids(element: ET.Element, prefix: str) -> None:
    """Clip paths of several charts on one page would otherwise share their ids."""
    for name, value in element.attrib.items():
        if name == "id":
            element.set(name, f"{prefix}-{value}")
        elif "url(#" in value:
            element.set(name, value.replace("url(#", f"url(#{prefix}-"))


def _drop_empty(parent: ET.Element) -> None:
    """Remove frames without area and groups without content."""
    for child in list(parent):
        _drop_empty(child)
        tag = child.tag.rpartition("}")[2]
        invisible = tag == "path" and (child.get("display") == "none" or child.get("d", "").endswith("h0v0h0Z"))
        if invisible or (tag == "g" and len(child) == 0):
            parent.remove(child)
