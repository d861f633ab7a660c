# SPDX-License-Identifier: BSD-3-Clause
"""The CPUs of servers are read from their trees, and pollers are placed on them as their NICs and caches want it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from planebench.host.facts import HostFacts, collect, cpus_of
from planebench.model.cpus import Cpus, parse_cpus, range_text
from planebench.testbed.placement import Placement, place
from tests.sysfs_tree import server


def facts_of(folder: Path, *shape: int, isolated: str = "", cpuinfo: str = "") -> HostFacts:
    """Return the facts of a server as a process sees them that the kernel moved off the isolated CPUs."""
    tree = server(folder, *shape, isolated=isolated, cpuinfo=cpuinfo)
    online = frozenset(parse_cpus(tree.get("sys/devices/system/cpu/online")))
    return collect(tree.root, online - frozenset(parse_cpus(isolated)), lambda cpus: cpus & online)


def told(placement: Placement) -> str:
    """Return a placement in one line: switch / tester / VNFs / control."""
    parts = (placement.switch_cpus, placement.tester_cpus, placement.vnf_cpus, placement.control_cpus)
    return " / ".join(
        range_text(part) if number == 3 else ",".join(map(str, part)) for number, part in enumerate(parts)
    )


TWO_SOCKETS = (2, 8, 2)
"""Two sockets of 8 cores with two threads each: node 0 has CPUs 0-7 and 16-23."""
TWO_LARGE = (2, 12, 2)
EPYC = (1, 16, 2, 4)
"""One socket of 16 cores, four of which share an L3 cache."""
SMALL = (1, 8)
TWO_EPYCS = (2, 8, 1, 4)


@pytest.mark.parametrize(
    ("shape", "isolated", "nodes", "cores", "vnfs", "expected"),
    [
        (TWO_SOCKETS, "", (None, None), 1, 0, "15 / 8,9 /  / 0-7,10-14,16-23,26-30"),
        (TWO_SOCKETS, "", (None, None), 1, 2, "15 / 8,11 / 9,10 / 0-7,12-14,16-23,28-30"),
        # tester and switch on the nodes of their NICs: the same one, and one each
        (TWO_SOCKETS, "", (0, 0), 1, 0, "7 / 1,2 /  / 0,3-6,8-16,19-22,24-31"),
        (TWO_SOCKETS, "", (1, 0), 1, 0, "7 / 8,9 /  / 0-6,10-22,26-31"),
        (TWO_SOCKETS, "", (0, 1), 2, 1, "15,14 / 1,2 / 8 / 0,3-7,9-13,16,19-23,25-29"),
        (TWO_SOCKETS, "2-7", (0, 0), 1, 1, "7 / 2,4 / 3 / 0-1,8-17,21-22,24-31"),
        (TWO_SOCKETS, "4-7,12-15", (1, 0), 1, 2, "7 / 12,13 / 4,5 / 0-3,8-11,16-19,22,24-27,30-31"),
        # isolated CPUs on the other node than the NIC's: the node counts more
        (TWO_SOCKETS, "12-15", (0, 0), 1, 0, "7 / 1,2 /  / 0,3-6,8-11,16,19-22,24-31"),
        (TWO_LARGE, "1-11,25-35", (0, 0), 2, 3, "11,10 / 1,5 / 2,3,4 / 0,12-24,36-47"),
        (TWO_LARGE, "", (None, None), 1, 5, "23 / 12,18 / 13,14,15,16,17 / 0-11,19-22,24-35,43-46"),
        (EPYC, "", (None, None), 1, 0, "15 / 12,13 /  / 0-11,14,16-27,30"),
        (EPYC, "", (None, None), 1, 2, "15 / 12 / 13,14 / 0-11,16-27"),
        (EPYC, "", (None, None), 2, 1, "15,14 / 12 / 13 / 0-11,16-27"),
        # more VNFs than the cache has cores: they go elsewhere, the tester stays near
        (EPYC, "", (None, None), 1, 5, "15 / 12 / 13,14,1,2,3 / 0,4-11,16,20-27"),
        (EPYC, "4-7,20-23", (None, None), 1, 1, "7 / 4,6 / 5 / 0-3,8-19,24-31"),
        (TWO_EPYCS, "", (0, 1), 1, 1, "15 / 1,2 / 12 / 0,3-11,13-14"),
        (SMALL, "", (None, None), 1, 1, "7 / 1,3 / 2 / 0,4-6"),
        (SMALL, "4-7", (0, 0), 2, 0, "7,6 / 4,5 /  / 0-3"),
    ],
)
def test_golden_placements(
    tmp_path: Path,
    shape: tuple[int, ...],
    isolated: str,
    nodes: tuple[int | None, int | None],
    cores: int,
    vnfs: int,
    expected: str,
) -> None:
    tester_node, switch_node = nodes
    cpus = cpus_of(facts_of(tmp_path, *shape, isolated=isolated), cores)
    placement = place(replace(cpus, tester_node=tester_node, switch_node=switch_node), vnfs)
    assert told(placement) == expected
    assert 0 in placement.control_cpus
    assert placement.warnings == ()


def test_facts_of_a_server(tmp_path: Path) -> None:
    facts = facts_of(tmp_path, *EPYC, isolated="4-7,20-23")
    assert facts.cpus_allowed == tuple(range(32))
    assert facts.l3_group[21] == frozenset((4, 5, 6, 7, 20, 21, 22, 23))
    assert facts.as_dict()["l3_groups"] == "0-3,16-19;4-7,20-23;8-11,24-27;12-15,28-31"
    assert facts.isolated_cpus == (4, 5, 6, 7, 20, 21, 22, 23)


def test_near_is_within_one_cache(tmp_path: Path) -> None:
    cpus = cpus_of(facts_of(tmp_path, *EPYC))
    assert place(cpus).share_l3 is True
    assert place(replace(cpus, allowed=(3, 4))).share_l3 is False
    assert place(Cpus((3, 4))).share_l3 is None


def test_a_virtual_machine_tells_nothing_of_caches(tmp_path: Path) -> None:
    facts = facts_of(tmp_path, *EPYC, cpuinfo="flags : hypervisor")
    assert facts.l3_group and cpus_of(facts).l3_group == {}


def test_what_is_far_is_said(tmp_path: Path) -> None:
    epyc = cpus_of(facts_of(tmp_path / "epyc", *EPYC))
    (cache,) = place(replace(epyc, allowed=(3, 4))).warnings
    assert "share no L3 cache" in cache
    two = cpus_of(facts_of(tmp_path / "two", *TWO_SOCKETS))
    (node,) = place(replace(two, allowed=(0, 1, 2, 3), tester_node=1, switch_node=0)).warnings
    assert "NICs of the tester are on NUMA node 1" in node
    (switch,) = place(replace(two, allowed=(0, 1, 2, 3), tester_node=0, switch_node=1)).warnings
    assert "NICs of the switch are on NUMA node 1" in switch
    assert place(replace(two, tester_node=1, switch_node=0)).warnings == ()


@pytest.mark.parametrize(("cpus", "text"), [((), ""), ((3,), "3"), ((0, 1, 2, 5, 7, 8), "0-2,5,7-8")])
def test_lists_of_cpus(cpus: tuple[int, ...], text: str) -> None:
    assert range_text(cpus) == text and parse_cpus(text) == cpus
