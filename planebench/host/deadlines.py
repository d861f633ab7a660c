# SPDX-License-Identifier: BSD-3-Clause
"""The factor for deadlines on a slow machine: PLANEBENCH_PATIENCE=10 where everything takes ten times as long.

For emulated machines and the like. It stretches the deadlines after which an operation counts as failed, and nothing
else: no duration of a trial, no pause. A run that meets its deadlines is the same with it as without.
"""

from __future__ import annotations

import os

from planebench.model.errors import UsageError

VARIABLE = "PLANEBENCH_PATIENCE"
MOST = 1000.0


def stretched(deadline_s: float) -> float:
    """Return a deadline in seconds times the factor of this machine. Raises UsageError for an invalid factor."""
    return deadline_s * deadline_factor()


def deadline_factor() -> float:
    """Return the factor in $PLANEBENCH_PATIENCE, or 1. Raises UsageError for an invalid factor."""
    text = os.environ.get(VARIABLE) or "1"
    try:
        factor = float(text)
    except ValueError:
        factor = 0.0
    if not 1 <= factor <= MOST:
        raise UsageError(
            f'{VARIABLE} "{text}" is not a valid timeout factor; give a number from 1 to {MOST:g}, or unset it'
        )
    return factor
