# SPDX-License-Identifier: BSD-3-Clause
"""VNFs of several cores: from the text of a chain to CPUs, workers, queue pairs and vCPUs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planebench.measure.hosted import hosted_requests
from planebench.model.cpus import Cpus
from planebench.model.errors import UsageError
from planebench.testbed.chain import build_chain, parse_chain, vnf_cores
from planebench.testbed.hosting import machine
from planebench.testbed.hosting.machine import guest_document
from planebench.testbed.placement import place, place_vnfs
from planebench.testbed.request import LinkSettings
from planebench.testbed.tester_config import assign_tasks, full_stage

LINKS = LinkSettings(Path("/run/x"), name="pb-x", queues=2)
EIGHT = Cpus(tuple(range(8)))


def test_a_chain_says_how_many_cores_a_function_has() -> None:
    assert vnf_cores("firewall:cores=2,l3fwd", 2) == (2, 1) and vnf_cores("", 3) == (1, 1, 1)
    assert parse_chain("l2fwd:cores=2")[0].text == "l2fwd:cores=2"
    topology = build_chain("loopback", 2, chain="firewall:cores=2,l3fwd")
    assert topology.cores_of_vnfs == (2, 1) and topology.vnf_cores == 2
    with pytest.raises(UsageError, match=r'cores "5" is not valid\. Valid: 1\.\.4'):
        parse_chain("l2fwd:cores=5")
    with pytest.raises(UsageError, match="side by side have one core each"):
        build_chain("parallel", 2, chain="l3fwd:cores=2")


def test_each_core_of_a_task_of_the_tester_polls_a_queue() -> None:
    topology = build_chain("loopback", 1, chain="l2fwd:cores=2")
    placement = place_vnfs(EIGHT, topology.cores_of_vnfs)
    first, second = placement.cpus_of_vnf(0)
    assert first != second and {first, second} <= placement.pollers
    workers = assign_tasks(placement, topology, 2)
    assert [worker.tasks for worker in workers if worker.cpu == first] == [("vnf0",)]
    assert [worker.tasks for worker in workers if worker.cpu == second] == [("vnf0-q1",)]
    assert {port["queues"] for port in full_stage(topology, workers, LINKS).to_json()["ports"]} == {2}


@pytest.mark.parametrize("hosting", ["separate", "vm"])
def test_a_hosted_vnf_has_a_worker_on_each_of_its_cpus(hosting: str) -> None:
    topology = build_chain("loopback", 1, chain=f"{hosting}:l2fwd:cores=2")
    (request,) = hosted_requests(topology, place_vnfs(EIGHT, (2,), hosted=(0,)), LINKS, Path("/bin/planed"))
    assert len(set(request.cpus)) == 2 and request.document is not None
    assert [(it.name, it.cpu, it.tasks) for it in request.document.workers] == [
        ("w-vnf0", request.cpus[0], ("vnf0",)),
        ("w-vnf0-q1", request.cpus[1], ("vnf0-q1",)),
    ]
    vcpus = machine.vcpu_count(request, 1)
    guest = guest_document(request.document, request.ports, request.cpus, 1)
    assert vcpus == 3 and [worker.cpu for worker in guest.workers] == [1, 2]
    assert machine.nic_settings(request).queues == 2


def test_where_there_are_no_cpus_a_worker_has_all_queues() -> None:
    topology = build_chain("loopback", 1, chain="separate:l2fwd:cores=2")
    placement = place_vnfs(Cpus((0, 1)), (2,), hosted=(0,))
    assert placement.cpus_of_vnf(0) == (1,) and placement.cpu_neighbours(0) == ("the switch",)
    (request,) = hosted_requests(topology, placement, LINKS, Path("/bin/planed"))
    assert request.document is not None
    assert [worker.tasks for worker in request.document.workers] == [("vnf0", "vnf0-q1")]


@given(count=st.integers(1, 16), cores=st.lists(st.integers(1, 4), max_size=4), hosted=st.sets(st.integers(0, 3)))
def test_cores_are_placed_as_so_many_vnfs(count: int, cores: list[int], hosted: set[int]) -> None:
    own = {number for number in hosted if number < len(cores)}
    placement = place_vnfs(Cpus(tuple(range(count))), cores, hosted=own)
    assert len(placement.vnf_cpus) == len(cores)
    for number, wanted in enumerate(cores):
        cpus = placement.cpus_of_vnf(number)
        assert 1 <= len(cpus) <= wanted and len(set(cpus)) == len(cpus)
    if count >= sum(cores) + 3:
        used = placement.all_vnf_cpus
        assert len(used) == sum(cores) == len(set(used)) and placement.switch_cpu not in used
    if set(cores) <= {1}:
        assert replace(placement, more_vnf_cpus=()) == place(Cpus(tuple(range(count))), len(cores), hosted=own)
