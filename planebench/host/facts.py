# SPDX-License-Identifier: BSD-3-Clause
"""Facts about this machine: read once at the start of a run, kept in run.json, judged by planebench.measure.doctor."""

from __future__ import annotations

import contextlib
import os
import platform
import re
import resource
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from planebench.host.pci import ROOT, USER_SPACE_DRIVERS, VIRTIO_VENDOR, Nic, nics
from planebench.host.planed_program import planed_version
from planebench.host.procfs import entries, read_text, run_ns, stat_fields
from planebench.host.programs import run_tool
from planebench.model.cpus import NO_NODE, CoreKind, Cpus, core_kinds, cpu_text, node_of, parse_cpus, range_text

CAP_NET_ADMIN = 12
CAP_NET_RAW = 13
CAP_IPC_LOCK = 14
CAP_SYS_ADMIN = 21
CAP_SYS_NICE = 23
USED_CAPABILITIES = {
    CAP_SYS_NICE: "SYS_NICE",
    CAP_IPC_LOCK: "IPC_LOCK",
    CAP_NET_ADMIN: "NET_ADMIN",
    CAP_NET_RAW: "NET_RAW",
    CAP_SYS_ADMIN: "SYS_ADMIN",
}
"""Capabilities of root that planebench uses, and that a container may lack."""
FULL_NICE_LIMIT = 40
"""RLIMIT_NICE that allows nice -20 (20 - nice)."""

Plain = str | int | float | bool | None
_BOOT_PARAMETERS = """
isolcpus nohz nohz_full rcu_nocbs rcu_nocb_poll irqaffinity kthread_cpus nosmt maxcpus nr_cpus possible_cpus
hugepages hugepagesz default_hugepagesz hugetlb_cma transparent_hugepage mem memmap numa numa_balancing
mitigations nopti pti kpti nospectre_v1 nospectre_v2 spectre_v2 spectre_v2_user spec_store_bypass_disable ssbd l1tf mds
tsx tsx_async_abort mmio_stale_data retbleed srbds gather_data_sampling spec_rstack_overflow reg_file_data_sampling
iommu intel_iommu amd_iommu iommu.passthrough iommu.strict pci pcie_aspm vfio_pci.ids kvm_intel.nested
intel_pstate amd_pstate cpufreq.default_governor cpufreq.off cpuidle.off cpuidle.governor idle intel_idle.max_cstate
processor.max_cstate clocksource tsc notsc hpet skew_tick highres nmi_watchdog nowatchdog nosoftlockup mce audit
preempt threadirqs cgroup_disable cgroup_no_v1 psi init_on_alloc init_on_free split_lock_detect workqueue.unbound_cpus
"""
"""The parameters of the kernel that change a measurement. Others may be secret: clouds pass tokens and passwords so."""
_CPU = "sys/devices/system/cpu"
_CORE_TYPES = {"IntelCore": "cpu_core", "IntelAtom": "cpu_atom", "IntelLowPower": "cpu_lowpower"}
"""The performance counters of Linux for each type of core."""
_CORE_SPEEDS = ("cpu_capacity", "acpi_cppc/highest_perf", "cpufreq/cpuinfo_max_freq")
"""What tells how fast the core of a CPU is, the best first: ARM's, x86's, and what is left without either."""
_LISTS = (
    *("siblings", "numa_node", "l3_group", "core_kinds", "cpus_online", "cpus_allowed", "isolated_cpus"),
    *("deep_c_states", "nics", "busy_kernel_threads", "damon_switches", "lacked_capabilities"),
)
"""Facts that run.json has in another form, or not at all."""
WHOLE_USERS = "0 0 4294967295"
"""The map of users of the machine's own namespace (Linux, man 7 user_namespaces)."""
C1_LATENCY_US = 2
"""C1 takes up to 2 us to leave (Linux, intel_idle.c; AMD's by ACPI: 1), C1E 10, deeper states 30 to 1000."""
PF_KTHREAD = 0x00200000
PF_NO_SETAFFINITY = 0x04000000
"""Flags in /proc/PID/stat (Linux, include/linux/sched.h)."""
DAMON_SWITCHES = ("/sys/module/damon_reclaim/parameters/enabled", "/sys/module/damon_lru_sort/parameters/enabled")


