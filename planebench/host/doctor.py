# SPDX-License-Identifier: BSD-3-Clause
"""Is this machine fit to measure? Every finding says what it does to the numbers and how to change it.

:func:`examine` is a pure function of facts; :func:`diagnose` gathers the facts of this machine.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from planebench.host import facts as host_facts
from planebench.host.facts import HostFacts, cpu_text
from planebench.switches import ADAPTERS
from planebench.switches.base import Found, NotFound

Level = Literal["ok", "warning", "problem"]
BUSY_LOAD = 0.5
"""Two pollers want two cores whole: half a core of other work shows in the numbers."""
MIN_HUGEPAGES_2M = 256
MIN_AVAILABLE_BYTES = 2 * 2**30
MIN_MEMLOCK_BYTES = 64 * 2**20
STEAL_SHARE = 0.01


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing looked at. ``remedy`` is empty when there is nothing to do."""

    code: str
    level: Level
    text: str
    remedy: str = ""


def diagnose() -> tuple[Finding, ...]:
    """Examine this machine and look for every switch. Starts nothing but ``--version``."""
    return examine(host_facts.collect(), {name: adapter.find() for name, adapter in ADAPTERS.items()})


def examine(facts: HostFacts, switches: Mapping[str, Found | NotFound] | None = None) -> tuple[Finding, ...]:
    """Judge a machine; ``switches`` is what the adapters found, by name. Pure."""
    found = [check(facts) for check in CHECKS]
    return (*found, *(_switch(name, what) for name, what in (switches or {}).items()))


def _cores(facts: HostFacts) -> Finding:
    count = facts.cores_allowed
    if count < 2:
        return Finding(
            "cores",
            "problem",
            f"one core (CPUs {cpu_text(facts.cpus_allowed)}): switch and tester share it, the numbers do not count",
            "use a machine with two cores or more, or allow this process more of them: `taskset -c 0-1 planebench ...`",
        )
    if count == 2:
        return Finding(
            "cores",
            "warning",
            "two cores: generator, monitor and all VNFs share one, so a fast switch is limited by the tester",
            "a third core takes the VNFs; on two, results say when they are tester-limited",
        )
    return Finding("cores", "ok", f"{count} cores: CPUs {cpu_text(facts.cpus_allowed)}")


def _smt(facts: HostFacts) -> Finding:
    groups = ["+".join(str(cpu) for cpu in group) for group in facts.shared_cores]
    if groups:
        return Finding(
            "smt",
            "warning",
            f"CPUs {', '.join(groups)} share a core: a busy sibling costs a poller up to half its speed",
            "`echo off > /sys/devices/system/cpu/smt/control` (as root); else siblings of pollers are left idle",
        )
    return Finding("smt", "ok", "every CPU is a core of its own")


def _isolated(facts: HostFacts) -> Finding:
    if set(facts.isolated_cpus) & set(facts.cpus_online):
        return Finding("isolated", "ok", f"CPUs {cpu_text(facts.isolated_cpus)} are isolated from the scheduler")
    last = max(facts.cpus_online)
    return Finding(
        "isolated",
        "warning",
        "no CPU is isolated: other programs and timer ticks interrupt the pollers, and trials repeat as disturbed",
        f"boot with `isolcpus={last} nohz_full={last} rcu_nocbs={last}` for the switch, more CPUs for tester and VNFs",
    )


def _cgroup(facts: HostFacts) -> Finding:
    limit = facts.cgroup_cpu_limit
    if limit is not None and limit < min(2, len(facts.cpus_allowed)):
        return Finding(
            "cgroup",
            "problem",
            f"the control group grants {limit:g} CPUs' worth of time: pollers are throttled in the middle of a trial",
            "raise the limit: `docker run --cpus=2`, `systemctl set-property ... CPUQuota=`, or cpu.max of the group",
        )
    return Finding("cgroup", "ok", "no CPU limit of a control group in the way")


def _tsc(facts: HostFacts) -> Finding:
    missing = [name for name in ("constant_tsc", "nonstop_tsc") if not getattr(facts, name)]
    if missing:
        return Finding(
            "tsc",
            "problem",
            f"the CPU lacks {', '.join(missing)}: rates and latencies are timed with a clock that changes speed",
            "measure on another machine; in a VM, pass the host's CPU through (`-cpu host,+invtsc` in QEMU)",
        )
    return Finding("tsc", "ok", "the time stamp counter runs at constant speed")


def _virtualised(facts: HostFacts) -> Finding:
    if facts.hypervisor is None:
        return Finding("virtualised", "ok", "bare metal")
    return Finding(
        "virtualised",
        "warning",
        f"a virtual machine ({facts.hypervisor}): the host may move the CPUs between near and far cores in mid-run, "
        "which changes throughput by a factor of two",
        "pin the virtual CPUs on the host; planebench measures the core distance and compares within one band only",
    )


def _steal(facts: HostFacts) -> Finding:
    if facts.steal_share >= STEAL_SHARE:
        return Finding(
            "steal",
            "warning",
            f"the hypervisor gave {facts.steal_share:.1%} of the CPU time since boot to others",
            "use a machine with dedicated CPUs; trials with steal are repeated",
        )
    return Finding("steal", "ok", f"{facts.steal_share:.1%} of CPU time stolen since boot")


