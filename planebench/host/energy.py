# SPDX-License-Identifier: BSD-3-Clause
"""The energy that the machine takes: RAPL's counters of packages and memory, or the power that IPMI reports.

A machine that tells neither has no meter, and its energy is unknown, never zero. ``root`` is where /sys is.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from planebench.host.journal import ROOT
from planebench.host.procfs import read_text
from planebench.host.programs import find_program, run_tool

POWERCAP = "sys/class/powercap"
IPMITOOL_DEADLINE_S = 5.0
_WATTS = re.compile(r"^\s*Instantaneous power reading:\s*(\d+)\s*Watts", re.MULTILINE)


class Meter(Protocol):
    """A meter of energy."""

    name: str

    def read(self) -> MeterReading | None:
        """Return what it shows now; None if it cannot be read."""


@dataclass(frozen=True, slots=True)
class MeterReading:
    """A reading of a meter: counters in uJ by domain with the value at which each begins again, or a power."""

    at_ns: int
    counters_uj: Mapping[str, tuple[int, int]]
    watts: float | None = None


def energy_uj(before: MeterReading | None, after: MeterReading | None) -> int | None:
    """Return the energy between two readings; None if one is missing, or a domain is not in both.

    A counter that is lower than before has begun again once. Of a power it is the mean of both over the time.
    """
    if before is None or after is None or before.counters_uj.keys() != after.counters_uj.keys():
        return None
    if before.watts is not None and after.watts is not None:
        return round((before.watts + after.watts) / 2 * (after.at_ns - before.at_ns) / 1000)
    if not before.counters_uj:
        return None
    return sum(
        now - before.counters_uj[name][0] + (full + 1 if now < before.counters_uj[name][0] else 0)
        for name, (now, full) in after.counters_uj.items()
    )


class Rapl:
    """The counters of RAPL: each package, and its memory where that has a counter. Cores are part of their package."""

    name = "RAPL"

    def __init__(self, root: Path = ROOT) -> None:
        # ``psys`` contains the packages, ``core`` and ``uncore`` are parts of them.
        self._zones = {}
        for zone in sorted((root / POWERCAP).glob("intel-rapl:*")):
            name = read_text(zone / "name") or ""
            if name.startswith("package") or name == "dram":
                self._zones[zone.name] = zone

    def read(self) -> MeterReading | None:
        """Return all counters; None without any, and where one cannot be read (they are for root)."""
        at_ns, found = time.monotonic_ns(), {}
        for name, zone in self._zones.items():
            texts = [read_text(zone / file) for file in ("energy_uj", "max_energy_range_uj")]
            if not all(text and text.isdigit() for text in texts):
                return None
            now, full = (int(text) for text in texts if text)
            found[name] = (now, full)
        return MeterReading(at_ns, found) if found else None


class Ipmi:
    """The power of the whole server, by ``ipmitool dcmi power reading``."""

    name = "IPMI"

    def __init__(self, ask: Callable[[], str | None] | None = None) -> None:
        self._ask = ask or _ipmitool

    def read(self) -> MeterReading | None:
        """Return the power; None where the server reports none, or 0 W, as those without a sensor do."""
        found = _WATTS.search(self._ask() or "")
        watts = float(found[1]) if found else 0.0
        return MeterReading(time.monotonic_ns(), {}, watts) if watts else None


def _ipmitool() -> str | None:
    program = find_program("ipmitool")
    done = run_tool([program, "dcmi", "power", "reading"], IPMITOOL_DEADLINE_S) if program else None
    return done.stdout if done is not None and done.ok else None


def find_meter(root: Path = ROOT) -> Meter | None:
    """Return the meter of this machine: RAPL, which counts in ms, before IPMI; None if there is none."""
    meters: tuple[Meter, ...] = (Rapl(root), *([Ipmi()] if (root / "dev/ipmi0").exists() else []))
    return next((meter for meter in meters if meter.read() is not None), None)
