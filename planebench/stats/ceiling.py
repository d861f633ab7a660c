# SPDX-License-Identifier: BSD-3-Clause
"""The calibrated limits of the tester at a point (METHODOLOGY, docs/methodology.md section 9)."""

from __future__ import annotations

from planebench.model.header import Calibration, LatencyFloor
from planebench.model.reasons import Reason, ReasonCode
from planebench.model.records import Point
from planebench.model.scenario import scenario_named
from planebench.stats.histogram import decode, percentile_ns

CEILING_SHARE = 0.10
"""A rate within this share of the tester's ceiling says as much of the tester as of the switch."""


def tester_ceiling_pps(calibration: Calibration | None, point: Point) -> float | None:
    """Return the highest rate of the tester between the ends of this point without a switch; None if unknown.

    In loopback the VNFs may share the tester's core: the ceiling is then above what the tester can really do. With a
    CPU for each end, two directions may do more than the one that was calibrated: nothing is said of them. Nor of a
    traffic profile: only plain frames are calibrated, and other frames cost the tester other cycles.
    """
    if calibration is None or _profiled(point) or (calibration.tester_cpus > 1 and point.direction == "bidirectional"):
        return None
    a, b = scenario_named(point.scenario).ends
    sender, receiver = (b, a) if point.direction == "reversed" else (a, b)
    return calibration.ceiling_pps(point.frame_size_bytes, sender, receiver)


def _profiled(point: Point) -> bool:
    """Return whether the frames of a point are not plain: those to many VNFs have addresses in turn."""
    return bool(point.traffic) or point.side_by_side


def latency_floor(calibration: Calibration | None, point: Point, clock: str = "software") -> LatencyFloor | None:
    """Return the latency baseline of a clock at this point; None if it was not measured, as with a traffic profile."""
    return None if calibration is None or _profiled(point) else calibration.floor(point.frame_size_bytes, clock)


def clock_floor_ns(calibration: Calibration | None, point: Point, clock: str) -> float | None:
    """Return the least latency that a clock showed of the tester alone; None if it was not measured."""
    floor = latency_floor(calibration, point, clock)
    return None if floor is None else least_ns(floor)


def least_ns(floor: LatencyFloor) -> float | None:
    """Return the least latency of a baseline; None if it has no histogram."""
    counts = decode(floor.histogram) if floor.histogram else None
    return None if counts is None or not counts.any() else percentile_ns(counts, 0.0)


def near_ceiling(rate_pps: float, ceiling_pps: float | None) -> Reason | None:
    """Return the reason if this rate may be the limit of the tester; None if it is lower, or no limit is known."""
    if ceiling_pps is None or rate_pps < (1 - CEILING_SHARE) * ceiling_pps:
        return None
    return Reason(
        ReasonCode.TESTER_CEILING,
        f"{rate_pps / 1e6:.2f} Mpps is within {CEILING_SHARE:.0%} of the calibrated tester maximum "
        f"({ceiling_pps / 1e6:.2f} Mpps): lower bound",
        {"pps": rate_pps, "ceiling_pps": ceiling_pps},
    )
