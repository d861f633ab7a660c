# SPDX-License-Identifier: BSD-3-Clause
"""Is this machine fit to measure? Every finding says what it does to the numbers and how to change it.

:func:`examine` is a pure function of facts; :func:`diagnose` gathers the facts of this machine. Beside them it looks
for programs that take CPU time from a measurement.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import psutil

from planebench.host import facts as host_facts
from planebench.host.facts import HostFacts, cpus_of, kinds_text
from planebench.host.memory import MB_PER_SWITCH, pages_for, reserving
from planebench.host.pci import UIO_DRIVERS
from planebench.host.planed_program import BROKEN_REMEDY, replaced_planed
from planebench.host.procfs import is_kernel_thread, read_text, stat_fields
from planebench.host.programs import Found, NotFound
from planebench.measure.distance import dry_poll
from planebench.measure.tuning import HUGEPAGES, SWITCHES
from planebench.model.cpus import cpu_text
from planebench.model.header import CoreNoise
from planebench.model.words import percent, printable
from planebench.switches.overview import look
from planebench.switches.registry import all_adapters
from planebench.testbed.hosting.guest_image import kept_kernel
from planebench.testbed.hosting.qemu import kvm_failure
from planebench.testbed.hosting.registry import HOSTINGS
from planebench.testbed.placement import odd_cores, place

BUSY_LOAD = 0.5
"""Two pollers need two whole cores: half a core of other work affects the results."""
MIN_AVAILABLE_BYTES = 2 * 2**30
MIN_MEMLOCK_BYTES = 64 * 2**20
STEAL_SHARE = 0.01
NOISE_NS = 17_000
"""256 frames of 64 bytes at 14.88 Mpps come in this time: the smallest ring overflows."""
TSC_SHARE = 50e-6
"""Time stamp counters that differ by more do not tell the same time."""
MAX_NAMED = 4
"""Kernel threads named in one finding."""
LEAST_SHARE = 0.05
"""Programs with a smaller share of a CPU are not named."""
PROGRAMS_MAX = 4
Level = Literal["ok", "warning", "problem"]


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check. ``remedy`` is empty if there is nothing to do."""

    code: str
    text: str
    remedy: str = ""
    level: Level = "warning"


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
    for pid in psutil.pids():
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


def programs_findings(programs: Sequence[Program]) -> tuple[Finding, ...]:
    """Return the finding on the programs that took CPU time while the machine was examined, if there were any."""
    if not programs:
        return ()
    named = [f"{printable(it.name)} (process {it.pid}) {percent(it.cpu_share)}" for it in programs[:PROGRAMS_MAX]]
    more = f" and {len(programs) - PROGRAMS_MAX} more" * (len(programs) > PROGRAMS_MAX)
    text = f"other programs take CPU time: {', '.join(named)}{more}"
    remedy = "stop them or wait until they end, or keep them off the CPUs of pollers: `taskset -pc CPUS PROCESS`"
    return (Finding("programs", text, remedy),)


def switch_finding(name: str, what: Found | NotFound) -> Finding:
    """Return the finding on a switch. planed is also the tester: nothing runs without it."""
    if isinstance(what, Found):
        text = f"{name} {what.version} ({what.binary})"
        if name == "planed" and (replaced := replaced_planed(what.binary)):
            planed, complaint = replaced
            text += f" stands in for {planed}, which does not start: {complaint}. It has no drivers of NICs and AF_XDP"
            return Finding(f"switch-{name}", text, BROKEN_REMEDY)
        return Finding(f"switch-{name}", text, level="ok")
    if name == "planed":
        text = f"planed {what.problem}; it is also the traffic generator, so nothing can be measured"
        return Finding(f"switch-{name}", text, what.remedy, level="problem")
    return Finding(f"switch-{name}", f"{name} {what.problem}; it will be skipped", what.remedy)


