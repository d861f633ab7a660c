# SPDX-License-Identifier: BSD-3-Clause
"""How searches were done in a run before schema 8, whose header has no plan: from the settings of the header."""

from __future__ import annotations

import math
from collections.abc import Mapping

from planebench.model.errors import StoreError
from planebench.search.ask import SearchSettings
from planebench.search.method import METHODS

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


def methods_of_header(settings: Settings) -> tuple[str, ...]:
    """Return the methods of ``settings["search"]`` without r_plus, each once, in order; none where the key is absent.

    Raises StoreError for a method that there is not.
    """
    names = (name.strip() for name in str(settings.get("search") or "").split(","))
    methods = tuple(dict.fromkeys(name for name in names if name and name != R_PLUS))
    for name in methods:
        if name not in METHODS:
            raise _unreadable("search", name, f"one of {', '.join(METHODS)}")
    return methods


def settings_of_header(settings: Settings, senders: int = 1) -> SearchSettings:
    """Return how the searches of a run were done; a key that is absent or None means the default of SearchSettings.

    ``senders``: how many directions send; ``max_rate_pps`` of the header is the rate of one. Raises StoreError, naming
    key and value, for a value that no plan can have.
    """
    values: dict[str, float | int] = {}
    if (rate_pps := _real("max_rate_pps", settings)) is not None:
        values["max_load_pps"] = rate_pps * senders
    values |= {name: n for key, (name, least) in _WHOLE.items() if (n := _whole(key, least, settings)) is not None}
    values |= {name: number for key, name in _REAL.items() if (number := _real(key, settings)) is not None}
    return SearchSettings(**values)  # type: ignore[arg-type]


def _real(key: str, settings: Settings) -> float | None:
    """Return a number above 0, for a share also below 1; None where the key is absent."""
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