@dataclass(frozen=True, slots=True)
class KernelThread:
    """A kernel thread and its share of one CPU, 0..1. ``movable``: taskset may move it."""

    pid: int
    name: str
    cpu_share: float
    movable: bool = True


@dataclass(frozen=True, slots=True)
class HostFacts:
    """The facts of one machine at one moment; None is unknown. Made by :func:`collect`."""

    boot_id: str | None = None
    """Runs of one boot are not independent (planebench.analysis.compare)."""
    cpu_model: str = "unknown"
    kernel: str = "unknown"
    kernel_command_line: str | None = None
    microcode: str | None = None
    """Revision of the microcode of the first CPU."""
    firmware: str | None = None
    """Vendor, version and date of the firmware of the machine."""
    hypervisor: str | None = None
    """Name of the hypervisor; None on bare metal."""
    cpus_online: tuple[int, ...] = (0, 1)
    cpus_allowed: tuple[int, ...] = (0, 1)
    """CPUs that this process may use, isolated ones included (:func:`usable_cpus`)."""
    siblings: Mapping[int, frozenset[int]] = field(default_factory=dict)
    """CPU -> the CPUs of its physical core, itself included."""
    numa_node: Mapping[int, int] = field(default_factory=dict)
    """CPU -> its NUMA node; empty where the kernel tells of none."""
    l3_group: Mapping[int, frozenset[int]] = field(default_factory=dict)
    """CPU -> the CPUs that share its L3 cache, itself included; empty if unknown."""
    core_kinds: tuple[CoreKind, ...] = ()
    """The kinds of cores, the fastest first; none if all are of one as far as is known."""
    isolated_cpus: tuple[int, ...] = ()
    cgroup_cpu_limit: float | None = None
    """CPUs' worth of time the control group grants; None is no limit."""
    constant_tsc: bool = True
    nonstop_tsc: bool = True
    governor: str | None = None
    """Frequency governor of the allowed CPUs, ``mixed`` if they differ."""
    turbo: bool | None = None
    cpu_mhz: int | None = None
    """Highest frequency of a core of the fastest kind; where the system does not govern it (a virtual machine), the one
    that it reports."""
    autogroup: bool | None = None
    """kernel.sched_autogroup_enabled; None if the kernel has no autogroups."""
    load_average_1m: float = 0.0
    steal_share: float = 0.0
    """Share of CPU time since boot that the hypervisor gave to others, 0..1."""
    memory_total_bytes: int = 0
    memory_available_bytes: int = 0
    hugepages_2m_total: int = 0
    hugepages_2m_free: int = 0
    hugepages_1g_total: int = 0
    hugepages_1g_free: int = 0
    transparent_hugepages: str | None = None
    memlock_limit_bytes: int | None = None
    """None is no limit: root, or RLIMIT_MEMLOCK unlimited."""
    deep_c_states: tuple[str, ...] = ()
    """Names of the enabled idle states of the allowed CPUs that take longer to leave than C1."""
    iommu_groups: int = 0
    nics: tuple[Nic, ...] = ()
    """Physical NICs, and emulated ones that were given to user space."""
    busy_kernel_threads: tuple[KernelThread, ...] = ()
    """Empty unless sampled by :func:`sample_kernel_threads`."""
    damon_switches: tuple[str, ...] = ()
    """Files of the DAMON modules that are on and can be turned off."""
    is_root: bool = False
    container: str | None = None
    """The engine of the container in which this process runs: podman, docker, kubernetes, ...; None outside of one."""
    in_user_namespace: bool = False
    """True if root has its powers in a user namespace only, as in a rootless container."""
    lacked_capabilities: tuple[str, ...] = ()
    """The :data:`USED_CAPABILITIES` that this process does not have."""
    can_raise_priority: bool = False
    dpdk_version: str | None = None

    @property
    def cores_allowed(self) -> int:
        """Return the number of physical cores of the allowed CPUs."""
        return len({min(self.siblings.get(cpu, frozenset()) | {cpu}) for cpu in self.cpus_allowed})

    @property
    def shared_cores(self) -> tuple[tuple[int, ...], ...]:
        """Return groups of allowed CPUs that share a physical core (SMT)."""
        groups = {frozenset(self.cpus_allowed) & (self.siblings.get(c, frozenset()) | {c}) for c in self.cpus_allowed}
        return tuple(sorted(tuple(sorted(group)) for group in groups if len(group) > 1))

    def nodes(self, cpus: Iterable[int]) -> frozenset[int]:
        """Return the NUMA nodes of some CPUs."""
        return frozenset(node_of(self.numa_node, cpu) for cpu in cpus) - {NO_NODE}

    def as_dict(self) -> dict[str, Plain]:
        """Return plain values for run.json: CPU sets as ``0,1``, groups as ``0-1;2-3``."""
        plain: dict[str, Plain] = {name: getattr(self, name) for name in self.__slots__ if name not in _LISTS}
        return {
            **plain,
            "cpus_online": cpu_text(self.cpus_online),
            "cpus_allowed": cpu_text(self.cpus_allowed),
            "isolated_cpus": cpu_text(self.isolated_cpus),
            "cores_allowed": self.cores_allowed,
            "smt_siblings": ";".join("-".join(str(cpu) for cpu in group) for group in self.shared_cores),
            "l3_groups": ";".join(
                sorted({range_text(group) for group in self.l3_group.values()}, key=lambda text: min(parse_cpus(text)))
            ),
            "core_kinds": kinds_text(self.core_kinds),
            "deep_c_states": ",".join(self.deep_c_states),
            "nics": ",".join(f"{nic.address}={nic.driver or 'unbound'}" for nic in self.nics),
            "numa_nodes": len(self.nodes(self.cpus_online)),
        }


