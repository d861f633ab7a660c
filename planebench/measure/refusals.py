# SPDX-License-Identifier: BSD-3-Clause
"""Which points of a plan its switches refuse, before anything is started."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from planebench.model.records import Point
from planebench.plans import Plan, max_frame_bytes
from planebench.switches.base import Situation, SwitchAdapter, refusal_of


def refusals(
    plan: Plan, points: Sequence[Point], adapters: Mapping[str, SwitchAdapter], *, hugepages: bool
) -> dict[Point, str]:
    """The points that are refused, and why: they are told as not supported, and take no time."""
    largest, found = max_frame_bytes(plan), {}
    for point in points:
        situation = Situation(point.scenario, point.wire, point.chain_length, hugepages, largest, point.chain)
        if why := refusal_of(adapters[point.switch], situation):
            found[point] = f"not supported: {why}"
    return found
