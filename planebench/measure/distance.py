# SPDX-License-Identifier: BSD-3-Clause
"""Core-to-core latency: the round trip of a cache line between two CPUs, and its band (DESIGN section 4)."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from planebench.host.deadlines import stretched
from planebench.model.records import CoreDistance

NEAR_LIMIT_NS = 160.0
"""Between the two clusters seen on the development machines: 40 to 100 ns near, 220 to 390 ns far."""

TIMEOUT_S = 5.0


def band_of(median_ns: float) -> CoreDistance:
    """Return the band of a median round trip in ns."""
    return CoreDistance(median_ns, "near" if median_ns < NEAR_LIMIT_NS else "far")


def measure_distance(planed: Path, cpu_a: int, cpu_b: int) -> CoreDistance | None:
    """Measure the round trip between two CPUs for a few ms; None if that fails.

    The pollers on both CPUs must be paused.

    One CPU with itself is the band ``same``: there is nothing to measure.
    """
    if cpu_a == cpu_b:
        return CoreDistance(0.0, "same")
    try:
        done = subprocess.run(
            [str(planed), "--core-distance", f"{cpu_a},{cpu_b}"],
            capture_output=True,
            text=True,
            timeout=stretched(TIMEOUT_S),
            check=True,
            stdin=subprocess.DEVNULL,
        )
        return band_of(float(json.loads(done.stdout)["median_ns"]))
    except (OSError, ValueError, KeyError, subprocess.SubprocessError):
        return None
