# SPDX-License-Identifier: BSD-3-Clause
"""rate_limiter in the micro-benchmark of network functions: one bucket, and one for each of many sources."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from nf_case import Case
from nf_flow_monitor import FLOWS, flow_frames


def cases(folder: Path) -> list[Case]:
    """The cases; files that they need go to ``folder``."""
    settings: dict[str, dict[str, Any]] = {
        "rate_limiter, one bucket": {},
        **{f"rate_limiter, {flows} sources": {"per": "source", "buckets_max": 131_072} for flows in FLOWS},
    }
    return [
        Case(name, {"kind": "rate_limiter", "settings": given}, flow_frames(flows))
        for (name, given), flows in zip(settings.items(), (1000, *FLOWS), strict=True)
    ]
