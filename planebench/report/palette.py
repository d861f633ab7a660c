# SPDX-License-Identifier: BSD-3-Clause
"""Colours. One a switch, the same in every chart of a run; each reads on white and on near-black (contrast 3 : 1)."""

from __future__ import annotations

from collections.abc import Sequence

SWITCH_COLOURS = (
    "#2878d0",  # blue
    "#d9731a",  # orange
    "#199473",  # green
    "#bf4f9b",  # magenta
    "#8068cf",  # violet
    "#a98600",  # ochre
    "#d64545",  # red
    "#3494ab",  # teal
    "#7b8794",  # grey
    "#96704e",  # brown
)

SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-right", "triangle-left")
"""Of points, by position of their switch like the colours."""

PART_COLOURS = {"tester": "#7b8794", "switch hops": "#2878d0", "hops with hosting": "#8068cf", "VNFs": "#d9731a"}
"""Parts of a latency, by whose they are."""

INK, MUTED, GRID = "#22303c", "#66737f", "#dfe5ea"
"""Text, secondary text and lines in charts. The page swaps exactly these three values in dark mode."""

PARTS = ("#3a6ea5", "#199473", "#d9731a", "#8068cf", "#a98600", "#bf4f9b")
"""Of a stacked bar: the whole first, then its parts. Not colours of switches: there, the rows have their names."""


def switch_colours(labels: Sequence[str]) -> dict[str, str]:
    """Label -> colour, by position; after ten switches the colours start again (labels still tell them apart)."""
    return {label: SWITCH_COLOURS[i % len(SWITCH_COLOURS)] for i, label in enumerate(labels)}
