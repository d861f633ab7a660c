# SPDX-License-Identifier: BSD-3-Clause
"""The noise of CPUs: planed polls each of them with nothing to do, and counts the gaps."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from planebench.host.deadlines import stretched
from planebench.model.header import CoreNoise

DURATION_S = 1.0
GRACE_S = 5.0


def dry_poll(planed: Path, cpus: Iterable[int], duration_s: float = DURATION_S) -> tuple[CoreNoise, ...]:
    """Poll these CPUs, all at once, and return what each of them did; a CPU that could not be polled is missing.

    ``duration_s``: at most DURATION_S. The CPUs must be idle.
    """
    wanted_ms = max(1, round(min(duration_s, DURATION_S) * 1000))
    started = [_started(planed, cpu, wanted_ms) for cpu in sorted(set(cpus))]
    found = [_noise(process) for process in started if process is not None]
    return tuple(noise for noise in found if noise is not None)


def core_mhz(planed: Path, cpus: Iterable[int]) -> tuple[int, ...]:
    """Return the clock of each of these idle CPUs as its core counts cycles; none for one that could not be read."""
    started = [_started(planed, cpu, 1) for cpu in sorted(set(cpus))]
    found = [_told(process).get("core_mhz") for process in started if process is not None]
    return tuple(mhz for mhz in found if isinstance(mhz, int))


def _started(planed: Path, cpu: int, duration_ms: int) -> subprocess.Popen[str] | None:
    try:
        return subprocess.Popen(
            [str(planed), "--dry-poll", f"{cpu},{duration_ms}"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
    except OSError:
        return None


def _noise(process: subprocess.Popen[str]) -> CoreNoise | None:
    told = _told(process)
    try:
        gaps = tuple((int(least_ns), int(count)) for least_ns, count in told["gaps"])
        return CoreNoise(told["cpu"], told["duration_ns"], told["longest_gap_ns"], gaps, told.get("tsc_hz") or None)
    except (ValueError, KeyError, TypeError):
        return None


def _told(process: subprocess.Popen[str]) -> dict[str, Any]:
    """Return what planed printed; nothing if that is no object, or comes too late."""
    with process:
        try:
            found = json.loads(process.communicate(timeout=stretched(DURATION_S + GRACE_S))[0])
        except (ValueError, subprocess.SubprocessError):
            process.kill()
            return {}
    return found if isinstance(found, dict) else {}
