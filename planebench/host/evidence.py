# SPDX-License-Identifier: BSD-3-Clause
"""The effect of scheduler and hypervisor on polling threads during a trial; the scheduling of a thread."""

from __future__ import annotations

import os
import re
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from planebench.host.journal import ROOT
from planebench.host.procfs import read_text
from planebench.model.conditions import ThreadConditions
from planebench.model.cpus import cpu_text
from planebench.model.records import ThreadEvidence

Owner = Literal["switch", "tester", "vnf"]
_STEAL_FIELD = 7
"""Of a ``cpuN`` line in /proc/stat, after the name: user nice system idle iowait irq softirq steal."""
_LAST_CPU = 36
"""Field ``processor`` of /proc/PID/task/TID/stat, counted from state."""
_POLICIES = {
    os.SCHED_OTHER: "SCHED_OTHER",
    os.SCHED_FIFO: "SCHED_FIFO",
    os.SCHED_RR: "SCHED_RR",
    os.SCHED_BATCH: "SCHED_BATCH",
    os.SCHED_IDLE: "SCHED_IDLE",
    6: "SCHED_DEADLINE",  # linux/sched.h; Python 3.11 has no name for it
}
ACCOUNT_S = 0.002
"""The kernel counts a wait when it ends. In this pause the tester's threads run, so that their waits are counted."""


@dataclass(frozen=True, slots=True)
class ThreadRef:
    """A thread that polls packets, and whose it is."""

    pid: int
    tid: int
    name: str
    owner: Owner = "switch"


@dataclass(frozen=True, slots=True)
class ThreadCounts:
    """Counters of one thread since its start; ``cpu`` is where it ran last."""

    cpu: int
    run_ns: int
    wait_ns: int
    """Runnable, but not running."""
    involuntary_switches: int


ThreadSample = Mapping[ThreadRef, ThreadCounts]


class ThreadSampler:
    """Samples the scheduler's counters of some threads. A thread that is gone is missing from the sample.

    Reading takes about 100 us per thread, on a core that the tester's threads may poll: with 63 VNFs 1 % of a trial. So
    the first sample reads the tester's threads last, and later ones read them first: the reading of the others is
    outside the time between their two samples.
    """

    def __init__(self, threads: Iterable[ThreadRef]) -> None:
        self.threads = tuple(threads)
        self._opened = False
        """True after the first sample."""

    def sample(self) -> ThreadSample:
        """Return the counters now. The first sample sleeps for ``ACCOUNT_S`` before it reads the tester's threads."""
        tester = [thread for thread in self.threads if thread.owner == "tester"]
        others = [thread for thread in self.threads if thread.owner != "tester"]
        first, last = (tester, others) if self._opened else (others, tester)
        counts = {thread: read_counts(thread.pid, thread.tid) for thread in first}
        if not self._opened:
            time.sleep(ACCOUNT_S if tester else 0)
        counts |= {thread: read_counts(thread.pid, thread.tid) for thread in last}
        self._opened = True
        return {thread: count for thread in self.threads if (count := counts[thread]) is not None}

    @staticmethod
    def difference(before: ThreadSample, after: ThreadSample) -> tuple[ThreadEvidence, ...]:
        """Return the differences of the counters for the threads of both samples."""
        return tuple(
            ThreadEvidence(
                owner=thread.owner,
                thread=thread.name,
                cpu=count.cpu,
                run_ns=count.run_ns - before[thread].run_ns,
                wait_ns=count.wait_ns - before[thread].wait_ns,
                involuntary_switches=count.involuntary_switches - before[thread].involuntary_switches,
            )
            for thread, count in after.items()
            if thread in before
        )


@dataclass(frozen=True, slots=True)
class HostSample:
    """The kernel's counters of one host, or of several added up, at one time: of polling threads and of their CPUs."""

    threads: tuple[tuple[ThreadRef, ThreadCounts], ...]
    steal_ns: int
    interrupts: dict[str, int] | None

    def __add__(self, other: HostSample) -> HostSample:
        """Return the sum with the counters of another host; what one of the two does not know is unknown."""
        interrupts = None
        if self.interrupts is not None and other.interrupts is not None:
            interrupts = dict(Counter(self.interrupts) + Counter(other.interrupts))
        return HostSample((*self.threads, *other.threads), self.steal_ns + other.steal_ns, interrupts)


def sample_host(sampler: ThreadSampler, cpus: Iterable[int]) -> HostSample:
    """Return the counters of this host now, of the threads of a sampler and of ``cpus``."""
    cpus = tuple(cpus)
    return HostSample(tuple(sampler.sample().items()), steal_ns(cpus), interrupt_counts(cpus))


def interrupt_counts(cpus: Iterable[int], root: Path = ROOT) -> dict[str, int] | None:
    """Return the interrupts of these CPUs since boot by name (``LOC``, ``eth0-TxRx-3``); None if unknown.

    Take differences with :func:`count_difference`.
    """
    header, *lines = (read_text(root / "proc/interrupts") or "").splitlines() or [""]
    columns = [name.removeprefix("CPU") for name in header.split()]
    wanted = {number for number, cpu in enumerate(columns) if cpu.isdigit() and int(cpu) in set(cpus)}
    if not wanted:
        return None
    found = Counter[str]()
    for line in lines:
        name, _, rest = line.partition(":")
        fields = rest.split()
        counts = fields[: len(columns)]
        label = fields[-1] if name.strip().isdigit() and len(fields) > len(columns) else name.strip()
        found[label] += sum(int(count) for number, count in enumerate(counts) if number in wanted and count.isdigit())
    return dict(found)


def count_difference(before: Mapping[str, int] | None, after: Mapping[str, int] | None) -> dict[str, int] | None:
    """Return the interrupts from one count to the next by name, without those that did not come; None if unknown."""
    if before is None or after is None:
        return None
    return dict(Counter(after) - Counter(before))


def read_counts(pid: int, tid: int) -> ThreadCounts | None:
    """Return the counters of one thread; None if it is gone or the kernel keeps no schedstat."""
    base = f"/proc/{pid}/task/{tid}"
    schedstat, status, stat = (read_text(f"{base}/{name}") for name in ("schedstat", "status", "stat"))
    if not schedstat or not status or not stat:
        return None
    run_ns, wait_ns, _ = schedstat.split()
    switches = re.search(r"^nonvoluntary_ctxt_switches:\s*(\d+)$", status, re.MULTILINE)
    return ThreadCounts(
        cpu=int(stat.rpartition(")")[2].split()[_LAST_CPU]),
        run_ns=int(run_ns),
        wait_ns=int(wait_ns),
        involuntary_switches=int(switches[1]) if switches else 0,
    )


def steal_ns(cpus: Iterable[int]) -> int:
    """Return the time in ns that the hypervisor took from these CPUs since boot (steps of 10 ms). Take differences."""
    wanted = {f"cpu{cpu}" for cpu in cpus}
    ticks = 0
    for line in (read_text("/proc/stat") or "").splitlines():
        name, *fields = line.split()
        if name in wanted and len(fields) > _STEAL_FIELD:
            ticks += int(fields[_STEAL_FIELD])
    return ticks * 1_000_000_000 // os.sysconf("SC_CLK_TCK")


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
