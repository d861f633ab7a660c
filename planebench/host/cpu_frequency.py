# SPDX-License-Identifier: BSD-3-Clause
"""The clock of CPUs set by cpufreq for as long as something is measured, and put back.

The lowest and the highest frequency of a CPU are the same value meanwhile, whatever its governor is. ``root`` is where
/sys is: tests have a tree of their own.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

from planebench.host.journal import ROOT, Change, Journal, Setting, at
from planebench.host.procfs import read_text

FREQUENCY = Setting(
    tuple(f"/sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_{bound}_freq" for bound in ("min", "max"))
)
_WHY = "a switch is measured at a clock that was asked for"


def clock_refusal(cpus: Collection[int], mhz: int, root: Path = ROOT) -> str:
    """Return why these CPUs cannot run at a clock, as a sentence; empty if they can."""
    for cpu in sorted(cpus):
        bounds = [_khz(cpu, f"cpuinfo_{bound}_freq", root) for bound in ("min", "max")]
        if None in bounds:
            return (
                f"CPU {cpu} has no cpufreq, so nobody can set its clock (a virtual machine, or no driver); planed can "
                "emulate one: --switch planed --duty 0.5,1"
            )
        low, high = (khz // 1000 for khz in bounds if khz is not None)
        if not low <= mhz <= high:
            return f"CPU {cpu} runs at {low} to {high} MHz, not at {mhz}"
    return ""


@contextmanager
def fixed(cpus: Collection[int], mhz: int, journal: Journal) -> Iterator[None]:
    """Keep CPUs at a clock. Raises StartError, with nothing changed, if the system refuses."""
    changes = [change for cpu in sorted(cpus) for change in _changes(cpu, mhz * 1000, journal.root)]
    if changes:
        journal.apply_or_undo(changes, f"cannot set the clock to {mhz} MHz")
    try:
        yield
    finally:
        journal.undo_own({change.path for change in changes})


def _changes(cpu: int, khz: int, root: Path) -> Iterator[Change]:
    """Yield the changes of a CPU. The kernel refuses a lowest frequency above the highest one: the order matters."""
    highest = _khz(cpu, "scaling_max_freq", root) or 0
    for bound in ("max", "min") if khz > highest else ("min", "max"):
        path = f"/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_{bound}_freq"
        old = read_text(at(root, path))
        if old is not None and old != str(khz):
            yield Change(path, old, str(khz), _WHY)


def _khz(cpu: int, name: str, root: Path) -> int | None:
    text = read_text(at(root, f"/sys/devices/system/cpu/cpu{cpu}/cpufreq/{name}"))
    return int(text) if text and text.isdigit() else None
