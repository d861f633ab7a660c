# SPDX-License-Identifier: BSD-3-Clause
"""How far a run can be trusted: the test points that it decides, what the host did meanwhile, and what would help."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Literal

from planebench.analysis.compare import Derived, Open, price
from planebench.analysis.counting import cell_id, saturating
from planebench.analysis.disturbance import SharedCore, disturbed_switches, shared_cores
from planebench.analysis.standings import DECIDED, Standing, Standings
from planebench.model.reasons import ReasonCode
from planebench.model.records import VerdictKind
from planebench.model.results import Comparison
from planebench.model.time_had import is_disturbed, stood_in
from planebench.model.words import percent, point_name, reasons, several
from planebench.report.trials import causes

Confidence = Literal["high", "medium", "low"]

DECIDED_FEW, DECIDED_MOST = 0.5, 0.9
"""Shares of decided test points: below them confidence is low, or medium at best."""
DISTURBED_SOME = 0.25
"""The share of disturbed trials from which on there is advice."""
SHARED_SOME = 0.1
"""The share of trials with a shared core from which on there is advice."""
CAUSE_LENGTH = 110
_REMEDIES = {
    ReasonCode.CPU_WAIT: "Stop other programs or isolate the CPUs of switch and tester: they waited for other threads.",
    ReasonCode.POLL_GAPS: "Keep interrupts and other programs off the CPUs of the tester: it was interrupted.",
    ReasonCode.STEAL: "Use a host whose CPUs no other guest uses, or pin the virtual CPUs: the hypervisor took time.",
    ReasonCode.DISTANCE_CHANGED: "Pin the virtual CPUs on their host: it moved them between near and far cores.",
    ReasonCode.OTHER_CLOCK: "Fix the clock of the CPUs: the switch did not run at the one that was asked for.",
}
MAX_POINTS = 4
"""Test points that a line names."""


@dataclass(frozen=True, slots=True)
class Trust:
    """What is decided, which is a level of confidence, what else is to be known, and what to do, in sentences."""

    level: Confidence
    title: str
    facts: tuple[str, ...]
    advice: tuple[str, ...]


def trust(standings: Standings) -> Trust:
    """Return how far a run can be trusted: by the share of the test points that it decides."""
    derived = standings.derived
    found = standings.compared
    decided = sum(it.state in DECIDED for it in found)
    has_figure = any(it.trials for it in derived.results)
    share = decided / len(found) if found else float(has_figure)
    level: Confidence = "low" if share < DECIDED_FEW else "medium" if share < DECIDED_MOST else "high"
    return Trust(
        level,
        _decided_words(len(found), decided, len({it.point.switch for it in derived.results}) if has_figure else 0),
        (
            *_sampled_words(derived),
            *_host_words(derived),
            *_shared_words(shared_cores(derived.run.trials)),
            *([f"{derived.drift}; comparisons are paired and not affected.".capitalize()] if derived.drift else ()),
            *_invalid_words(derived),
        ),
        tuple(_advice([it for it in found if it.state not in DECIDED], derived)),
    )


def nothing_decided(derived: Derived) -> str:
    """Return that a run which came to its end has no answer, and what to do; empty if it has one, or compares nothing.

    It has none where all its trials are functional, and where no test point with two switches or more is decided.
    """
    functional = [trial for trial in derived.run.trials if trial.verdict.kind is VerdictKind.FUNCTIONAL]
    if functional and not any(result.trials for result in derived.results):
        why = reasons(tuple(dict.fromkeys(text for trial in functional for text in trial.verdict.texts)), CAUSE_LENGTH)
        return f"no test point has a rate, only packet counts, because this was a functional check: {why}"
    standings = Standings(derived)
    found = standings.compared
    if not found or any(it.state in DECIDED for it in found):
        return ""
    return (
        f"{_decided_words(len(found), 0, len(derived.run.switch_labels))}. {' '.join(trust(standings).advice)}".rstrip()
    )


def nothing_measured(derived: Derived) -> str:
    """Return why no trial of a run took place, and what to do; empty if one did, or if it was a functional check."""
    run = derived.run
    trials = [trial for trial in run.trials if trial.role != "warmup"]
    functional = any(trial.verdict.kind is VerdictKind.FUNCTIONAL or trial.role == "outage" for trial in trials)
    if functional or any(result.trials for result in derived.results):
        return ""
    if not trials:
        why = "; ".join(dict.fromkeys(f"{it.what}: {' '.join(it.reason.split())}" for it in run.skipped))
        return f"no trial was run{f': {why}' if why else ''}"
    kinds = Counter(trial.verdict.kind for trial in trials)
    verdicts = ", ".join(f"{kinds[kind]} {kind.value}" for kind in VerdictKind if kinds[kind])
    found = [f"no trial counts ({verdicts})"]
    found += [f"most frequent cause: {reasons((group.text,), CAUSE_LENGTH)}" for group in causes(derived.invalid)[:1]]
    how = "`planebench switch check NAME` tests a switch alone, and the report has the reason of each trial"
    return f"{'; '.join(found)}. {how}"


def points_without_figure(derived: Derived) -> str:
    """Return the rates that are missing, as no trial counts there, and it was no functional check; empty if none is."""
    functional = {trial.point for trial in derived.run.trials if trial.verdict.kind is VerdictKind.FUNCTIONAL}
    without = [point_name(it.point) for it in derived.results if not it.trials and it.point not in functional]
    if not without:
        return ""
    shown = ", ".join(without[:MAX_POINTS]) + (f" and {len(without) - MAX_POINTS} more" * (len(without) > MAX_POINTS))
    return (
        f"{len(without)} of {len(derived.results)} rates are missing, as no trial counts: {shown}; "
        f"`planebench report {derived.run.header.run_id}` has the reasons"
    )


def _decided_words(found: int, decided: int, switches: int) -> str:
    if not found:
        why = "the run has no result" if not switches else "the run has one switch" if switches == 1 else ""
        return f"Nothing to compare: {why or 'no test point has two switches'}"
    return f"{decided} of {found} test points {'is' if decided == 1 else 'are'} decided at 95 %"


def _sampled_words(derived: Derived) -> Iterator[str]:
    """Say what is not known of the frames whose bytes nobody looked at."""
    directions = [d for trial in derived.run.trials for d in trial.directions if d.unchecked_packets]
    if directions:
        share = 1 - sum(d.unchecked_packets for d in directions) / sum(d.forwarded_packets for d in directions)
        yield (
            f"Trials without probes were checked by samples (--check sampled), {percent(share)} of their frames: in "
            "others duplicates, reordering, damage, and foreign frames of the same length, went unseen."
        )


def _host_words(derived: Derived) -> Iterator[str]:
    """Say what the host took from the pollers; it is in the figures, and in their intervals."""
    measured = saturating(derived.run.trials).trials
    disturbed = sum(map(is_disturbed, measured))
    if disturbed:
        share = fmean(1 - stood_in(t).had for t in measured)
        yield (
            f"The host kept pollers from their CPUs in {disturbed} of {len(measured)} saturating trials, "
            f"{percent(share)} of the time in all: rates are per time that they had."
        )
    for it in disturbed_switches(derived.run.trials):
        yield (
            f"{it.switch} lost more of its time to others than the other switches in the same blocks "
            f"({percent(it.share)} and {percent(it.share_of_others)}): its intervals contain its rates as counted, too."
        )
    bands = Counter(t.band for t in measured if t.band is not None)
    if len(bands) > 1:
        parts = " and ".join(f"{band} in {n}" for band, n in bands.most_common())
        yield f"The cores of switch and tester were {parts} trials; switches are compared where both had the same."


def _shared_words(cores: Sequence[SharedCore]) -> Iterator[str]:
    """Say how often another hyperthread had a part of the cores: figures of trials differ by that."""
    shared = [core for core in cores if core.shared]
    if not shared:
        return
    uses = " and ".join(f"that of the {core.owner} in {core.shared} of {core.trials} trials" for core in shared)
    left = percent(min(core.least for core in shared))
    yield f"Another hyperthread used a core, {uses}, and left {left} of it at the least."


def _invalid_words(derived: Derived) -> Iterator[str]:
    if groups := causes(derived.invalid):
        trials = several(len(derived.invalid), "trial")
        yield f"{trials} did not take place: {reasons((groups[0].text,), CAUSE_LENGTH)}."


def _advice(rest: Sequence[Standing], derived: Derived) -> Iterator[str]:
    """Yield what would help, the first thing to do first: beside other programs more starts take long."""
    measured = saturating(derived.run.trials).trials
    if rest and sum(map(is_disturbed, measured)) > DISTURBED_SOME * len(measured):
        codes = Counter(r.code for t in measured for r in t.verdict.reasons if r.code in _REMEDIES)
        yield from (_REMEDIES[code] for code, _ in codes.most_common(1))
        yield "Run planebench doctor, which names the programs and settings that disturb this host."
    pairs = [c for it in rest for _, c in it.level if c is not None]
    opens = (it.undecided for it in rest if it.state == "open")
    needed = [c for found in opens if all(c and c.more_starts for c in found) for c in found if c]
    if needed:
        yield _more(needed, derived)
    if any(c.answer == "untested" for c in pairs):
        yield "Run again with three starts or more of each switch: with fewer the noise is not known."
    limited = [it for it in rest if it.state == "tester-limited"]
    if any(it.at_line_rate for it in limited):
        yield "Use faster links or smaller frames: here the switches filled the links."
    if any(not it.at_line_rate for it in limited):
        yield "Give the tester more cores: here it was slower than the switches."
    if rest and any(core.shared > SHARED_SOME * core.trials for core in shared_cores(derived.run.trials)):
        yield "Use a host without hyperthreads, or one that leaves whole cores to this machine: others used them, too."


def _more(needed: list[Comparison], derived: Derived) -> str:
    points, cost = len({c.point for c in needed}), price(derived.run)
    cells = {cell_id(result.point): result.point for result in derived.results}
    wanted = [Open(replace(cells[c.point], switch=""), (c.a, c.b), c.more_starts or 0) for c in needed]
    time = "" if cost is None else f", about {math.ceil(cost.minutes(wanted))} min in all"
    starts = max(c.more_starts or 0 for c in needed)
    return f"Up to {starts} more starts{time} would decide {several(points, 'open test point')}."
