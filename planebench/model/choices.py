# SPDX-License-Identifier: BSD-3-Clause
"""The one sentence for a value that is not among the valid ones: names the thing, the value, the way out."""

from __future__ import annotations

from collections.abc import Collection
from difflib import get_close_matches

from planebench.model.errors import UsageError


def unknown(what: str, value: object, valid: Collection[str]) -> UsageError:
    """Return the error for an invalid ``value``: ``unknown scenario "p2q", did you mean p2p? Valid: p2p, ...``."""
    close = get_close_matches(str(value), list(valid), n=1, cutoff=0.5)
    hint = f", did you mean {close[0]}?" if close else "."
    return UsageError(f'unknown {what} "{value}"{hint} Valid: {", ".join(valid)}')