def diagnose() -> tuple[Finding, ...]:
    """Examine this machine, look for every switch, and poll the CPUs of pollers without work: about two seconds."""
    before = cpu_times()
    facts = replace(host_facts.collect(), busy_kernel_threads=host_facts.sample_kernel_threads())
    switches = {name: look(adapter) for name, adapter in all_adapters().items()}
    hostings = {name: hosting.find() for name, hosting in HOSTINGS.items()}
    planed = switches["planed"]
    programs = busy_programs(before)
    binary = planed.binary if isinstance(planed, Found) else None
    noise = dry_poll(binary, tuple(sorted({*place(cpus_of(facts), 1).pollers}))) if binary else ()
    busy = (facts.load_average_1m or 0) >= BUSY_LOAD or bool(programs)
    kvm: tuple[Finding, ...] = ()
    vm = hostings["vm"]
    if isinstance(vm, Found) and (why := kvm_failure(vm.binary, kept_kernel())):
        text = f"VMs are emulated, so only their packet counts are valid, not rates or latencies: {why}"
        remedy = "enable virtualization in the firmware, and run as root or as a member of group kvm"
        kvm = (Finding("kvm", text, remedy),)
    return (
        *examine(facts, switches, hostings),
        *programs_findings(programs),
        *kvm,
        *tsc_findings(noise),
        *noise_findings(noise, busy=busy),
    )


def tsc_findings(noise: Sequence[CoreNoise]) -> tuple[Finding, ...]:
    """Return the finding on the rates of the time stamp counters of CPUs, if they differ."""
    rates_hz = {core.cpu: core.tsc_hz for core in noise if core.tsc_hz}
    if not rates_hz:
        return ()
    slow, fast = min(rates_hz, key=rates_hz.__getitem__), max(rates_hz, key=rates_hz.__getitem__)
    if rates_hz[fast] - rates_hz[slow] <= TSC_SHARE * rates_hz[slow]:
        return ()
    text = (
        f"the time stamp counter of CPU {slow} runs at {rates_hz[slow] / 1e6:.3f} MHz, that of CPU {fast} at "
        f"{rates_hz[fast] / 1e6:.3f} MHz: latencies between them are wrong"
    )
    return (Finding("tsc-rate", text, "measure on CPUs of one rate, or on another machine", level="problem"),)


def noise_findings(noise: Sequence[CoreNoise], *, busy: bool = False) -> tuple[Finding, ...]:
    """Return the finding on the noise of CPUs, if there is much. ``busy``: others use the machine."""
    worst = max(noise, key=lambda core: core.longest_gap_ns, default=None)
    if worst is None or worst.longest_gap_ns <= NOISE_NS:
        return ()
    longest_us, duration_s = worst.longest_gap_ns / 1000, worst.duration_ns / 1e9
    text = f"CPU {worst.cpu} did not poll for up to {longest_us:.0f} us in {duration_s:.1f} s"
    remedy = (
        "isolate the CPUs of pollers; the interrupts in the evidence of a trial say what came, and what no CPU can "
        "be kept from are SMIs of the firmware and the hypervisor of a virtual machine"
    )
    if busy:
        remedy = "the machine is busy: stop the other programs, then ask again"
    overflow = f"a ring of 256 frames at 10 Gbit/s overflows after {NOISE_NS / 1000:.0f} us"
    return (Finding("noise", f"{text}: {overflow}", remedy),)


def examine(
    facts: HostFacts,
    switches: Mapping[str, Found | NotFound] | None = None,
    hostings: Mapping[str, Found | NotFound] | None = None,
) -> tuple[Finding, ...]:
    """Return the findings on a machine and on the ``switches`` and ``hostings`` that were looked for, by name. Pure."""
    found = [*_cores(facts), *_time(facts), *_power_and_memory(facts), *_rights(facts), *_devices(facts)]
    found += [switch_finding(name, what) for name, what in (switches or {}).items()]
    for name, what in (hostings or {}).items():
        if isinstance(what, Found):
            text = f'VNF hosting "{name}" available: {what.version}'
            found.append(Finding(f"hosting-{name}", text, level="ok"))
        else:  # VNFs still run as tasks of the tester
            text = f'VNF hosting "{name}" not available'
            found.append(Finding(f"hosting-{name}", text, what.remedy))
    return tuple(found)


