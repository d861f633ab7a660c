# SPDX-License-Identifier: BSD-3-Clause
"""The energy that the machine takes: RAPL's counters of packages and memory.

A machine that tells none has no meter, and its energy is unknown, never zero. ``root`` is where /sys is.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from planebench.host.journal import ROOT
from planebench.host.procfs import read_text

POWERCAP = "sys/class/powercap"


@dataclass(frozen=True, slots=True)
class MeterReading:
    """A reading of a meter: counters in uJ by domain with the value at which each begins again."""

    at_ns: int
    counters_uj: Mapping[str, tuple[int, int]]


def energy_uj(before: MeterReading | None, after: MeterReading | None) -> int | None:
    """Return the energy between two readings; None if one is missing, or a domain is not in both.

    A counter that is lower than before has begun again once.
    """
    if before is None or after is None or before.counters_uj.keys() != after.counters_uj.keys():
        return None
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


def find_meter(root: Path = ROOT) -> Rapl | None:
    """Return the meter of this machine; None if it has none, or for users who may not read it."""
    meter = Rapl(root)
    return meter if meter.read() is not None else None