def cpus_of(facts: HostFacts, switch_cores: int = 1) -> Cpus:
    """Return the CPUs of the machine as :func:`planebench.testbed.placement` takes them.

    What a virtual machine says of shared caches is not taken: its host moves its CPUs between cores.
    """
    return Cpus(
        facts.cpus_allowed,
        facts.siblings,
        facts.numa_node,
        switch_cores,
        frozenset(facts.isolated_cpus),
        l3_group=facts.l3_group if facts.hypervisor is None else {},
        kinds=facts.core_kinds,
    )


def kinds_text(kinds: Iterable[CoreKind]) -> str:
    """Return kinds of cores as ``IntelCore 0-11; IntelAtom 12-19``."""
    return "; ".join(f"{kind.name} {range_text(kind.cpus)}" for kind in kinds)


def cpu_model(root: Path = ROOT) -> str:
    """Return the name that the CPUs of this machine give themselves."""
    cpuinfo = read_text(root / "proc/cpuinfo") or ""
    return _first(r"^model name\s*:\s*(.*)$", cpuinfo, platform.processor() or "unknown")


def is_emulated(model: str) -> bool:
    """Return whether a CPU of this name is a program: QEMU's without KVM (target/i386/cpu.c, model ``max``)."""
    return model.startswith("QEMU TCG CPU")


