# SPDX-License-Identifier: BSD-3-Clause
"""A chart as SVG text: scales, axes, and marks with the words that a reader sees at the pointer.

It knows nothing of switches and results.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

INK, MUTED, GRID = "#22303c", "#66737f", "#dfe5ea"
"""Text, secondary text and lines in charts. The page swaps exactly these three values in dark mode."""

ChartRow = dict[str, Any]
"""What a mark is drawn from. ``cell``: the name of its test point, ``tip``: the words that a reader sees."""

FONT = "Helvetica, Arial, sans-serif"
TEXT_PX = 11
"""Size of text, also where a chart is drawn wider or narrower."""
CHARACTER_PX = 6.1
"""About the width of a character."""
TICKS_MAX, LOG_TICKS_MAX = 6, 9

_PATHS = {
    "square": "M-{s} -{s}h{t}v{t}h-{t}z",
    "triangle-up": "M0 -{d}L{d} {r}H-{d}z",
    "diamond": "M0 -{d}L{d} 0L0 {d}L-{d} 0z",
    "cross": "M-{d} -1.5h{u}v-{u}h3v{u}h{u}v3h-{u}v{u}h-3v-{u}h-{u}z",
    "triangle-down": "M0 {d}L{d} -{r}H-{d}z",
    "triangle-right": "M{d} 0L-{r} {d}V-{d}z",
    "triangle-left": "M-{d} 0L{r} {d}V-{d}z",
}


@dataclass(frozen=True, slots=True)
class Scale:
    """From the values ``low`` to ``high`` to the pixels ``start`` to ``end``; a value outside is drawn at the edge."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def __call__(self, value: float) -> float:
        low, high, value = (math.log10(max(it, 1e-12)) if self.log else it for it in (self.low, self.high, value))
        share = (value - low) / (high - low) if high != low else 0.5
        return self.start + min(max(share, 0.0), 1.0) * (self.end - self.start)

    def ticks(self) -> list[float]:
        """Return round values: on a log axis in 1, 2, 5 steps within less than three decades, else powers of ten."""
        low, high = sorted((self.low, self.high))
        if self.log:
            steps = (1, 2, 5) if high / low < 1000 else (1,)
            found = [step * 10.0**power for power in range(-7, 9) for step in steps]
        else:
            rough = (high - low) / (TICKS_MAX - 1) or 1.0
            power = 10.0 ** math.floor(math.log10(rough))
            step = next(step * power for step in (1, 2, 5, 10) if step * power >= rough * 0.999)
            found = [number * step for number in range(math.ceil(low / step), math.floor(high / step) + 1)]
        found = [tick for tick in found if low * 0.9999 <= tick <= high * 1.0001]
        return found[:: math.ceil(len(found) / (LOG_TICKS_MAX if self.log else TICKS_MAX)) or 1]


def tick_words(value: float) -> str:
    """Return the number at a tick, thousands as ``1k``."""
    return f"{value / 1000:g}k" if abs(value) >= 1000 else f"{value:.3g}"


