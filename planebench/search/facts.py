# SPDX-License-Identifier: BSD-3-Clause
"""What a search reads from a trial. Pure."""

from __future__ import annotations

from planebench.model.records import Trial

STRETCH_TOLERANCE = 0.001
"""A generator that takes longer than it was told by more than this did not send at the rate it was told."""

FLAT_OUT_LABEL = "saturating"
"""Label of flat-out loads. A run may pace them at the rate of a line: they are flat out all the same."""


def aggregate_pps(trial: Trial) -> float | None:
    """The intended load of all directions together; None without a pace."""
    pps = trial.load.pps_per_direction
    return None if pps is None else pps * len(trial.directions)


def is_flat_out(trial: Trial) -> bool:
    """Whether the trial is a saturating one."""
    return trial.load.pps_per_direction is None or trial.load.label == FLAT_OUT_LABEL


def is_stretched(trial: Trial) -> bool:
    """Whether a paced generator took longer than it was told, so sent slower than it says (trex-core #442)."""
    return trial.offered_duration_ns > (1 + STRETCH_TOLERANCE) * trial.intended_duration_ns + 1


def gap_ns(trial: Trial) -> int:
    """How long pollers, of switch and tester, did not poll: waited for their CPU, or stood still."""
    return sum(thread.wait_ns for thread in trial.evidence.threads) + trial.evidence.poll_gap_sum_ns


def missing_packets(trial: Trial) -> int:
    """Lost and unsent, all directions."""
    return sum(d.lost_packets + d.unsent_packets for d in trial.directions)


def explained_by_gaps(trial: Trial) -> bool:
    """Whether no more is missing than would have come while pollers stood still: no loss is not explained."""
    rate_pps = aggregate_pps(trial)
    if rate_pps is None:
        rate_pps = trial.offered_pps
    return 0 < missing_packets(trial) <= gap_ns(trial) * rate_pps / 1e9