def usable_cpus(
    inherited: frozenset[int],
    online: frozenset[int],
    isolated: frozenset[int],
    grantable: Callable[[frozenset[int]], frozenset[int]],
) -> tuple[int, ...]:
    """Return the CPUs for pollers: the ``inherited`` affinity, and the ``isolated`` CPUs unless the affinity was set on
    purpose.

    With isolcpus= the kernel moves init to the other CPUs at boot (sched_init_smp), and every process inherits that
    mask, so no process sees an isolated CPU in its affinity by default. An inherited mask that has an isolated CPU,
    or that lacks a CPU that is online and not isolated and that ``grantable`` would give, was chosen by somebody
    (taskset, a cpuset of a container): it is kept as it is. ``grantable`` returns those of the given CPUs that the
    kernel would let this process use.
    """
    housekeeping = online - isolated
    if not isolated or inherited & isolated or grantable(housekeeping - inherited):
        return tuple(sorted(inherited))
    return tuple(sorted(inherited | grantable(isolated & online)))


def grantable_cpus(cpus: frozenset[int]) -> frozenset[int]:
    """Return those of ``cpus`` that the kernel grants to this process: the cpuset of a control group may exclude some.

    A separate thread asks for them and ends, so that the affinity of this process does not change.
    """
    granted: frozenset[int] = frozenset()

    def ask() -> None:
        nonlocal granted
        with contextlib.suppress(OSError):  # EINVAL: none of them
            os.sched_setaffinity(0, cpus)
            granted = frozenset(os.sched_getaffinity(0)) & cpus

    if cpus:
        thread = threading.Thread(target=ask, name="affinity")
        thread.start()
        thread.join()
    return granted


