# SPDX-License-Identifier: BSD-3-Clause
"""The present scheduling of a thread, and the frequency of a CPU."""

from __future__ import annotations

import os
import re

from planebench.host.procfs import read_text
from planebench.model.conditions import ThreadConditions
from planebench.model.cpus import cpu_text

_POLICIES = {
    os.SCHED_OTHER: "SCHED_OTHER",
    os.SCHED_FIFO: "SCHED_FIFO",
    os.SCHED_RR: "SCHED_RR",
    os.SCHED_BATCH: "SCHED_BATCH",
    os.SCHED_IDLE: "SCHED_IDLE",
    6: "SCHED_DEADLINE",  # linux/sched.h; Python 3.11 has no name for it
}
_LAST_CPU = 36
"""Field ``processor`` of /proc/PID/task/TID/stat, counted from state."""


def thread_conditions(pid: int, tid: int, name: str) -> ThreadConditions | None:
    """Return affinity, policy, nice value and frequency of a thread; None if it is gone."""
    try:
        cpus = os.sched_getaffinity(tid)
        policy = os.sched_getscheduler(tid) & ~os.SCHED_RESET_ON_FORK
        nice = os.getpriority(os.PRIO_PROCESS, tid)
    except OSError:
        return None
    fields = (read_text(f"/proc/{pid}/task/{tid}/stat") or "").rpartition(")")[2].split()
    mhz = cpu_mhz(int(fields[_LAST_CPU])) if len(fields) > _LAST_CPU else None
    return ThreadConditions(name, cpu_text(cpus), _POLICIES.get(policy, str(policy)), nice, mhz)


def cpu_mhz(cpu: int) -> int | None:
    """Return the present frequency of a CPU from cpufreq, else from /proc/cpuinfo; None if unknown."""
    khz = read_text(f"/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_cur_freq")
    if khz and khz.isdigit():
        return round(int(khz) / 1000)
    return parse_mhz(read_text("/proc/cpuinfo") or "", cpu)


def parse_mhz(cpuinfo: str, cpu: int) -> int | None:
    """Return ``cpu MHz`` of a CPU in the text of /proc/cpuinfo; None if it has none (ARM, some virtual machines)."""
    for block in cpuinfo.split("\n\n"):
        if re.search(rf"^processor\s*:\s*{cpu}$", block, re.MULTILINE):
            found = re.search(r"^cpu MHz\s*:\s*([0-9]+(?:\.[0-9]+)?)$", block, re.MULTILINE)
            return round(float(found[1])) if found else None
    return None
