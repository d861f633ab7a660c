# SPDX-License-Identifier: BSD-3-Clause
"""The colors of charts for readers who see colors otherwise, in black and white, and on light and dark ground."""

import math
import re
from collections.abc import Callable, Sequence
from importlib import resources
from itertools import combinations, pairwise

import pytest
from rich_run import rich

from planebench.report.figure import DARK_COLORS, PART_COLORS, SWITCH_COLORS, shape_of, switch_colors
from planebench.report.figures import make_figures
from planebench.report.svg import INK, MUTED

WHITE, NEAR_BLACK = "#ffffff", "#171c21"
PALETTES = pytest.mark.parametrize("palette", [SWITCH_COLORS, DARK_COLORS], ids=["light", "dark"])

SEEN = {
    "usual": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protanopia": (
        (0.152286, 1.052583, -0.204868),
        (0.114503, 0.786281, 0.099216),
        (-0.003882, -0.048116, 1.051998),
    ),
    "deuteranopia": (
        (0.367322, 0.860646, -0.227968),
        (0.280085, 0.672501, 0.047413),
        (-0.011820, 0.042940, 0.968881),
    ),
    "tritanopia": (
        (1.255528, -0.076749, -0.178779),
        (-0.078411, 0.930809, 0.147602),
        (0.004733, 0.691367, 0.303900),
    ),
}
"""Machado, Oliveira, Fernandes 2009: what is seen of linear RGB, at severity 1."""
TO_XYZ = ((0.4124564, 0.3575761, 0.1804375), (0.2126729, 0.7151522, 0.0721750), (0.0193339, 0.1191920, 0.9503041))
D65 = (0.95047, 1.0, 1.08883)

Vector = tuple[float, ...]


@PALETTES
@pytest.mark.parametrize("vision", SEEN)
def test_all_colors_differ_whatever_the_vision(palette: Sequence[str], vision: str) -> None:
    assert len(palette) == len(SWITCH_COLORS) == 10
    seen = [_lab(_times(SEEN[vision], _linear(color))) for color in palette]
    assert min(math.dist(a, b) for a, b in combinations(seen, 2)) > 15


@PALETTES
def test_the_first_six_differ_in_a_print_without_colors(palette: Sequence[str]) -> None:
    grey = [_lab(_linear(color))[0] for color in palette]
    assert _least_gap(grey[:4]) > 11.5
    assert _least_gap(grey[:6]) > 5.5
    assert set(PART_COLORS.values()) == set(SWITCH_COLORS[:4])


def test_points_tell_eight_switches_apart_without_colors() -> None:
    assert len({shape_of(color) for color in SWITCH_COLORS}) == 8


def test_a_switch_has_one_color_in_every_run() -> None:
    few, many = (
        switch_colors(["ovs-dpdk", "mine", "planed"]),
        switch_colors(["testpmd", "vpp", "planed", "mine", "ovs-dpdk"]),
    )
    assert all(few[label] == many[label] for label in few)
    labels = [f"s{i}" for i in range(12)]
    assert len(set(switch_colors(labels[:10]).values())) == 10, "no two have the same while there are others"
    assert set(switch_colors(labels)) == set(labels)


@pytest.mark.parametrize(("palette", "ground"), [(SWITCH_COLORS, WHITE), (DARK_COLORS, NEAR_BLACK)])
def test_colors_have_contrast_with_their_ground(palette: Sequence[str], ground: str) -> None:
    assert min(_contrast(color, ground) for color in palette) >= 3


def test_text_of_charts_has_contrast_in_light_and_dark() -> None:
    css = resources.files("planebench.report").joinpath("report.css").read_text(encoding="utf-8")
    light, dark = (dict(re.findall(r"--([a-z-]+): (#\w{6});", block)) for block in css.split("}")[:2])
    assert (light["ink"], light["muted"], light["paper"], dark["paper"]) == (INK, MUTED, WHITE, NEAR_BLACK)
    for mode in (light, dark):
        words = ("ink", "muted", "link", "good", "bound", "doubt", "bad")
        assert min(_contrast(mode[name], mode["paper"]) for name in words) >= 4.5
        assert _contrast(mode["muted"], mode["ground"]) >= 4.5


def test_text_of_charts_has_the_color_of_text() -> None:
    """Rejected figures, too: they are not drawn pale."""
    kinds = {figure.kind: figure for figure in make_figures(rich())}
    assert len(kinds) >= 6
    for figure in kinds.values():
        svg = figure.svg()
        for attributes in re.findall(r"<text [^>]*>|<g [^>]*>", svg):
            grouped = "<text" in attributes and "fill" not in attributes  # then its group has the color
            assert grouped or re.search(rf'fill="({INK}|{MUTED})"', attributes), (figure.key, attributes)
            assert "opacity" not in attributes, figure.key


def _least_gap(values: Sequence[float]) -> float:
    return min(b - a for a, b in pairwise(sorted(values)))


def _contrast(a: str, b: str) -> float:
    """WCAG 2.1 contrast ratio."""
    bright, dark = sorted((_times(TO_XYZ, _linear(color))[1] for color in (a, b)), reverse=True)
    return (bright + 0.05) / (dark + 0.05)


def _linear(color: str) -> Vector:
    parts = (int(color[i : i + 2], 16) / 255 for i in (1, 3, 5))
    return tuple(c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)


def _times(matrix: Sequence[Vector], vector: Vector) -> Vector:
    return tuple(min(1.0, max(0.0, sum(a * b for a, b in zip(row, vector, strict=True)))) for row in matrix)


def _lab(linear: Vector) -> Vector:
    f: Callable[[float], float] = lambda t: t ** (1 / 3) if t > 216 / 24389 else (24389 / 27 * t + 16) / 116  # noqa: E731
    x, y, z = (f(value / white) for value, white in zip(_times(TO_XYZ, linear), D65, strict=True))
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)
