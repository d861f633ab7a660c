# SPDX-License-Identifier: BSD-3-Clause
"""The verdict of a search: its bounds, the trials passed over, their bands and starts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import takewhile

from planebench.model.reasons import Reason, ReasonCode
from planebench.model.records import Trial, Verdict, VerdictKind
from planebench.search.facts import (
    aggregate_pps,
    explained_by_gaps,
    gap_ns,
    intended_packets,
    is_flat_out,
    missing_packets,
)
from planebench.search.log import TrialLog
from planebench.search.task import Finding, Task

HYSTERESIS_SHARE = 0.05
"""A repetition first tries a load that is higher than the upper bound of the first one by this share."""


def decided(task: Task, found: Finding, used: Sequence[Trial]) -> Verdict:
    """Return the verdict on a search that ended by itself."""
    if found.verdict is not None:
        return found.verdict
    if found.upper_pps is not None:
        failed = [t for t in used if aggregate_pps(t) == found.upper_pps and t.loss_ratio > found.loss_ratio]
        others = bound_by_others(failed, found.loss_ratio)
        if others is not None:
            return others
    if found.upper_pps is None and found.lower_pps is not None and found.lower_pps == found.max_load_pps:
        return _met_at_max(found.lower_pps, task)
    return Verdict(VerdictKind.VALID, found.remarks)


def interrupted(found: Finding, trials: Sequence[Trial]) -> Verdict:
    """Return the verdict on a search whose log ends before it does, with the reason of the trials that failed last."""
    kind, why = _last_failure(trials)
    if found.lower_pps is None and found.upper_pps is None and found.burst is None:
        return Verdict(
            kind or VerdictKind.INVALID, (*why, Reason(ReasonCode.INTERRUPTED, "interrupted before anything was found"))
        )
    return Verdict(VerdictKind.DISTURBED, (Reason(ReasonCode.INTERRUPTED, "interrupted; bounds so far"), *why))


def with_doubts(verdict: Verdict, found: Finding, log: TrialLog) -> Verdict:
    """Return the verdict with doubts about the trials: many passed over, or two bands, make it disturbed."""
    passed_over, outnumber = _passed_over(found, log)
    bands = _bands(log.used)
    kind = verdict.kind
    if (outnumber or bands) and kind is not VerdictKind.INVALID:
        kind = VerdictKind.DISTURBED
    # What makes it disturbed comes first: tables show the first reason.
    grave, remarks = (*bands, *(passed_over if outnumber else ())), () if outnumber else passed_over
    return Verdict(kind, (*grave, *verdict.reasons, *remarks))


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


def _last_failure(trials: Sequence[Trial]) -> tuple[VerdictKind | None, tuple[Reason, ...]]:
    """Return kind and reason of the last trial, with the length of its series; None and empty if it did not fail."""
    last = trials[-1].verdict if trials else None
    if last is None or last.kind not in (VerdictKind.INVALID, VerdictKind.DISTURBED):
        return None, ()
    count = sum(1 for _ in takewhile(lambda t: t.verdict.kind is last.kind, reversed(trials)))
    times = f" (last {count} trials: {last.kind.value})" if count > 1 else ""
    return last.kind, (replace(last.reasons[0], text=last.reasons[0].text + times),)


def _passed_over(found: Finding, log: TrialLog) -> tuple[tuple[Reason, ...], bool]:
    """Return reasons about trials passed over at the result or below, and whether they outnumber the accepted."""
    where = _taken_for_good(found)
    if where is None:
        return (), False
    what, good, at_bound = where
    count = sum(map(good, log.passed_over))
    if not count:
        return (), False
    over, accepted = sum(map(at_bound, log.passed_over)), sum(map(at_bound, log.used))
    text = (
        f"{count} {what[0] if count == 1 else what[1]} had gaps of the pollers, and "
        f"{'was' if count == 1 else 'were'} passed over, lossy or not"
    )
    if over > accepted:
        text += f": {over} at the bound, where {accepted} were accepted"
    reason = Reason(ReasonCode.PASSED_OVER, text, {"passed_over": count, "at_bound": over, "accepted": accepted})
    return (reason,), over > accepted


Test = Callable[[Trial], bool]


def _taken_for_good(found: Finding) -> tuple[tuple[str, str], Test, Test] | None:
    """Return singular and plural words, a test for trials at or below the result, and one for trials at it."""
    burst = found.burst
    if burst is not None:
        frames = f"of at most {burst.max_packets} frames"
        return (
            (f"burst {frames}", f"bursts {frames}"),
            lambda t: not is_flat_out(t) and intended_packets(t) <= burst.max_packets,
            lambda t: not is_flat_out(t) and burst.min_packets <= intended_packets(t) <= burst.max_packets,
        )
    # A back-to-back test that does not apply has a verdict instead of a bound: every burst got through.
    bound = found.max_load_pps if found.lower_pps is None and found.verdict is not None else found.lower_pps
    if bound is None:
        return None
    load = f"at or below {bound / 1e6:.6g} Mpps"
    return (
        (f"trial {load}", f"trials {load}"),
        lambda t: not is_flat_out(t) and (aggregate_pps(t) or 0.0) <= bound,
        lambda t: not is_flat_out(t) and aggregate_pps(t) == bound,
    )


def _bands(used: Sequence[Trial]) -> tuple[Reason, ...]:
    """Return a sentence where the trials are of more than one band: no band was known when they were accepted."""
    bands = Counter(t.band for t in used if t.band is not None)
    if len(bands) < 2:
        return ()
    said = ", ".join(f"{count} {band}" for band, count in sorted(bands.items()))
    text = f"trials with near and far cores: {said}; select one with --band near or --band far"
    return (Reason(ReasonCode.TWO_BANDS, text),)


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