class Canvas:
    """The elements of a drawing, in the order in which they are drawn."""

    def __init__(self, width: float, height: float) -> None:
        self.width, self.height = width, height
        self.elements: list[str] = []

    def add(self, tag: str, about: ChartRow | None = None, words: str = "", **attributes: Any) -> None:
        """Add an element; ``about`` is the row that a mark stands for: its result or switch, and its words."""
        written = {name.replace("_", "-"): _number(it) for name, it in attributes.items() if it not in (None, "")}
        content = escape(words)
        if about is not None:
            written["data-about"] = about.get("cell") or about.get("switch") or ""
            content += f"<title>{escape(about['tip'])}</title>" if "tip" in about else ""
        said = "".join(f' {name}="{escape(it)}"' for name, it in written.items())
        self.elements.append(f"<{tag}{said}>{content}</{tag}>" if content else f"<{tag}{said}/>")

    def text(self, x: float, y: float, words: str, anchor: str = "start", fill: str = INK, **more: Any) -> None:
        """Add a line of text, whose base line is at ``y``."""
        self.add("text", None, words, x=x, y=y, text_anchor="" if anchor == "start" else anchor, fill=fill, **more)

    def line(
        self, points: Iterable[tuple[float, float]], stroke: str, about: ChartRow | None = None, **more: Any
    ) -> None:
        """Add a line from point to point."""
        d = "M" + "L".join(f"{_number(x)} {_number(y)}" for x, y in points)
        self.add("path", about, d=d, stroke=stroke, fill="none", **more)

    def point(
        self,
        x: float,
        y: float,
        shape: str,
        color: str,
        about: ChartRow | None = None,
        r: float = 3.2,
        hollow: bool = False,
    ) -> None:
        """Add a point of a shape; a hollow one is a bound, or is not compared."""
        look = {"fill": "none", "stroke": color, "stroke_width": 1.4} if hollow else {"fill": color}
        if shape == "circle":
            self.add("circle", about, cx=x, cy=y, r=r, **look)
            return
        sizes = {"r": r, "d": 1.25 * r, "s": 0.9 * r, "t": 1.8 * r, "u": 1.25 * r - 1.5}
        d = _PATHS[shape].format(**{name: _number(size) for name, size in sizes.items()})
        self.add("path", about, d=d, transform=f"translate({_number(x)} {_number(y)})", **look)

    def whisker(self, scale: Scale, low: float, high: float, across: float, upright: bool, stroke: str) -> None:
        """Add an interval at ``across``; an end outside of the axis is cut, and has the head of an arrow."""
        ends = [scale(low), scale(high)]
        place = [(across, end) if upright else (end, across) for end in ends]
        self.line(place, stroke, stroke_width=1.2)
        for (x, y), out, way in zip(place, (low < scale.low, high > scale.high), (1, -1), strict=True):
            if out:
                turned = way if upright else -way
                corners = [(-3, 4 * turned), (0, 0), (3, 4 * turned)]
                self.line([(x + a, y + b) if upright else (x + b, y + a) for a, b in corners], stroke, stroke_width=1.2)

    def axis(
        self,
        scale: Scale,
        title: str,
        place: float,
        across: float,
        upright: bool,
        names: Mapping[float, str] | None = None,
    ) -> None:
        """Add the ticks of an axis at ``place`` with grid lines to ``across``, and its title."""
        ticks = list(names) if names else scale.ticks()
        lines = "".join(
            f"M{_number(place)} {_number(scale(tick))}H{_number(across)}"
            if upright
            else f"M{_number(scale(tick))} {_number(place)}V{_number(across)}"
            for tick in ticks
        )
        self.add("path", d=lines, stroke=GRID, fill="none")
        labels = []
        for tick in ticks:
            at, words = scale(tick), names[tick] if names else tick_words(tick)
            x, y = (place - 5, at + 4) if upright else (at, place + 14)
            labels.append(f'<text x="{_number(x)}" y="{_number(y)}">{escape(words)}</text>')
        anchor = "end" if upright else "middle"
        self.elements.append(f'<g text-anchor="{anchor}" fill="{MUTED}">{"".join(labels)}</g>')
        if upright:
            self.text(0, scale.end - 8, title, fill=MUTED)
        else:
            self.text((scale.start + scale.end) / 2, place + 29, title, "middle", MUTED)

    def svg(self, title: str) -> str:
        """Return the drawing as an SVG element with an accessible name."""
        size = f"{_number(self.width)} {_number(self.height)}"
        width, height = size.split()
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {size}" '
            f'font-size="{TEXT_PX}" role="img" aria-label="{escape(title)}">{"".join(self.elements)}</svg>'
        )


def _number(value: Any) -> str:
    """Return a number with one decimal at most, two below ten; anything else as it is."""
    return f"{value:.1f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)


def text_px(words: Iterable[str]) -> float:
    """Return about the width of the longest of some texts."""
    return max((len(it) for it in words), default=0) * CHARACTER_PX


def spread(wanted: Mapping[str, float], gap: float) -> dict[str, float]:
    """Return positions at least ``gap`` apart in the same order; each group of neighbors is centered on its places."""
    groups: list[tuple[list[str], float]] = []
    for name in sorted(wanted, key=lambda n: wanted[n]):
        groups.append(([name], wanted[name]))
        while len(groups) > 1:
            (before, middle), (after, next_middle) = groups[-2:]
            if next_middle - middle >= gap * (len(before) + len(after)) / 2:
                break
            total = len(before) + len(after)
            groups[-2:] = [(before + after, (middle * len(before) + next_middle * len(after)) / total)]
    return {n: centre + (i - (len(names) - 1) / 2) * gap for names, centre in groups for i, n in enumerate(names)}


def ends(values: Sequence[float], log: bool = False) -> tuple[float, float]:
    """Return the ends of an axis near its data: from 0 of a linear one, a little beyond them of a log one."""
    low, high = min(values), max(values)
    return (low / 1.15, high * 1.15) if log else (0.0, high * 1.08 or 1.0)
