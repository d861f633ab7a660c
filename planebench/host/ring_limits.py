# SPDX-License-Identifier: BSD-3-Clause
"""The ring sizes that NICs take: DPDK's drivers know them, and planed asks these."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from planebench.host.planed_program import find_planed
from planebench.host.programs import run_tool

TIMEOUT_S = 30.0


@dataclass(frozen=True, slots=True)
class RingLimits:
    """The least and the most descriptors that both the receive and the send rings of a NIC take."""

    least: int
    most: int

    def nearest(self, ring_size: int) -> int:
        """Return the power of two that is nearest to ``ring_size``, itself one, and that the NIC takes."""
        while ring_size < self.least:
            ring_size *= 2
        while ring_size > self.most:
            ring_size //= 2
        return ring_size


def ring_limits(addresses: Sequence[str]) -> Mapping[str, RingLimits]:
    """Return the limits of NICs that are bound for DPDK, by address; those that planed cannot ask are missing."""
    planed = find_planed()
    if planed is None:
        return {}
    done = run_tool([planed, "--ring-limits", ",".join(addresses)], TIMEOUT_S)
    told = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return {it["device"]: RingLimits(it["least"], it["most"]) for it in told}
