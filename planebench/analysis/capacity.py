# SPDX-License-Identifier: BSD-3-Clause
"""The capacity of a switch that the tester could not saturate, from what its trials cost at different batch sizes."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from planebench.analysis.counting import is_counted, saturating
from planebench.analysis.histogram import decode, percentile_ns
from planebench.analysis.noise import RESOLUTION, Estimate
from planebench.analysis.starts import Blocks, blocks_of
from planebench.model import time_had
from planebench.model.conditions import LOOK_PER_RING
from planebench.model.header import Calibration, LatencyFloor, Run
from planebench.model.reasons import Reason, ReasonCode
from planebench.model.records import Point, Trial
from planebench.model.scenario import scenario_named

FULL_BATCH = 32
"""Frames that a poller of DPDK takes at once, as a rule: for a switch whose manifest names no number."""
ERROR_MAX = 0.25
"""Half of the width of the interval, of the logarithm, beyond which the fit says too little to be printed."""
ROUNDS = 50

Array = np.ndarray[tuple[int], np.dtype[np.float64]]
Groups = np.ndarray[tuple[int], np.dtype[np.intp]]


@dataclass(frozen=True, slots=True)
class Capacity:
    """The capacity in each start, and the error of the fit, which all starts share: an estimate whose mean is 0."""

    blocks: Blocks
    fit: Estimate


@dataclass(frozen=True, slots=True)
class _Fit:
    """The share of a poll in the cost of a frame that comes alone; the variance of that share, and its degrees.

    ``lever``: the mean slope of the saturating trials, less that of their starts. What they cost is in the level and in
    the share, so the errors of these two add up.
    """

    share: float
    variance: float
    degrees: float
    lever: float

    def log_cost(self, batch: float) -> float:
        """Return the logarithm of the cost of a frame, relative to that of one that comes alone."""
        return math.log(1 - self.share + self.share / batch)

    def spared(self, batch: float, look: int) -> float:
        """Return the most by which the logarithm of the cost falls where one poll serves all frames of a ``look``."""
        poll = self.share / batch / (1 - self.share + self.share / batch)
        return -math.log(1 - poll * (1 - batch / look)) if look > batch else 0.0

    def slope(self, batch: float) -> float:
        """Return by how much that changes with the share."""
        return (1 / batch - 1) / (1 - self.share + self.share / batch)


def full_batch(manifest: Mapping[str, str]) -> int:
    """Return the most frames that a poll of a switch finds: the ``burst`` of its manifest, but at most a ring."""
    burst, ring = (re.match(r"\d+", manifest.get(key, "")) for key in ("burst", "ring_size"))
    if burst is None:
        return FULL_BATCH
    return min(int(it[0]) for it in (burst, ring) if it)


def one_look(manifest: Mapping[str, str]) -> int:
    """Return for how many frames a switch looks at the index of a ring once: a batch, or all that a ring holds."""
    ring = re.match(r"\d+", manifest.get("ring_size", ""))
    return int(ring[0]) if ring and manifest.get("index_look") == LOOK_PER_RING else full_batch(manifest)


def capacity_of(
    run: Run, point: Point, trials: Sequence[Trial], counted_as: Sequence[Trial] | None = None
) -> Capacity | None:
    """Return the capacity of a point from its trials, with what the switch says of its batches.

    ``counted_as``: the same trials with other numbers of starts, where a whole run is one observation; the cost of a
    batch is fitted within the starts as they were.
    """
    manifest = next((it.settings for it in run.header.switches if it.label == point.switch), {})
    anchors = saturating(trials if counted_as is None else counted_as).trials
    return capacity(anchors, trials, full_batch(manifest), one_look(manifest))


def capacity(saturated: Sequence[Trial], trials: Sequence[Trial], full: int, look: int = 0) -> Capacity | None:
    """Return the capacity of a point at batches of ``full`` frames; None where the trials do not tell it.

    Busy cycles per packet fall with the batch, because each poll costs the same: cycles = level x (1 - share + share /
    batch). The share is fitted over all usable ``trials``, at whatever load; each start has a level of its own, so a
    slow start does not look like a small batch. The capacity of a start is what its ``saturated`` trials cost, moved
    from the batches that they had to full ones: the nearer these are, the less the fit matters. Cycles divided by the
    busy share, which takes the batch of an unsaturated trial for that at saturation, are as low as a third.

    A switch that waits for its tester looks at the index of a ring for each batch. At capacity the ring is full, and
    one look is enough for ``look`` frames (0: for a batch). How much of a poll is the look, no trial tells: what it
    spares is between nothing and all of the poll. The middle of both is taken; the error has the rest.
    """
    anchors = [t for t in saturated if _is_known(t)]
    if not anchors:
        return None
    fit = _fit([t for t in trials if is_counted(t) and _is_known(t)])
    most = max(full, *(_batch(t) for t in anchors))
    if fit is None:  # batches that are nearly full need none: a frame costs less by some part of the ratio
        gains = {t.index: math.log(most / _batch(t)) / 2 for t in anchors}
        error, degrees = sum(gains.values()) / len(gains) / math.sqrt(3), math.inf
    else:
        spared = fit.spared(most, look)
        gains = {t.index: fit.log_cost(_batch(t)) - fit.log_cost(most) + spared / 2 for t in anchors}
        step = float(np.mean([fit.slope(_batch(t)) for t in anchors])) - fit.slope(most)
        of_share = max(step * (step - 2 * fit.lever), 0.0) * fit.variance
        error, degrees = math.sqrt(of_share + spared**2 / 12), fit.degrees
    of_fit = Estimate(0.0, error, degrees, len(anchors))
    if of_fit.half_width() > ERROR_MAX:
        return None
    return Capacity(blocks_of(anchors, lambda t: _rate_at(t, gains[t.index])), of_fit)


def _is_known(trial: Trial) -> bool:
    it = trial.switch
    return bool(it.batch_size and it.busy_share and it.cycles_per_packet and trial.throughput_pps)


def _batch(trial: Trial) -> float:
    return max(trial.switch.batch_size or 1.0, 1.0)


def _rate_at(trial: Trial, gain: float) -> float:
    """Return the frames per second that arrive if all cycles are busy and a frame costs less by ``gain``, a logarithm.

    In a chain the switch takes each frame several times. Cycles while the poller had no CPU were not busy ones.
    """
    it = trial.switch
    cycles_per_s = ((it.busy_cycles or 0) + (it.idle_cycles or 0)) * 1e9 / trial.offered_duration_ns
    busy = (it.busy_cycles or 1) * (1 - time_had.stood_in(trial).switch)
    return cycles_per_s / busy * trial.forwarded_packets * math.exp(gain)


def _fit(trials: Sequence[Trial]) -> _Fit | None:
    """Fit the share by least squares of logarithms within the starts (Gauss-Newton); None where it cannot be."""
    starts, of = np.unique([t.start for t in trials], return_inverse=True)
    degrees = len(trials) - len(starts) - 1
    if degrees < 1:
        return None
    cost = np.log(np.array([time_had.cycles_per_packet(t) or 1.0 for t in trials]))
    alone = 1 / np.array([_batch(t) for t in trials])
    share = 0.5
    for _ in range(ROUNDS):
        part = 1 - share + share * alone
        slopes = _centred((alone - 1) / part, of)
        power = float(slopes @ slopes)
        if power < 1e-12:
            return None
        rest = _centred(cost - np.log(part), of)
        before, share = share, float(np.clip(share + slopes @ rest / power, 0.0, 1.0))
        if abs(share - before) < 1e-9:
            break
    variance = max(float(rest @ rest) / degrees, RESOLUTION**2) / power
    saturating = [t.role == "r_plus" for t in trials]
    return _Fit(share, variance, degrees, float(np.mean(slopes[saturating])) if any(saturating) else 0.0)


def _centred(values: Array, groups: Groups) -> Array:
    """Return the values less the mean of their group."""
    means = np.bincount(groups, values) / np.bincount(groups)
    return values - means[groups]


# The calibrated limits of the tester at a point (METHODOLOGY, docs/methodology.md section 9).

CEILING_SHARE = 0.10
"""A rate within this share of the tester's ceiling says as much of the tester as of the switch."""


