# SPDX-License-Identifier: BSD-3-Clause
"""Machines that are not here: hwloc's XML, and its synthetic descriptions, become CPUs, caches and NUMA nodes."""

from __future__ import annotations

from pathlib import Path

import pytest

from planebench.host.facts import HostFacts, cpus_of
from planebench.host.hwloc import PROGRAMS, with_topology
from planebench.host.programs import find_program
from planebench.model.errors import NotInstalledError, UsageError
from planebench.testbed.placement import place

HWLOC_2 = """<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE topology SYSTEM "hwloc2.dtd">
<topology version="2.0"><object type="Machine" os_index="0">
 <object type="Package" os_index="0"><object type="NUMANode" os_index="0"/><object type="L3Cache"><object type="Core">
  <object type="PU" os_index="0" complete_nodeset="0x00000001"/>
  <object type="PU" os_index="2" complete_nodeset="0x00000001"/></object></object></object>
 <object type="Package" os_index="1"><object type="NUMANode" os_index="1"/><object type="L3Cache"><object type="Core">
  <object type="PU" os_index="1" complete_nodeset="0x00000002"/>
  <object type="PU" os_index="3" complete_nodeset="0x00000002"/></object></object></object>
</object></topology>
"""
HWLOC_1 = """<?xml version="1.0" encoding="UTF-8"?>
<topology><object type="Machine" os_index="0">
 <object type="NUMANode" os_index="0"><object type="Socket" os_index="0"><object type="Cache" depth="3">
  <object type="Core"><object type="PU" os_index="0" complete_nodeset="0x00000001"/></object></object></object></object>
 <object type="NUMANode" os_index="1"><object type="Socket" os_index="1"><object type="Cache" depth="3">
  <object type="Core"><object type="PU" os_index="1" complete_nodeset="0x00000002"/></object></object></object></object>
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


def of_cpus(folder: Path, *nodesets: str | None, more: str = "", file: str = "machine.xml") -> HostFacts:
    """Return the facts of CPUs with these sets of nodes."""
    sets = (f' complete_nodeset="{nodes}"' if nodes is not None else "" for nodes in nodesets)
    cpus = "".join(f'<object type="PU" os_index="{cpu}"{nodes}/>' for cpu, nodes in enumerate(sets))
    (folder / file).write_text(f'<topology version="2.0"><object type="Machine">{cpus}{more}</object></topology>')
    return with_topology(HostFacts(), str(folder / file))


@pytest.mark.parametrize(
    ("nodesets", "nodes"),
    [
        # a control group keeps node 7 from us, so that it is no object of the file
        (("0x00000001", "0x00000080"), {0: 0, 1: 7}),
        # nodes 2 and 4 have memory only, beside both nodes with CPUs
        (("0x00000015", "0x00000016"), {0: 0, 1: 1}),
        # node 0 is said to have the CPUs of node 1
        (("0x00000001", "0x00000003"), {0: 0, 1: 0}),
        # above 32 nodes: words that are 0 are left out
        (("0x00000001,,0x0", "0x00000002,0x00000000"), {0: 64, 1: 33}),
        # all nodes: the machine has one
        (("0xf...f", "0xf...f"), {0: 0, 1: 0}),
        (("0x00000001", "0x0"), {0: 0}),
        ((None, None), {}),
    ],
    ids=["not allowed", "memory only", "overlapping", "many", "endless", "none", "not told"],
)
def test_the_node_of_a_cpu_is_the_lowest_of_its_own(
    tmp_path: Path, nodesets: tuple[str | None, ...], nodes: dict[int, int]
) -> None:
    assert of_cpus(tmp_path, *nodesets).numa_node == nodes


def test_a_cache_on_the_side_of_the_memory_is_none_of_cpus(tmp_path: Path) -> None:
    """It is around the node, and has no CPUs inside."""
    cache = '<object type="MemCache" depth="1"><object type="NUMANode" os_index="3"/></object>'
    facts = of_cpus(tmp_path, "0x00000008", "0x00000008", more=cache)
    assert facts.numa_node == {0: 3, 1: 3} and facts.l3_group == {}


KINDS = """<topology version="2.0"><object type="Machine"><object type="PU" os_index="0"/>
<object type="PU" os_index="1"/><object type="PU" os_index="2"/></object>
<cpukind cpuset="0x00000001">{0}</cpukind><cpukind cpuset="0x00000006">{1}</cpukind></topology>"""


def infos(**told: str) -> str:
    return "".join(f'<info name="{name}" value="{value}"/>' for name, value in told.items())


@pytest.mark.parametrize(
    ("first", "others", "names"),
    [
        ({"CoreType": "IntelAtom"}, {"CoreType": "IntelCore", "FrequencyMaxMHz": "1"}, ("IntelCore", "IntelAtom")),
        ({"CoreType": "AMDEfficiency"}, {"CoreType": "AMDPerformance"}, ("AMDPerformance", "AMDEfficiency")),
        ({"LinuxCapacity": "718"}, {"LinuxCapacity": "1024"}, ("LinuxCapacity 1024", "LinuxCapacity 718")),
        ({"FrequencyMaxMHz": "3900"}, {"FrequencyMaxMHz": "5000"}, ("FrequencyMaxMHz 5000", "FrequencyMaxMHz 3900")),
        ({"FrequencyMaxMHz": "5000"}, {"FrequencyMaxMHz": "5200"}, ()),
        ({"CoreType": "Small"}, {"CoreType": "Large"}, ()),
        ({"FrequencyBaseMHz": "1400"}, {}, ()),
    ],
)
def test_kinds_of_cores(tmp_path: Path, first: dict[str, str], others: dict[str, str], names: tuple[str, ...]) -> None:
    file = tmp_path / "machine.xml"
    file.write_text(KINDS.format(infos(**first), infos(**others)))
    found = with_topology(HostFacts(), str(file)).core_kinds
    assert tuple(kind.name for kind in found) == names
    assert [kind.cpus for kind in found] in ([], [{1, 2}, {0}])


@pytest.mark.parametrize("name", ["T.XML", "machine", "machine.txt"])
def test_the_content_of_a_file_tells_what_it_is(tmp_path: Path, name: str) -> None:
    assert of_cpus(tmp_path, "0x1", "0x1", file=name).cpus_allowed == (0, 1)
    (tmp_path / name).write_bytes(b"\xef\xbb\xbf" + (tmp_path / name).read_bytes())
    assert with_topology(HostFacts(), str(tmp_path / name)).cpus_allowed == (0, 1)


@pytest.mark.parametrize("name", ["missing.XML", "missing.xml"])
def test_a_file_that_is_not_there_is_said(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match=r"cannot be read: .*No such file"):
        with_topology(HostFacts(), str(tmp_path / name))


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
    with pytest.raises(UsageError, match="is neither a file nor a valid description"):
        with_topology(HostFacts(), "sockets and cores")


@needs_hwloc
def test_a_description_may_be_longer_than_a_name() -> None:
    numbers = ",".join(map(str, reversed(range(128))))
    assert len(with_topology(HostFacts(), f"pack:2 core:64 pu:1(indexes={numbers})").cpus_allowed) == 128


@needs_hwloc
def test_a_file_may_have_a_description(tmp_path: Path) -> None:
    (tmp_path / "server").write_text("pack:2 core:4 pu:1\n")
    facts = with_topology(HostFacts(), str(tmp_path / "server"))
    assert len(facts.cpus_allowed) == 8 and set(facts.numa_node.values()) == {0, 1}
