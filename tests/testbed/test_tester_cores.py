# SPDX-License-Identifier: BSD-3-Clause
"""A tester of several cores: their places, the queue each has, and who is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planebench.measure.live import LiveSettings, link_settings
from planebench.model.cpus import Cpus
from planebench.model.errors import UsageError
from planebench.plan.override import override
from planebench.plan.schema import load_plan
from planebench.switches.adapter import Situation, refusal_of
from planebench.switches.registry import get_adapter
from planebench.testbed.chain import build_chain
from planebench.testbed.placement import place, place_vnfs
from planebench.testbed.request import LinkSettings
from planebench.testbed.tester_config import assign_tasks, full_stage, switch_request

LINKS = LinkSettings(Path("/run/x"), name="pb-x", queues=2)


def machine(count: int, cores: int, switch_cores: int = 1) -> Cpus:
    return Cpus(tuple(range(count)), tester_cores=cores, switch_cores=switch_cores)


def test_each_core_has_a_queue_of_every_port() -> None:
    topology = build_chain("p2p", 0)
    placement = place(machine(8, 2))
    workers = assign_tasks(placement, topology, 2)
    assert {worker.cpu: worker.tasks for worker in workers} == {
        placement.tester_cpus[0]: ("mon-n0", "mon-n1", "gen-n0", "gen-n1"),
        placement.tester_cpus[1]: ("mon-n0-q1", "mon-n1-q1", "gen-n0-q1", "gen-n1-q1"),
    }
    document = full_stage(topology, workers, LINKS).to_json()
    assert {port["queues"] for port in document["ports"]} == {2}
    streams = {task["name"]: (task["stream"], task.get("queue", 0)) for task in document["tasks"] if "stream" in task}
    assert streams == {"gen-n0": (0, 0), "gen-n0-q1": (2, 1), "gen-n1": (1, 0), "gen-n1-q1": (3, 1)}


def test_with_one_core_each_end_has_a_core_where_there_are_some() -> None:
    placement = place(machine(8, 1))
    assert len(placement.tester_cpus) == 2 and not placement.tester_by_queue
    workers = assign_tasks(placement, build_chain("p2p", 0), 2)
    assert [{task.split("-")[1] for task in worker.tasks} for worker in workers] in ([{"n0"}, {"n1"}], [{"n1"}, {"n0"}])


@given(count=st.integers(1, 16), cores=st.integers(2, 4), switch=st.integers(1, 4), vnfs=st.integers(0, 3))
def test_a_tester_has_its_cores_before_vnfs_and_after_the_switch(
    count: int, cores: int, switch: int, vnfs: int
) -> None:
    placement = place_vnfs(machine(count, cores, switch), (1,) * vnfs)
    tester = set(placement.tester_cpus)
    assert len(tester) == len(placement.tester_cpus) <= cores and placement.tester_by_queue
    assert count == 1 or not tester & set(placement.switch_cpus)
    if count >= switch + cores:
        assert len(tester) == cores and len(placement.switch_cpus) == switch
    if count >= switch + cores + vnfs + 1:
        assert not tester & {*placement.vnf_cpus, *placement.control_cpus}
    fewer = [text for text in placement.warnings if "tester_cores" in text]
    assert bool(fewer) == (1 < count < switch + cores and len(tester) < cores)


def test_where_there_are_fewer_cores_one_has_several_queues() -> None:
    placement = place(machine(2, 4))
    assert placement.tester_cpus == (0,) and "tester_cores is 4, but there is 1" in placement.warnings[0]
    (worker,) = assign_tasks(placement, build_chain("p2p", 0), 4)
    assert len(worker.tasks) == 16


def test_cores_that_share_the_cache_of_the_first_come_before_others() -> None:
    groups = [frozenset(range(4)), frozenset(range(4, 8)), frozenset(range(8, 12))]
    cpus = replace(machine(12, 3), l3_group={cpu: group for group in groups for cpu in group})
    placement = place(cpus)
    (group,) = {min(cpus.l3_group[cpu]) for cpu in placement.tester_cpus}
    assert group == min(cpus.l3_group[placement.switch_cpu]) and len(placement.tester_cpus) == 3


def test_the_switch_has_as_many_queues_on_its_own_cores() -> None:
    topology, settings = build_chain("p2p", 0), LiveSettings(Path("planed"), 256, False, 1518, "virtio", tester_cores=4)
    for name, queues in (("testpmd", 4), ("planed:workers=2", 4)):
        links = link_settings(get_adapter(name), topology, settings, Path("/w"))
        assert links.queues == queues
        request = switch_request(topology, place(machine(8, 4)), links)
        assert (request.queues, len(request.worker_cpus)) == (queues, 1)


@pytest.mark.parametrize(
    ("switch", "wire", "words"),
    [
        ("testpmd", "virtio", ""),
        ("planed", "memif", ""),
        ("ovs-dpdk", "vhost", ""),
        ("snabb", "virtio", "snabb has one queue pair per port; a tester of 2 cores needs as many"),
        ("testpmd", "veth", "one queue pair on the veth wire"),
        ("testpmd", "af_xdp", "one queue pair on the af_xdp wire"),
        ("vpp", "memif", "give --switch-cores 2"),
    ],
)
def test_a_switch_without_as_many_queues_is_refused(switch: str, wire: str, words: str) -> None:
    why = refusal_of(get_adapter(switch), Situation("p2p", wire, tester_cores=2, switch_cores=1))  # type: ignore[arg-type]
    assert words in why and bool(why) == bool(words)


def test_nics_have_queues_of_their_own_at_each_end() -> None:
    """A switch with one queue pair may be on a cable whose other end has several; not if it has ports of VNFs, too."""
    nics = "pci:0000:01:00.0=0000:02:00.0,0000:01:00.1=0000:02:00.1"
    settings = LiveSettings(Path("planed"), 256, False, 1518, nics, tester_cores=4)
    for scenario, queues, refused in (("p2p", 1, False), ("p2v", 4, True)):
        topology = build_chain(scenario, 0)  # type: ignore[arg-type]
        links = link_settings(get_adapter("testpmd"), topology, settings, Path("/w"))
        placement = place(machine(8, 4))
        document = full_stage(topology, assign_tasks(placement, topology, links.queues), links).to_json()
        assert {port["queues"] for port in document["ports"]} == {4}
        assert switch_request(topology, placement, links).queues == queues
        situation = Situation(scenario, "pci", tester_cores=4, switch_cores=1)  # type: ignore[arg-type]
        assert bool(refusal_of(get_adapter("testpmd"), situation)) == refused
    assert not refusal_of(get_adapter("vpp"), Situation("p2p", "pci", tester_cores=4, switch_cores=1))


def test_the_tester_of_a_switch_on_another_host_has_its_cores() -> None:
    placement = place(replace(machine(8, 3), switch_elsewhere=(0,)))
    assert len(placement.tester_cpus) == 3 and placement.tester_by_queue
    assert not set(placement.tester_cpus) & placement.control_cpus


def test_a_plan_says_how_many() -> None:
    quick = load_plan("quick")
    assert quick.tester_cores == 1
    assert override(quick, tester_cores=4).tester_cores == 4
    with pytest.raises(UsageError, match='"5"'):
        override(quick, tester_cores=5)
