# SPDX-License-Identifier: BSD-3-Clause
"""Is this machine fit to measure? What is found, its remedy, and how a remedy is taken back."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from planebench.analysis.disturbance import best_speed, is_shared
from planebench.host import facts as host_facts
from planebench.host.facts import HostFacts, cpus_of, kinds_text
from planebench.host.memory import MB_PER_SWITCH, pages_for, reserving
from planebench.host.pci import UIO_DRIVERS
from planebench.host.planed_program import BROKEN_REMEDY, replaced_planed
from planebench.host.procfs import is_kernel_thread, process_ids, read_text, stat_fields
from planebench.host.programs import Found, NotFound
from planebench.measure.distance import dry_poll, measure_distance
from planebench.measure.tuning import HUGEPAGES, SWITCHES
from planebench.model.cpus import cpu_text
from planebench.model.header import CoreNoise
from planebench.model.records import CoreDistance
from planebench.model.words import percent, printable
from planebench.switches.overview import look
from planebench.switches.registry import all_adapters
from planebench.testbed.hosting.registry import HOSTINGS
from planebench.testbed.placement import Placement, odd_cores, place

# A finding of the doctor.

Level = Literal["ok", "warning", "problem"]


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check. ``remedy`` is empty if there is nothing to do."""

    code: str
    level: Level
    text: str
    remedy: str = ""


# The programs that take CPU time from a measurement, by name.

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


# Findings on programs that were looked for: switches, and VNF hostings.

KVM = "/dev/kvm"


def switch_finding(name: str, what: Found | NotFound) -> Finding:
    """Return the finding on a switch. planed is also the tester: nothing runs without it."""
    if isinstance(what, Found):
        text = f"{name} {what.version} ({what.binary})"
        if name == "planed" and (replaced := replaced_planed(what.binary)):
            planed, complaint = replaced
            text += f" stands in for {planed}, which does not start: {complaint}. It has no drivers of NICs and AF_XDP"
            return Finding(f"switch-{name}", "warning", text, BROKEN_REMEDY)
        return Finding(f"switch-{name}", "ok", text)
    if name == "planed":
        text = f"planed {what.problem}; it is also the traffic generator, so nothing can be measured"
        return Finding(f"switch-{name}", "problem", text, what.remedy)
    text = f"{name} {what.problem}; it will be skipped"
    return Finding(f"switch-{name}", "warning", text, what.remedy)


def hosting_finding(name: str, what: Found | NotFound) -> Finding:
    """Return the finding on a VNF hosting. Without it VNFs still run as tasks of the tester."""
    if isinstance(what, Found):
        return Finding(f"hosting-{name}", "ok", f'VNF hosting "{name}" available: {what.version}')
    return Finding(f"hosting-{name}", "warning", f'VNF hosting "{name}" not available', what.remedy)


def kvm_finding() -> Finding:
    """Return whether KVM can be opened. Before the first VM a guest is booted, and the run reports the outcome."""
    if os.access(KVM, os.R_OK | os.W_OK):
        return Finding("kvm", "ok", f"{KVM} is accessible: VMs use KVM if the probe guest boots")
    return Finding(
        "kvm",
        "warning",
        f"{KVM} cannot be opened: VMs are emulated, so only their packet counts are valid, not rates or latencies",
        "enable virtualization in the firmware, and run as root or as a member of group kvm",
    )


# Look for other hyperthreads on the cores of pollers, which no counter of a guest tells.

LOOKS, LOOK_S = 20, 0.05
"""How often cores are measured to learn what they have at best, and the pause between two measurements: other guests
use a core for seconds or less, and seldom both cores all the time."""


def look_at_cores(planed: Path, cpus: Sequence[int]) -> Iterator[CoreDistance]:
    """Yield what several measurements of the first two CPUs within two seconds find, until one fails."""
    for number in range(LOOKS if len(cpus) > 1 else 0):
        if number:
            time.sleep(LOOK_S)
        distance = measure_distance(planed, cpus[0], cpus[1])
        if distance is None or not distance.additions_per_cycle:
            return
        yield distance