def _cores(facts: HostFacts) -> Iterator[Finding]:
    """Judge the cores on which planebench would poll, with one VNF: their number, siblings, kinds, and isolation."""
    allowed = cpu_text(facts.cpus_allowed)
    if facts.cores_allowed < 2:
        yield Finding(
            "cores",
            f"one core (CPUs {allowed}): switch and tester share it, so results are not valid",
            "use a machine with two cores or more, or allow this process more of them: `taskset -c 0-1 planebench ...`",
            level="problem",
        )
    elif facts.cores_allowed == 2:
        yield Finding(
            "cores",
            "only 2 cores: generator, monitor and VNFs share one, so fast switches will be tester-limited",
            "use 3 or more cores; tester-limited results are marked",
        )
    cpus = cpus_of(facts)
    pollers = set(place(cpus, 1).pollers)
    remedy = "`echo off | sudo tee /sys/devices/system/cpu/smt/control`"
    cores = {poller: tuple(sorted(facts.siblings.get(poller, frozenset()) | {poller})) for poller in pollers}
    both = sorted({core for core in cores.values() if len(pollers & set(core)) > 1})
    beside = sorted({core for core in cores.values() if set(core) & set(facts.cpus_online) - pollers})
    if both:
        yield Finding(
            "smt",
            f"pollers run on both threads of a core (CPUs {_groups(both)}): each thread slows the other by up to half",
            f"give planebench CPUs of more cores: `taskset -c ... planebench`; or {remedy}",
        )
    elif beside:
        yield Finding(
            "smt",
            f"CPUs {_groups(beside)} share a core, with a poller on one of them: planebench leaves the second thread "
            "idle, but any other program on it slows the poller by up to half",
            remedy,
        )
    kinds = kinds_text(facts.core_kinds)
    if odd := odd_cores(cpus, sorted(pollers)):
        text, _, remedy = "; ".join(odd).rpartition("; ")
        yield Finding("core-kinds", f"{text} (kinds of cores: {kinds})" if kinds else text, remedy)
    yield from _isolation(facts, pollers)
    limit = facts.cgroup_cpu_limit
    if limit is not None and limit < min(2, len(facts.cpus_allowed)):
        yield Finding(
            "cgroup",
            f"the cgroup CPU quota is {limit:g} CPUs: pollers are throttled during trials",
            "raise the quota: `docker run --cpus=2`, `systemctl set-property ... CPUQuota=`, or cpu.max of the group",
            level="problem",
        )


def _groups(groups: Sequence[Sequence[int]]) -> str:
    """Return groups of CPUs as ``0+4, 1+5``."""
    return ", ".join("+".join(str(cpu) for cpu in group) for group in groups)


def _isolation(facts: HostFacts, pollers: set[int]) -> Iterator[Finding]:
    """Judge whether the pollers have isolated CPUs; the remedy isolates those that pollers would have."""
    isolated = set(facts.isolated_cpus) & set(facts.cpus_online)
    outside = pollers - isolated
    advice = cpu_text(pollers - {min(facts.cpus_online)} or {max(facts.cpus_online)})
    boot = f"boot with `isolcpus={advice} nohz_full={advice} rcu_nocbs={advice}`: the CPUs of switch, tester and a VNF"
    if not isolated:
        text = "no CPU is isolated: other processes and timer ticks can preempt the pollers, which widens the intervals"
        yield Finding("isolated", text, boot)
    elif not isolated & set(facts.cpus_allowed):
        text = f"CPUs {cpu_text(isolated)} are isolated, but this process may not use them"
        remedy = (
            f"start planebench with `taskset -c {cpu_text(facts.cpus_online)} planebench ...`, or add the CPUs "
            "to cpuset.cpus of its control group"
        )
        yield Finding("isolated", text, remedy)
    elif len(outside) > 1:
        text = f"pollers run on CPUs {cpu_text(outside)}, which are not isolated (isolated: {cpu_text(isolated)})"
        yield Finding("isolated", text, boot)


def _time(facts: HostFacts) -> Iterator[Finding]:
    """Judge the clock that times everything, and who else gets time of the CPUs."""
    missing = [name for name in ("constant_tsc", "nonstop_tsc") if not getattr(facts, name)]
    if missing and host_facts.is_emulated(facts.cpu_model):  # never has the two flags
        yield Finding(
            "tsc",
            f"the CPU is emulated ({facts.cpu_model}); its time stamp counter keeps the emulator's rate",
            "take packet counts from here, no rates and latencies: they are the emulator's",
        )
    elif missing:
        yield Finding(
            "tsc",
            f"the CPU lacks {', '.join(missing)}: the clock that times rates and latencies changes speed",
            "measure on another machine; in a VM, pass the host's CPU through (`-cpu host,+invtsc` in QEMU)",
            level="problem",
        )
    if facts.hypervisor is not None:
        yield Finding(
            "virtualised",
            f"running in a VM ({facts.hypervisor}): the hypervisor may migrate vCPUs between near and far cores during "
            "a run, which changes throughput by a factor of two",
            "pin the vCPUs on the host; planebench measures the core distance of every trial, and shows what it "
            "explains",
        )
    if facts.steal_share >= STEAL_SHARE:
        yield Finding(
            "steal",
            f"the hypervisor has given {facts.steal_share:.1%} of the CPU time since boot to other guests (steal)",
            "use a machine with dedicated CPUs; what is stolen is taken off the time of a trial",
        )
    if facts.autogroup:
        raised = "; planebench raises the priority of its pollers' sessions" if facts.can_raise_priority else ""
        yield Finding(
            "autogroup",
            "kernel.sched_autogroup_enabled=1: nice values apply only within a login session, so a build in another "
            f"shell takes half of a poller's core{raised}",
            "`sudo sysctl kernel.sched_autogroup_enabled=0`",
        )
    load = facts.load_average_1m
    if load >= BUSY_LOAD:
        yield Finding(
            "load",
            f"the machine is busy: load average {load:.2f} over the last minute",
            "stop the other programs (`planebench doctor` names them) or wait; a run that ended within the last minute "
            "is included in this figure",
        )


