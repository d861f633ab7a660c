# SPDX-License-Identifier: BSD-3-Clause
"""The programs that take CPU time from a measurement, by name."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from planebench.doctor.finding import Finding
from planebench.host.procfs import is_kernel_thread, process_ids, read_text, stat_fields
from planebench.model.words import percent, printable

LEAST_SHARE = 0.05
"""Programs with a smaller share of a CPU are not named."""
PROGRAMS_MAX = 4


@dataclass(frozen=True, slots=True)
class CpuTimes:
    """The CPU time of each process, in clock ticks, by process id and start; and when that was."""

    ticks: Mapping[tuple[int, str], int]
    at_ns: int


@dataclass(frozen=True, slots=True)
class Program:
    """A process and the share of a CPU that it took; above 1 if it used several."""

    pid: int
    name: str
    cpu_share: float


def cpu_times() -> CpuTimes:
    """Return the CPU time of all processes until now."""
    ticks: dict[tuple[int, str], int] = {}
    for pid in process_ids():
        if fields := stat_fields(pid):
            ticks[pid, fields[19]] = int(fields[11]) + int(fields[12])
    return CpuTimes(ticks, time.monotonic_ns())


def busy_programs(before: CpuTimes) -> tuple[Program, ...]:
    """Return the other programs that took CPU time since ``before``, busiest first. Kernel threads are none."""
    after, tick_ns = cpu_times(), 1e9 / os.sysconf("SC_CLK_TCK")
    elapsed_ns = max(after.at_ns - before.at_ns, 1)
    found = []
    for (pid, start), ticks in after.ticks.items():
        share = (ticks - before.ticks.get((pid, start), ticks)) * tick_ns / elapsed_ns
        if share >= LEAST_SHARE and pid != os.getpid() and not is_kernel_thread(pid):
            found.append(Program(pid, read_text(f"/proc/{pid}/comm") or "?", share))
    return tuple(sorted(found, key=lambda it: -it.cpu_share))


def programs_finding(programs: Sequence[Program]) -> Finding:
    """Return the finding on the programs that took CPU time while the machine was examined."""
    if not programs:
        return Finding("programs", "ok", f"no other program takes {percent(LEAST_SHARE)} of a CPU or more")
    named = [f"{printable(it.name)} (process {it.pid}) {percent(it.cpu_share)}" for it in programs[:PROGRAMS_MAX]]
    more = f" and {len(programs) - PROGRAMS_MAX} more" * (len(programs) > PROGRAMS_MAX)
    return Finding(
        "programs",
        "warning",
        f"other programs take CPU time: {', '.join(named)}{more}",
        "stop them or wait until they end, or keep them off the CPUs of pollers: `taskset -pc CPUS PROCESS`",
    )