def sharing_findings(cpus: Sequence[int], looks: Sequence[CoreDistance]) -> tuple[Finding, ...]:
    """Return the finding on what the CPUs had at each look; none where nothing is known."""
    best = best_speed(looks)
    if best <= 0:
        return ()
    shared = [
        (cpu, sum(is_shared(speed, best) for speed in speeds), min(speeds) / best)
        for cpu, speeds in zip(cpus, zip(*(look.additions_per_cycle for look in looks), strict=True), strict=False)
    ]
    if not any(times for _, times, _ in shared):
        text = f"no other hyperthread used the cores of CPUs {cpus[0]} and {cpus[1]} in {len(looks)} looks"
        return (Finding("shared-cores", "ok", text),)
    which = " and ".join(f"CPU {cpu} in {times} of {len(looks)} looks" for cpu, times, _ in shared if times)
    text = (
        f"another hyperthread used the core of {which}, and left {min(least for *_, least in shared):.0%} of it at "
        "the least: on a Zen 4 host switches needed 1.1 to 1.6 times the cycles with it"
    )
    remedy = "use a machine without hyperthreads, or one that leaves whole cores to this one"
    return (Finding("shared-cores", "warning", text, remedy),)


# Is this machine fit to measure? Every finding says what it does to the numbers and how to change it.
#
# :func:`examine` is a pure function of facts; :func:`diagnose` gathers the facts of this machine.

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


def diagnose() -> tuple[Finding, ...]:
    """Examine this machine, look for every switch, and poll the CPUs of pollers without work: about three seconds."""
    before = cpu_times()
    facts = replace(host_facts.collect(), busy_kernel_threads=host_facts.sample_kernel_threads())
    switches = {name: look(adapter) for name, adapter in all_adapters().items()}
    hostings = {name: hosting.find() for name, hosting in HOSTINGS.items()}
    planed = switches["planed"]
    programs = busy_programs(before)
    binary = planed.binary if isinstance(planed, Found) else None
    cpus = tuple(sorted(_pollers(facts)))
    noise = dry_poll(binary, cpus) if binary else ()
    looks = tuple(look_at_cores(binary, cpus)) if binary else ()
    busy = (facts.load_average_1m or 0) >= BUSY_LOAD or bool(programs)
    found = examine(facts, switches, hostings)
    return (
        *found,
        programs_finding(programs),
        kvm_finding(),
        *tsc_findings(noise),
        *noise_findings(noise, busy=busy),
        *sharing_findings(cpus, looks),
    )


def tsc_findings(noise: Sequence[CoreNoise]) -> tuple[Finding, ...]:
    """Return the finding on the rates of the time stamp counters of CPUs; none where none was measured."""
    rates_hz = {core.cpu: core.tsc_hz for core in noise if core.tsc_hz}
    if not rates_hz:
        return ()
    slow, fast = min(rates_hz, key=rates_hz.__getitem__), max(rates_hz, key=rates_hz.__getitem__)
    if rates_hz[fast] - rates_hz[slow] <= TSC_SHARE * rates_hz[slow]:
        return (Finding("tsc-rate", "ok", f"the time stamp counter runs at {rates_hz[slow] / 1e6:.3f} MHz"),)
    text = (
        f"the time stamp counter of CPU {slow} runs at {rates_hz[slow] / 1e6:.3f} MHz, that of CPU {fast} at "
        f"{rates_hz[fast] / 1e6:.3f} MHz: latencies between them are wrong"
    )
    return (Finding("tsc-rate", "problem", text, "measure on CPUs of one rate, or on another machine"),)


def noise_findings(noise: Sequence[CoreNoise], *, busy: bool = False) -> tuple[Finding, ...]:
    """Return the finding on the noise of CPUs; none where it is not known. ``busy``: others use the machine."""
    if not noise:
        return ()
    worst = max(noise, key=lambda core: core.longest_gap_ns)
    longest_us, duration_s = worst.longest_gap_ns / 1000, worst.duration_ns / 1e9
    text = f"CPU {worst.cpu} did not poll for up to {longest_us:.0f} us in {duration_s:.1f} s"
    if worst.longest_gap_ns <= NOISE_NS:
        return (Finding("noise", "ok", f"{text}, the longest of CPUs {cpu_text(core.cpu for core in noise)}"),)
    remedy = (
        "isolate the CPUs of pollers; the interrupts in the evidence of a trial say what came, and what no CPU can "
        "be kept from are SMIs of the firmware and the hypervisor of a virtual machine"
    )
    if busy:
        remedy = "the machine is busy (see programs): stop the other processes, then ask again"
    overflow = f"a ring of 256 frames at 10 Gbit/s overflows after {NOISE_NS / 1000:.0f} us"
    return (Finding("noise", "warning", f"{text}: {overflow}", remedy),)


