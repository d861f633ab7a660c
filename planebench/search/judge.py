# SPDX-License-Identifier: BSD-3-Clause
"""The verdict of a search: its bounds, what explains them, and the starts of its trials."""

from __future__ import annotations

from collections.abc import Sequence

from planebench.model.reasons import Reason, ReasonCode
from planebench.model.records import Trial, Verdict, VerdictKind
from planebench.search.facts import aggregate_pps, explained_by_gaps, gap_ns, is_flat_out
from planebench.search.log import TrialLog
from planebench.search.task import Finding, Task

HYSTERESIS_SHARE = 0.05
"""A repetition first tries a load that is higher than the upper bound of the first one by this share."""


def decided(task: Task, found: Finding, used: Sequence[Trial]) -> Verdict:
    """Return the verdict on a search that ended by itself."""
    if found.verdict is not None:
        return found.verdict
    if found.upper_pps is None and found.lower_pps is not None and found.lower_pps == found.max_load_pps:
        return _met_at_max(found.lower_pps, task)
    return Verdict(VerdictKind.VALID, (*host_at_bound(found, used), *found.remarks))


def interrupted(found: Finding, trials: Sequence[Trial]) -> Verdict:
    """Return the verdict on a search whose log ends before it does, and why the last trial did not take place."""
    nothing = found.lower_pps is None and found.upper_pps is None and found.burst is None
    text = "interrupted before anything was found" if nothing else "interrupted; bounds so far"
    last = trials[-1].verdict if trials else None
    why = last.reasons[:1] if last is not None and last.kind is VerdictKind.INVALID else ()
    return Verdict(VerdictKind.INVALID, (Reason(ReasonCode.INTERRUPTED, text), *why))


def started_again(used: Sequence[Trial]) -> tuple[str, ...]:
    """Return a sentence where the paced trials are of several starts of the switch, which place its memory anew.

    The trial at maximum load only sets the highest load, and may be of R+, which restarts the switch on purpose.
    """
    starts = {t.start for t in used if not is_flat_out(t)}
    if len(starts) < 2:
        return ()
    return (f"the switch was started again during the search (starts {min(starts)} to {max(starts)})",)


def trials_at_bound(found: Finding, log: TrialLog) -> list[Trial]:
    """Return the accepted trials at the lower bound."""
    return [t for t in log.used if not is_flat_out(t) and aggregate_pps(t) == found.lower_pps]


def loss_at_bound(found: Finding, log: TrialLog) -> tuple[Reason, ...]:
    """Return how many trials at the lower bound lost more than the goal allows, where any did."""
    trials = trials_at_bound(found, log)
    lossy = [t.loss_ratio for t in trials if t.loss_ratio > found.loss_ratio]
    if not lossy:
        return ()
    text = f"{len(lossy)} of {len(trials)} trials at the lower bound lost more than the goal, at worst {max(lossy):.2%}"
    values = {"lossy": len(lossy), "trials_at_bound": len(trials), "worst": max(lossy)}
    return (Reason(ReasonCode.LOSS_AT_BOUND, text, values),)


def hysteresis(found: Finding, unloaded: Trial | None) -> tuple[Reason, ...]:
    """Return a reason where the switch met the goal before it was overloaded at a load that it did not carry later.

    ``unloaded``: the first trial after a start.
    """
    load_pps = None if unloaded is None else aggregate_pps(unloaded)
    if unloaded is None or load_pps is None or found.upper_pps is None or unloaded.loss_ratio > found.loss_ratio:
        return ()
    if found.upper_pps >= (1 - HYSTERESIS_SHARE / 2) * load_pps:
        return ()
    text = (
        f"before it was overloaded, the switch met the goal at {load_pps / 1e6:.6g} Mpps; afterwards not at "
        f"{found.upper_pps / 1e6:.6g} Mpps: an overload slows it"
    )
    return (Reason(ReasonCode.HYSTERESIS, text, {"before_pps": load_pps, "after_pps": found.upper_pps}),)


def _met_at_max(load_pps: float, task: Task) -> Verdict:
    """Return the verdict of a search without a failed load: its bound is where it had to stop."""
    mpps = f"{load_pps / 1e6:.6g} Mpps"
    limit = task.settings.max_load_pps
    if task.cap_pps is not None and task.whole(task.cap_pps) == load_pps:
        text = f"the goal was met at {mpps}, the highest rate of the tester: a lower bound"
        return Verdict(VerdictKind.TESTER_LIMITED, (Reason(ReasonCode.MET_AT_MAXIMUM, text, {"pps": load_pps}),))
    if task.line_pps == load_pps:
        text = f"the goal was met at {mpps}, the line rate: the links, not the switch, are the limit"
        return Verdict(VerdictKind.LINE_RATE, (Reason(ReasonCode.LINE_RATE, text, {"pps": load_pps}),))
    what = "the highest load allowed" if limit is not None else "the highest load tried"
    text = f"the goal was met at {mpps}, {what}: the switch may do more"
    return Verdict(VerdictKind.VALID, (Reason(ReasonCode.MET_AT_MAXIMUM, text, {"pps": load_pps}),))


def host_at_bound(found: Finding, used: Sequence[Trial]) -> tuple[Reason, ...]:
    """Return a remark if the host explains at least half of the trials that failed at the upper bound."""
    at_upper = [t for t in used if not is_flat_out(t) and aggregate_pps(t) == found.upper_pps]
    failed = [t for t in at_upper if t.loss_ratio > found.loss_ratio]
    gaps = [t for t in failed if explained_by_gaps(t, found.loss_ratio)]
    if not gaps or 2 * len(gaps) < len(failed):
        return ()
    ms = sum(gap_ns(t) for t in gaps) / 1e6
    seconds = sum(t.offered_duration_ns for t in gaps) / 1e9
    text = (
        f"gaps of the pollers explain the losses at {(found.upper_pps or 0.0) / 1e6:.6g} Mpps "
        f"({ms:.3g} ms in {seconds:.3g} s): this host, not the switch, may be the limit"
    )
    return (Reason(ReasonCode.GAPS_AT_BOUND, text),)
