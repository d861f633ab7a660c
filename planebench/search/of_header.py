# SPDX-License-Identifier: BSD-3-Clause
"""Settings of the searches of a run before schema 8, whose header has no plan but a table of settings."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace

from pydantic import ValidationError

from planebench.model.closed import adapter
from planebench.model.errors import StoreError
from planebench.search.ask import SearchSettings
from planebench.search.method import METHODS

Settings = Mapping[str, str | int | float | bool | None]

R_PLUS = "r_plus"
"""Named among the searches of a run, but it is the throughput of a result and not listed as a search."""

_FIELDS = {
    "search_trial_duration_s": "duration_s",
    "search_duration_sum_s": "duration_sum_s",
    "search_relative_width": "relative_width",
    "search_pdr_loss_ratio": "pdr_loss_ratio",
    "search_max_r": "max_r",
    "search_burst_repetitions": "burst_repetitions",
    "trial_duration_s": "r_plus_duration_s",
    "max_rate_pps": "max_load_pps",
    "search_max_load_pps": "max_load_pps",
}
"""Key of a header -> field of SearchSettings."""


def methods_of_header(settings: Settings) -> tuple[str, ...]:
    """Return the methods of ``settings["search"]`` without r_plus, each once, in order; none where the key is absent.

    Raises StoreError for a method that there is not.
    """
    names = (name.strip() for name in str(settings.get("search") or "").split(","))
    methods = tuple(dict.fromkeys(name for name in names if name and name != R_PLUS))
    for name in methods:
        if name not in METHODS:
            raise _unreadable("search", name, f"not one of {', '.join(METHODS)}")
    return methods


def settings_of_header(settings: Settings, senders: int = 1) -> SearchSettings:
    """Return how the searches of a run were done; a key that is absent or None means the default of SearchSettings.

    ``senders``: how many directions send; ``max_rate_pps`` of the header is the rate of one. Raises StoreError, naming
    key and value, for a value that no plan can have.
    """
    given = {key: settings[key] for key in _FIELDS if settings.get(key) is not None}
    values = json.dumps({_FIELDS[key]: value for key, value in given.items()})
    try:
        found: SearchSettings = adapter(SearchSettings).validate_json(values)
    except ValidationError as error:
        detail = error.errors()[0]
        key = next(key for key in given if _FIELDS[key] == detail["loc"][0])
        raise _unreadable(key, given[key], detail["msg"]) from None
    if found.max_load_pps is None or "search_max_load_pps" in given:
        return found
    return replace(found, max_load_pps=found.max_load_pps * senders)


def _unreadable(key: str, value: object, why: str) -> StoreError:
    return StoreError(f'run.json: settings: {key} "{value}" is not valid: {why}. Correct it, or measure again')