def examine(
    facts: HostFacts,
    switches: Mapping[str, Found | NotFound] | None = None,
    hostings: Mapping[str, Found | NotFound] | None = None,
) -> tuple[Finding, ...]:
    """Return the findings on a machine and on the ``switches`` and ``hostings`` that were looked for, by name. Pure."""
    found = [Finding(code, *check(facts)) for code, check in CHECKS.items()]
    there = [switch_finding(name, what) for name, what in (switches or {}).items()]
    return (*found, *there, *(hosting_finding(name, what) for name, what in (hostings or {}).items()))


Diagnosis = tuple[Level, str, str]
"""Level, text and remedy of a finding."""
CHECKS: dict[str, Callable[[HostFacts], Diagnosis]] = {}
"""The checks of a machine by the codes of their findings, in the order in which findings are listed."""


def _check(code: str) -> Callable[[Callable[[HostFacts], Diagnosis]], Callable[[HostFacts], Diagnosis]]:
    """Register the function below as the check with this code."""

    def register(check: Callable[[HostFacts], Diagnosis]) -> Callable[[HostFacts], Diagnosis]:
        CHECKS[code] = check
        return check

    return register


def _ok(text: str) -> Diagnosis:
    return "ok", text, ""


def _warning(text: str, remedy: str) -> Diagnosis:
    return "warning", text, remedy


def _problem(text: str, remedy: str) -> Diagnosis:
    return "problem", text, remedy


@_check("cores")
def _cores(facts: HostFacts) -> Diagnosis:
    count = facts.cores_allowed
    if count < 2:
        return _problem(
            f"one core (CPUs {cpu_text(facts.cpus_allowed)}): switch and tester share it, so results are not valid",
            "use a machine with two cores or more, or allow this process more of them: `taskset -c 0-1 planebench ...`",
        )
    if count == 2:
        return _warning(
            "only 2 cores: generator, monitor and VNFs share one, so fast switches will be tester-limited",
            "use 3 or more cores; tester-limited results are marked",
        )
    return _ok(f"{count} cores: CPUs {cpu_text(facts.cpus_allowed)}")


@_check("smt")
def _smt(facts: HostFacts) -> Diagnosis:
    """Judge the siblings of the CPUs that planebench would poll on, with one VNF."""
    remedy = "`echo off | sudo tee /sys/devices/system/cpu/smt/control`"
    pollers = _pollers(facts)
    cores = {poller: tuple(sorted(facts.siblings.get(poller, frozenset()) | {poller})) for poller in pollers}
    both = sorted({core for core in cores.values() if len(pollers & set(core)) > 1})
    if both:
        return _warning(
            f"pollers run on both threads of a core (CPUs {_groups(both)}): each thread slows the other by up to half",
            f"give planebench CPUs of more cores: `taskset -c ... planebench`; or {remedy}",
        )
    beside = sorted({core for core in cores.values() if set(core) & set(facts.cpus_online) - pollers})
    if beside:
        return _warning(
            f"CPUs {_groups(beside)} share a core, with a poller on one of them: planebench leaves the second thread "
            "idle, but any other program on it slows the poller by up to half",
            remedy,
        )
    return _ok("each polling thread has a dedicated core")


@_check("core-kinds")
def _core_kinds(facts: HostFacts) -> Diagnosis:
    """Judge the kinds of cores on which planebench would poll, and whether the machine tells on which node they are."""
    cpus, kinds = cpus_of(facts), kinds_text(facts.core_kinds)
    if odd := odd_cores(cpus, sorted(_pollers(facts))):
        text, _, remedy = "; ".join(odd).rpartition("; ")
        return _warning(f"{text} (kinds of cores: {kinds})" if kinds else text, remedy)
    return _ok(f"pollers run on the fastest kind of core: {kinds}" if kinds else "all cores are of one kind")


def _pollers(facts: HostFacts) -> set[int]:
    """Return the CPUs of the switch, the tester and one VNF."""
    return set(_placement(facts).pollers)


def _placement(facts: HostFacts) -> Placement:
    """Return the placement of a switch, the tester and one VNF."""
    return place(cpus_of(facts), 1)


def _groups(groups: Sequence[Sequence[int]]) -> str:
    """Return groups of CPUs as ``0+4, 1+5``."""
    return ", ".join("+".join(str(cpu) for cpu in group) for group in groups)


