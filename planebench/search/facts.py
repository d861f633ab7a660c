# SPDX-License-Identifier: BSD-3-Clause
"""The facts that a search reads from a trial. Pure."""

from __future__ import annotations

from math import isclose

from planebench.model.records import Trial

RATE_TOLERANCE = 1e-6
DURATION_TOLERANCE = 0.01

STRETCH_TOLERANCE = 0.001
"""A generator that exceeds the intended duration by more than this did not send at the intended rate."""
STRETCH_FLOOR_NS = 50_000
"""Less than this is no stretch however short the trial: a burst of 20 us is timed no better."""

GAPS_MIN_NS = 50_000
"""Shorter gaps of the pollers cannot be separated from reading the counters, and a ring bridges them."""

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


def is_stretched(trial: Trial) -> bool:
    """Return whether a paced generator exceeded the intended duration, so sent slower than reported (trex #442)."""
    allowed_ns = max(STRETCH_TOLERANCE * trial.intended_duration_ns, STRETCH_FLOOR_NS)
    return trial.offered_duration_ns - trial.intended_duration_ns > allowed_ns


def gap_ns(trial: Trial) -> int:
    """Return how long pollers of switch and tester did not poll."""
    return trial.evidence.standing_ns(trial.offered_duration_ns)


def has_gaps(trial: Trial, loss_ratio: float) -> bool:
    """Return whether pollers stood still for longer than this share of the trial, and GAPS_MIN_NS.

    It does not depend on what was lost: a trial is set aside for its gaps alone, or good trials would be chosen.
    """
    return gap_ns(trial) > max(loss_ratio * trial.intended_duration_ns, GAPS_MIN_NS)


def intended_packets(trial: Trial) -> int:
    """Return the number of intended packets of all directions."""
    return sum(d.intended_packets for d in trial.directions)


def missing_packets(trial: Trial) -> int:
    """Return the number of lost and unsent packets of all directions."""
    return sum(d.lost_packets + d.unsent_packets for d in trial.directions)


def explained_by_gaps(trial: Trial) -> bool:
    """Return whether no more is missing than would have come while pollers stood still: no loss is not explained."""
    rate_pps = aggregate_pps(trial)
    if rate_pps is None:
        rate_pps = trial.offered_pps
    return 0 < missing_packets(trial) <= gap_ns(trial) * rate_pps / 1e9
