# SPDX-License-Identifier: BSD-3-Clause
"""Every trouble has a finding of the right level with a remedy; what is in order is not told."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from planebench.host.facts import HostFacts, KernelThread
from planebench.host.pci import Nic
from planebench.host.programs import Found, NotFound
from planebench.measure.doctor import Finding, diagnose, examine, noise_findings, tsc_findings
from planebench.model.cpus import CoreKind
from planebench.model.header import CoreNoise

GOOD = HostFacts(
    cpus_online=(0, 1, 2, 3),
    cpus_allowed=(0, 1, 2, 3),
    isolated_cpus=(1, 2, 3),
    governor="performance",
    turbo=False,
    autogroup=False,
    memory_total_bytes=32 << 30,
    memory_available_bytes=16 << 30,
    hugepages_2m_total=1024,
    hugepages_2m_free=1024,
    is_root=True,
    can_raise_priority=True,
)


ROOTLESS = {"container": "podman", "in_user_namespace": True}


def finding(facts: HostFacts, code: str) -> Finding:
    (found,) = [it for it in examine(facts) if it.code == code]
    return found


def codes(facts: HostFacts) -> set[str]:
    return {it.code for it in examine(facts)}


def test_a_good_machine_has_nothing_to_remedy() -> None:
    assert codes(GOOD) == {"hugepages"} and finding(GOOD, "hugepages").level == "ok"


@pytest.mark.parametrize(
    ("code", "change", "level", "remedy"),
    [
        ("cores", {"cpus_allowed": (0,)}, "problem", "taskset"),
        ("cores", {"cpus_allowed": (0, 1)}, "warning", "3 or more cores"),
        ("smt", {"siblings": {2: frozenset({2, 3}), 3: frozenset({2, 3})}}, "warning", "smt/control"),
        ("isolated", {"isolated_cpus": ()}, "warning", "isolcpus=1,2,3 "),
        ("isolated", {"isolated_cpus": (), "cpus_online": (0, 1), "cpus_allowed": (0, 1)}, "warning", "isolcpus=1 "),
        ("isolated", {"cpus_allowed": (0,), "isolated_cpus": (1,)}, "warning", "taskset -c 0,1,2,3"),
        ("isolated", {"isolated_cpus": (3,)}, "warning", "isolcpus=1,2,3 "),
        ("cgroup", {"cgroup_cpu_limit": 0.5}, "problem", "--cpus=2"),
        ("tsc", {"constant_tsc": False}, "problem", "invtsc"),
        ("tsc", {"nonstop_tsc": False}, "problem", "another machine"),
        ("tsc", {"nonstop_tsc": False, "cpu_model": "QEMU TCG CPU version 2.5+"}, "warning", "packet counts"),
        ("virtualised", {"hypervisor": "KVM"}, "warning", "pin the vCPUs"),
        ("steal", {"steal_share": 0.05}, "warning", "dedicated"),
        ("autogroup", {"autogroup": True}, "warning", "sysctl kernel.sched_autogroup_enabled=0"),
        ("load", {"load_average_1m": 1.5}, "warning", "programs"),
        ("governor", {"governor": "powersave"}, "warning", "cpupower"),
        ("turbo", {"turbo": True}, "warning", "no_turbo"),
        (
            "hugepages",
            {"hugepages_2m_free": 0},
            "warning",
            "echo 5120 | sudo tee /sys/kernel/mm/hugepages/hugepages-2048kB/",
        ),
        ("hugepages", {"hugepages_2m_free": 0}, "warning", "hugepagesz=1G hugepages=4"),
        ("c-states", {"deep_c_states": ("C6",)}, "warning", "cpupower idle-set -D 3"),
        ("iommu", {"nics": (Nic("0000:01:00.0", "vfio-pci", 0, None, has_iommu=False),)}, "warning", "intel_iommu=on"),
        ("iommu", {"nics": (Nic("0000:01:00.0", "ixgbe", 0, None, has_iommu=False),)}, "warning", "intel_iommu=on"),
        ("iommu", {"nics": (Nic("0000:01:00.0", "igb_uio", 0, "7"),)}, "warning", "--bind=vfio-pci 0000:01:00.0"),
        ("nic-numa", {"nics": (Nic("0000:01:00.0", "ixgbe", 1, "7"),)}, "warning", "taskset -c"),
        (
            "kernel-threads",
            {"busy_kernel_threads": (KernelThread(77, "kdamond.0", 0.005),)},
            "warning",
            "taskset -pc 0 77",
        ),
        ("memory", {"memory_available_bytes": 1 << 30}, "warning", "--switch"),
        ("root", {"is_root": False}, "warning", "sudo"),
        ("priority", {"can_raise_priority": False}, "warning", "limits.conf"),
        ("memlock", {"memlock_limit_bytes": 65536}, "warning", "ulimit"),
        ("container", {"container": "podman"}, "warning", "on the machine itself"),
        ("root", {"container": "docker", "lacked_capabilities": ("SYS_NICE",)}, "warning", "--cap-add=SYS_NICE"),
        ("root", {"container": "kubernetes", "lacked_capabilities": ("SYS_NICE",)}, "warning", "securityContext"),
        ("priority", {"container": "podman", "can_raise_priority": False}, "warning", "--cap-add=SYS_NICE"),
        ("priority", ROOTLESS | {"can_raise_priority": False}, "warning", "who starts the rootless container"),
        ("memlock", {"container": "podman", "memlock_limit_bytes": 65536}, "warning", "--cap-add=IPC_LOCK"),
        ("memlock", ROOTLESS | {"memlock_limit_bytes": 65536}, "warning", "ulimit"),
    ],
)
def test_each_trouble_is_found(code: str, change: dict[str, Any], level: str, remedy: str) -> None:
    found = finding(replace(GOOD, **change), code)
    assert found.level == level
    assert remedy in found.remedy


def core(*cpus: int) -> dict[int, frozenset[int]]:
    return dict.fromkeys(cpus, frozenset(cpus))


@pytest.mark.parametrize(
    ("allowed", "siblings", "text"),
    [
        ((0, 1), core(0, 1), "both threads of a core (CPUs 0+1)"),
        ((0, 1, 2, 3), core(0, 4) | core(1, 5) | core(2, 6) | core(3, 7), ""),
        ((0, 1, 2, 3), core(0, 1) | core(2, 3), "both threads of a core (CPUs 0+1)"),
        ((1, 3), core(0, 1) | core(2, 3), "CPUs 0+1, 2+3 share a core, with a poller on one"),
    ],
    ids=["one core", "siblings are offline", "two cores and a VNF", "siblings are of others"],
)
def test_siblings_count_where_pollers_run(
    allowed: tuple[int, ...], siblings: dict[int, frozenset[int]], text: str
) -> None:
    found = [it for it in examine(replace(GOOD, cpus_allowed=allowed, siblings=siblings)) if it.code == "smt"]
    assert [it.level for it in found] == ["warning"] * bool(text)
    assert all(text in it.text for it in found)


def test_kinds_of_cores() -> None:
    cpus = tuple(range(8))
    kinds = (CoreKind("IntelCore", frozenset(range(4))), CoreKind("IntelAtom", frozenset(range(4, 8))))
    facts = replace(GOOD, cpus_online=cpus, cpus_allowed=cpus, core_kinds=kinds)
    told = "IntelCore 0-3; IntelAtom 4-7"
    assert "core-kinds" not in codes(facts)
    slow = finding(replace(facts, cpus_allowed=(4, 5, 6)), "core-kinds")
    assert (slow.level, slow.remedy) == ("warning", "allow CPUs 0-3")
    assert slow.text.startswith("pollers on CPUs 4-6 have slower cores (IntelAtom) than CPUs 0-3 (IntelCore)")
    assert slow.text.endswith(f"(kinds of cores: {told})")
    lost = finding(replace(GOOD, numa_node={0: 0, 1: 1}, cpus_allowed=(0, 2, 3)), "core-kinds")
    assert lost.level == "warning" and "are on no NUMA node that the machine tells of" in lost.text


def test_siblings_of_idle_cpus_are_no_matter() -> None:
    """Eight CPUs: the pollers have cores for themselves, what is left shares one."""
    cpus = tuple(range(8))
    pollers = examine(replace(GOOD, cpus_online=cpus, cpus_allowed=cpus, siblings=core(1, 5)))
    assert [it.level for it in pollers if it.code == "smt"] == ["warning"]
    assert "smt" not in codes(replace(GOOD, cpus_online=cpus, cpus_allowed=cpus, siblings=core(5, 6)))


def test_hugepages_of_both_sizes_are_told() -> None:
    found = finding(replace(GOOD, hugepages_1g_total=4, hugepages_1g_free=3), "hugepages")
    assert (found.level, "1024 of 1024 x 2 MiB" in found.text, "3 of 4 x 1 GiB" in found.text) == ("ok", True, True)
    assert "enough for 2 switches at once" in found.text
    assert "enough for one switch" in finding(replace(GOOD, hugepages_2m_free=1023), "hugepages").text
    assert finding(replace(GOOD, hugepages_2m_free=511), "hugepages").level == "warning"
    large = finding(replace(GOOD, hugepages_2m_free=0, hugepages_1g_total=4, hugepages_1g_free=4), "hugepages")
    assert large.level == "ok" and "--hugepages" in large.text


def test_nics_in_order() -> None:
    nics = (Nic("0000:01:00.0", "vfio-pci", 0, "7"), Nic("0000:02:00.0", None, None, "8"))
    facts = replace(GOOD, nics=nics, iommu_groups=9)
    assert not {"iommu", "nic-numa"} & codes(facts)


def test_the_cpus_of_a_far_nic_are_named() -> None:
    facts = replace(
        GOOD, cpus_allowed=(0, 1), numa_node={0: 0, 1: 0, 2: 1, 3: 1}, nics=(Nic("0000:01:00.0", "ixgbe", 1, "7"),)
    )
    assert "taskset -c 2,3" in finding(facts, "nic-numa").remedy


def test_damon_is_turned_off_where_it_can_be() -> None:
    busy = (KernelThread(77, "kdamond.0", 0.005), KernelThread(9, "ksoftirqd/1", 0.003, movable=False))
    path = "/sys/module/damon_reclaim/parameters/enabled"
    found = finding(replace(GOOD, busy_kernel_threads=busy, damon_switches=(path,)), "kernel-threads")
    assert "kdamond.0 0.5%, ksoftirqd/1 0.3%" in found.text
    assert found.remedy == f"`echo N | sudo tee {path}`"
    bound = finding(replace(GOOD, busy_kernel_threads=busy[1:]), "kernel-threads")
    assert "taskset" not in bound.remedy and "isolcpus" in bound.remedy


def test_many_kernel_threads_are_not_all_named() -> None:
    busy = tuple(KernelThread(pid, f"k{pid}", 0.01) for pid in range(6))
    assert "k3 1.0% and 2 more" in finding(replace(GOOD, busy_kernel_threads=busy), "kernel-threads").text


def test_unknown_is_not_trouble() -> None:
    unknown = replace(GOOD, governor=None, turbo=None, autogroup=None)
    assert codes(unknown) == codes(GOOD)


def test_switches_found_and_missing() -> None:
    switches = {"a": Found("1.0", Path("/bin/a")), "b": NotFound("apt-get install b"), "planed": NotFound("make")}
    found = {it.code: it for it in examine(GOOD, switches)}
    assert (found["switch-a"].level, found["switch-a"].remedy) == ("ok", "")
    assert (found["switch-b"].level, found["switch-b"].remedy) == ("warning", "apt-get install b")
    assert found["switch-planed"].level == "problem"


def test_the_noise_of_cpus_is_judged_where_it_is_known() -> None:
    quiet, noisy = CoreNoise(2, 10**9, 3_000, ((2048, 4),)), CoreNoise(3, 10**9, 3_200_000, ((2097152, 1),))
    assert noise_findings(()) == noise_findings((quiet,)) == ()
    (found,) = noise_findings((quiet, noisy))
    assert found.level == "warning" and "CPU 3 did not poll for up to 3200 us" in found.text
    (busy,) = noise_findings((noisy,), busy=True)
    assert "isolate" in found.remedy and "stop the other programs" in busy.remedy


def test_time_stamp_counters_that_differ_are_a_problem() -> None:
    unknown, first, near, far = (
        CoreNoise(n, 10**9, 0, (), hz) for n, hz in enumerate((None, 10**9, 10**9 + 50_000, 10**9 + 50_001))
    )
    assert tsc_findings((unknown,)) == tsc_findings((unknown, first, near)) == ()
    (other,) = tsc_findings((far, unknown, first, near))
    assert other.level == "problem" and "CPU 1 runs at 1000.000 MHz, that of CPU 3 at 1000.050 MHz" in other.text


def test_diagnose_looks_at_this_machine() -> None:
    found = diagnose()
    assert len({it.code for it in found}) == len(found)
    assert all(it.remedy for it in found if it.level != "ok")
    assert {"switch-planed", "switch-testpmd", "switch-ovs-dpdk"} <= {it.code for it in found}
