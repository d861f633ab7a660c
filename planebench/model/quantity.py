# SPDX-License-Identifier: BSD-3-Clause
"""Numbers as users write them, with k, M and G, in per cent or as a time; and moments as files have them."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated

from annotated_types import Predicate

SI: Mapping[str, float] = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9}
SHARES: Mapping[str, float] = {**SI, "%": 0.01}
SECONDS: Mapping[str, float] = {"": 1, "s": 1, "m": 60, "h": 3600}

_NUMBER = re.compile(r"((?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?)([a-zA-Z%]?)")
_WHOLE = re.compile(r"([0-9]{1,18})([a-zA-Z]?)")


def parse_number(text: str, units: Mapping[str, float] = SI) -> float | None:
    """Return the value of ``14.88M``, ``5e6``, or with other ``units`` of ``90s``; None for what is not a number."""
    match = _NUMBER.fullmatch(text.strip())
    if match is None or match[2] not in units:
        return None
    value = float(match[1]) * units[match[2]]
    return value if math.isfinite(value) else None


def parse_whole(text: str) -> int | None:
    """Return the value of ``1500``, ``64k`` or ``10G``, exactly; None for what is not a whole number from 0."""
    match = _WHOLE.fullmatch(text)
    return int(match[1]) * int(SI[match[2]]) if match and match[2] in SI else None


def utc_text(moment: datetime, timespec: str = "seconds") -> str:
    """Return a moment as RFC 3339 in UTC: ``2026-11-21T12:33:56Z``."""
    return moment.astimezone(UTC).isoformat(timespec=timespec).replace("+00:00", "Z")


def utc_now(timespec: str = "milliseconds") -> str:
    """Return the present moment as :func:`utc_text`."""
    return utc_text(datetime.now(UTC), timespec)


def is_moment(text: str) -> bool:
    """Return whether a text is a moment of this age as RFC 3339 has it, with its zone: all others cannot be shown."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return False
    return moment.tzinfo is not None and 1970 <= moment.year < 3000


Moment = Annotated[str, Predicate(is_moment)]
"""A moment as :func:`utc_text` has it. Text that is none is refused where it is read."""


def seconds_since_epoch(text: Moment) -> float:
    """Return the moment in an RFC 3339 text, as of :func:`utc_text`, in seconds."""
    return datetime.fromisoformat(text).timestamp()
