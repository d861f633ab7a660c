# SPDX-License-Identifier: BSD-3-Clause
"""Look for other hyperthreads on the cores of pollers, which no counter of a guest tells."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from planebench.doctor.finding import Finding
from planebench.measure.distance import measure_distance
from planebench.model.records import CoreDistance
from planebench.stats.shared_cores import best_speed, is_shared

LOOKS, LOOK_S = 20, 0.05
"""How often cores are measured to learn what they have at best, and the pause between two measurements: other guests
use a core for seconds or less, and seldom both cores all the time."""


def look_at_cores(planed: Path, cpus: Sequence[int]) -> Iterator[CoreDistance]:
    """Yield what several measurements of the first two CPUs within two seconds find, until one fails."""
    for number in range(LOOKS if len(cpus) > 1 else 0):
        if number:
            time.sleep(LOOK_S)
        distance = measure_distance(planed, cpus[0], cpus[1])
        if distance is None or not distance.additions_per_cycle:
            return
        yield distance


def sharing_findings(cpus: Sequence[int], looks: Sequence[CoreDistance]) -> tuple[Finding, ...]:
    """Return the finding on what the CPUs had at each look; none where nothing is known."""
    best = best_speed(looks)
    if best <= 0:
        return ()
    shared = [
        (cpu, sum(is_shared(speed, best) for speed in speeds), min(speeds) / best)
        for cpu, speeds in zip(cpus, zip(*(look.additions_per_cycle for look in looks), strict=True), strict=False)
    ]
    if not any(times for _, times, _ in shared):
        text = f"no other hyperthread used the cores of CPUs {cpus[0]} and {cpus[1]} in {len(looks)} looks"
        return (Finding("shared-cores", "ok", text),)
    which = " and ".join(f"CPU {cpu} in {times} of {len(looks)} looks" for cpu, times, _ in shared if times)
    text = (
        f"another hyperthread used the core of {which}, and left {min(least for *_, least in shared):.0%} of it at "
        "the least: on a Zen 4 host switches needed 1.1 to 1.6 times the cycles with it"
    )
    remedy = "use a machine without hyperthreads, or one that leaves whole cores to this one"
    return (Finding("shared-cores", "warning", text, remedy),)
