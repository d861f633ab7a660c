# SPDX-License-Identifier: BSD-3-Clause
"""The searches of a run, found again from its trials: what was asked for is in the settings of the header."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from planebench.model.records import Point, Trial
from planebench.model.results import SearchResult
from planebench.search import SearchSettings, so_far

Settings = Mapping[str, str | int | float | bool | None]

R_PLUS = "r_plus"
"""Named among the searches of a run, but it is the throughput of a result and not listed as a search."""

_REAL = {
    "search_trial_duration_s": "trial_duration_s",
    "search_duration_sum_s": "duration_sum_s",
    "search_relative_width": "relative_width",
    "search_pdr_loss_ratio": "pdr_loss_ratio",
    "search_max_load_pps": "max_load_pps",
    "trial_duration_s": "r_plus_duration_s",
}
_WHOLE = {
    "search_max_r": "max_r",
    "search_burst_repetitions": "burst_repetitions",
    "repetitions": "repetitions",
    "restarts": "restarts",
}


def search_methods(settings: Settings) -> tuple[str, ...]:
    """The methods of ``settings["search"]`` without r_plus, each once, in order; none where the key is absent."""
    names = (name.strip() for name in str(settings.get("search") or "").split(","))
    return tuple(dict.fromkeys(name for name in names if name and name != R_PLUS))


def search_settings(settings: Settings, senders: int = 1) -> SearchSettings:
    """How the searches of a run were done; a key that is absent or None means the default of SearchSettings.

    ``senders``: how many directions send; ``max_rate_pps`` of the header is the rate of one.
    """
    values: dict[str, float | int] = {}
    if (rate_pps := settings.get("max_rate_pps")) is not None:
        values["max_load_pps"] = float(rate_pps) * senders
    values |= {name: int(value) for key, name in _WHOLE.items() if (value := settings.get(key)) is not None}
    values |= {name: float(value) for key, name in _REAL.items() if (value := settings.get(key)) is not None}
    return SearchSettings(**values)  # type: ignore[arg-type]


def run_searches(
    settings: Settings, point: Point, trials: Sequence[Trial], band: str | None
) -> tuple[SearchResult, ...]:
    """What each search of the run has found on a point so far. ``band``: the one that the run is compared in."""
    senders = 2 if point.direction == "bidirectional" else 1
    how = search_settings(settings, senders)
    return tuple(_in_best_band(method, how, point, trials, band) for method in search_methods(settings))


def _in_best_band(
    method: str, how: SearchSettings, point: Point, trials: Sequence[Trial], band: str | None
) -> SearchResult:
    """In the band of the run; where the search did not end there, in one where it did: the result says which."""
    others = Counter(t.band for t in trials if t.role == "search" and t.band not in (band, None))
    wanted = so_far(method, how, point, trials, band)
    if wanted.complete:
        return wanted
    found = (so_far(method, how, point, trials, other) for other, _ in others.most_common())
    return next((result for result in found if result.complete), wanted)
