# SPDX-License-Identifier: BSD-3-Clause
"""Two bands at one core-to-core latency: rates in two narrow groups, far apart (DESIGN section 4)."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from planebench.model.records import Trial
from planebench.stats.shared_cores import ALONE, OWNERS, core_shares

MIN_GROUP = 2
"""One rate alone is an outlier, not a band."""
MIN_DIFFERENCE = 0.10
"""The median of the upper group must be above that of the lower by more than this share."""
MAX_SPREAD_OF_GAP = 1 / 3
"""Each group must be narrower than this share of the gap between the groups."""
MOST = 0.8
"""The share of the upper group with a core alone, and of the lower one with a shared core, that explains them."""


@dataclass(frozen=True, slots=True)
class TwoBands:
    """The two groups as positions in the list of rates, and their medians in packets per second."""

    upper: tuple[int, ...]
    lower: tuple[int, ...]
    upper_pps: float
    lower_pps: float

    def words(self, band: str | None, trials: Sequence[Trial]) -> str:
        """Return medians and counts of both groups in one sentence. ``band`` is that of the trials of these rates."""
        where = "where the core-to-core latency is unknown" if band is None else "at the same core-to-core latency"
        return (
            f"two bands {where}: {self.upper_pps / 1e6:.3g} Mpps in {len(self.upper)} trials, "
            f"{self.lower_pps / 1e6:.3g} in {len(self.lower)}{self._why(trials)}"
        )

    def _why(self, trials: Sequence[Trial]) -> str:
        shares = core_shares(trials)
        for place, owner in enumerate(OWNERS):
            alone = [shares[it.index][place] >= ALONE if it.index in shares else None for it in trials]
            if self._most(self.upper, alone, True) and self._most(self.lower, alone, False):
                return f"; by another hyperthread on the core of the {owner}"
        return "; by start of the switch" if self._by_start([trial.start for trial in trials]) else ""

    @staticmethod
    def _most(group: Sequence[int], alone: Sequence[bool | None], wanted: bool) -> bool:
        return sum(alone[i] is wanted for i in group) >= MOST * len(group)

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
