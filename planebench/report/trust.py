# SPDX-License-Identifier: BSD-3-Clause
"""How far a run can be trusted: the share of rejected trials, the test points that it decides, and what would help."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from planebench.model.reasons import ReasonCode
from planebench.model.records import Point, VerdictKind
from planebench.model.results import Comparison
from planebench.model.words import percent, printable, reasons, result_words
from planebench.report.answers import DECIDED, Standing, Standings
from planebench.report.evidence import causes
from planebench.stats.derived import Derived
from planebench.stats.disturbed import DisturbedSwitch
from planebench.stats.looks import Open, price
from planebench.stats.ranking import cell_id
from planebench.stats.shared_cores import SharedCore

Level = Literal["high", "medium", "low"]

REJECTED_MANY, REJECTED_SOME = 0.5, 0.25
"""Shares of rejected trials: above them confidence is low, or medium at best."""
DECIDED_FEW, DECIDED_MOST = 0.5, 0.9
"""Shares of decided test points: below them confidence is low, or medium at best."""
SHARED_SOME = 0.1
"""The share of trials with a shared core from which on there is advice."""
CAUSE_LENGTH = 110
MAX_REMEDIES = 1
"""Disturbances that have their remedy beside the answers, the most frequent ones."""
_REMEDIES = {
    ReasonCode.ONE_CPU: "Give planebench two CPUs or more: switch and tester share one.",
    ReasonCode.CPU_WAIT: "Stop other programs or isolate the CPUs of switch and tester: they waited for other threads.",
    ReasonCode.POLL_GAPS: "Keep interrupts and other programs off the CPUs of the tester: it was interrupted.",
    ReasonCode.STEAL: "Use a host whose CPUs no other guest uses, or pin the virtual CPUs: the hypervisor took time.",
    ReasonCode.DISTANCE_CHANGED: "Pin the virtual CPUs on their host: it moved them between near and far cores.",
    ReasonCode.SHARED_CORE: "Use a host that leaves whole cores to this machine, or leave out --cores-alone.",
    ReasonCode.OTHER_CLOCK: "Fix the clock of the CPUs: the switch did not run at the one that was asked for.",
}
MAX_POINTS = 4
"""Test points that a line names."""


@dataclass(frozen=True, slots=True)
class Trust:
    """The confidence bar: a level, what it rests on, and what to do, in sentences."""

    level: Level
    facts: tuple[str, ...]
    advice: tuple[str, ...]

    @property
    def title(self) -> str:
        """Return the level in words, which stand beside its color."""
        return f"{self.level.capitalize()} confidence"


def trust(standings: Standings) -> Trust:
    """Return how far a run can be trusted."""
    derived = standings.derived
    total = sum(t.role != "warmup" for t in derived.run.trials)
    rejected = len(derived.rejected)
    found, by_rate, by_cost = _found(standings)
    decided = len(by_rate) + len(by_cost)
    has_figure = any(
        it.point in points_accepted(derived) or any(math.isfinite(load.p50) for load in it.latency)
        for it in derived.results
    )
    share, rest = rejected / total if total else 1.0, [it for it in found if it not in by_rate and it not in by_cost]
    return Trust(
        _level(share, decided / len(found) if found else float(has_figure)),
        (
            _decided_words(len(found), decided, by_cost, has_figure),
            *_rejected_words(derived, total, share),
            *_shared_words(derived.shared_cores),
            *([f"{derived.drift}; comparisons are paired and not affected.".capitalize()] if derived.drift else ()),
        ),
        tuple(_advice(rest, share, derived)),
    )


def _found(standings: Standings) -> tuple[list[Standing], list[Standing], list[Standing]]:
    """Return the test points with two switches or more; of them those decided by rate, and those decided by cost."""
    found = [it for it in standings.throughput if len(it.results) + len(it.missing) > 1]
    by_rate = [it for it in found if it.state in DECIDED]
    by_cost = [it for it in found if it.state == "tester-limited" and standings.cost[it.point].state in DECIDED]
    return found, by_rate, by_cost


def nothing_decided(derived: Derived) -> str:
    """Return that a run which came to its end has no answer, and what to do; empty if it has one, or compares nothing.

    It has none where all its trials are functional, and where no test point with two switches or more is decided.
    """
    functional = [trial for trial in derived.run.trials if trial.verdict.kind is VerdictKind.FUNCTIONAL]
    if functional and not any(result.trials for result in derived.results):
        why = reasons(tuple(dict.fromkeys(text for trial in functional for text in trial.verdict.texts)), CAUSE_LENGTH)
        return f"no test point has a rate, only packet counts, because this was a functional check: {why}"
    standings = Standings(derived)
    found, by_rate, by_cost = _found(standings)
    if not found or by_rate or by_cost:
        return ""
    return f"{_decided_words(len(found), 0, (), True)} {' '.join(trust(standings).advice)}".rstrip()


def points_accepted(derived: Derived) -> frozenset[Point]:
    """Return the test points with an accepted trial. A carried load may rest on a rejected one, which is not enough."""
    used = {index for result in derived.results for index in result.trials}
    rejected = (VerdictKind.DISTURBED, VerdictKind.INVALID)
    return frozenset(t.point for t in derived.run.trials if t.index in used and t.verdict.kind not in rejected)


def nothing_accepted(derived: Derived) -> str:
    """Return why a run has no accepted trial, and what to do; empty if it has one, or if it was a functional check."""
    run = derived.run
    trials = [trial for trial in run.trials if trial.role != "warmup"]
    functional = any(trial.verdict.kind is VerdictKind.FUNCTIONAL or trial.role == "outage" for trial in trials)
    if functional or points_accepted(derived):
        return ""
    if not trials:
        why = "; ".join(dict.fromkeys(f"{it.what}: {' '.join(it.reason.split())}" for it in run.skipped))
        return f"no trial was run{f': {why}' if why else ''}"
    kinds = Counter(trial.verdict.kind for trial in trials)
    verdicts = ", ".join(f"{kinds[kind]} {kind.value}" for kind in VerdictKind if kinds[kind])
    found = [f"no trial was accepted, {len(trials)} were rejected ({verdicts})"]
    found += [f"most frequent cause: {reasons((group.text,), CAUSE_LENGTH)}" for group in causes(derived.rejected)[:1]]
    disturbed = kinds[VerdictKind.DISTURBED] > len(trials) / 2
    return f"{'; '.join(found)}. {_DISTURBED_ADVICE if disturbed else _FAILED_ADVICE}"


_DISTURBED_ADVICE = (
    "Run planebench doctor, which names the programs and settings that disturb this host, and measure again when it is "
    "quiet"
)
_FAILED_ADVICE = "`planebench switch check NAME` tests a switch alone, and the report has the reason of each trial"


def points_without_figure(derived: Derived) -> str:
    """Return the test points of a run that have no accepted trial and were no functional check; empty without any."""
    functional = {trial.point for trial in derived.run.trials if trial.verdict.kind is VerdictKind.FUNCTIONAL}
    there = points_accepted(derived) | functional
    without = [result_words(it) for it in derived.results if it.point not in there]
    if not without:
        return ""
    shown = ", ".join(without[:MAX_POINTS]) + (f" and {len(without) - MAX_POINTS} more" * (len(without) > MAX_POINTS))
    return (
        f"{len(without)} of {len(derived.results)} test points have no accepted trial: {shown}; "
        f"`planebench report {derived.run.header.run_id}` has the reasons"
    )


def _level(rejected: float, decided: float) -> Level:
    if rejected > REJECTED_MANY or decided < DECIDED_FEW:
        return "low"
    return "medium" if rejected > REJECTED_SOME or decided < DECIDED_MOST else "high"


def _decided_words(found: int, decided: int, by_cost: Sequence[Standing], has_figure: bool) -> str:
    if not found:
        return f"Nothing to compare: the run has {'one switch' if has_figure else 'no result'}."
    words = f"{decided} of {found} test points {'is' if decided == 1 else 'are'} decided"
    limit = "the links were full" if all(it.at_line_rate for it in by_cost) else "the tester was the limit"
    return words + (f", {len(by_cost)} of them by CPU cost because {limit}." if by_cost else ".")


def _rejected_words(derived: Derived, total: int, share: float) -> Iterator[str]:
    rejected = len(derived.rejected)
    yield f"{rejected} of {total} trials were rejected ({percent(share)})."
    for it in derived.disturbed_switches:
        yield (
            f"Trials of {printable(it.switch)} were disturbed more often than those of the others "
            f"({percent(it.share)} and {percent(it.share_of_others)}): this goes with the switch, not the machine. "
            f"{_own_threads_words(it)}"
        )
    if groups := causes(derived.rejected):
        cause = reasons((groups[0].text,), CAUSE_LENGTH)
        yield f"Most frequent cause ({groups[0].trials} trials): {cause}."


def _shared_words(cores: Sequence[SharedCore]) -> Iterator[str]:
    """Say how often another hyperthread had a part of the cores: figures of trials differ by that."""
    shared = [core for core in cores if core.shared]
    if not shared:
        return
    uses = " and ".join(f"that of the {core.owner} in {core.shared} of {core.trials} trials" for core in shared)
    left = percent(min(core.least for core in shared))
    ratio = next((core.cycles_ratio for core in shared if core.cycles_ratio), None)
    cost = f": with it switches needed {ratio:.2f} times the cycles per packet" if ratio and ratio > 1 else ""
    yield f"Another hyperthread used a core, {uses}, and left {left} of it at the least{cost}."


def _own_threads_words(it: DisturbedSwitch) -> str:
    """Return whose threads lost the time in the disturbed trials of a switch."""
    if it.own_threads > 1 / 2:
        return f"In {percent(it.own_threads)} of them its own threads waited for a CPU: a property of the switch."
    return "In most of them the tester or the hypervisor lost the time, not its own threads."


def _advice(rest: list[Standing], rejected: float, derived: Derived) -> Iterator[str]:
    pairs = [c for it in rest for _, c in it.level if c is not None]
    needed = [c for c in pairs if c.answer == "open" and c.more_starts]
    if needed:
        yield _more(needed, derived)
    if any(c.answer == "untested" for c in pairs):
        yield "Run again with three starts or more of each switch: with fewer the noise is not known."
    limited = [it for it in rest if it.state == "tester-limited"]
    if any(it.at_line_rate for it in limited):
        yield "Use faster links or smaller frames, or compare the CPU cost: here the switches filled the links."
    if any(not it.at_line_rate for it in limited):
        yield "Give the tester more cores, or compare the CPU cost: here the tester was slower than the switches."
    if rejected > REJECTED_SOME:
        codes = Counter(r.code for t in derived.rejected for r in t.verdict.reasons if r.code in _REMEDIES)
        yield from (_REMEDIES[code] for code, _ in codes.most_common(MAX_REMEDIES))
        yield "Run planebench doctor, which names the programs and settings that disturb this host."
    if any(core.shared > SHARED_SOME * core.trials for core in derived.shared_cores):
        yield "Use a host without hyperthreads, or one that leaves whole cores to this machine: others used them, too."


def _more(needed: list[Comparison], derived: Derived) -> str:
    points, cost = len({c.point for c in needed}), price([derived.run])
    cells = {cell_id(result.point): result.point for result in derived.results}
    wanted = [Open(replace(cells[c.point], switch=""), (c.a, c.b), c.more_starts or 0) for c in needed]
    time = "" if cost is None else f", about {math.ceil(cost.minutes(wanted))} min in all"
    starts = max(c.more_starts or 0 for c in needed)
    return f"Up to {starts} more starts{time} would decide {points} open test point{'s' * (points > 1)}."
