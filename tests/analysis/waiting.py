# SPDX-License-Identifier: BSD-3-Clause
"""What the host does to trials: a poller that waits for its CPU."""

from __future__ import annotations

from dataclasses import replace

from builders import SECOND_NS, make_evidence

from planebench.model.records import Evidence, ThreadEvidence


def waiting(share: float, band: str | None = "near") -> Evidence:
    """Return the evidence of a trial of one second in which the switch waited for this share of it."""
    thread = ThreadEvidence("switch", "worker", 1, 0, round(share * SECOND_NS), 0)
    return replace(make_evidence(band), threads=(thread,))
