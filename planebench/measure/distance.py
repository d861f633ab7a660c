# SPDX-License-Identifier: BSD-3-Clause
"""What CPUs are like to poll on: the round trip of a cache line between two of them, and the noise of each.

Measured with it: how much of their cores the two CPUs have (``planebench.analysis.disturbance``).
"""

from __future__ import annotations

import contextlib
import json
import math
import subprocess
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, cycle, islice
from pathlib import Path
from typing import Any

from planebench.host.process import stretched
from planebench.host.programs import run_tool
from planebench.model.header import CoreNoise
from planebench.model.records import CoreDistance

NEAR_LIMIT_NS = 160.0
"""The limit between near and far where the distances of a machine do not tell: they are unknown, or of one cluster."""
CLUSTER_RATIO = 1.6
"""Two clusters of distances are apart by this factor at least."""
CLUSTER_SHARE = 0.1
"""The smaller cluster has this share of the distances at least, and two of them: else it is an accident."""
SAMPLES_MIN = 10
SAMPLES_MAX = 28
"""Distances of a machine that are measured at a time: those of eight CPUs, each with each."""
SAMPLE_STEP_S = 0.05
"""The host of a virtual machine moves its CPUs: samples have some time between them."""

TIMEOUT_S = 5.0


def near_limit_ns(distances_ns: Sequence[float]) -> float:
    """Return the limit between near and far for a machine with these distances between its CPUs.

    It is in the widest gap between two clusters. Where there is only one, all of it is on one side of the limit, which
    is NEAR_LIMIT_NS if that is outside of the cluster.
    """
    found = sorted(distances_ns)
    if not found:
        return NEAR_LIMIT_NS
    least = max(2, math.ceil(CLUSTER_SHARE * len(found)))
    gaps = [(found[i] / found[i - 1], i) for i in range(least, len(found) - least + 1)]
    ratio, place = max(gaps, default=(1.0, 0))
    if ratio >= CLUSTER_RATIO:
        return math.sqrt(found[place] * found[place - 1])
    cluster = found[least - 1 : len(found) - least + 1] or found
    if math.sqrt(cluster[0] * cluster[-1]) < NEAR_LIMIT_NS:
        return max(NEAR_LIMIT_NS, cluster[-1] * math.sqrt(CLUSTER_RATIO))
    return min(NEAR_LIMIT_NS, cluster[0] / math.sqrt(CLUSTER_RATIO))


def band_of(
    median_ns: float,
    limit_ns: float = NEAR_LIMIT_NS,
    share_l3: bool | None = None,
    additions_per_cycle: Sequence[float] = (),
) -> CoreDistance:
    """Return the band of a median round trip in ns: ``near`` within one L3 cache, where ``share_l3`` tells."""
    near = median_ns < limit_ns if share_l3 is None else share_l3
    return CoreDistance(median_ns, "near" if near else "far", tuple(additions_per_cycle))


def measure_distance(
    planed: Path, cpu_a: int, cpu_b: int, limit_ns: float = NEAR_LIMIT_NS, share_l3: bool | None = None
) -> CoreDistance | None:
    """Measure the round trip between two CPUs for a few ms; None if that fails.

    The pollers on both CPUs must be paused. ``share_l3``: whether they share an L3 cache; None if that is not known,
    then ``limit_ns`` is the limit between near and far.

    One CPU with itself is the band ``same``: there is nothing to measure.
    """
    if cpu_a == cpu_b:
        return CoreDistance(0.0, "same")
    done = run_tool([planed, "--core-distance", f"{cpu_a},{cpu_b}"], TIMEOUT_S)
    if not done.ok:
        return None
    try:
        told = json.loads(done.stdout)
        speeds = [float(speed) for speed in told.get("additions_per_cycle", ())]
        return band_of(float(told["median_ns"]), limit_ns, share_l3, speeds)
    except (ValueError, KeyError):
        return None


REUSE_S = 0.5
"""What was measured after a trial stands for the time before the next one, which begins so soon on the same CPUs."""


@dataclass
class LastDistance:
    """The distance that was measured last, the CPUs that it is of, and when that was."""

    cpus: tuple[int, ...] = ()
    found: CoreDistance | None = None
    at_s: float = 0.0


def machine_distances_ns(planed: Path, cpus: Sequence[int]) -> Iterator[float]:
    """Yield distances between the CPUs, each with each and several times where they are few. They must be idle."""
    pairs = list(combinations(cpus, 2))[:SAMPLES_MAX]
    for cpu_a, cpu_b in islice(cycle(pairs), max(SAMPLES_MIN, len(pairs))):
        found = measure_distance(planed, cpu_a, cpu_b)
        if found is None:
            return
        yield found.median_ns
        time.sleep(SAMPLE_STEP_S)


# The noise of CPUs: planed polls each of them with nothing to do, and counts the gaps.

DURATION_S = 1.0
GRACE_S = 5.0


def dry_poll(planed: Path, cpus: Iterable[int], duration_s: float = DURATION_S) -> tuple[CoreNoise, ...]:
    """Poll these CPUs, all at once, and return what each of them did; a CPU that could not be polled is missing.

    ``duration_s``: at most DURATION_S. The CPUs must be idle.
    """
    wanted_ms = max(1, round(min(duration_s, DURATION_S) * 1000))
    found = []
    for told in _dry_polls(planed, cpus, wanted_ms):
        with contextlib.suppress(ValueError, KeyError, TypeError):
            gaps = tuple((int(least_ns), int(count)) for least_ns, count in told["gaps"])
            clock = told.get("tsc_hz") or None
            found.append(CoreNoise(told["cpu"], told["duration_ns"], told["longest_gap_ns"], gaps, clock))
    return tuple(found)


def core_mhz(planed: Path, cpus: Iterable[int]) -> tuple[int, ...]:
    """Return the clock of each of these idle CPUs as its core counts cycles; none for one that could not be read."""
    found = [told.get("core_mhz") for told in _dry_polls(planed, cpus, 1)]
    return tuple(mhz for mhz in found if isinstance(mhz, int))


def _dry_polls(planed: Path, cpus: Iterable[int], duration_ms: int) -> list[dict[str, Any]]:
    """Have planed poll each CPU, all at once, and return what it printed; without what is no object, or comes late."""
    started = []
    for cpu in sorted(set(cpus)):
        with contextlib.suppress(OSError):
            process = subprocess.Popen(
                [str(planed), "--dry-poll", f"{cpu},{duration_ms}"],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
            )
            started.append(process)
    found = []
    for process in started:
        with process:
            try:
                told = json.loads(process.communicate(timeout=stretched(DURATION_S + GRACE_S))[0])
            except (ValueError, subprocess.SubprocessError):
                process.kill()
                continue
        if isinstance(told, dict):
            found.append(told)
    return found