@_check("isolated")
def _isolated(facts: HostFacts) -> Diagnosis:
    """Judge whether the pollers have isolated CPUs; the remedy isolates those that pollers would have."""
    isolated = set(facts.isolated_cpus) & set(facts.cpus_online)
    usable = isolated & set(facts.cpus_allowed)
    pollers = _pollers(facts)
    advice = cpu_text(pollers - {min(facts.cpus_online)} or {max(facts.cpus_online)})
    boot = f"boot with `isolcpus={advice} nohz_full={advice} rcu_nocbs={advice}`: the CPUs of switch, tester and a VNF"
    if not isolated:
        return _warning(
            "no CPU is isolated: other processes and timer ticks can preempt the pollers, which widens the intervals",
            boot,
        )
    if not usable:
        text = f"CPUs {cpu_text(isolated)} are isolated, but this process may not use them"
        remedy = (
            f"start planebench with `taskset -c {cpu_text(facts.cpus_online)} planebench ...`, or add the CPUs "
            "to cpuset.cpus of its control group"
        )
        return _warning(text, remedy)
    outside = pollers - isolated
    if len(outside) > 1:
        text = f"pollers run on CPUs {cpu_text(outside)}, which are not isolated (isolated: {cpu_text(isolated)})"
        return _warning(text, boot)
    return _ok(f"pollers run on CPUs {cpu_text(pollers & isolated)}, which are isolated")


@_check("cgroup")
def _cgroup(facts: HostFacts) -> Diagnosis:
    limit = facts.cgroup_cpu_limit
    if limit is not None and limit < min(2, len(facts.cpus_allowed)):
        return _problem(
            f"the cgroup CPU quota is {limit:g} CPUs: pollers are throttled during trials",
            "raise the quota: `docker run --cpus=2`, `systemctl set-property ... CPUQuota=`, or cpu.max of the group",
        )
    return _ok("no cgroup CPU quota")


@_check("tsc")
def _tsc(facts: HostFacts) -> Diagnosis:
    missing = [name for name in ("constant_tsc", "nonstop_tsc") if not getattr(facts, name)]
    if missing and host_facts.is_emulated(facts.cpu_model):  # never has the two flags
        return _warning(
            f"the CPU is emulated ({facts.cpu_model}); its time stamp counter keeps the emulator's rate",
            "take packet counts from here, no rates and latencies: they are the emulator's",
        )
    if missing:
        return _problem(
            f"the CPU lacks {', '.join(missing)}: the clock that times rates and latencies changes speed",
            "measure on another machine; in a VM, pass the host's CPU through (`-cpu host,+invtsc` in QEMU)",
        )
    return _ok("the time stamp counter has a constant rate")


@_check("virtualised")
def _virtualised(facts: HostFacts) -> Diagnosis:
    if facts.hypervisor is None:
        return _ok("bare metal")
    return _warning(
        f"running in a VM ({facts.hypervisor}): the hypervisor may migrate vCPUs between near and far cores during a "
        "run, which changes throughput by a factor of two",
        "pin the vCPUs on the host; planebench measures the core distance of every trial, and shows what it explains",
    )


@_check("steal")
def _steal(facts: HostFacts) -> Diagnosis:
    if facts.steal_share >= STEAL_SHARE:
        return _warning(
            f"the hypervisor has given {facts.steal_share:.1%} of the CPU time since boot to other guests (steal)",
            "use a machine with dedicated CPUs; what is stolen is taken off the time of a trial",
        )
    return _ok(f"{facts.steal_share:.1%} of CPU time stolen since boot")


@_check("autogroup")
def _autogroup(facts: HostFacts) -> Diagnosis:
    if facts.autogroup:
        raised = "; planebench raises the priority of its pollers' sessions" if facts.can_raise_priority else ""
        return _warning(
            "kernel.sched_autogroup_enabled=1: nice values apply only within a login session, so a build in another "
            f"shell takes half of a poller's core{raised}",
            "`sudo sysctl kernel.sched_autogroup_enabled=0`",
        )
    return _ok("autogroup scheduling is off")


@_check("load")
def _load(facts: HostFacts) -> Diagnosis:
    load = facts.load_average_1m
    if load >= BUSY_LOAD:
        return _warning(
            f"the machine is busy: load average {load:.2f} over the last minute",
            "stop the other programs (`programs` names them) or wait; a run that ended within the last minute is "
            "included in this figure",
        )
    return _ok(f"load average {load:.2f}")


