# SPDX-License-Identifier: BSD-3-Clause
"""`plan show --topology`: where pollers would be on machines that are not here."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

CHAIN = ("--switch", "sim", "--scenario", "loopback", "--chain-length", "2", "--hosting", "separate")


def cores(first: int, count: int, threads: int = 1, nodes: str = "0x00000001") -> str:
    """Return cores as hwloc writes them."""
    cpus = range(first, first + count * threads)
    pus = [f'<object type="PU" os_index="{cpu}" complete_nodeset="{nodes}"/>' for cpu in cpus]
    each = ("".join(pus[number : number + threads]) for number in range(0, len(pus), threads))
    return "".join(f'<object type="Core">{core}</object>' for core in each)


def shown(planebench, file: Path, inside: str, *words: str, kinds: str = "") -> str:
    file.write_text(f'<topology version="2.0"><object type="Machine">{inside}</object>{kinds}</topology>')
    done = planebench("plan", "show", "quick", *CHAIN, *words, "--topology", file)
    assert done.code == 0, done.err
    return done.out


@pytest.fixture
def laptop() -> tuple[str, str]:
    """Return 6 P-cores with two threads, and 8 E-cores, of which only the highest frequencies are told."""
    told = (("0x000ff000", 3900), ("0x00000fff", 5000))
    kinds = (f'<cpukind cpuset="{cpus}"><info name="FrequencyMaxMHz" value="{mhz}"/></cpukind>' for cpus, mhz in told)
    return cores(0, 6, threads=2) + cores(12, 8), "".join(kinds)


def test_pollers_are_on_the_fast_cores(planebench, tmp_path: Path, laptop: tuple[str, str]) -> None:
    out = shown(planebench, tmp_path / "laptop.XML", laptop[0], kinds=laptop[1])
    assert "kinds of cores: FrequencyMaxMHz 5000 0-11; FrequencyMaxMHz 3900 12-19; a warning names pollers" in out
    assert "CPUs of loopback-2 in processes: switch 10; tester 2, 8; VNFs 4, 6; other threads 0-1,12-19\n" in out
    assert "\nwarning:" not in out


def test_pollers_on_slow_cores_are_named(planebench, tmp_path: Path, laptop: tuple[str, str]) -> None:
    out = shown(planebench, tmp_path / "laptop", laptop[0], "--switch-cores", "3", "--json", kinds=laptop[1])
    (row,) = json.loads(out)["placements"]
    assert row["core_kinds"] == "FrequencyMaxMHz 5000" and row["warnings"] == []
    out = shown(planebench, tmp_path / "laptop", laptop[0], "--switch-cores", "4", "--json", kinds=laptop[1])
    (row,) = json.loads(out)["placements"]
    assert row["core_kinds"] == "FrequencyMaxMHz 5000, FrequencyMaxMHz 3900"
    assert "pollers on CPUs 12 have slower cores (FrequencyMaxMHz 3900)" in row["warnings"][0]


def test_a_node_that_a_control_group_hides_is_that_of_its_cpus(planebench, tmp_path: Path) -> None:
    """The memory of nodes 6 and 7 is not allowed, so that their CPUs have it in the complete set only."""
    inside = cores(4, 2, nodes="0x00000004") + cores(12, 2, nodes="0x00000040") + cores(14, 2, nodes="0x00000080")
    out = shown(planebench, tmp_path / "server.xml", inside)
    assert "switch 15 (node 7); tester 14 (node 7); VNFs 4, 5 (node 2)" in out
    assert "warning: CPU 15 of the switch is on NUMA node 7, CPU 4 on node 2" in out


def test_a_cpu_without_a_node_is_told(planebench, tmp_path: Path) -> None:
    out = shown(planebench, tmp_path / "server.xml", cores(0, 2) + cores(2, 1, nodes="0x2") + cores(4, 3, nodes="0x0"))
    assert "switch 6; tester 4; VNFs 5, 0 (node 0)" in out
    assert "warning: pollers on CPUs 4-6 are on no NUMA node that the machine tells of" in out
