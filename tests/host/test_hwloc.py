# SPDX-License-Identifier: BSD-3-Clause
"""Machines that are not here: hwloc's XML, and its synthetic descriptions, become CPUs, caches and NUMA nodes."""

from __future__ import annotations

from pathlib import Path

import pytest

from planebench.host.facts import HostFacts, cpus_of
from planebench.host.hwloc import PROGRAMS, with_topology
from planebench.host.programs import find_program
from planebench.model.errors import NotInstalledError, UsageError
from planebench.placement import place

HWLOC_2 = """<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE topology SYSTEM "hwloc2.dtd">
<topology version="2.0"><object type="Machine" os_index="0">
 <object type="Package" os_index="0"><object type="NUMANode" os_index="0"/>
  <object type="L3Cache"><object type="Core"><object type="PU" os_index="0"/><object type="PU" os_index="2"/></object>
 </object></object>
 <object type="Package" os_index="1"><object type="NUMANode" os_index="1"/>
  <object type="L3Cache"><object type="Core"><object type="PU" os_index="1"/><object type="PU" os_index="3"/></object>
 </object></object>
</object></topology>
"""
HWLOC_1 = """<?xml version="1.0" encoding="UTF-8"?>
<topology><object type="Machine" os_index="0">
 <object type="NUMANode" os_index="0"><object type="Socket" os_index="0"><object type="Cache" depth="3">
  <object type="Core"><object type="PU" os_index="0"/></object></object></object></object>
 <object type="NUMANode" os_index="1"><object type="Socket" os_index="1"><object type="Cache" depth="3">
  <object type="Core"><object type="PU" os_index="1"/></object></object></object></object>
</object></topology>
"""
needs_hwloc = pytest.mark.skipif(not any(map(find_program, PROGRAMS)), reason="hwloc is not installed")


def test_the_xml_of_hwloc_2(tmp_path: Path) -> None:
    file = tmp_path / "server.xml"
    file.write_text(HWLOC_2)
    facts = with_topology(HostFacts(hypervisor="KVM", isolated_cpus=(1,)), str(file))
    assert facts.cpus_allowed == (0, 1, 2, 3)
    assert facts.numa_node == {0: 0, 1: 1, 2: 0, 3: 1}
    assert facts.siblings[0] == facts.l3_group[2] == frozenset({0, 2})
    assert (facts.hypervisor, facts.isolated_cpus, facts.nics) == (None, (), ())


def test_the_xml_of_hwloc_1(tmp_path: Path) -> None:
    file = tmp_path / "server.xml"
    file.write_text(HWLOC_1)
    facts = with_topology(HostFacts(), str(file))
    assert facts.numa_node == {0: 0, 1: 1}
    assert facts.l3_group == {0: frozenset({0}), 1: frozenset({1})}


@pytest.mark.parametrize("text", ["", "<topology>", "<topology></topology>", "<a><object type='PU'/></a>"])
def test_xml_that_is_none_of_hwloc_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "bad.xml"
    file.write_text(text)
    with pytest.raises(UsageError, match=r"--topology .*bad\.xml: cannot be read"):
        with_topology(HostFacts(), str(file))


def test_a_description_needs_hwloc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("planebench.host.hwloc.find_program", lambda name: None)
    with pytest.raises(NotInstalledError, match="needs hwloc; to install: apt-get install hwloc-nox"):
        with_topology(HostFacts(), "pack:2 core:8 pu:2")


@needs_hwloc
@pytest.mark.parametrize(
    ("text", "cpus", "nodes", "cores", "caches"),
    [
        ("pack:2 core:8 pu:2", 32, 2, 16, 0),
        ("pack:2 core:12 pu:2", 48, 2, 24, 0),
        ("pack:1 core:8 pu:1", 8, 1, 8, 0),
        ("pack:2 [numa] l3:4 core:4 pu:2", 64, 2, 32, 8),
        ("pack:1 [numa] core:4 pu:1", 4, 1, 4, 0),
    ],
)
def test_the_servers_of_the_papers_by_description(text: str, cpus: int, nodes: int, cores: int, caches: int) -> None:
    facts = with_topology(HostFacts(), text)
    assert len(facts.cpus_allowed) == cpus
    assert len(set(facts.numa_node.values())) == nodes
    assert facts.cores_allowed == cores
    assert len(set(facts.l3_group.values())) == caches
    assert place(cpus_of(facts)).switch_cpu in facts.cpus_allowed


@needs_hwloc
def test_a_description_that_hwloc_does_not_know_is_refused() -> None:
    with pytest.raises(UsageError, match="is not valid"):
        with_topology(HostFacts(), "sockets and cores")