@_check("governor")
def _governor(facts: HostFacts) -> Diagnosis:
    if facts.governor not in (None, "performance"):
        return _warning(
            f"frequency governor {facts.governor}: the CPU lowers its clock between trials, so each trial starts "
            "slowly",
            "`sudo cpupower frequency-set -g performance`",
        )
    return _ok(f"frequency governor {facts.governor or 'not visible (virtual machine)'}")


@_check("turbo")
def _turbo(facts: HostFacts) -> Diagnosis:
    if facts.turbo:
        return _warning(
            "turbo is on: the clock depends on temperature and on the load of the other cores",
            "`echo 1 | sudo tee /sys/devices/system/cpu/intel_pstate/no_turbo`, or "
            "`echo 0 | sudo tee /sys/devices/system/cpu/cpufreq/boost`",
        )
    return _ok("turbo is off" if facts.turbo is False else "turbo not visible")


@_check("c-states")
def _c_states(facts: HostFacts) -> Diagnosis:
    if facts.deep_c_states:
        return _warning(
            f"idle states {', '.join(facts.deep_c_states)} are enabled: a core wakes late from them, and the clock of "
            "the other cores changes",
            f"`sudo cpupower idle-set -D {host_facts.C1_LATENCY_US + 1}` (to enable them again: `cpupower idle-set "
            "-E`)",
        )
    return _ok("no idle state deeper than C1 is enabled")


@_check("hugepages")
def _hugepages(facts: HostFacts) -> Diagnosis:
    """Judge the free 2 MiB pages, which planebench takes by default; DPDK takes 1 GiB pages too."""
    small = f"{facts.hugepages_2m_free} of {facts.hugepages_2m_total} x 2 MiB"
    large = f"{facts.hugepages_1g_free} of {facts.hugepages_1g_total} x 1 GiB"
    if at_once := facts.hugepages_2m_free // pages_for(MB_PER_SWITCH):
        switches = "one switch" if at_once == 1 else f"{at_once} switches at once"
        return _ok(f"hugepages free: {small} (enough for {switches}), {large}")
    if facts.hugepages_1g_free:
        return _ok(
            f"hugepages free: {small}, {large}; use `--hugepages` to let planebench take the 1 GiB pages",
        )
    return _warning(
        f"hugepages free: {small}, {large}; running with 4 KiB pages: TLB misses reduce throughput, most for switches "
        "with large buffer pools",
        f"{reserving(HUGEPAGES)}, which is enough for "
        f"{SWITCHES} switches at once ({pages_for(MB_PER_SWITCH)} each); for large tables reserve 1 GiB pages at boot: "
        "`hugepagesz=1G hugepages=4`",
    )


@_check("memory")
def _memory(facts: HostFacts) -> Diagnosis:
    gib = facts.memory_available_bytes / 2**30
    if facts.memory_available_bytes < MIN_AVAILABLE_BYTES:
        return _warning(
            f"{gib:.1f} GiB of memory available: not enough for several switches and their buffers",
            "close other programs, or measure one switch at a time with `--switch`",
        )
    return _ok(f"{gib:.1f} GiB of memory available")


@_check("container")
def _container(facts: HostFacts) -> Diagnosis:
    """Judge what a container hides of the machine; what it forbids is in the findings on root, priority and CPUs."""
    if facts.container is None:
        return _ok("not in a container")
    users = ", rootless" if facts.in_user_namespace else ""
    text = f"in a container ({facts.container}{users}): planebench sees only the processes of the container"
    return _warning(
        f"{text}; what else runs on its CPUs is known only by its effect on a trial, and `doctor --fix` cannot tune "
        "the machine",
        "keep other programs off these CPUs, and run `planebench doctor` on the machine itself, too",
    )


def _granting(facts: HostFacts, what: str, *options: str) -> str:
    """Return how the container that we are in is given something by ``options`` of podman and docker."""
    if facts.container == "kubernetes":
        return f"add {what} to securityContext of the container"
    return f"start the container with `{' '.join(options)}`" if facts.container else f"run with {what}"


@_check("root")
def _root(facts: HostFacts) -> Diagnosis:
    if facts.is_root and not facts.lacked_capabilities:
        return _ok("running as root: all wires and priorities are available")
    if facts.is_root:
        lacked = ", ".join(facts.lacked_capabilities)
        return _warning(
            f"running as root without the capabilities {lacked}: virtio, vhost and memif wires work, veth needs user "
            "namespaces, and NICs, AF_XDP and switches of the kernel on a core of their own are not available",
            _granting(facts, f"the capabilities {lacked}", *(f"--cap-add={it}" for it in facts.lacked_capabilities)),
        )
    return _warning(
        "not running as root: virtio, vhost and memif wires work, veth needs user namespaces, and planebench cannot "
        "tune the host",
        "use `sudo planebench ...` for hugepages, priorities and tuning",
    )


