# SPDX-License-Identifier: BSD-3-Clause
"""The searches of a run, found again from its trials: what was asked for is in the settings of the header."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from planebench.model.errors import StoreError
from planebench.model.header import RunHeader
from planebench.model.records import Point, Trial, Verdict, VerdictKind
from planebench.model.results import SearchResult
from planebench.search import METHODS, SearchSettings, so_far
from planebench.stats.ceiling import near_ceiling, tester_ceiling_pps
from planebench.stats.choose import foreign_band

Settings = Mapping[str, str | int | float | bool | None]

R_PLUS = "r_plus"
"""Named among the searches of a run, but it is the throughput of a result and not listed as a search."""

_REAL = {
    "search_trial_duration_s": "duration_s",
    "search_duration_sum_s": "duration_sum_s",
    "search_relative_width": "relative_width",
    "search_pdr_loss_ratio": "pdr_loss_ratio",
    "search_max_load_pps": "max_load_pps",
    "trial_duration_s": "r_plus_duration_s",
}
_SHARES = ("search_relative_width", "search_pdr_loss_ratio")
_WHOLE = {
    "search_max_r": ("max_r", 1),
    "search_burst_repetitions": ("burst_repetitions", 1),
    "repetitions": ("repetitions", 1),
    "restarts": ("restarts", 0),
}
"""Key -> field of SearchSettings and the least that it may be."""


def search_methods(settings: Settings) -> tuple[str, ...]:
    """The methods of ``settings["search"]`` without r_plus, each once, in order; none where the key is absent.

    Raises StoreError for a method that there is not.
    """
    names = (name.strip() for name in str(settings.get("search") or "").split(","))
    methods = tuple(dict.fromkeys(name for name in names if name and name != R_PLUS))
    for name in methods:
        if name not in METHODS:
            raise _unreadable("search", name, f"one of {', '.join(METHODS)}")
    return methods


def search_settings(settings: Settings, senders: int = 1) -> SearchSettings:
    """How the searches of a run were done; a key that is absent or None means the default of SearchSettings.

    ``senders``: how many directions send; ``max_rate_pps`` of the header is the rate of one. Raises StoreError, naming
    key and value, for a value that no plan can have.
    """
    values: dict[str, float | int] = {}
    if (rate_pps := _real("max_rate_pps", settings)) is not None:
        values["max_load_pps"] = rate_pps * senders
    values |= {name: n for key, (name, least) in _WHOLE.items() if (n := _whole(key, least, settings)) is not None}
    values |= {name: number for key, name in _REAL.items() if (number := _real(key, settings)) is not None}
    return SearchSettings(**values)  # type: ignore[arg-type]


def run_searches(
    header: RunHeader, point: Point, trials: Sequence[Trial], band: str | None
) -> tuple[SearchResult, ...]:
    """What each search of the run has found on a point so far. ``band``: the one that the run is compared in.

    A bound near the ceiling of the tester's calibration is tester-limited. Raises StoreError for settings of the header
    that make no sense.
    """
    methods = search_methods(header.settings)
    if not methods:
        return ()
    how = search_settings(header.settings, 2 if point.direction == "bidirectional" else 1)
    ceiling_pps = tester_ceiling_pps(header.calibration, point)
    found = (_in_best_band(method, how, point, trials, band) for method in methods)
    return tuple(_below_ceiling(search, ceiling_pps) for search in found)


def _below_ceiling(search: SearchResult, ceiling_pps: float | None) -> SearchResult:
    if not search.complete or search.verdict.kind is not VerdictKind.VALID or search.lower_pps is None:
        return search
    reason = near_ceiling(search.lower_pps, ceiling_pps)
    if reason is None:
        return search
    return replace(search, verdict=Verdict(VerdictKind.TESTER_LIMITED, (*search.verdict.reasons, reason)))


def _in_best_band(
    method: str, how: SearchSettings, point: Point, trials: Sequence[Trial], band: str | None
) -> SearchResult:
    """In the band of the run; where the search did not end there, in one where it did: the result says which."""
    others = Counter(t.band for t in trials if t.role == "search" and t.band not in (band, None))
    wanted = so_far(method, how, point, trials, band)
    if wanted.complete:
        return wanted
    found = (so_far(method, how, point, trials, other) for other, _ in others.most_common())
    elsewhere = next((result for result in found if result.complete), None)
    if elsewhere is None:
        return wanted
    verdict = Verdict(elsewhere.verdict.kind, elsewhere.verdict.reasons + foreign_band(elsewhere.band, band))
    return replace(elsewhere, verdict=verdict)


def _real(key: str, settings: Settings) -> float | None:
    """A number above 0, for a share also below 1; None where the key is absent."""
    value, limit = settings.get(key), 1.0 if key in _SHARES else math.inf
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < limit:
        raise _unreadable(key, value, "a number between 0 and 1" if key in _SHARES else "a number above 0")
    return float(value)


def _whole(key: str, least: int, settings: Settings) -> int | None:
    value = settings.get(key)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise _unreadable(key, value, f"a whole number, at least {least}")
    return value


def _unreadable(key: str, value: object, valid: str) -> StoreError:
    return StoreError(f'run.json: settings: {key} "{value}" is not valid. Valid: {valid}. Mend it, or measure again')
