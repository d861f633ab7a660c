# SPDX-License-Identifier: BSD-3-Clause
"""Losses that the host or the tester, not the switch, may have caused."""

from __future__ import annotations

from collections.abc import Sequence

from planebench.model.reasons import Reason, ReasonCode
from planebench.model.records import Trial, Verdict, VerdictKind
from planebench.search.facts import aggregate_pps, explained_by_gaps, gap_ns, missing_packets


def late_only(trial: Trial, loss_ratio: float) -> bool:
    """Return whether the trial would have met the goal had the generator not been late."""
    late = sum(d.unsent_late_packets for d in trial.directions)
    intended = sum(max(d.intended_packets, d.offered_packets) for d in trial.directions)
    return late > 0 and missing_packets(trial) - late <= loss_ratio * intended


def bound_by_others(failed: Sequence[Trial], loss_ratio: float) -> Verdict | None:
    """Return a verdict if the host or tester, not the switch, explains at least half of the ``failed`` trials."""
    if not failed:
        return None
    load = (aggregate_pps(failed[0]) or 0.0) / 1e6
    gaps = [t for t in failed if explained_by_gaps(t)]
    if 2 * len(gaps) >= len(failed):
        ms = sum(gap_ns(t) for t in gaps) / 1e6
        seconds = sum(t.offered_duration_ns for t in gaps) / 1e9
        reason = (
            f"gaps of the pollers explain the losses at {load:.6g} Mpps "
            f"({ms:.3g} ms in {seconds:.3g} s): this host, not the switch, may be the limit"
        )
        return Verdict(VerdictKind.DISTURBED, (Reason(ReasonCode.GAPS_AT_BOUND, reason),))
    late = [t for t in failed if late_only(t, loss_ratio)]
    if 2 * len(late) >= len(failed):
        reason = f"at {load:.6g} Mpps the generator missed its schedule; the switch met the goal"
        return Verdict(VerdictKind.TESTER_LIMITED, (Reason(ReasonCode.TESTER_AT_BOUND, reason),))
    return None