@_check("priority")
def _priority(facts: HostFacts) -> Diagnosis:
    if facts.can_raise_priority:
        return _ok("pollers can run at nice -20")
    text = "pollers run at normal priority: other processes can preempt them"
    limits = "set `nice -20` in /etc/security/limits.conf (item `nice`), then log in again"
    if facts.in_user_namespace:
        return _warning(text, f"the user who starts the rootless container needs the right: {limits}")
    if facts.container:
        return _warning(text, _granting(facts, "the capability SYS_NICE", "--cap-add=SYS_NICE"))
    return _warning(text, f"run as root, or {limits}")


@_check("memlock")
def _memlock(facts: HostFacts) -> Diagnosis:
    limit = facts.memlock_limit_bytes
    if limit is not None and limit < MIN_MEMLOCK_BYTES:
        text = f"at most {limit // 1024} KiB may be locked in memory: packet buffers can be swapped out"
        if facts.container and not facts.in_user_namespace:
            return _warning(text, _granting(facts, "the capability IPC_LOCK", "--cap-add=IPC_LOCK"))
        return _warning(text, "`ulimit -l unlimited` (as root), or `memlock` in /etc/security/limits.conf")
    return _ok("memory can be locked")


@_check("iommu")
def _iommu(facts: HostFacts) -> Diagnosis:
    """Judge the IOMMU for physical NICs only: no wire does DMA."""
    if not facts.nics:
        return _ok("no physical NIC, so no IOMMU is needed")
    unsafe = [nic for nic in facts.nics if nic.driver in UIO_DRIVERS]
    if unsafe:
        return _warning(
            f"NIC {unsafe[0].address} is bound to {unsafe[0].driver}, which lets it write to any memory",
            f"`sudo dpdk-devbind.py --bind=vfio-pci {unsafe[0].address}`",
        )
    bare = [nic for nic in facts.nics if not nic.has_iommu]
    if bare:
        return _warning(
            f"NIC {bare[0].address} (driver {bare[0].driver or 'none'}) is in no IOMMU group: VFIO cannot assign it "
            "to a switch safely",
            "enable VT-d or AMD-Vi in the firmware and boot with `intel_iommu=on iommu=pt` (AMD: `iommu=pt`)",
        )
    return _ok(f"IOMMU with {facts.iommu_groups} groups; each NIC is in a group")


@_check("nic-numa")
def _nic_numa(facts: HostFacts) -> Diagnosis:
    nodes = facts.nodes(facts.cpus_allowed)
    far = [nic for nic in facts.nics if nic.numa_node is not None and nic.numa_node not in nodes]
    if far:
        there = cpu_text(cpu for cpu in facts.cpus_online if far[0].numa_node in facts.nodes([cpu]))
        return _warning(
            f"NIC {far[0].address} is on NUMA node {far[0].numa_node}, the allowed CPUs on "
            f"{cpu_text(nodes)}: every packet crosses between sockets",
            f"allow CPUs of that node: `taskset -c {there or '...'} planebench ...`",
        )
    return _ok("no NIC on a NUMA node without allowed CPUs")


@_check("kernel-threads")
def _kernel_threads(facts: HostFacts) -> Diagnosis:
    busy = facts.busy_kernel_threads
    if not busy:
        return _ok("no kernel thread takes CPU time")
    named = ", ".join(f"{thread.name} {thread.cpu_share:.1%}" for thread in busy[:MAX_NAMED])
    more = f" and {len(busy) - MAX_NAMED} more" if len(busy) > MAX_NAMED else ""
    damon = [thread for thread in busy if thread.name.startswith("kdamond")]
    if damon and facts.damon_switches:
        remedy = "; ".join(f"`echo N | sudo tee {path}`" for path in facts.damon_switches)
    else:
        movable = [thread for thread in busy if thread.movable]
        spare = min(set(facts.cpus_online) - {_placement(facts).switch_cpu}, default=0)
        move = f"`sudo taskset -pc {spare} {movable[0].pid}` moves it off the switch's core; " if movable else ""
        remedy = f"{move}boot with `isolcpus={max(facts.cpus_online)}` to keep movable kernel threads away"
    return _warning(
        f"kernel threads take CPU time from the pollers (share of one core): {named}{more}",
        remedy,
    )
