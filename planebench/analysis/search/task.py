# SPDX-License-Identifier: BSD-3-Clause
"""The input of a search method, and its findings so far."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from math import isclose
from typing import Annotated

from annotated_types import Gt

from planebench.model.plan import Plan, SearchPlan
from planebench.model.reasons import Reason, ReasonCode
from planebench.model.records import Point, Trial, Verdict, VerdictKind
from planebench.model.results import BurstSummary
from planebench.model.time_had import stood_in

# The seam of a search: what it asks for, and how it is answered. No I/O, no clock, nothing of planebench.measure.


@dataclass(frozen=True, slots=True)
class Ask:
    """A trial that a search wants. ``load_pps`` is the aggregate of all directions; None is flat out.

    ``repetition`` is that of the search, from 0.
    ``rough``: a trial that the tester did not keep up with answers, too: what it offered is the load.
    """

    load_pps: float | None
    duration_s: float
    repetition: int = 0
    rough: bool = False


Measure = Callable[[Ask], Trial]
"""How a search gets a trial, which took place; raises to end the search (see replay.py)."""


@dataclass(frozen=True, slots=True)
class SearchSettings(SearchPlan):
    """How every search of a run is done on a point: what the plan says of searches, and what it says of R+."""

    r_plus_duration_s: Annotated[float, Gt(0)] = 1.0
    """Duration of a saturating trial; also of the one a search starts with."""
    max_load_pps: Annotated[float, Gt(0)] | None = None
    """The highest load, of all directions together; None: the line rate, or without one a quarter above the forwarding
    rate at the maximum."""
    line_rate_pps: Annotated[float, Gt(0)] | None = None
    """What the links carry, of all directions together; None on wires without a speed. Trials tell it."""
    min_load_pps: float = 1000.0


def search_settings(plan: Plan, senders: int) -> SearchSettings:
    """Return how ``plan`` has searches done on a point with that many sending directions."""
    throughput, rate = plan.throughput, plan.throughput.max_rate_pps
    return SearchSettings(
        **{field.name: getattr(plan.search, field.name) for field in fields(SearchPlan)},
        r_plus_duration_s=throughput.duration_s,
        max_load_pps=None if rate is None else rate * senders,
    )


# The facts that a search reads from a trial. Pure.

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


# The trial log as what answers a search: which trial is the answer to an ask, and when to stop asking.

ASKED_MAX = 4
"""A trial did not take place, or the tester did not keep up, so often in a row at one load: then the search ends."""


class Unanswered(Exception):
    """The log does not hold the answer: ``ask`` is the next trial to measure."""

    def __init__(self, ask: Ask) -> None:
        super().__init__(str(ask))
        self.ask = ask


class GaveUp(Exception):
    """The search cannot go on; ``verdict`` says why."""

    def __init__(self, verdict: Verdict) -> None:
        super().__init__("; ".join(verdict.texts))
        self.verdict = verdict


class TrialLog:
    """The trials of one point in the order in which they were measured, and which of them one search has used.

    ``used`` are in the order of use.
    """

    def __init__(self, trials: Sequence[Trial]) -> None:
        self.trials = [t for t in trials if t.role in ("r_plus", "search")]
        self._used: set[int] = set()
        self.used: list[Trial] = []

    def measure(self, ask: Ask) -> Trial:
        """Return the first trial of this load and duration that took place and is not used yet.

        Raises Unanswered where there is none, GaveUp after ASKED_MAX in a row that are no answer.
        """
        failed: list[Trial] = []
        for i, trial in enumerate(self.trials):
            if not fits(trial, ask.load_pps, ask.duration_s):
                continue
            kind = trial.verdict.kind
            if i in self._used:
                failed.clear()
            elif kind is VerdictKind.VALID or (kind.is_bound and (ask.load_pps is None or ask.rough)):
                self._used.add(i)
                self.used.append(trial)
                return trial
            else:
                failed.append(trial)
        if any(trial.verdict.kind is VerdictKind.FUNCTIONAL for trial in failed):
            raise GaveUp(failed[-1].verdict)  # the next would be, too
        if len(failed) >= ASKED_MAX:
            load = "at maximum offered load" if ask.load_pps is None else f"at {ask.load_pps / 1e6:.6g} Mpps"
            kinds = Counter(t.verdict.kind.value for t in failed)
            said = ", ".join(f"{count} {what}" for what, count in sorted(kinds.items()))
            reason = f"gave up {load}, {ask.duration_s:g} s: {len(failed)} trials in a row were no answer ({said})"
            last = failed[-1].verdict
            raise GaveUp(
                Verdict(last.kind, (Reason(ReasonCode.GAVE_UP, reason, {"tries": len(failed)}), *last.reasons[:1]))
            )
        raise Unanswered(ask)


MAX_LOAD_FACTOR = 1.25
"""The highest load of a search without a line rate, relative to the forwarding rate at maximum offered load."""
LINE_SHARE = 1 - 200e-6
"""The highest load of a search, relative to the line rate. The clocks of a link and of the tester may each be wrong by
100 ppm (IEEE 802.3 for links): at the line rate itself a long trial would lose frames for that alone."""

CAP_FACTOR = 0.98
"""The highest load of a search, of what the tester sent when it fell short."""
CAP_TRIES = 2
"""A tester that falls short once had a bad moment; this often at one load, and it cannot do that load."""
CAP_DURATION_MIN_NS = 10_000_000
"""Shorter trials say too little of what the tester can keep up."""
CAP_LOADS_MAX = 8
"""A tester that falls short at this many falling loads does not pace at all."""


@dataclass(frozen=True, slots=True)
class SearchTask:
    """One search on one point. ``cap_pps`` is the most the tester can do, where it fell short."""

    settings: SearchSettings
    point: Point
    cap_pps: float | None = None

    @property
    def senders(self) -> int:
        """Return the number of directions that send."""
        return 2 if self.point.direction == "bidirectional" else 1

    def whole(self, pps: float) -> float:
        """Return an aggregate load of whole packets a second in each direction: stored loads then compare exactly."""
        return float(max(1, round(pps / self.senders)) * self.senders)

    def ask(self, load_pps: float, duration_s: float) -> Ask:
        """Return a paced trial, at a load of whole packets."""
        return Ask(self.whole(load_pps), duration_s)

    def flat_out(self) -> Ask:
        """Return the saturating trial that searches start with; those of R+ answer it."""
        return Ask(None, self.settings.r_plus_duration_s)

    def max_load_pps(self, measure: Measure) -> float:
        """Return the highest load: as set, the line rate, or MAX_LOAD_FACTOR x the rate at maximum load; capped."""
        pps = self.settings.max_load_pps or self.line_pps
        if pps is None:
            pps = MAX_LOAD_FACTOR * measure(self.flat_out()).throughput_pps
        return self.whole(pps if self.cap_pps is None else min(pps, self.cap_pps))

    @property
    def line_pps(self) -> float | None:
        """Return the load that fills the links, unless the user set the highest load; None on wires without a speed."""
        settings = self.settings
        if settings.line_rate_pps is None or settings.max_load_pps is not None:
            return None
        return self.whole(LINE_SHARE * settings.line_rate_pps)


@dataclass(slots=True)
class SearchFinding:
    """The findings of a method so far, filled as it proceeds, so that an interrupted search has its bounds.

    ``loss_ratio`` is what the goal allows. ``verdict`` is set where the method itself judges; ``remarks`` go with a
    valid one. ``conditional_pps``: the lower bound less what was lost at it.
    """

    lower_pps: float | None = None
    upper_pps: float | None = None
    conditional_pps: float | None = None
    max_load_pps: float | None = None
    loss_ratio: float = 0.0
    burst: BurstSummary | None = None
    verdict: Verdict | None = None
    remarks: tuple[Reason, ...] = ()


def tester_cap_pps(trials: Sequence[Trial]) -> float | None:
    """Return CAP_FACTOR x the lowest rate at which the tester fell short of a paced load; None if it never did.

    A load counts after CAP_TRIES trials that fell short, and if no trial shows that the tester can do it.
    Raises GaveUp where the tester falls short at every load.
    """
    short: dict[float, list[float]] = {}
    proven_pps = 0.0
    for trial in (t for t in trials if t.role == "search"):
        load = aggregate_pps(trial)
        if load is None or is_flat_out(trial) or trial.intended_duration_ns < CAP_DURATION_MIN_NS:
            continue
        if trial.verdict.kind is VerdictKind.TESTER_LIMITED:
            short.setdefault(load, []).append(trial.offered_pps)
        elif trial.verdict.kind is VerdictKind.VALID:
            proven_pps = max(proven_pps, load)
    beyond = {load: rates for load, rates in short.items() if load > proven_pps and len(rates) >= CAP_TRIES}
    if len(beyond) >= CAP_LOADS_MAX:
        reason = f"the tester did not reach {len(beyond)} loads, the lowest {min(beyond) / 1e6:.6g} Mpps"
        raise GaveUp(Verdict(VerdictKind.TESTER_LIMITED, (Reason(ReasonCode.GAVE_UP, reason),)))
    return CAP_FACTOR * min(rate for rates in beyond.values() for rate in rates) if beyond else None


# The verdict of a search: its bounds, what explains them, and the starts of its trials.

HYSTERESIS_SHARE = 0.05
"""A repetition first tries a load that is higher than the upper bound of the first one by this share."""


def decided(task: SearchTask, found: SearchFinding, used: Sequence[Trial]) -> Verdict:
    """Return the verdict on a search that ended by itself."""
    if found.verdict is not None:
        return found.verdict
    if found.upper_pps is None and found.lower_pps is not None and found.lower_pps == found.max_load_pps:
        return _met_at_max(found.lower_pps, task)
    return Verdict(VerdictKind.VALID, (*host_at_bound(found, used), *found.remarks))


def interrupted(found: SearchFinding, trials: Sequence[Trial]) -> Verdict:
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


def trials_at_bound(found: SearchFinding, log: TrialLog) -> list[Trial]:
    """Return the accepted trials at the lower bound."""
    return [t for t in log.used if not is_flat_out(t) and aggregate_pps(t) == found.lower_pps]


def loss_at_bound(found: SearchFinding, log: TrialLog) -> tuple[Reason, ...]:
    """Return how many trials at the lower bound lost more than the goal allows, where any did."""
    trials = trials_at_bound(found, log)
    lossy = [t.loss_ratio for t in trials if t.loss_ratio > found.loss_ratio]
    if not lossy:
        return ()
    text = f"{len(lossy)} of {len(trials)} trials at the lower bound lost more than the goal, at worst {max(lossy):.2%}"
    values = {"lossy": len(lossy), "trials_at_bound": len(trials), "worst": max(lossy)}
    return (Reason(ReasonCode.LOSS_AT_BOUND, text, values),)


def hysteresis(found: SearchFinding, unloaded: Trial | None) -> tuple[Reason, ...]:
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


def _met_at_max(load_pps: float, task: SearchTask) -> Verdict:
    """Return the verdict of a search without a failed load: its bound is where it had to stop."""
    mpps = f"{load_pps / 1e6:.6g} Mpps"
    if task.cap_pps is not None and task.whole(task.cap_pps) == load_pps:
        text = f"the goal was met at {mpps}, the highest rate of the tester: a lower bound"
        return Verdict(VerdictKind.TESTER_LIMITED, (Reason(ReasonCode.MET_AT_MAXIMUM, text, {"pps": load_pps}),))
    if task.line_pps == load_pps:
        text = f"the goal was met at {mpps}, the line rate: the links, not the switch, are the limit"
        return Verdict(VerdictKind.LINE_RATE, (Reason(ReasonCode.LINE_RATE, text, {"pps": load_pps}),))
    what = "the highest load allowed" if task.settings.max_load_pps is not None else "the highest load tried"
    text = f"the goal was met at {mpps}, {what}: the switch may do more"
    return Verdict(VerdictKind.VALID, (Reason(ReasonCode.MET_AT_MAXIMUM, text, {"pps": load_pps}),))


def host_at_bound(found: SearchFinding, used: Sequence[Trial]) -> tuple[Reason, ...]:
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


@dataclass(frozen=True, slots=True)
class Goal:
    """A condition on a load: at most ``exceed_ratio`` of ``sum_s`` seconds may lose more than ``loss_ratio``."""

    loss_ratio: float
    exceed_ratio: float
    trial_s: float
    sum_s: float
    relative_width: float
