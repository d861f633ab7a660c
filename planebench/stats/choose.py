# SPDX-License-Identifier: BSD-3-Clause
"""The accepted trials of a point, and their common verdict (DESIGN sections 4 and 6)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from planebench.model.reasons import Reason, ReasonCode
from planebench.model.records import Trial, Verdict, VerdictKind

VALID, LIMITED = VerdictKind.VALID, VerdictKind.TESTER_LIMITED

FORCED_BANDS = ("near", "far")
"""Values of the setting ``band`` that choose it."""
LIMITED_SHARE_MAX = 0.2
"""A figure with more trials than this share that are lower bounds is one. Without those that are limited it would be
the mean of the slowest trials only."""


@dataclass(frozen=True, slots=True)
class Choice:
    """The accepted trials of a point, of one band, and their verdict."""

    trials: tuple[Trial, ...]
    verdict: Verdict
    band: str | None


def run_band(trials: Iterable[Trial], forced: object = None) -> str | None:
    """Return the core-to-core latency band in which all switches are compared: that with most usable saturating trials.

    Valid and tester-limited trials are alike here: which of the two a trial is depends on how fast the switch was, and
    a band chosen by it would prefer slow trials. The near band wins a tie. None where no trial knows its band.
    ``forced``: the setting ``band`` of the run's header; ``near`` or ``far`` wins over the majority, anything else is
    no wish.
    """
    if forced in FORCED_BANDS:
        return str(forced)
    usable = Counter(t.band for t in trials if t.role == "r_plus" and t.band is not None and is_usable(t))
    return max(usable, key=lambda band: (usable[band], band == "near", str(band)), default=None)


def is_of_other_group(trial: Trial, band: str | None, wish: object) -> bool:
    """Return whether a trial is of the core group that is not in ``band``, where the user wishes for both in turns.

    Nothing is wrong with such a trial. The figures of a run are of one group, so that it is not in them.
    """
    wrong = trial.verdict.kind in (VerdictKind.DISTURBED, VerdictKind.INVALID)
    return wish == "both" and not wrong and trial.band not in (None, band)


def is_usable(trial: Trial) -> bool:
    """Return whether a trial is valid or a lower bound."""
    return trial.verdict.kind is VALID or trial.verdict.kind.is_bound


def choose_saturating(trials: Sequence[Trial], band: str | None) -> Choice:
    """Return the usable trials in ``band`` if it has any, else those of another band.

    Their verdict is that of the bounds where more than LIMITED_SHARE_MAX of them are bounds, else valid: all of them
    are used either way. Every start is in it: one of which all trials were disturbed by its disturbed trials, because a
    slow start may be what disturbs them. Without usable trials, or where most starts are disturbed ones, ``trials`` is
    empty and the verdict says why.
    """
    usable = [t for t in trials if is_usable(t)]
    for candidate in _bands_to_try(usable, band):
        chosen = tuple(t for t in usable if t.band == candidate)
        if chosen:
            bounds = Counter(t.verdict.kind for t in chosen if t.verdict.kind.is_bound)
            is_bound = bounds.total() > LIMITED_SHARE_MAX * len(chosen)
            kind = bounds.most_common(1)[0][0] if is_bound else VALID
            instead = _of_disturbed_starts(trials, usable, candidate)
            starts, disturbed = len({t.start for t in chosen}), len({t.start for t in instead})
            if disturbed > starts:
                return Choice((), Verdict(VerdictKind.DISTURBED, _mostly_disturbed(disturbed, starts)), None)
            reasons = _reasons(chosen) + _disturbed_starts_reason(disturbed) + other_band_reason(candidate, band)
            return Choice(chosen + instead, Verdict(kind, reasons), candidate)
    return Choice((), nothing_counts(trials), None)


def with_disturbed(trials: Sequence[Trial], choice: Choice) -> tuple[Trial, ...]:
    """Return the trials of a choice and all disturbed ones of its band; empty where none was disturbed."""
    disturbed = [t for t in trials if t.verdict.kind is VerdictKind.DISTURBED and t.band == choice.band]
    if not choice.trials or not disturbed:
        return ()
    return (*(t for t in choice.trials if t.verdict.kind is not VerdictKind.DISTURBED), *disturbed)


def _of_disturbed_starts(trials: Sequence[Trial], usable: Sequence[Trial], band: str | None) -> tuple[Trial, ...]:
    """Return the disturbed trials, in a band, of the starts without any usable trial.

    No start of a switch is why another guest uses a core: trials with a shared core stay out where they are rejected.
    """
    measured = {t.start for t in usable}
    disturbed = (t for t in trials if t.verdict.kind is VerdictKind.DISTURBED and t.band == band)
    return tuple(t for t in disturbed if t.start not in measured and not t.verdict.has(ReasonCode.SHARED_CORE))


def _mostly_disturbed(disturbed: int, others: int) -> tuple[Reason, ...]:
    text = f"all trials of {disturbed} of {disturbed + others} starts were disturbed: those of the others are too few"
    return (Reason(ReasonCode.DISTURBED_STARTS, text, {"starts": disturbed}),)


def _disturbed_starts_reason(starts: int) -> tuple[Reason, ...]:
    if not starts:
        return ()
    text = f"all trials of {starts} start{'s' * (starts > 1)} were disturbed; they are used, because starts may differ"
    return (Reason(ReasonCode.DISTURBED_STARTS, text, {"starts": starts}),)


def choose(trials: Sequence[Trial], band: str | None, kinds: tuple[VerdictKind, ...]) -> Choice:
    """Return the trials of the best of ``kinds`` (best first) in ``band`` if it has any, else in another band.

    Without any trial of these kinds, ``trials`` is empty and the verdict collects why.
    """
    for candidate in _bands_to_try(trials, band):
        for kind in kinds:
            chosen = tuple(t for t in trials if t.verdict.kind is kind and t.band == candidate)
            if chosen:
                return Choice(chosen, Verdict(kind, _reasons(chosen) + other_band_reason(candidate, band)), candidate)
    return Choice((), nothing_counts(trials), None)


def nothing_counts(trials: Sequence[Trial]) -> Verdict:
    """Return the verdict of a point without accepted trials: the mildest kind among them, with every reason."""
    if not trials:
        return Verdict(VerdictKind.INVALID, (Reason(ReasonCode.NO_TRIAL, "no trial was run"),))
    order = (
        VerdictKind.LINE_RATE,
        LIMITED,
        VerdictKind.OVERLOAD,
        VerdictKind.UNSTABLE,
        VerdictKind.FUNCTIONAL,
        VerdictKind.DISTURBED,
        VerdictKind.INVALID,
    )
    kinds = [t.verdict.kind for t in trials]
    worst = next((k for k in order if k in kinds), VerdictKind.INVALID)
    none = Reason(ReasonCode.NONE_COUNTS, f"none of {len(trials)} trials counts")
    return Verdict(worst, _reasons(trials) or (none,))


def _bands_to_try(trials: Sequence[Trial], wanted: str | None) -> list[str | None]:
    """Return the wanted band, then the others by number of trials, then None for trials of unknown band."""
    known = Counter(t.band for t in trials if t.band is not None and t.band != wanted)
    others: list[str | None] = [band for band, _ in known.most_common()]
    return list(dict.fromkeys([wanted, *others, None]))


def other_band_reason(band: str | None, wanted: str | None) -> tuple[Reason, ...]:
    """Return the reason for a figure of another band than that of the run; empty for a figure of that band."""
    if band == wanted:
        return ()
    here, there = ("on cores of unknown distance" if b is None else f"on {b} cores" for b in (band, wanted))
    text = f"measured {here}, the rest of the run {there}: not comparable"
    return (Reason(ReasonCode.OTHER_BAND, text),)


def of_other_band(verdict: Verdict) -> bool:
    """Return whether a verdict has the reason of :func:`other_band_reason`."""
    return verdict.has(ReasonCode.OTHER_BAND)


def _reasons(trials: Iterable[Trial]) -> tuple[Reason, ...]:
    """Return every reason once, in order, with the number of its trials."""
    counts = Counter(reason for t in trials for reason in t.verdict.reasons)
    return tuple(replace(r, values={**r.values, "trials": n}) if n > 1 else r for r, n in counts.items())