def _power_and_memory(facts: HostFacts) -> Iterator[Finding]:
    """Judge the clock of the CPUs, and memory. Of hugepages planebench takes 2 MiB by default; DPDK takes 1 GiB too."""
    if facts.governor not in (None, "performance"):
        yield Finding(
            "governor",
            f"frequency governor {facts.governor}: the CPU lowers its clock between trials, so each trial starts "
            "slowly",
            "`sudo cpupower frequency-set -g performance`",
        )
    if facts.turbo:
        yield Finding(
            "turbo",
            "turbo is on: the clock depends on temperature and on the load of the other cores",
            "`echo 1 | sudo tee /sys/devices/system/cpu/intel_pstate/no_turbo`, or "
            "`echo 0 | sudo tee /sys/devices/system/cpu/cpufreq/boost`",
        )
    if facts.deep_c_states:
        yield Finding(
            "c-states",
            f"idle states {', '.join(facts.deep_c_states)} are enabled: a core wakes late from them, and the clock of "
            "the other cores changes",
            f"`sudo cpupower idle-set -D {host_facts.C1_LATENCY_US + 1}` (to enable them again: `cpupower idle-set "
            "-E`)",
        )
    small = f"{facts.hugepages_2m_free} of {facts.hugepages_2m_total} x 2 MiB"
    large = f"{facts.hugepages_1g_free} of {facts.hugepages_1g_total} x 1 GiB"
    if at_once := facts.hugepages_2m_free // pages_for(MB_PER_SWITCH):
        switches = "one switch" if at_once == 1 else f"{at_once} switches at once"
        yield Finding("hugepages", f"hugepages free: {small} (enough for {switches}), {large}", level="ok")
    elif facts.hugepages_1g_free:
        text = f"hugepages free: {small}, {large}; use `--hugepages` to let planebench take the 1 GiB pages"
        yield Finding("hugepages", text, level="ok")
    else:
        yield Finding(
            "hugepages",
            f"hugepages free: {small}, {large}; running with 4 KiB pages: TLB misses reduce throughput, most for "
            "switches with large buffer pools",
            f"{reserving(HUGEPAGES)}, which is enough for "
            f"{SWITCHES} switches at once ({pages_for(MB_PER_SWITCH)} each); for large tables reserve 1 GiB pages at "
            "boot: `hugepagesz=1G hugepages=4`",
        )
    gib = facts.memory_available_bytes / 2**30
    if facts.memory_available_bytes < MIN_AVAILABLE_BYTES:
        yield Finding(
            "memory",
            f"{gib:.1f} GiB of memory available: not enough for several switches and their buffers",
            "close other programs, or measure one switch at a time with `--switch`",
        )


