# SPDX-License-Identifier: BSD-3-Clause
"""The random part of one trial, drawn whole and in one order, so that a key changes only its own effect."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Literal

from planebench.model.records import Point
from planebench.sim.spec import SimSpec

Band = Literal["near", "far"]

CAPACITY_FLOOR = 0.05
"""However bad the luck, this share of the capacity is left."""


@dataclass(frozen=True, slots=True)
class Draw:
    """The random values of one trial. ``rng`` is for latency, which needs many draws."""

    capacity_pps: float
    stalls: bool
    disturbed: bool
    dies: bool
    before: Band
    after: Band
    shared: bool
    rng: random.Random


def draw(spec: SimSpec, seed: int, point: Point, start: int, n: int) -> Draw:
    """Return the random values of trial ``n`` of a point after start ``start``; same arguments, same values."""
    rng = random.Random(f"{seed}/{point.point_id}/{start}/{n}")
    noise, stall, disturbed, dies, far, change = (rng.gauss(0.0, 1.0), *(rng.random() for _ in range(5)))
    before: Band = "far" if far < spec.far_share else "near"
    changes = change < spec.band_change_share
    after: Band = "far" if changes else before
    mode, luck = _of_start(spec, seed, point, start)
    capacity = spec.capacity * max(CAPACITY_FLOOR, (1 + spec.noise * noise) * luck)
    capacity *= spec.modes if mode else 1.0
    shared = random.Random(f"{seed}/{point.point_id}/{start}/{n}/shared").random() < spec.shared_share
    capacity *= spec.shared_ratio if shared else 1.0
    ratios = [spec.far_ratio if band == "far" else 1.0 for band in ("near" if changes else before, after)]
    return Draw(
        capacity_pps=capacity * sum(ratios) / 2,
        stalls=stall < spec.stall_share,
        disturbed=disturbed < max(spec.disturbed_share, spec.mode_disturbed if mode else 0.0),
        dies=dies < spec.dies_share,
        before="near" if changes else before,
        after=after,
        shared=shared,
        rng=rng,
    )


def _of_start(spec: SimSpec, seed: int, point: Point, start: int) -> tuple[bool, float]:
    """Return what a start decides, like memory placement or address hashing: second mode or not, and a capacity ratio.

    All points of a topology share a start.
    """
    rng = random.Random(f"{seed}/{point.switch}/{point.scenario_label}/{start}/mode")
    return rng.random() < spec.mode_share, max(CAPACITY_FLOOR, 1 + spec.start_noise * rng.gauss(0.0, 1.0))
