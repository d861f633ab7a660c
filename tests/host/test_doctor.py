# SPDX-License-Identifier: BSD-3-Clause
"""Every trouble has a finding of the right level, and every finding above ok a remedy."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from planebench.host.doctor import Finding, diagnose, examine
from planebench.host.facts import HostFacts
from planebench.switches.base import Found, NotFound

GOOD = HostFacts(
    cpus_online=(0, 1, 2, 3),
    cpus_allowed=(0, 1, 2, 3),
    isolated_cpus=(2, 3),
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


def finding(facts: HostFacts, code: str) -> Finding:
    (found,) = [it for it in examine(facts) if it.code == code]
    return found


def test_a_good_machine_has_nothing_to_remedy() -> None:
    assert {it.level for it in examine(GOOD)} == {"ok"}
    assert not any(it.remedy for it in examine(GOOD))


@pytest.mark.parametrize(
    ("code", "change", "level", "remedy"),
    [
        ("cores", {"cpus_allowed": (0,)}, "problem", "taskset"),
        ("cores", {"cpus_allowed": (0, 1)}, "warning", "third core"),
        ("smt", {"siblings": {0: frozenset({0, 1}), 1: frozenset({0, 1})}}, "warning", "smt/control"),
        ("isolated", {"isolated_cpus": ()}, "warning", "isolcpus=3"),
        ("cgroup", {"cgroup_cpu_limit": 0.5}, "problem", "--cpus=2"),
        ("tsc", {"constant_tsc": False}, "problem", "invtsc"),
        ("tsc", {"nonstop_tsc": False}, "problem", "another machine"),
        ("virtualised", {"hypervisor": "KVM"}, "warning", "pin the virtual CPUs"),
        ("steal", {"steal_share": 0.05}, "warning", "dedicated"),
        ("autogroup", {"autogroup": True}, "warning", "sysctl kernel.sched_autogroup_enabled=0"),
        ("load", {"load_average_1m": 1.5}, "warning", "top"),
        ("governor", {"governor": "powersave"}, "warning", "cpupower"),
        ("turbo", {"turbo": True}, "warning", "no_turbo"),
        ("hugepages", {"hugepages_2m_free": 0}, "warning", "echo 1024 > /proc/sys/vm/nr_hugepages"),
        ("memory", {"memory_available_bytes": 1 << 30}, "warning", "--switch"),
        ("root", {"is_root": False}, "warning", "sudo"),
        ("priority", {"can_raise_priority": False}, "warning", "limits.conf"),
        ("memlock", {"memlock_limit_bytes": 65536}, "warning", "ulimit"),
    ],
)
def test_each_trouble_is_found(code: str, change: dict[str, Any], level: str, remedy: str) -> None:
    found = finding(replace(GOOD, **change), code)
    assert found.level == level
    assert remedy in found.remedy


def test_unknown_is_not_trouble() -> None:
    unknown = replace(GOOD, governor=None, turbo=None, autogroup=None)
    assert {it.level for it in examine(unknown)} == {"ok"}


def test_switches_found_and_missing() -> None:
    switches = {"a": Found("1.0", Path("/bin/a")), "b": NotFound("apt-get install b"), "planed": NotFound("make")}
    found = {it.code: it for it in examine(GOOD, switches)}
    assert (found["switch-a"].level, found["switch-a"].remedy) == ("ok", "")
    assert (found["switch-b"].level, found["switch-b"].remedy) == ("warning", "apt-get install b")
    assert found["switch-planed"].level == "problem"


def test_diagnose_looks_at_this_machine() -> None:
    found = diagnose()
    assert len({it.code for it in found}) == len(found)
    assert all(it.remedy for it in found if it.level != "ok")
    assert {"switch-planed", "switch-testpmd", "switch-ovs-dpdk"} <= {it.code for it in found}
