# SPDX-License-Identifier: BSD-3-Clause
"""Latency against load: inversion (higher at a low load) and knee (the load above which it rises sharply)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise

from planebench.model.results import LoadFinding

MIN_INVERSION = 0.10
"""A lower load must be slower by more than this share of the higher load's p50."""
KNEE_FACTOR = 2.0
"""The plateau ends where p50 exceeds this many times the least p50 of the curve."""
MIN_KNEE_LOADS = 5
"""Of fewer loads the middle one would be the knee: they show no plateau and its end."""


@dataclass(frozen=True, slots=True)
class LoadPoint:
    """The p50 of the merged trials at one load.

    ``spread`` is (max - min) / median of their p50 if there are several.
    """

    load: str
    p50_us: float
    spread: float | None = None


def load_finding(curve: Sequence[LoadPoint]) -> LoadFinding | None:
    """Return inversion and knee of the accepted loads, in rising order; None for fewer than two loads."""
    if len(curve) < 2:
        return None
    pair = _strongest_inversion(curve)
    return LoadFinding(
        inversion=(pair[0].load, pair[1].load) if pair else None,
        inversion_ratio=_ratio(*pair) if pair else None,
        knee=_knee(curve),
    )


def _strongest_inversion(curve: Sequence[LoadPoint]) -> tuple[LoadPoint, LoadPoint] | None:
    """Return the lower and the higher load with the highest ratio of p50 beyond noise: frames waited for a batch."""
    inverted = [(low, high) for low, high in combinations(curve, 2) if _ratio(low, high) - 1 > _noise(low, high)]
    return max(inverted, key=lambda pair: _ratio(*pair), default=None)


def _ratio(low: LoadPoint, high: LoadPoint) -> float:
    return low.p50_us / high.p50_us if high.p50_us > 0 else 1.0


def _noise(low: LoadPoint, high: LoadPoint) -> float:
    return max(MIN_INVERSION, low.spread or 0.0, high.spread or 0.0)


def _knee(curve: Sequence[LoadPoint]) -> str | None:
    """Return the highest load on the plateau whose next load is above it; None if latency stays on the plateau."""
    if len(curve) < MIN_KNEE_LOADS:
        return None
    limit = KNEE_FACTOR * min(point.p50_us for point in curve)
    pairs = pairwise(curve)
    ends = [here.load for here, above in pairs if here.p50_us <= limit < above.p50_us]
    return ends[-1] if ends else None
