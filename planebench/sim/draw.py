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
FOREIGN_NOISE = 0.02
"""Standard deviation of the capacity beside foreign load, per time that the pollers had: caches are cold after it."""


@dataclass(frozen=True, slots=True)
class Draw:
    """The random values of one trial. ``rng`` is for latency, ``host`` for when pollers stood: both need many draws."""

    capacity_pps: float
    stalls: bool
    disturbed: bool
    dies: bool
    band: Band
    shared: bool
    rng: random.Random
    host: random.Random


def draw(spec: SimSpec, seed: int, point: Point, start: int, n: int, block: int = 0) -> Draw:
    """Return the random values of trial ``n`` of a point after start ``start``; same arguments, same values.

    The distance of the cores is that of a ``block``, of all switches alike: hosts keep it for seconds to minutes.
    """
    rng, host = (random.Random(f"{seed}/{point.point_id}/{start}/{n}{of}") for of in ("", "/host"))
    noise, stall, disturbed, dies = (rng.gauss(0.0, 1.0), *(rng.random() for _ in range(3)))
    far = random.Random(f"{seed}/{point.scenario_label}/{block}/band").random() < spec.far_share
    mode, luck = _of_start(spec, seed, point, start)
    capacity = spec.capacity * max(CAPACITY_FLOOR, (1 + spec.noise * noise) * luck)
    capacity *= spec.modes if mode else 1.0
    shared = random.Random(f"{seed}/{point.point_id}/{start}/{n}/shared").random() < spec.shared_share
    capacity *= (spec.shared_ratio if shared else 1.0) * (spec.far_ratio if far else 1.0)
    capacity *= max(CAPACITY_FLOOR, 1 + FOREIGN_NOISE * host.gauss(0.0, 1.0)) if spec.foreign != "none" else 1.0
    return Draw(
        capacity_pps=capacity,
        stalls=stall < spec.stall_share,
        disturbed=disturbed < max(spec.disturbed_share, spec.mode_disturbed if mode else 0.0),
        dies=dies < spec.dies_share,
        band="far" if far else "near",
        shared=shared,
        rng=rng,
        host=host,
    )


def _of_start(spec: SimSpec, seed: int, point: Point, start: int) -> tuple[bool, float]:
    """Return what a start decides, like memory placement or address hashing: second mode or not, and a capacity ratio.

    All points of a topology share a start.
    """
    rng = random.Random(f"{seed}/{point.switch}/{point.scenario_label}/{start}/mode")
    return rng.random() < spec.mode_share, max(CAPACITY_FLOOR, 1 + spec.start_noise * rng.gauss(0.0, 1.0))
