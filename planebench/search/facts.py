# SPDX-License-Identifier: BSD-3-Clause
"""The facts that a search reads from a trial. Pure."""

from __future__ import annotations

from math import isclose

from planebench.model.records import Trial
from planebench.model.time_had import stood_in

RATE_TOLERANCE = 1e-6
DURATION_TOLERANCE = 0.01

TIMING_NS = 50_000
"""A trial of any length is timed no better than this."""

FLAT_OUT_LABEL = "saturating"
"""Label of the maximum offered load, also if a run limits it to the rate of a line."""


def aggregate_pps(trial: Trial) -> float | None:
    """Return the intended load of all directions together; None without a pace."""
    pps = trial.load.pps_per_direction
    return None if pps is None else pps * len(trial.directions)


def is_flat_out(trial: Trial) -> bool:
    """Return whether the trial is a saturating one."""
    return trial.load.pps_per_direction is None or trial.load.label == FLAT_OUT_LABEL


def fits(trial: Trial, load_pps: float | None, duration_s: float) -> bool:
    """Return whether a trial has this intended load, of all directions together, and this duration.

    ``load_pps``: None for a saturating trial.
    """
    if not isclose(trial.intended_duration_ns / 1e9, duration_s, rel_tol=DURATION_TOLERANCE):
        return False
    if load_pps is None:
        return is_flat_out(trial)
    load = aggregate_pps(trial)
    return load is not None and isclose(load, load_pps, rel_tol=RATE_TOLERANCE)


def intended_packets(trial: Trial) -> int:
    """Return the number of intended packets of all directions."""
    return sum(d.intended_packets for d in trial.directions)


def offered_share(trial: Trial) -> float:
    """Return the share of its intended rate that a paced generator kept while the host left it its CPU.

    Late slots are left out, never caught up (planed), or the sending takes longer (trex-core #442).
    """
    taken_ns = max(trial.offered_duration_ns - TIMING_NS, trial.intended_duration_ns)
    due = intended_packets(trial) * (1 - stood_in(trial).tester) * taken_ns / trial.intended_duration_ns
    return min(1.0, sum(d.tried_packets for d in trial.directions) / max(due, 1.0))


def gap_ns(trial: Trial) -> float:
    """Return for how long the host kept one of the pollers from polling."""
    return (1 - stood_in(trial).had) * trial.offered_duration_ns


def explained_by_gaps(trial: Trial, loss_ratio: float) -> bool:
    """Return whether a trial lost more than allowed, and no more than that and what came while pollers stood still."""
    rate_pps = aggregate_pps(trial) or trial.offered_pps
    missing = sum(d.missing_packets for d in trial.directions)
    allowed = loss_ratio * sum(d.tried_packets for d in trial.directions)
    return allowed < missing <= allowed + gap_ns(trial) * rate_pps / 1e9
