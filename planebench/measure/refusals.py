# SPDX-License-Identifier: BSD-3-Clause
"""The points of a plan that their switches refuse, found before anything is started."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from planebench.model.plan import Plan
from planebench.model.records import Point
from planebench.plans.expand import max_frame_bytes
from planebench.wiring.adapter import Adapter, Situation, refusal_of


def refusals(
    plan: Plan, points: Sequence[Point], adapters: Mapping[str, Adapter], *, hugepages: bool
) -> dict[Point, str]:
    """Return the refused points with the reason: they are reported as not supported and take no time."""
    largest, found = max_frame_bytes(plan), {}
    for point in points:
        situation = Situation(
            point.scenario, point.wire, point.chain_length, hugepages, largest, point.chain, hosted=is_hosted(point)
        )
        if untaken := takes_no_updates(plan, point, adapters[point.switch]):
            found[point] = untaken
        if why := refusal_of(adapters[point.switch], situation):
            found[point] = f"not supported: {why}"
    return found


def is_hosted(point: Point) -> bool:
    """Return whether a VNF of the point is no task of the tester; VNFs side by side always are processes."""
    return any(hosting != "process" for hosting in point.hostings)


def takes_no_updates(plan: Plan, point: Point, adapter: Adapter) -> str:
    """Return why traffic with FIB updates cannot be sent at a point; empty if it can, or has none."""
    profile = plan.profile(point.traffic)
    if profile.updates is None or (point.side_by_side and adapter.offloads):
        return ""
    return "not supported: traffic with FIB updates needs a switch that forwards in place of its VNFs"
