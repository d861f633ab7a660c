# SPDX-License-Identifier: BSD-3-Clause
"""How latency splits over the places of a path (docs/design/anatomy.md): frozen records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

PartKind = Literal["tester", "switch", "hosting", "vnf"]
"""``hosting``: a hop to or from a VNF that is no task of the tester, with all that its hosting puts in the way."""


@dataclass(frozen=True, slots=True)
class AnatomyPart:
    """One part of the way of the joined probes: how long they were in it (docs/design/anatomy.md).

    ``name``: ``generator``, ``hop 1``, ``vnf0``, ..., ``monitor``; ``hops 1 to 2`` around a VNF with a clock of its
    own, ``hops 1 to 2, vnf0`` where it tells no times. ``histogram`` as in LatencyRecord; the mean is exact.
    ``low_ns`` and ``high_ns`` bound the mean time that is this part's own: at the end of a hop a probe may have waited
    for the poll that found it, since the last poll that found nothing.
    """

    name: str
    kind: PartKind
    mean_ns: float
    p50_ns: float
    p99_ns: float
    histogram: str
    low_ns: float
    high_ns: float


@dataclass(frozen=True, slots=True)
class Anatomy:
    """The latency of one direction of a trial, split along the path. The parts of a probe add up to its latency.

    ``not_joined``: probes that have no stamp at every task of the path, by reason. ``problem``: why the parts do not
    stand for the whole; empty if they do.
    """

    name: str
    joined: int
    not_joined: dict[str, int]
    parts: tuple[AnatomyPart, ...]
    reported_mean_ns: float | None
    """Mean latency of all probes of the direction, as the monitor reported it."""
    problem: str = ""

    @property
    def sum_ns(self) -> float:
        """Return the sum of the means of the parts."""
        return sum(part.mean_ns for part in self.parts)
