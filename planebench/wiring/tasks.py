# SPDX-License-Identifier: BSD-3-Clause
"""The tasks of the tester process for a topology, and the workers that poll them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from planebench.model.topology import MONITOR_MAC, Topology, Vnf
from planebench.placement.place import Placement
from planebench.planed.document import Task, Worker
from planebench.scenarios.queues import queue_name, queue_stream

SOURCE = "fib_source"
"""Kind of the task that is the control of a VNF whose forwarding the switch has."""


def tester_tasks(
    topology: Topology, queues: int = 1, updates: str = "", inside: Sequence[Task] = (), *, one_wire: bool = False
) -> tuple[Task, ...]:
    """Return every task of a topology in polling order: monitors, VNFs in chain order, generators; one for each queue.

    VNFs side by side are no tasks of the tester; but at the port ``updates`` it is the control of one, whose forwarding
    the switch has, and sends its FIB messages.

    ``inside`` are those of a switch that is part of the tester. It has one wire, as one that is a NIC (``one_wire``):
    what the VNFs send back leaves by the port by which it came, so the monitor of the second end is there, and that end
    sends nothing.

    Both ends can send and receive, whatever the direction of a trial: a direction only chooses which generators start,
    so one live topology serves all of them. An echo topology sends and receives at end a alone. Hosted ends have their
    tasks in processes of their own (:func:`end_tasks`).
    Receiving comes first so that a burst which has arrived leaves the ring before more is sent.
    """
    one_wire = one_wire or bool(inside)
    ends = topology.ends[:1] if topology.echo or one_wire else topology.ends
    monitors = {topology.ends[1]: topology.ends[0]} if one_wire else {port: port for port in ends}
    tasks = (
        *(_monitor(end, port) for end, port in monitors.items() if port not in topology.hosted_ports),
        *inside,
        *(
            Task(vnf.name, vnf.kind, vnf.ports, settings=vnf.settings, sending=vnf.sending)
            for vnf in topology.chained_vnfs
        ),
        *(_control(vnf) for vnf in topology.vnfs if updates in vnf.ports),
        *(_generator(port, stream) for stream, port in enumerate(ends) if port not in topology.hosted_ports),
    )
    return tuple(it for task in tasks for it in each_queue(task, queues))


def end_tasks(topology: Topology, port: str) -> tuple[Task, ...]:
    """Return the tasks of a hosted end in polling order, as :func:`tester_tasks`."""
    return _monitor(port, port), _generator(port, topology.ends.index(port))


def _monitor(end: str, port: str) -> Task:
    return Task(f"mon-{end}", "monitor", (port,))


def _generator(port: str, stream: int) -> Task:
    return Task(f"gen-{port}", "generator", (port,), stream)


def each_queue(task: Task, queues: int) -> tuple[Task, ...]:
    """Return the task on each queue of its ports."""
    return tuple(_on_queue(task, queue) for queue in range(queues))


def control_name(port: str) -> str:
    """Return the name of the task that is the control of a VNF."""
    return f"control-{port}"


def _control(vnf: Vnf) -> Task:
    """Return the control task of a VNF, whose routes all lead to the monitor by the second wire."""
    return Task(
        control_name(vnf.ports[0]),
        SOURCE,
        vnf.ports[:1],
        settings={"routes": vnf.routes, "wire": 1, "mac": MONITOR_MAC},
    )


def _on_queue(task: Task, queue: int) -> Task:
    stream = None if task.stream is None else queue_stream(task.stream, queue)
    return replace(task, name=queue_name(task.name, queue), stream=stream, queue=queue)


def assign_tasks(
    placement: Placement,
    topology: Topology,
    queues: int = 1,
    updates: str = "",
    inside: Sequence[Task] = (),
    *,
    one_wire: bool = False,
) -> tuple[Worker, ...]:
    """Return the workers of the tester, one for each CPU with tasks, tasks in the order of :func:`tester_tasks`.

    Generator and monitor of an end share a CPU on all queues; with two tester CPUs each end has its own. The queues of
    a VNF of several CPUs take turns on them.
    """
    inside_cpus = ((task.name, placement.tester_cpus[:1]) for task in inside)
    places = (*_cpus_of_task(placement, topology), *inside_cpus)
    cpu_of = {queue_name(name, queue): cpus[queue % len(cpus)] for name, cpus in places for queue in range(queues)}
    names = [task.name for task in tester_tasks(topology, queues, updates, inside, one_wire=one_wire)]
    cpus = sorted({cpu_of[name] for name in names})
    return tuple(Worker(f"w{cpu}", cpu, tuple(name for name in names if cpu_of[name] == cpu)) for cpu in cpus)


def _cpus_of_task(placement: Placement, topology: Topology) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Yield the CPUs of each possible task; a VNF without placement (an echo) runs on the CPU of end b."""
    for end, port in enumerate(topology.ends):
        cpu = placement.tester_cpus[end % len(placement.tester_cpus)]
        yield f"mon-{port}", (cpu,)
        yield f"gen-{port}", (cpu,)
    for number, vnf in enumerate(topology.vnfs):
        placed = number < len(placement.vnf_cpus)
        yield vnf.name, placement.cpus_of_vnf(number) if placed else placement.tester_cpus[-1:]
    for vnf in topology.vnfs:
        yield control_name(vnf.ports[0]), placement.tester_cpus[:1]