def tester_ceiling_pps(calibration: Calibration | None, point: Point) -> float | None:
    """Return the highest rate of the tester between the ends of this point without a switch; None if unknown.

    In loopback the VNFs may share the tester's core: the ceiling is then above what the tester can really do. With a
    CPU for each end, two directions may do more than the one that was calibrated: nothing is said of them. With a CPU
    for each queue both share all CPUs, as one does. Nothing is said of a traffic profile either:
    only plain frames are calibrated, and other frames cost the tester other cycles.
    """
    if calibration is None or _profiled(point):
        return None
    if calibration.tester_cpus > 1 and calibration.tester_cores == 1 and point.direction == "bidirectional":
        return None
    a, b = scenario_named(point.scenario).ends
    sender, receiver = (b, a) if point.direction == "reversed" else (a, b)
    return calibration.ceiling_pps(point.frame_size_bytes, sender, receiver)


def _profiled(point: Point) -> bool:
    """Return whether the frames of a point are not plain: those to many VNFs have addresses in turn."""
    return bool(point.traffic) or point.side_by_side


def latency_floor(calibration: Calibration | None, point: Point, clock: str) -> LatencyFloor | None:
    """Return the latency baseline of a clock at this point; None if it was not measured, as with a traffic profile."""
    return None if calibration is None or _profiled(point) else calibration.floor(point.frame_size_bytes, clock)


def least_ns(floor: LatencyFloor | None) -> float | None:
    """Return the least latency of a baseline; None if it was not measured, or has no histogram."""
    counts = decode(floor.histogram) if floor and floor.histogram else None
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
