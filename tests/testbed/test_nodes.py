# SPDX-License-Identifier: BSD-3-Clause
"""Placements of VNFs on the servers of the papers, and what holds for each of them on any machine."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planebench.host.facts import collect, cpus_of
from planebench.model.cpus import Cpus, parse_cpus, range_text
from planebench.model.errors import UsageError
from planebench.model.server import far_vnfs, parse_placing
from planebench.testbed.placement import Placement, place, refusal, tester_elsewhere
from tests.sysfs_tree import server

IC16 = (2, 8, 2)
"""Two sockets of 8 cores with two threads each: node 0 has CPUs 0-7 and 16-23, node 1 the others."""
CONEXT19 = (2, 12, 2)
CAN17 = (1, 8)
EPYCS = (2, 8, 1, 4)
"""Two sockets of 8 cores, four of which share an L3 cache."""


def machine(folder: Path, *shape: int, isolated: str = "") -> Cpus:
    tree = server(folder, *shape, isolated=isolated)
    online = frozenset(parse_cpus(tree.get("sys/devices/system/cpu/online")))
    return cpus_of(collect(tree.root, online, lambda cpus: cpus & online))


def told(it: Placement) -> str:
    """Return a placement in one line: switch / tester / VNFs, as they start / control."""
    vnfs = f"~{range_text(it.roaming)}" if it.roaming else ",".join(map(str, it.vnf_cpus))
    return f"{it.switch_cpu} / {','.join(map(str, it.tester_cpus))} / {vnfs} / {range_text(it.control_cpus)}"


@pytest.mark.parametrize(
    ("shape", "isolated", "vnfs", "placing", "expected"),
    [
        (IC16, "", 2, "near", "15 / 8,11 / 9,10 / 0-7,12-14,16-23,28-30"),
        (IC16, "", 2, "far", "15 / 8,9 / 1,2 / 0,3-7,10-14,16,19-23,26-30"),
        (IC16, "", 2, "split:1", "15 / 8,10 / 9,1 / 0,2-7,11-14,16,18-23,27-30"),
        (IC16, "", 2, "random", "15 / 8,9 / ~1-7,10-14,17-23,26-30 / 0,16"),
        # more VNFs than the other node has cores: CPU 0 and the second threads are used, too
        (IC16, "", 8, "far", "15 / 8 / 0,1,2,3,4,5,6,7 / 9-14,25-30"),
        (IC16, "", 16, "far", "15 / 8 / 0,1,2,3,4,5,6,7,16,17,18,19,20,21,22,23 / 9-14,25-30"),
        (IC16, "", 16, "near", "15 / 8 / 9,10,11,12,13,14,25,26,27,28,29,30,0,1,2,3 / 4-7,20-23"),
        (IC16, "", 5, "split:3", "15 / 8,12 / 9,10,11,1,2 / 0,3-7,13-14,16,19-23,29-30"),
        (IC16, "2-7,10-15", 2, "far", "15 / 10,11 / 2,3 / 0-1,8-9,16-17,20-25,28-30"),
        (CONEXT19, "", 5, "far", "23 / 12,13 / 1,2,3,4,5 / 0,6-11,14-22,24,30-35,38-46"),
        (CONEXT19, "", 5, "random", "23 / 12,13 / ~1-11,14-22,25-35,38-46 / 0,24"),
        (EPYCS, "", 2, "far", "15 / 12 / 1,2 / 0,3-11,13-14"),
        (EPYCS, "", 2, "split:1", "15 / 12 / 13,1 / 0,2-11,14"),
        (CAN17, "", 2, "random", "7 / 1,2 / ~3-6 / 0"),
        (CAN17, "", 6, "random", "7 / 1 / ~0,2-6 / 0,2-6"),
    ],
)
def test_golden_placements(
    tmp_path: Path, shape: tuple[int, ...], isolated: str, vnfs: int, placing: str, expected: str
) -> None:
    placement = place(machine(tmp_path, *shape, isolated=isolated), vnfs, hosted=range(vnfs), placing=placing)
    assert told(placement) == expected


def test_the_tester_on_another_node_than_the_switch(tmp_path: Path) -> None:
    cpus = tester_elsewhere(machine(tmp_path, *CONEXT19))
    assert told(place(cpus)) == "23 / 1,2 /  / 0,3-22,24,27-46"
    assert place(cpus).warnings == ()
    far = place(cpus, 2, hosted=range(2), placing="far")
    assert (far.tester_cpus, far.vnf_cpus) == ((1, 2), (3, 4))
    with pytest.raises(UsageError, match="needs CPUs on two NUMA nodes"):
        tester_elsewhere(machine(tmp_path / "one", *CAN17))


def test_memory_is_on_the_node_of_what_polls(tmp_path: Path) -> None:
    split = place(machine(tmp_path, *IC16), 2, hosted=range(2), placing="split:1")
    assert [split.memory_node(cpu) for cpu in (split.switch_cpu, *split.tester_cpus)] == [1, 1, 1]
    assert [split.vnf_memory_node(number) for number in (0, 1)] == [1, 0]
    roaming = place(machine(tmp_path / "random", *IC16), 2, hosted=range(2), placing="random")
    assert roaming.vnf_memory_node(0) is None
    assert place(machine(tmp_path / "one", *CAN17), 1).memory_node(1) is None


@pytest.mark.parametrize(
    ("shape", "vnfs", "hosted", "placing", "words"),
    [
        (CAN17, 2, 2, "far", "needs CPUs on two NUMA nodes"),
        (CAN17, 2, 2, "split:1", "all on node 0"),
        ((1, 2), 2, 2, "random", "needs 2 CPUs beside the cores of switch and tester, which are not isolated"),
        (IC16, 2, 1, "far", "add --hosting separate, container or vm"),
        (IC16, 2, 2, "split:2", "placement split:2 needs 3 VNFs or more, here are 2"),
    ],
)
def test_what_a_machine_or_a_chain_cannot_have_is_refused(
    tmp_path: Path, shape: tuple[int, ...], vnfs: int, hosted: int, placing: str, words: str
) -> None:
    cpus = machine(tmp_path, *shape)
    assert words in refusal(cpus, vnfs, hosted=range(hosted), placing=placing)
    with pytest.raises(UsageError, match="placement"):
        place(cpus, vnfs, hosted=range(hosted), placing=placing)


@pytest.mark.parametrize("text", ["", "split", "split:0", "split:100", "far ", "remote"])
def test_names_that_are_no_placement(text: str) -> None:
    with pytest.raises(UsageError, match="Valid: near, random, far, split:K"):
        parse_placing(text)


@st.composite
def machines(draw: st.DrawFn) -> Cpus:
    """Draw a machine numbered as Linux numbers them, of which some CPUs are allowed and some of these isolated."""
    sockets, cores, threads = draw(st.integers(1, 4)), draw(st.integers(1, 8)), draw(st.integers(1, 2))
    total = sockets * cores
    everything = range(total * threads)
    allowed = draw(st.one_of(st.just(set(everything)), st.sets(st.sampled_from(everything), min_size=1)))
    isolated = draw(st.one_of(st.just(set()), st.sets(st.sampled_from(sorted(allowed)))))
    siblings = {cpu: frozenset(range(cpu % total, total * threads, total)) for cpu in everything}
    nodes = {cpu: cpu % total // cores for cpu in everything}
    return Cpus(tuple(sorted(allowed)), siblings, nodes, isolated=frozenset(isolated))


def cores(cpus: Cpus, some: tuple[int, ...] | frozenset[int]) -> frozenset[int]:
    return frozenset[int]().union(*(cpus.core(cpu) for cpu in some))


PLACINGS = ("near", "random", "far", "split:1", "split:3")


@given(machines(), st.integers(1, 20), st.sampled_from(PLACINGS))
def test_what_holds_for_every_placement(cpus: Cpus, vnfs: int, placing: str) -> None:
    if refusal(cpus, vnfs, hosted=range(vnfs), placing=placing):
        return
    it = place(cpus, vnfs, hosted=range(vnfs), placing=placing)
    home, taken = cpus.node(it.switch_cpu), cores(cpus, (*it.switch_cpus, *it.tester_cpus))
    assert it.pollers | it.control_cpus <= set(cpus.allowed) and it.control_cpus
    assert len(it.vnf_cpus) == vnfs and len(set(it.tester_cpus)) == len(it.tester_cpus) > 0
    if not cores(cpus, cpus.allowed) <= cpus.core(it.switch_cpu):
        assert not set(it.tester_cpus) & cpus.core(it.switch_cpu)
    if placing != "near":
        # a core has one of switch, tester and VNFs, and these share a CPU only where there are too few
        apart = [it.vnf_cpus[number] for number in sorted(far_vnfs(placing, vnfs))] or list(it.roaming)
        assert not set(apart) & taken
    if placing in ("far", "split:1", "split:3"):
        assert all(cpus.node(it.vnf_cpus[number]) != home for number in far_vnfs(placing, vnfs))
        assert len({cpus.node(cpu) for cpu in apart}) == 1
        there = {cpu for cpu in cpus.allowed if cpus.node(cpu) == cpus.node(apart[0])} - taken
        assert len(set(apart)) == min(len(apart), len(there)) or 0 in there
        whole = {min(cpus.core(cpu)) for cpu in there}
        if len(whole - cpus.core(0)) >= len(apart):
            assert not set(apart) & cpus.core(0) and len({min(cpus.core(cpu)) for cpu in apart}) == len(apart)
    if placing == "random":
        assert set(it.vnf_cpus) <= it.roaming and not it.roaming & cpus.isolated
        assert it.roaming | cpus.core(0) >= set(cpus.allowed) - taken - cpus.isolated
    else:
        assert not it.roaming


@given(machines(), st.integers(1, 20))
def test_near_is_never_remote_while_a_cpu_of_the_node_is_free(cpus: Cpus, vnfs: int) -> None:
    it = place(cpus, vnfs, hosted=range(vnfs))
    home = cpus.node(it.switch_cpu)
    if any(cpus.node(cpu) != home for cpu in it.vnf_cpus):
        used = cores(cpus, (*it.switch_cpus, *it.tester_cpus)) | it.pollers | cpus.core(0)
        assert not {cpu for cpu in cpus.allowed if cpus.node(cpu) == home} - used


@given(machines(), st.integers(1, 20), st.sampled_from(PLACINGS))
def test_switch_and_tester_are_where_they_are_without_the_placement(cpus: Cpus, vnfs: int, placing: str) -> None:
    if not refusal(cpus, vnfs, hosted=range(vnfs), placing=placing):
        it, usual = (place(cpus, vnfs, hosted=range(vnfs), placing=name) for name in (placing, "near"))
        assert it.switch_cpus == usual.switch_cpus and len(it.tester_cpus) <= len(usual.tester_cpus)
        assert replace(usual, vnf_cpus=()).nodes == it.nodes
