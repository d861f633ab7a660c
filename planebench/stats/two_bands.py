# SPDX-License-Identifier: BSD-3-Clause
"""Two bands at one core-to-core latency: rates in two narrow groups, far apart (DESIGN section 4)."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

MIN_GROUP = 2
"""One rate alone is an outlier, not a band."""
MIN_DIFFERENCE = 0.10
"""The median of the upper group must be above that of the lower by more than this share."""
MAX_SPREAD_OF_GAP = 1 / 3
"""Each group must be narrower than this share of the gap between the groups."""


@dataclass(frozen=True, slots=True)
class TwoBands:
    """The two groups as positions in the list of rates, and their medians in packets per second."""

    upper: tuple[int, ...]
    lower: tuple[int, ...]
    upper_pps: float
    lower_pps: float

    def words(self, band: str | None, starts: Sequence[int]) -> str:
        """Return medians and counts of both groups in one sentence. ``band`` and ``starts`` are those of the trials."""
        where = "where the core-to-core latency is unknown" if band is None else "at the same core-to-core latency"
        why = "; by start of the switch" if self._by_start(starts) else ""
        return (
            f"two bands {where}: {self.upper_pps / 1e6:.3g} Mpps in {len(self.upper)} trials, "
            f"{self.lower_pps / 1e6:.3g} in {len(self.lower)}{why}"
        )

    def _by_start(self, starts: Sequence[int]) -> bool:
        """Return whether every start of the switch has all its rates in one group."""
        return not {starts[i] for i in self.upper} & {starts[i] for i in self.lower}


def two_bands(rates_pps: Sequence[float]) -> TwoBands | None:
    """Split the rates at the largest gap; None unless both groups are large enough, far apart, and narrower than the
    gap."""
    order = sorted(range(len(rates_pps)), key=rates_pps.__getitem__)
    if len(order) < 2 * MIN_GROUP:
        return None
    gaps = [rates_pps[high] - rates_pps[low] for low, high in pairwise(order)]
    gap = max(gaps)
    cut = gaps.index(gap) + 1
    lower, upper = order[:cut], order[cut:]
    if min(len(lower), len(upper)) < MIN_GROUP:
        return None
    widest = max(rates_pps[group[-1]] - rates_pps[group[0]] for group in (lower, upper))
    low, high = (statistics.median(rates_pps[i] for i in group) for group in (lower, upper))
    if widest >= MAX_SPREAD_OF_GAP * gap or high - low <= MIN_DIFFERENCE * low:
        return None
    return TwoBands(tuple(sorted(upper)), tuple(sorted(lower)), high, low)
