# SPDX-License-Identifier: BSD-3-Clause
"""The searches for a highest load, by what their standards ask: lengths of trials, how many, how exact."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from planebench.analysis.search.method import (
    CSIT_WIDTH,
    RFC2544_TRIAL_S,
    Method,
    Parameter,
    highest_load,
    short_trials,
    wide_bounds,
)
from planebench.analysis.search.task import Goal, Measure, SearchFinding, SearchSettings, SearchTask

CSIT_TRIAL_S = 1.0
CSIT_TRIALS = 21
CSIT_EXCEED_RATIO = 0.5
CSIT_PDR_LOSS_RATIO = 0.005
BSWLV_TRIAL_S = 1.0
PDR_TRIALS_AFTER_NDR = 17
"""The trials of NDR answer most of what PDR asks."""

EXCEED_MARGIN = 1e-6
"""Added to an exceed ratio of (N-1)/N: sums of floats must not decide a tie."""


def csit_goal(settings: SearchSettings, loss_ratio: float) -> Goal:
    """Return the goal of FD.io CSIT: 21 trials of 1 s per load, half of which may exceed ``loss_ratio``.

    Shorter trials: as many of them. Longer ones: as many seconds.
    """
    trial_s = settings.duration_s or CSIT_TRIAL_S
    sum_s = settings.duration_sum_s or CSIT_TRIALS * min(trial_s, CSIT_TRIAL_S)
    return Goal(loss_ratio, CSIT_EXCEED_RATIO, trial_s, max(sum_s, trial_s), _width(settings))


def _rfc2544(settings: SearchSettings) -> Goal:
    """Return the goal of RFC 2544 section 26.1: one long trial loses nothing."""
    trial_s = settings.duration_s or RFC2544_TRIAL_S
    return Goal(0.0, 0.0, trial_s, trial_s, _width(settings))


def _bswlv(settings: SearchSettings) -> Goal:
    """Return the goal of ETSI GS NFV-TST 009 section 12.3.3: a load fails when max(r) trials in a row have lost."""
    n, trial_s = settings.max_r, settings.duration_s or BSWLV_TRIAL_S
    exceed = (n - 1) / n + EXCEED_MARGIN if n > 1 else 0.0
    return Goal(0.0, exceed, trial_s, n * trial_s, _width(settings))


def _width(settings: SearchSettings) -> float:
    return settings.relative_width or CSIT_WIDTH


def _search(goal: Callable[[SearchSettings], Goal]) -> Callable[[Measure, SearchTask, SearchFinding], None]:
    """Return a search for ``goal`` by MLRsearch, which is imported at first use because that takes seconds."""

    def search(measure: Measure, task: SearchTask, found: SearchFinding) -> None:
        from planebench.analysis.search.mlr import search_goal

        search_goal(measure, task, found, goal(task.settings))

    return search


def _from_csit(settings: SearchSettings) -> Iterator[str]:
    """Yield the departures from the goals of FD.io CSIT."""
    goal = csit_goal(settings, 0.0)
    trial_s, sum_s = goal.trial_s, goal.sum_s
    if trial_s != CSIT_TRIAL_S:
        yield f"trials of {trial_s:g} s; CSIT takes {CSIT_TRIAL_S:g} s"
    if sum_s != CSIT_TRIALS * CSIT_TRIAL_S:
        yield f"{sum_s:g} s of trials decide a load; CSIT takes {CSIT_TRIALS * CSIT_TRIAL_S:g} s"
    yield from (*wide_bounds(settings), *highest_load(settings))


def _from_csit_pdr(settings: SearchSettings) -> Iterator[str]:
    if settings.pdr_loss_ratio != CSIT_PDR_LOSS_RATIO:
        yield f"loss ratio {settings.pdr_loss_ratio:g}; CSIT takes {CSIT_PDR_LOSS_RATIO:g}"
    yield from _from_csit(settings)


def _from_rfc2544(settings: SearchSettings) -> Iterator[str]:
    """Yield the departures from RFC 2544 sections 24 and 26.1."""
    yield from (*short_trials(settings, RFC2544_TRIAL_S), *wide_bounds(settings), *highest_load(settings))


def _from_tst009(settings: SearchSettings) -> Iterator[str]:
    """Yield the departures from ETSI GS NFV-TST 009 as RFC 9971 (MLRsearch) states its goal."""
    trial_s = settings.duration_s or BSWLV_TRIAL_S
    if trial_s < RFC2544_TRIAL_S:
        yield f"trials of {trial_s:g} s; RFC 9971 gives {RFC2544_TRIAL_S:g} s for the TST 009 goal"
    yield from (*wide_bounds(settings), *highest_load(settings))


NDR = Method(
    name="ndr",
    title="NDR",
    short_name="NDR",
    help="highest load of which at least half of the time is without loss",
    standard="MLRsearch (RFC 9971), goals of FD.io CSIT",
    search=_search(lambda settings: csit_goal(settings, 0.0)),
    deviations=lambda settings: tuple(_from_csit(settings)),
    expected_trials=lambda settings: 45,
    standard_s=CSIT_TRIAL_S,
)
PDR = Method(
    name="pdr",
    title="PDR",
    short_name="PDR",
    help="highest load of which at least half of the time loses at most pdr_loss_ratio",
    standard=NDR.standard,
    search=_search(lambda settings: csit_goal(settings, settings.pdr_loss_ratio)),
    deviations=lambda settings: tuple(_from_csit_pdr(settings)),
    expected_trials=lambda settings: PDR_TRIALS_AFTER_NDR if "ndr" in settings.methods else 37,
    standard_s=CSIT_TRIAL_S,
)
RFC2544 = Method(
    name="rfc2544",
    title="RFC 2544 throughput",
    short_name="RFC 2544",
    help="highest load of which one long trial loses nothing",
    standard="RFC 2544 section 26.1",
    search=_search(_rfc2544),
    deviations=lambda settings: tuple(_from_rfc2544(settings)),
    expected_trials=lambda settings: 7,
    standard_s=RFC2544_TRIAL_S,
)
BSWLV = Method(
    name="bswlv",
    title="Binary search with loss verification",
    short_name="BSwLV",
    help="highest load at which not all of max(r) trials lose",
    standard="ETSI GS NFV-TST 009 section 12.3.3",
    search=_search(_bswlv),
    deviations=lambda settings: tuple(_from_tst009(settings)),
    expected_trials=lambda settings: 4 * settings.max_r,
    standard_s=BSWLV_TRIAL_S,
    parameters=(
        Parameter("max_r", "max_r", int, "BSwLV max(r): number of lossy trials after which a load is declared failed."),
    ),
)
