# SPDX-License-Identifier: BSD-3-Clause
"""A chart drawn to a width in millimetres: its plots take what its labels leave, so that text keeps its size."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from typing import Any

import vl_convert

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