def collect(
    root: Path = ROOT,
    affinity: frozenset[int] | None = None,
    grantable: Callable[[frozenset[int]], frozenset[int]] = grantable_cpus,
) -> HostFacts:
    """Read all facts in a few ms. Never raises for a file that is missing.

    ``root``: where /proc and /sys are; ``affinity``: the inherited affinity, None for that of this process.
    ``grantable``: as in :func:`usable_cpus`. What is no file (affinity, limits of this process, the versions of
    programs) is that of this machine.
    """
    cpuinfo = read_text(root / "proc/cpuinfo") or ""
    flags = set(_first(r"^flags\s*:\s*(.*)$", cpuinfo, "").split())
    inherited = frozenset(os.sched_getaffinity(0)) if affinity is None else affinity
    cpu_folder = root / _CPU
    online = parse_cpus(read_text(cpu_folder / "online") or "") or tuple(sorted(inherited))
    isolated = parse_cpus(read_text(cpu_folder / "isolated") or "")
    allowed = usable_cpus(inherited, frozenset(online), frozenset(isolated), grantable)
    memory, kinds = meminfo(root), _core_kinds(root, online)
    siblings, numa_node, l3_group = _topology(root, online)
    dpdk = _first(r"(DPDK [\w.-]+)", planed_version() or "", "")  # that planed was built with, else that of pkg-config
    if not dpdk and (known := run_tool(["pkg-config", "--modversion", "libdpdk"], 5.0)).ok:
        dpdk = f"DPDK {known.stdout.strip()}"
    hypervisor = None
    if "hypervisor" in flags:  # Python cannot execute CPUID
        hypervisor = _first(r"^Hypervisor vendor:\s*(.*)$", run_tool(["lscpu"], 5.0).stdout, "unknown")
    bios = [read_text(root / f"sys/class/dmi/id/bios_{name}") for name in ("vendor", "version", "date")]
    governors = {read_text(cpu_folder / f"cpu{cpu}/cpufreq/scaling_governor") for cpu in allowed} - {None}
    no_turbo = _flag(read_text(cpu_folder / "intel_pstate/no_turbo"))
    turbo = _flag(read_text(cpu_folder / "cpufreq/boost")) if no_turbo is None else not no_turbo
    huge = read_text(root / "sys/kernel/mm/transparent_hugepage/enabled") or ""
    ticks = [int(count) for count in (read_text(root / "proc/stat") or "cpu").splitlines()[0].split()[1:9]]
    all_ticks = sum(ticks)
    memlock: int | None = resource.getrlimit(resource.RLIMIT_MEMLOCK)[0]
    if memlock == resource.RLIM_INFINITY or (has_capability(CAP_IPC_LOCK) and not _in_user_namespace()):
        memlock = None
    return HostFacts(
        boot_id=read_text(root / "proc/sys/kernel/random/boot_id"),
        cpu_model=cpu_model(root),
        kernel=platform.release(),
        kernel_command_line=kernel_command_line(read_text(root / "proc/cmdline")),
        microcode=_first(r"^microcode\s*:\s*(\S+)", cpuinfo, "") or None,
        firmware=" ".join(filter(None, bios)) or None,
        hypervisor=hypervisor,
        cpus_online=online,
        cpus_allowed=allowed,
        siblings=siblings,
        numa_node=numa_node,
        l3_group=l3_group,
        core_kinds=kinds,
        isolated_cpus=isolated,
        cgroup_cpu_limit=_cgroup_cpu_limit(root),
        constant_tsc="constant_tsc" in flags,
        nonstop_tsc="nonstop_tsc" in flags,
        governor="mixed" if len(governors) > 1 else next(iter(governors), None),
        turbo=turbo,
        cpu_mhz=_cpu_mhz(cpu_folder, cpuinfo, min(kinds[0].cpus) if kinds else 0),
        autogroup=_flag(read_text(root / "proc/sys/kernel/sched_autogroup_enabled")),
        load_average_1m=float((read_text(root / "proc/loadavg") or "0").split()[0]),
        steal_share=ticks[7] / all_ticks if len(ticks) == 8 and all_ticks else 0.0,
        memory_total_bytes=memory.get("MemTotal", 0),
        memory_available_bytes=memory.get("MemAvailable", 0),
        hugepages_2m_total=count_hugepages(root, "2048kB", "nr_hugepages"),
        hugepages_2m_free=count_hugepages(root, "2048kB", "free_hugepages"),
        hugepages_1g_total=count_hugepages(root, "1048576kB", "nr_hugepages"),
        hugepages_1g_free=count_hugepages(root, "1048576kB", "free_hugepages"),
        transparent_hugepages=_first(r"\[(\w+)\]", huge, "") or None,
        memlock_limit_bytes=memlock,
        deep_c_states=deep_c_states(allowed, cpu_folder),
        iommu_groups=len(entries(root / "sys/kernel/iommu_groups")),
        # An emulated one (virtio) only if a user-space driver has it.
        nics=tuple(it for it in nics(root) if it.vendor != VIRTIO_VENDOR or it.driver in USER_SPACE_DRIVERS),
        damon_switches=tuple(path for path in DAMON_SWITCHES if read_text(root / path.lstrip("/")) == "Y"),
        is_root=os.geteuid() == 0,
        container=_container(root),
        in_user_namespace=_in_user_namespace(),
        lacked_capabilities=tuple(name for bit, name in USED_CAPABILITIES.items() if not has_capability(bit)),
        can_raise_priority=(has_capability(CAP_SYS_NICE) and not _in_user_namespace())
        or resource.getrlimit(resource.RLIMIT_NICE)[0] in (resource.RLIM_INFINITY, FULL_NICE_LIMIT),
        dpdk_version=dpdk or None,
    )


def is_deep(state: Path) -> bool:
    """Return whether the exit latency of an idle state (a ``cpuidle/stateN`` folder) is above that of C1."""
    latency = read_text(state / "latency") or ""
    return latency.isdigit() and int(latency) > C1_LATENCY_US


def kernel_command_line(text: str | None) -> str | None:
    """Return the :data:`_BOOT_PARAMETERS` of a command line of the kernel, and how many others it has."""
    if text is None:
        return None
    words = re.findall(r'(?:[^\s"]|"[^"]*")+', text)
    kept = [word for word in words if word.partition("=")[0].replace("-", "_") in _BOOT_PARAMETERS.split()]
    others = len(words) - len(kept)
    return " ".join([*kept, *([f"({others} others)"] if others else [])])


