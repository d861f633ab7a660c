# SPDX-License-Identifier: BSD-3-Clause
from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planebench.model.cpus import Cpus
from planebench.model.scenario import SCENARIOS
from planebench.model.scenarios import QUEUES_MAX, build
from planebench.model.topology import Topology
from planebench.planed.document import Worker
from planebench.testbed.placement import Placement, place
from planebench.testbed.tester_config import assign_tasks, tester_tasks


def on(cpus: int, topology: Topology, queues: int = 1) -> tuple[Worker, ...]:
    return assign_tasks(place(Cpus(tuple(range(cpus))), len(topology.vnfs)), topology, queues)


def test_two_cores_have_one_worker_and_receive_before_they_send() -> None:
    (worker,) = on(2, build("loopback", 2))
    assert worker == Worker("w0", 0, ("mon-n0", "mon-n1", "vnf0", "vnf1", "gen-n0", "gen-n1"))


def test_one_core_too() -> None:
    (worker,) = on(1, build("p2v"))
    assert worker == Worker("w0", 0, ("mon-n0", "mon-v0", "gen-n0", "gen-v0"))


def test_vnfs_move_out_first_then_the_second_end() -> None:
    assert on(4, build("loopback", 2)) == (
        Worker("w0", 0, ("mon-n0", "mon-n1", "gen-n0", "gen-n1")),
        Worker("w1", 1, ("vnf0",)),
        Worker("w2", 2, ("vnf1",)),
    )
    assert on(4, build("p2p")) == (
        Worker("w1", 1, ("mon-n0", "gen-n0")),
        Worker("w2", 2, ("mon-n1", "gen-n1")),
    )


@pytest.mark.parametrize(
    ("cpus", "expected"),
    [
        (2, [("mon-v0", "mon-v3", "echo", "gen-v0", "gen-v3")]),
        (4, [("mon-v0", "mon-v3", "gen-v0", "gen-v3"), ("echo",)]),
    ],
)
def test_what_sends_back_has_the_core_of_a_vnf(cpus: int, expected: list[tuple[str, ...]]) -> None:
    assert [worker.tasks for worker in on(cpus, build("v2v", echo=True))] == expected


def test_streams_number_the_ends() -> None:
    tasks = {task.name: task for task in tester_tasks(build("p2v"))}
    assert (tasks["gen-n0"].stream, tasks["gen-v0"].stream) == (0, 1)
    assert tasks["mon-n0"].stream is None


def test_queues_have_tasks_of_their_own() -> None:
    tasks = tester_tasks(build("loopback", 1), queues=2)
    assert [(task.name, task.queue, task.stream) for task in tasks] == [
        ("mon-n0", 0, None),
        ("mon-n0-q1", 1, None),
        ("mon-n1", 0, None),
        ("mon-n1-q1", 1, None),
        ("vnf0", 0, None),
        ("vnf0-q1", 1, None),
        ("gen-n0", 0, 0),
        ("gen-n0-q1", 1, 2),
        ("gen-n1", 0, 1),
        ("gen-n1-q1", 1, 3),
    ]
    streams = [task.stream for task in tester_tasks(build("p2p"), QUEUES_MAX) if task.kind == "generator"]
    assert sorted(streams, key=str) == list(range(8)), "as many as planed has"


@given(st.sampled_from(tuple(SCENARIOS)), st.integers(1, 5), st.integers(1, 16), st.integers(1, QUEUES_MAX))
def test_every_task_has_exactly_one_worker(scenario: str, length: int, cpus: int, queues: int) -> None:
    topology = build(scenario, length if SCENARIOS[scenario].has_vnfs else 0)
    workers = on(cpus, topology, queues)
    names = [task.name for task in tester_tasks(topology, queues)]
    assert sorted(name for worker in workers for name in worker.tasks) == sorted(names)
    assert all(worker.tasks for worker in workers)
    assert all(list(worker.tasks) == [name for name in names if name in worker.tasks] for worker in workers)
    assert len({worker.cpu for worker in workers}) == len(workers)


def test_a_placement_without_a_cpu_for_a_vnf_uses_the_testers() -> None:
    placement = Placement(1, (0,), (), frozenset({0}))
    (worker,) = assign_tasks(placement, build("loopback", 1))
    assert "vnf0" in worker.tasks
