# SPDX-License-Identifier: BSD-3-Clause
"""The changes of ``doctor --fix``, which ``doctor --undo`` reverts: safe, reversible, gone after a reboot.

:data:`TUNINGS` is the complete list. ``root`` is where /proc and /sys are: tests have a tree of their own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from planebench.host import facts as host_facts
from planebench.host.device_settings import DEVICE_SETTINGS
from planebench.host.journal import ROOT, ChangedValue, Journal, Setting, ValueOutcome
from planebench.host.memory import HUGEPAGE_BYTES, MB_PER_SWITCH, pages_for
from planebench.host.procfs import read_text

SWITCHES = 10
"""Enough for conext19, the largest suite: it has nine switches, and one of them (grout) needs more pages."""
HUGEPAGES = SWITCHES * pages_for(MB_PER_SWITCH)
SPARE_BYTES = 2 * 2**30
"""Memory that stays free of hugepages: programs, buffers, the page cache."""

Wanted = Callable[[Path, Path, str], str | None]
"""Returns the value for a file from root, file and present value; None leaves the file unchanged."""


@dataclass(frozen=True, slots=True)
class Tuning:
    """One tuning: ``code`` of the finding that it mends, the files (glob patterns), the value, the reason."""

    code: str
    files: tuple[str, ...]
    wanted: Wanted
    why: str


def _always(value: str) -> Wanted:
    return lambda root, file, old: value


def _performance(root: Path, file: Path, old: str) -> str | None:
    available = read_text(file.with_name("scaling_available_governors"))
    return "performance" if available is None or "performance" in available.split() else None


def _more_hugepages(root: Path, file: Path, old: str) -> str | None:
    """Return the pages of ten switches, or of as many as half of the memory holds that is available or already in
    such pages; None if none are added."""
    available_bytes = host_facts.meminfo(root).get("MemAvailable")
    if available_bytes is None or not old.isdigit():
        return None
    total_bytes = available_bytes + int(old) * HUGEPAGE_BYTES
    most = max(0, total_bytes - max(SPARE_BYTES, total_bytes // 2)) // HUGEPAGE_BYTES
    pages = min(HUGEPAGES, most - most % pages_for(MB_PER_SWITCH))
    return str(pages) if pages > int(old) else None


_CPUS = "/sys/devices/system/cpu"

TUNINGS: tuple[Tuning, ...] = (
    Tuning(
        "autogroup",
        ("/proc/sys/kernel/sched_autogroup_enabled",),
        _always("0"),
        "nice values of pollers apply across login sessions",
    ),
    Tuning(
        "governor",
        (f"{_CPUS}/cpu[0-9]*/cpufreq/scaling_governor",),
        _performance,
        "the CPU does not lower its clock between trials",
    ),
    Tuning("turbo", (f"{_CPUS}/intel_pstate/no_turbo",), _always("1"), "the clock does not depend on temperature"),
    Tuning("turbo", (f"{_CPUS}/cpufreq/boost",), _always("0"), "the clock does not depend on temperature"),
    Tuning(
        "c-states",
        (f"{_CPUS}/cpu[0-9]*/cpuidle/state[0-9]*/disable",),
        lambda root, file, old: "1" if host_facts.is_deep(file.parent) else None,
        "cores wake without delay",
    ),
    Tuning("kernel-threads", host_facts.DAMON_SWITCHES, _always("N"), "DAMON takes no time from a poller's core"),
    Tuning(
        "hugepages",
        ("/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages",),
        _more_hugepages,
        "packet buffers cause fewer TLB misses",
    ),
)


def plan(root: Path = ROOT) -> tuple[ChangedValue, ...]:
    """Return the changes of :func:`apply`, in its order. Reads only; files that this machine lacks are left out."""
    changes = []
    for tuning in TUNINGS:
        for file in (it for pattern in tuning.files for it in sorted(root.glob(pattern.lstrip("/")))):
            old = read_text(file)
            new = tuning.wanted(root, file, old) if old is not None else None
            if old is not None and new is not None and new != old:
                changes.append(ChangedValue(f"/{file.relative_to(root)}", old, new, tuning.why))
    return tuple(changes)


def commands(changes: Iterable[ChangedValue]) -> tuple[str, ...]:
    """Return the changes as shell commands, one for all CPUs."""
    every = ((re.sub(r"/cpu\d+/", "/cpu[0-9]*/", change.path), change.new) for change in changes)
    return tuple(dict.fromkeys(f"echo {new} | sudo tee {path}" for path, new in every))


def apply(state: Path, root: Path = ROOT) -> tuple[ValueOutcome, ...]:
    """Make the changes of :func:`plan`, which stay until :func:`undo`. Raises StoreError if nothing can be saved."""
    return _journal(state, root).apply(plan(root))


def undo(state: Path, root: Path = ROOT) -> tuple[ValueOutcome, ...]:
    """Restore everything that planebench changed, devices of runs that were killed included (:meth:`Journal.undo`)."""
    return _journal(state, root).undo()


def _journal(state: Path, root: Path) -> Journal:
    files = Setting(tuple(pattern for tuning in TUNINGS for pattern in tuning.files))
    return Journal(state, (files, *DEVICE_SETTINGS), root)