def _autogroup(facts: HostFacts) -> Finding:
    if facts.autogroup:
        raised = "; planebench raises the groups of its pollers" if facts.can_raise_priority else ""
        return Finding(
            "autogroup",
            "warning",
            "kernel.sched_autogroup_enabled=1: nice values hold within a login session only, a build in another shell "
            f"takes half a poller's core{raised}",
            "`sysctl kernel.sched_autogroup_enabled=0` (as root)",
        )
    return Finding("autogroup", "ok", "no scheduling by login session")


def _load(facts: HostFacts) -> Finding:
    load = facts.load_average_1m
    if load >= BUSY_LOAD:
        return Finding(
            "load",
            "warning",
            f"the machine is busy: load average {load:.2f} over the last minute",
            "see what runs with `top`, stop it or wait; a run that has just ended shows here too",
        )
    return Finding("load", "ok", f"load average {load:.2f}")


def _governor(facts: HostFacts) -> Finding:
    if facts.governor not in (None, "performance"):
        return Finding(
            "governor",
            "warning",
            f"frequency governor {facts.governor}: the CPU clocks down between trials and starts each one slowly",
            "`cpupower frequency-set -g performance` (as root)",
        )
    return Finding("governor", "ok", f"frequency governor {facts.governor or 'not visible (virtual machine)'}")


def _turbo(facts: HostFacts) -> Finding:
    if facts.turbo:
        return Finding(
            "turbo",
            "warning",
            "turbo is on: the clock depends on temperature and on what the other cores do",
            "`echo 1 > /sys/devices/system/cpu/intel_pstate/no_turbo`, or `echo 0 > .../cpu/cpufreq/boost` (as root)",
        )
    return Finding("turbo", "ok", "turbo is off" if facts.turbo is False else "turbo not visible")


def _hugepages(facts: HostFacts) -> Finding:
    if facts.hugepages_2m_free >= MIN_HUGEPAGES_2M or facts.hugepages_1g_free:
        return Finding(
            "hugepages", "ok", f"{facts.hugepages_2m_free} x 2 MiB and {facts.hugepages_1g_free} x 1 GiB hugepages free"
        )
    return Finding(
        "hugepages",
        "warning",
        f"{facts.hugepages_2m_free} free hugepages of 2 MiB: everything works on 4 KiB pages, but TLB misses slow "
        "every switch down, those with large buffer pools most",
        "`echo 1024 > /proc/sys/vm/nr_hugepages` (as root)",
    )


def _memory(facts: HostFacts) -> Finding:
    gib = facts.memory_available_bytes / 2**30
    if facts.memory_available_bytes < MIN_AVAILABLE_BYTES:
        return Finding(
            "memory",
            "warning",
            f"{gib:.1f} GiB of memory available: several switches with their buffers may not fit",
            "close other programs, or measure one switch at a time with `--switch`",
        )
    return Finding("memory", "ok", f"{gib:.1f} GiB of memory available")


def _root(facts: HostFacts) -> Finding:
    if facts.is_root:
        return Finding("root", "ok", "root: all wires and priorities are available")
    return Finding(
        "root",
        "warning",
        "not root: the virtio wire works, veth needs user namespaces, nothing can be tuned",
        "`sudo planebench ...` for hugepages, priorities and tuning",
    )


def _priority(facts: HostFacts) -> Finding:
    if facts.can_raise_priority:
        return Finding("priority", "ok", "pollers can run at nice -20")
    return Finding(
        "priority",
        "warning",
        "pollers run at the priority of everything else: any other program takes its share of their cores",
        "run as root, or allow it: `nice -20` in /etc/security/limits.conf (item `nice`), then log in again",
    )


def _memlock(facts: HostFacts) -> Finding:
    limit = facts.memlock_limit_bytes
    if limit is not None and limit < MIN_MEMLOCK_BYTES:
        return Finding(
            "memlock",
            "warning",
            f"at most {limit // 1024} KiB may be locked in memory: packet buffers can be swapped out",
            "`ulimit -l unlimited` (as root), or `memlock` in /etc/security/limits.conf",
        )
    return Finding("memlock", "ok", "memory can be locked")


CHECKS: tuple[Callable[[HostFacts], Finding], ...] = (
    _cores,
    _smt,
    _isolated,
    _cgroup,
    _tsc,
    _virtualised,
    _steal,
    _autogroup,
    _load,
    _governor,
    _turbo,
    _hugepages,
    _memory,
    _root,
    _priority,
    _memlock,
)


def _switch(name: str, what: Found | NotFound) -> Finding:
    """planed is the tester too: nothing runs without it. Any other switch that is missing stays out of comparisons."""
    if isinstance(what, Found):
        return Finding(f"switch-{name}", "ok", f"{name} {what.version} ({what.binary})")
    if name == "planed":
        return Finding(
            f"switch-{name}", "problem", "planed is not built; it is the tester too: nothing runs", what.remedy
        )
    return Finding(f"switch-{name}", "warning", f"{name} is not here: comparisons run without it", what.remedy)
