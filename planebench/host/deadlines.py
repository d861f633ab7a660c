# SPDX-License-Identifier: BSD-3-Clause
"""How much longer to wait than on a usual machine: PLANEBENCH_PATIENCE=10 where everything takes ten times as long.

For emulated machines and the like. It stretches deadlines, after which something counts as failed, and nothing else: no
duration of a trial, no pause. So a run that meets its deadlines is the same with it as without.
"""

from __future__ import annotations

import os

from planebench.model.errors import UsageError

VARIABLE = "PLANEBENCH_PATIENCE"
MOST = 1000.0


def stretched(deadline_s: float) -> float:
    """A deadline in seconds, times the patience of this machine. Raises UsageError if that is none."""
    return deadline_s * deadline_factor()


def deadline_factor() -> float:
    """The factor, 1 unless $PLANEBENCH_PATIENCE has another. Raises UsageError for one that is no number from 1 on."""
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
