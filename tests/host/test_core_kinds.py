# SPDX-License-Identifier: BSD-3-Clause
"""Kinds of cores, nodes and caches as Linux tells of them: hybrid CPUs, broken lists, old numbers of caches."""

from __future__ import annotations

from pathlib import Path

import pytest

from planebench.host.facts import HostFacts, collect, cpus_of, kinds_text
from planebench.model.cpus import parse_cpus
from tests.sysfs_tree import Tree, server, set_speeds

FAVOURED = ((4, 64), (2, 67), (2, 64), (2, 67), (2, 64), (8, 39))
"""A Core i7-1370P: two of six P-cores may run faster, and CPUs 12 to 19 are E-cores."""
GB10 = ((5, 718), (5, 997), (5, 731), (4, 1017), (1, 1024))


def facts_of(tree: Tree) -> HostFacts:
    online = frozenset(parse_cpus(tree.get("sys/devices/system/cpu/online")))
    return collect(tree.root, online, lambda cpus: cpus)


@pytest.mark.parametrize(
    ("file", "runs", "text"),
    [
        ("acpi_cppc/highest_perf", FAVOURED, "highest_perf 67 0-11; highest_perf 39 12-19"),
        ("cpu_capacity", GB10, "cpu_capacity 1024 5-9,15-19; cpu_capacity 731 0-4,10-14"),
        ("cpufreq/cpuinfo_max_freq", ((8, 3900), (12, 5000)), "cpuinfo_max_freq 5000 8-19; cpuinfo_max_freq 3900 0-7"),
        (
            "cpu_capacity",
            ((4, 1024), (4, 512), (12, 160)),
            "cpu_capacity 1024 0-3; cpu_capacity 512 4-7; cpu_capacity 160 8-19",
        ),
        ("cpu_capacity", ((20, 1024),), ""),
        # the ranks that AMD gives to cores of one kind
        ("acpi_cppc/highest_perf", tuple((1, 236 - 4 * cpu) for cpu in range(20)), ""),
        # not told of every CPU
        ("cpu_capacity", ((10, 1024), (5, 512)), ""),
    ],
)
def test_speeds_make_kinds(tmp_path: Path, file: str, runs: tuple[tuple[int, int], ...], text: str) -> None:
    tree = server(tmp_path, 1, 20)
    set_speeds(tree, file, *runs)
    facts = facts_of(tree)
    assert kinds_text(facts.core_kinds) == facts.as_dict()["core_kinds"] == text
    assert cpus_of(facts).kinds == facts.core_kinds


def test_the_frequency_is_that_of_fast_cores(tmp_path: Path) -> None:
    tree = server(tmp_path, 1, 20)
    set_speeds(tree, "cpu_capacity", *GB10)
    set_speeds(tree, "cpufreq/cpuinfo_max_freq", (5, 2808000), (5, 3900000), (5, 2808000), (5, 3900000))
    assert facts_of(tree).cpu_mhz == 3900


def test_counters_of_intel_come_before_speeds(tmp_path: Path) -> None:
    tree = server(tmp_path, 1, 20)
    set_speeds(tree, "acpi_cppc/highest_perf", (20, 64))
    tree.set("sys/devices/cpu_core/cpus", "0-11")
    tree.set("sys/devices/cpu_atom/cpus", "12-17")
    assert facts_of(tree).core_kinds == ()
    tree.set("sys/devices/cpu_lowpower/cpus", "18-19")
    assert kinds_text(facts_of(tree).core_kinds) == "IntelCore 0-11; IntelAtom 12-17; IntelLowPower 18-19"


def test_a_cpu_in_several_nodes_is_on_the_lowest(tmp_path: Path) -> None:
    tree = server(tmp_path, 1, 4)
    for node in (3, 1, 2, 0):
        tree.set(f"sys/devices/system/node/node{node}/cpulist", "0-3" if node else "2-3")
    assert facts_of(tree).numa_node == {0: 1, 1: 1, 2: 0, 3: 0}


def test_a_list_that_ends_with_a_zero_is_read(tmp_path: Path) -> None:
    tree = server(tmp_path, 2, 2)
    tree.set("sys/devices/system/node/node1/cpulist", "2-3\n\0")
    assert facts_of(tree).numa_node == {0: 0, 1: 0, 2: 1, 3: 1}


def test_a_cpu_without_a_node_is_none_of_node_0(tmp_path: Path) -> None:
    tree = server(tmp_path, 2, 2)
    tree.set("sys/devices/system/node/node0/cpulist", "0")
    facts = facts_of(tree)
    assert [cpus_of(facts).node(cpu) for cpu in range(4)] == [0, -1, 1, 1]
    assert facts.as_dict()["numa_nodes"] == 2
    for node in (0, 1):
        tree.set(f"sys/devices/system/node/node{node}/cpulist", "")
    assert cpus_of(facts_of(tree)).node(3) == 0


def test_the_level_of_a_cache_counts_not_its_number(tmp_path: Path) -> None:
    tree = server(tmp_path, 1, 4, l3_cores=4)
    for cpu in range(4):
        tree.set(f"sys/devices/system/cpu/cpu{cpu}/cache/index3/level", "2")
        tree.set(f"sys/devices/system/cpu/cpu{cpu}/cache/index4/level", "3")
        tree.set(f"sys/devices/system/cpu/cpu{cpu}/cache/index4/shared_cpu_list", f"{cpu // 2 * 2}-{cpu // 2 * 2 + 1}")
    assert facts_of(tree).l3_group[3] == {2, 3}
