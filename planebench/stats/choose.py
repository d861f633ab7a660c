# SPDX-License-Identifier: BSD-3-Clause
"""Which trials count, and what the ones that count are worth together (DESIGN sections 4 and 6)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from planebench.model.reasons import Reason, ReasonCode
from planebench.model.records import Trial, Verdict, VerdictKind

VALID, LIMITED = VerdictKind.VALID, VerdictKind.TESTER_LIMITED

FORCED_BANDS = ("near", "far")
"""Values of the setting ``band`` that choose it."""


@dataclass(frozen=True, slots=True)
class Choice:
    """The trials of a point that count, of one band, and the verdict they carry."""

    trials: tuple[Trial, ...]
    verdict: Verdict
    band: str | None


def run_band(trials: Iterable[Trial], forced: object = None) -> str | None:
    """Return the core-distance band that all switches are compared in: the one with most valid saturating trials.

    Tester-limited ones decide where as many are valid, and the near band where they do not. None where no trial knows
    its band. ``forced``: the setting ``band`` of the run's header; ``near`` or ``far`` wins over the majority, anything
    else is no wish.
    """
    if forced in FORCED_BANDS:
        return str(forced)
    saturating = [t for t in trials if t.role == "r_plus" and t.band is not None]
    valid, limited = (Counter(t.band for t in saturating if t.verdict.kind is kind) for kind in (VALID, LIMITED))
    return max(
        (*valid, *limited), key=lambda band: (valid[band], limited[band], band == "near", str(band)), default=None
    )


def choose(trials: Sequence[Trial], band: str | None, kinds: tuple[VerdictKind, ...] = (VALID, LIMITED)) -> Choice:
    """Return the trials that count: of the best of ``kinds`` (best first) that the wanted band has; else of another
    band.

    The wanted band comes first even where it has only tester-limited trials: a lower bound that can be compared says
    more than a figure that cannot. Without any trial of these kinds, ``trials`` is empty and the verdict collects why.
    """
    for candidate in _bands_to_try(trials, band):
        for kind in kinds:
            chosen = tuple(t for t in trials if t.verdict.kind is kind and t.band == candidate)
            if chosen:
                return Choice(chosen, Verdict(kind, _reasons(chosen) + foreign_band(candidate, band)), candidate)
    return Choice((), nothing_counts(trials), None)


def nothing_counts(trials: Sequence[Trial]) -> Verdict:
    """Return the verdict of a point none of whose trials count: the mildest kind among them, with every reason."""
    if not trials:
        return Verdict(VerdictKind.INVALID, (Reason(ReasonCode.NO_TRIAL, "no trial was run"),))
    order = (LIMITED, VerdictKind.UNSTABLE, VerdictKind.FUNCTIONAL, VerdictKind.DISTURBED, VerdictKind.INVALID)
    kinds = [t.verdict.kind for t in trials]
    worst = next((k for k in order if k in kinds), VerdictKind.INVALID)
    none = Reason(ReasonCode.NONE_COUNTS, f"none of {len(trials)} trials counts")
    return Verdict(worst, _reasons(trials) or (none,))


def _bands_to_try(trials: Sequence[Trial], wanted: str | None) -> list[str | None]:
    """Return the wanted band, then the others by number of trials, then trials that do not know theirs."""
    known = Counter(t.band for t in trials if t.band is not None and t.band != wanted)
    others: list[str | None] = [band for band, _ in known.most_common()]
    return list(dict.fromkeys([wanted, *others, None]))


def foreign_band(band: str | None, wanted: str | None) -> tuple[Reason, ...]:
    """Return the reason that goes with a figure of another band than the run is compared in; empty for one of that
    band."""
    if band == wanted:
        return ()
    here, there = ("on cores of unknown distance" if b is None else f"on {b} cores" for b in (band, wanted))
    text = f"measured {here}, the rest of the run {there}: not comparable"
    return (Reason(ReasonCode.OTHER_BAND, text),)


def is_foreign(verdict: Verdict) -> bool:
    """Return whether a verdict carries the reason of :func:`foreign_band`."""
    return verdict.has(ReasonCode.OTHER_BAND)


def _reasons(trials: Iterable[Trial]) -> tuple[Reason, ...]:
    """Return every reason once, in order, with how often it was given."""
    counts = Counter(reason for t in trials for reason in t.verdict.reasons)
    return tuple(replace(r, values={**r.values, "trials": n}) if n > 1 else r for r, n in counts.items())
