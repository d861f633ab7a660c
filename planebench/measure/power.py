# SPDX-License-Identifier: BSD-3-Clause
"""The clock of a switch's cores, and the energy of the machine, in a trial: further counters of the switch."""

from __future__ import annotations

import functools
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from planebench.host.cpu_frequency import fixed
from planebench.host.device_settings import device_journal
from planebench.host.energy import Meter, Reading, energy_uj, find_meter
from planebench.host.journal import Journal
from planebench.measure.dry_poll import core_mhz
from planebench.model.switch_figures import CORE_MHZ, DELIVERED, ENERGY_UJ, IDLE_ENERGY_UJ, WANTED_MHZ
from planebench.placement import Placement

IDLE_S = 0.5
"""How long the idle machine is metered. Every switch is stopped meanwhile."""


def clocked_cpus(placement: Placement) -> frozenset[int]:
    """Return the CPUs whose clock belongs to the server: those of switch and VNFs, without those of the tester."""
    return frozenset({*placement.switch_cpus, *placement.all_vnf_cpus} - set(placement.tester_cpus))


@contextmanager
def held_clock(
    mhz: int | None, placement: Placement, planed: Path, journal: Journal | None = None
) -> Iterator[dict[str, int]]:
    """Keep the CPUs of a server at a clock, and yield counters: the clock asked for, and at the end that found.

    Of the clocks before and after, and of all CPUs, it is the one that is furthest off. Nothing without ``mhz``.
    Raises StartError if the system refuses.
    """
    found: dict[str, int] = {}
    if mhz is None:
        yield found
        return
    found[WANTED_MHZ], cpus = mhz, clocked_cpus(placement)
    with fixed(cpus, mhz, journal or device_journal()):
        read = [*core_mhz(planed, cpus)]
        yield found
        read += core_mhz(planed, cpus)
    if read:
        found[CORE_MHZ] = max(read, key=lambda one: abs(one - mhz))


class EnergyAccount:
    """The meter of this machine, and the power of the machine when nothing is measured."""

    def __init__(self, meter: Meter, idle_s: float = IDLE_S) -> None:
        self.meter = meter
        before = meter.read()
        time.sleep(idle_s)
        self._idle = (before, meter.read())

    def counters(self, before: Reading | None, after: Reading | None, delivered: int) -> dict[str, int]:
        """Return the counters of a trial between two readings; what is not known is not among them."""
        used, idle = energy_uj(before, after), energy_uj(*self._idle)
        if used is None or before is None or after is None:
            return {}
        found = {ENERGY_UJ: used, DELIVERED: delivered}
        begin, end = self._idle
        if idle is None or begin is None or end is None or end.at_ns <= begin.at_ns:
            return found
        return {**found, IDLE_ENERGY_UJ: round(idle * (after.at_ns - before.at_ns) / (end.at_ns - begin.at_ns))}


@functools.cache
def energy_account() -> EnergyAccount | None:
    """Return the account of this machine, metered idle at the first call; None if it has no meter."""
    meter = find_meter()
    return None if meter is None else EnergyAccount(meter)
