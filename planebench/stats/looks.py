# SPDX-License-Identifier: BSD-3-Clause
"""What a sequential campaign measures next: the comparisons of a run that are still open."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from planebench.model.records import Point
from planebench.stats.ranking import cell_id

if TYPE_CHECKING:
    from planebench.stats.derived import Derived


@dataclass(frozen=True, slots=True)
class Open:
    """An open comparison of throughputs. ``point`` is without its switch, ``labels`` are the switches of the pair.

    ``more_starts``: how many more starts of each would probably decide it; None where that is not known.
    """

    point: Point
    labels: tuple[str, str]
    more_starts: int | None


def still_open(derived: Derived) -> tuple[Open, ...]:
    """Return the comparisons that more starts may decide, in the order of the results."""
    points = {cell_id(result.point): replace(result.point, switch="") for result in derived.results}
    return tuple(
        Open(points[c.point], (c.a, c.b), c.more_starts)
        for c in derived.comparisons
        if c.metric == "throughput" and c.answer in ("open", "untested")
    )
