# SPDX-License-Identifier: BSD-3-Clause
"""The input of a search method, and its findings so far."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from planebench.model.reasons import Reason, ReasonCode
from planebench.model.records import Point, Trial, Verdict, VerdictKind
from planebench.model.results import BurstSummary, CurvePoint
from planebench.search.ask import Ask, Measure, SearchSettings
from planebench.search.facts import aggregate_pps, is_flat_out
from planebench.search.log import GaveUp

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
class Task:
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
class Finding:
    """The findings of a method so far, filled as it proceeds, so that an interrupted search has its bounds.

    ``loss_ratio`` is what the goal allows. ``verdict`` is set where the method itself judges; ``remarks`` go with a
    valid one. ``conditional_pps``: the lower bound less what was lost at it.
    """

    lower_pps: float | None = None
    upper_pps: float | None = None
    conditional_pps: float | None = None
    max_load_pps: float | None = None
    loss_ratio: float = 0.0
    curve: tuple[CurvePoint, ...] = ()
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