def deep_c_states(cpus: Iterable[int], cpu_folder: Path) -> tuple[str, ...]:
    """Return the names of the deep idle states that are enabled on any of these CPUs, shallow ones first."""
    states = [state for cpu in cpus for state in entries(cpu_folder / f"cpu{cpu}/cpuidle")]
    enabled = [state for state in states if is_deep(state) and read_text(state / "disable") == "0"]
    enabled.sort(key=lambda state: int(read_text(state / "latency") or 0))
    return tuple(dict.fromkeys(read_text(state / "name") or state.name for state in enabled))


def sample_kernel_threads(duration_s: float = 0.3, least_share: float = 0.002) -> tuple[KernelThread, ...]:
    """Return the kernel threads that take more than ``least_share`` of a CPU, busiest first. Sleeps for ``duration_s``.

    DAMON works for some ms about once a second, which a short sample may miss: for a movable thread the average since
    its start counts too. A thread bound to a CPU (ksoftirqd) worked for others then.
    """
    before, start = _kernel_threads(), time.monotonic_ns()
    time.sleep(duration_s)
    after, elapsed_ns = _kernel_threads(), time.monotonic_ns() - start
    found = []
    for pid, now in after.items():
        share = (now.run_ns - before[pid].run_ns) / elapsed_ns if pid in before else 0.0
        share = max(share, now.run_ns / now.age_ns) if now.movable else share
        if share > least_share:
            found.append(KernelThread(pid, read_text(f"/proc/{pid}/comm") or "?", share, now.movable))
    return tuple(sorted(found, key=lambda thread: -thread.cpu_share))


@dataclass(frozen=True, slots=True)
class _KernelTime:
    """CPU time and age of a kernel thread. The age is at least 1 s: the average of a new thread means nothing."""

    run_ns: int
    age_ns: int
    movable: bool


def _kernel_threads() -> dict[int, _KernelTime]:
    found = {}
    now_ns, tick_ns = time.clock_gettime_ns(time.CLOCK_BOOTTIME), 1_000_000_000 // os.sysconf("SC_CLK_TCK")
    for pid in psutil.pids():
        fields, ran_ns = stat_fields(pid), run_ns(pid)
        if fields and ran_ns is not None and (flags := int(fields[6])) & PF_KTHREAD:
            age_ns = max(now_ns - int(fields[19]) * tick_ns, 1_000_000_000)
            found[pid] = _KernelTime(ran_ns, age_ns, not flags & PF_NO_SETAFFINITY)
    return found


def _first(pattern: str, text: str, default: str) -> str:
    match = re.search(pattern, text, re.MULTILINE)
    return match[1].strip() if match else default


def _flag(text: str | None) -> bool | None:
    return None if text is None else text.strip() not in ("0", "")


def _topology(
    root: Path, cpus: Iterable[int]
) -> tuple[dict[int, frozenset[int]], dict[int, int], dict[int, frozenset[int]]]:
    """Return by CPU the siblings of its core, its NUMA node, and the CPUs that share its L3 cache.

    A L3 cache is of a CCX of an EPYC, of a socket of a Xeon. Broken firmware has a CPU in several nodes: it is in the
    lowest one.
    """
    siblings, groups = {}, {}
    for cpu in cpus:
        folder = root / _CPU / f"cpu{cpu}"
        siblings[cpu] = frozenset(parse_cpus(read_text(folder / "topology/thread_siblings_list") or "")) | {cpu}
        for cache in (folder / "cache").glob("index*"):  # index3 may be of level 2
            if read_text(cache / "level") == "3" and (text := read_text(cache / "shared_cpu_list")):
                groups[cpu] = frozenset(parse_cpus(text)) | {cpu}
    nodes: dict[int, int] = {}
    for folder in (root / "sys/devices/system/node").glob("node[0-9]*"):
        number = int(folder.name.removeprefix("node"))
        for cpu in parse_cpus(read_text(folder / "cpulist") or ""):
            nodes[cpu] = min(number, nodes.get(cpu, number))
    return siblings, nodes, groups


