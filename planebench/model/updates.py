# SPDX-License-Identifier: BSD-3-Clause
"""The FIB changes of the control of a VNF during a trial: a frozen record."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FibUpdates:
    """FIB messages of a VNF's control during a trial, in routes (a message has many).

    ``intended_per_s``: None where it sent as fast as it was acknowledged. ``refused``: acknowledged as not applied.
    """

    intended_per_s: float | None
    duration_ns: int
    sent: int
    acknowledged: int
    refused: int = 0

    @property
    def per_s(self) -> float:
        """Return the number of applied updates per second."""
        return self.acknowledged * 1e9 / self.duration_ns if self.duration_ns else 0.0