def _rights(facts: HostFacts) -> Iterator[Finding]:
    """Judge what a container hides of the machine, and what this process may do."""
    if facts.container is not None:
        users = ", rootless" if facts.in_user_namespace else ""
        text = f"in a container ({facts.container}{users}): planebench sees only the processes of the container"
        yield Finding(
            "container",
            f"{text}; what else runs on its CPUs is known only by its effect on a trial, and `doctor --fix` cannot "
            "tune the machine",
            "keep other programs off these CPUs, and run `planebench doctor` on the machine itself, too",
        )
    lacked = ", ".join(facts.lacked_capabilities)
    if facts.is_root and lacked:
        yield Finding(
            "root",
            f"running as root without the capabilities {lacked}: virtio, vhost and memif wires work, veth needs user "
            "namespaces, and NICs, AF_XDP and switches of the kernel on a core of their own are not available",
            _granting(facts, f"the capabilities {lacked}", *(f"--cap-add={it}" for it in facts.lacked_capabilities)),
        )
    elif not facts.is_root:
        yield Finding(
            "root",
            "not running as root: virtio, vhost and memif wires work, veth needs user namespaces, and planebench "
            "cannot tune the host",
            "use `sudo planebench ...` for hugepages, priorities and tuning",
        )
    if not facts.can_raise_priority:
        limits = "set `nice -20` in /etc/security/limits.conf (item `nice`), then log in again"
        remedy = f"run as root, or {limits}"
        if facts.in_user_namespace:
            remedy = f"the user who starts the rootless container needs the right: {limits}"
        elif facts.container:
            remedy = _granting(facts, "the capability SYS_NICE", "--cap-add=SYS_NICE")
        text = "pollers run at normal priority: other processes can preempt them"
        yield Finding("priority", text, remedy)
    limit = facts.memlock_limit_bytes
    if limit is not None and limit < MIN_MEMLOCK_BYTES:
        remedy = "`ulimit -l unlimited` (as root), or `memlock` in /etc/security/limits.conf"
        if facts.container and not facts.in_user_namespace:
            remedy = _granting(facts, "the capability IPC_LOCK", "--cap-add=IPC_LOCK")
        text = f"at most {limit // 1024} KiB may be locked in memory: packet buffers can be swapped out"
        yield Finding("memlock", text, remedy)


def _granting(facts: HostFacts, what: str, *options: str) -> str:
    """Return how the container that we are in is given something by ``options`` of podman and docker."""
    if facts.container == "kubernetes":
        return f"add {what} to securityContext of the container"
    return f"start the container with `{' '.join(options)}`" if facts.container else f"run with {what}"


def _devices(facts: HostFacts) -> Iterator[Finding]:
    """Judge physical NICs, and the IOMMU for these only: no wire does DMA. Then threads of the kernel."""
    unsafe = [nic for nic in facts.nics if nic.driver in UIO_DRIVERS]
    bare = [nic for nic in facts.nics if not nic.has_iommu]
    if unsafe:
        yield Finding(
            "iommu",
            f"NIC {unsafe[0].address} is bound to {unsafe[0].driver}, which lets it write to any memory",
            f"`sudo dpdk-devbind.py --bind=vfio-pci {unsafe[0].address}`",
        )
    elif bare:
        yield Finding(
            "iommu",
            f"NIC {bare[0].address} (driver {bare[0].driver or 'none'}) is in no IOMMU group: VFIO cannot assign it "
            "to a switch safely",
            "enable VT-d or AMD-Vi in the firmware and boot with `intel_iommu=on iommu=pt` (AMD: `iommu=pt`)",
        )
    nodes = facts.nodes(facts.cpus_allowed)
    far = [nic for nic in facts.nics if nic.numa_node is not None and nic.numa_node not in nodes]
    if far:
        there = cpu_text(cpu for cpu in facts.cpus_online if far[0].numa_node in facts.nodes([cpu]))
        yield Finding(
            "nic-numa",
            f"NIC {far[0].address} is on NUMA node {far[0].numa_node}, the allowed CPUs on "
            f"{cpu_text(nodes)}: every packet crosses between sockets",
            f"allow CPUs of that node: `taskset -c {there or '...'} planebench ...`",
        )
    busy = facts.busy_kernel_threads
    if not busy:
        return
    named = ", ".join(f"{thread.name} {thread.cpu_share:.1%}" for thread in busy[:MAX_NAMED])
    more = f" and {len(busy) - MAX_NAMED} more" if len(busy) > MAX_NAMED else ""
    if facts.damon_switches and any(thread.name.startswith("kdamond") for thread in busy):
        remedy = "; ".join(f"`echo N | sudo tee {path}`" for path in facts.damon_switches)
    else:
        movable = [thread for thread in busy if thread.movable]
        spare = min(set(facts.cpus_online) - {place(cpus_of(facts), 1).switch_cpu}, default=0)
        move = f"`sudo taskset -pc {spare} {movable[0].pid}` moves it off the switch's core; " if movable else ""
        remedy = f"{move}boot with `isolcpus={max(facts.cpus_online)}` to keep movable kernel threads away"
    text = f"kernel threads take CPU time from the pollers (share of one core): {named}{more}"
    yield Finding("kernel-threads", text, remedy)