def _core_kinds(root: Path, cpus: Collection[int]) -> tuple[CoreKind, ...]:
    types = {name: read_text(root / f"sys/devices/{counters}/cpus") for name, counters in _CORE_TYPES.items()}
    figures = []
    for file in _CORE_SPEEDS:
        texts = {cpu: read_text(root / f"{_CPU}/cpu{cpu}/{file}") or "" for cpu in cpus}
        figures.append((Path(file).name, {cpu: int(text) for cpu, text in texts.items() if text.isdigit()}))
    return core_kinds(cpus, {name: parse_cpus(text) for name, text in types.items() if text}, figures)


def _cpu_mhz(cpu_folder: Path, cpuinfo: str, cpu: int) -> int | None:
    highest_khz = read_text(cpu_folder / f"cpu{cpu}/cpufreq/cpuinfo_max_freq")
    if highest_khz and highest_khz.strip().isdigit():
        return int(highest_khz) // 1000
    reported = _first(r"^cpu MHz\s*:\s*([0-9.]+)$", cpuinfo, "")
    return round(float(reported)) if reported else None


def memory_total_bytes() -> int:
    """Return the memory of the machine; 0 if unknown."""
    return meminfo().get("MemTotal", 0)


def meminfo(root: Path = ROOT) -> dict[str, int]:
    """Return /proc/meminfo in bytes; ``root`` is where /proc is."""
    text = read_text(root / "proc/meminfo") or ""
    return {name: int(kib) * 1024 for name, kib in re.findall(r"(\w+):\s+(\d+) kB", text)}


def count_hugepages(root: Path, size: str, name: str) -> int:
    """Return a count of the kernel's for pages of a size: ``2048kB``, ``free_hugepages``; 0 where it has none."""
    return int(read_text(root / f"sys/kernel/mm/hugepages/hugepages-{size}/{name}") or 0)


def has_capability(bit: int) -> bool:
    """Return whether this process has the capability of this number."""
    effective = int(_first(r"^CapEff:\s*(\w+)$", read_text("/proc/self/status") or "", "0"), 16)
    return bool(effective >> bit & 1)


def is_machine_root() -> bool:
    """Return whether this process is root with power over the kernel: root of most containers is not."""
    return os.geteuid() == 0 and has_capability(CAP_SYS_ADMIN) and not _in_user_namespace()


def _in_user_namespace() -> bool:
    """Return whether our users are not those of the machine: capabilities then hold for our namespaces only."""
    return (read_text("/proc/self/uid_map") or WHOLE_USERS).split() != WHOLE_USERS.split()


def _container(root: Path) -> str | None:
    """Return the engine of the container in which we are, by the marks that engines leave; None outside of one."""
    if "KUBERNETES_SERVICE_HOST" in os.environ:
        return "kubernetes"
    if (root / "run/.containerenv").exists():
        return "podman"
    # A machine whose disk was made from an image has Docker's mark, too; but it sees its kernel's threads.
    if (root / ".dockerenv").exists() and read_text(root / "proc/2/comm") != "kthreadd":
        return "docker"
    return os.environ.get("container") or None  # noqa: SIM112 - its name, set by podman, systemd-nspawn and LXC


def _cgroup_cpu_limit(root: Path) -> float | None:
    """Return the tightest CPU quota from our control group up to the root (version 2)."""
    limits = []
    path = _first(r"^0::(/.*)$", read_text(root / "proc/self/cgroup") or "", "/")
    for folder in (Path(path), *Path(path).parents):
        quota, _, period = (read_text(root / f"sys/fs/cgroup{folder}/cpu.max") or "max 1").partition(" ")
        if quota.isdigit() and period.isdigit():
            limits.append(int(quota) / int(period))
    return min(limits, default=None)
