# SPDX-License-Identifier: BSD-3-Clause
"""The capacity of a switch that the tester could not saturate, from what its trials cost at different batch sizes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from planebench.model.records import Trial
from planebench.stats.choose import is_usable

TRIALS_MIN = 3
SPREAD_MIN = 2.0
"""The largest batches must be this much larger than the smallest, or the two parts of the cost cannot be separated."""
FULL_BATCH = 32
"""Frames that a poller of DPDK takes at once, as a rule: the batch at saturation."""
ERROR_MAX = 0.1
"""Relative error of the fit, above which the cost is not what the model says."""


def capacity_estimate_pps(trials: Sequence[Trial]) -> float | None:
    """Return the estimated capacity of a point; None where the model cannot be fitted or does not fit.

    Busy cycles per packet fall with the batch, because each poll costs the same: cycles = a + b / batch. Both are
    fitted over all usable trials of the point, at whatever load; the capacity is that at full batches. Cycles divided
    by the busy share, which takes the batch of an unsaturated trial for that at saturation, are as low as a third.
    """
    known = [t for t in trials if is_usable(t) and t.switch.batch_size and t.switch.busy_share and t.forwarded_packets]
    if len(known) < TRIALS_MIN:
        return None
    batches = np.array([t.switch.batch_size for t in known], dtype=np.float64)
    cycles = np.array([t.switch.cycles_per_packet for t in known], dtype=np.float64)
    if batches.max() < SPREAD_MIN * batches.min():
        return None
    model = np.column_stack([np.ones(len(known)), 1 / batches]) / cycles[:, None]  # relative errors
    (of_packet, of_poll), *_ = np.linalg.lstsq(model, np.ones(len(known)), rcond=None)
    error = float(np.sqrt(np.mean((model @ np.array([of_packet, of_poll]) - 1) ** 2)))
    if of_packet <= 0 or of_poll < 0 or error > ERROR_MAX:
        return None
    least = of_packet + of_poll / max(FULL_BATCH, batches.max())
    return float(np.median([_cycles_per_s(t) * t.forwarded_packets / _packets(t) for t in known]) / least)


def _cycles_per_s(trial: Trial) -> float:
    busy, idle = trial.switch.busy_cycles or 0, trial.switch.idle_cycles or 0
    return (busy + idle) * 1e9 / trial.offered_duration_ns


def _packets(trial: Trial) -> int:
    """Return the frames that the switch took: in a chain each is taken several times."""
    return trial.switch.packets or 1
