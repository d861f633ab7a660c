# SPDX-License-Identifier: BSD-3-Clause
"""Describe what planed is as a switch: its options, and the configuration document of a request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from planebench.model.errors import UsageError
from planebench.model.option import Option, parse_values
from planebench.planed.document import Document, Memory, Port, PortKind, Task, Worker
from planebench.scenarios.queues import QUEUES_MAX, queue_name
from planebench.switches import common
from planebench.switches import planed_stations as stations
from planebench.switches.manifest import manifest
from planebench.wiring.memory import memory
from planebench.wiring.request import SwitchPort, SwitchRequest

BURST = 64
FUNCTIONS = {
    "patch": "patch: one task for each cross-connect, both ways",
    "bridge": "bridge: one learning switch for each cross-connect",
}
BACKENDS = ("dpdk", "vring")
DEFAULT_BACKEND = "vring"
"""Of planed: what a document without the key means."""
INSTRUCTION_SETS = ("scalar", "avx2", "avx512")
DROP_ONE_IN_MAX = 2**32 - 1
OFFLOADS = ("fib",)


@dataclass(frozen=True, slots=True)
class PlanedOptions:
    """``--switch planed:key=value:...``. None: planed's default.

    ``drop_one_in``: one in this number of frames that a patch task receives is dropped and counted as ``fault``: a
    switch with a known loss, for what is to find it.
    ``backend``: whose data path its vhost-user and virtio-user ports have, DPDK's or our own.
    ``function``: the kind of its tasks. A scenario has pairs of ports, so a bridge learns and looks up, and has one
    other port to flood to.
    ``workers``: so many queue pairs on each port, a task for each queue, and a worker for each of them where it has a
    core; on fewer cores workers have several queues.
    ``isa``: the instruction set of its hot code; None is the best that the CPU has.
    ``offload``: of VNFs side by side, what the switch does in their place: ``fib``, forward by the union of their FIBs.
    """

    drop_one_in: int | None = None
    backend: str | None = None
    function: str = "patch"
    workers: int = 1
    isa: str | None = None
    offload: str | None = None

    def changed(self, options: Mapping[str, str]) -> PlanedOptions:
        """These options, the others as they are. Raises UsageError for what is not valid."""
        values: Mapping[str, Any] = parse_values("switch planed", OPTIONS, options)
        parsed = replace(self, **values)
        if parsed.drop_one_in is not None and parsed.function != "patch":
            raise UsageError(f"switch planed: function {parsed.function} takes no drop_one_in; leave one of them out")
        return parsed


OPTIONS = (
    Option("function", "text", "kind of its tasks", "patch", tuple(FUNCTIONS)),
    Option("backend", "text", "data path of its ports: DPDK's, or our own", DEFAULT_BACKEND, BACKENDS),
    Option("workers", "whole", "queue pairs on each port, and workers", "1", least=1, most=QUEUES_MAX),
    Option("isa", "text", "instruction set of its hot code", "the best", INSTRUCTION_SETS),
    Option("offload", "text", "what it does in place of VNFs side by side", "nothing", OFFLOADS),
    Option("drop_one_in", "whole", "drop one of N frames", "none", least=1, most=DROP_ONE_IN_MAX),
)


def switch_settings(request: SwitchRequest, options: PlanedOptions) -> dict[str, str]:
    """How it is run, for the report."""
    chosen = {} if options.drop_one_in is None else {"drop_one_in": str(options.drop_one_in)}
    if request.queues > 1:
        chosen |= {"workers": str(_worker_count(request))}
    if options.isa is not None:
        chosen["isa"] = options.isa
    backend = options.backend or DEFAULT_BACKEND
    return manifest(
        request,
        function=stations.words(request, options.offload) if request.stations else FUNCTIONS[options.function],
        nic_driver=common.nic_driver(request) if backend == "dpdk" else common.nic_driver(request, "planed's"),
        vnf_interface="vhost-user (DPDK net_vhost)" if backend == "dpdk" else "vhost-user (planed's)",
        burst=str(BURST),
        buffers=f"{_memory(request).mbuf_count} mbufs, one pool",
        backend=backend,
        **common.offloads(request, mergeable_wires=backend == "dpdk"),
        **chosen,
    )


def switch_document(request: SwitchRequest, name: str, options: PlanedOptions | None = None) -> Document:
    """Return the planed document of a switch request. ``name`` is the EAL file prefix too."""
    options = options or PlanedOptions()
    count = _worker_count(request)
    by_queue = [_tasks(request, options, queue) for queue in range(request.queues)]
    kind = stations.TASK if request.stations else options.function
    return Document(
        name.lower(),
        _memory(request),
        tuple(
            _port(number, port, request, options.backend) for number, port in enumerate(common.ordered_ports(request))
        ),
        tuple(task for tasks in by_queue for task in tasks),
        tuple(
            Worker(
                queue_name(kind, number),
                request.cpus[number],
                tuple(task.name for tasks in by_queue[number::count] for task in tasks),
            )
            for number in range(count)
        ),
        nice=-20,
    )


def _worker_count(request: SwitchRequest) -> int:
    """Two that share a core would only take it from each other."""
    return min(request.queues, len(request.cpus))


def _tasks(request: SwitchRequest, options: PlanedOptions, queue: int) -> list[Task]:
    """Return one task for all stations, or one for each cross-connect."""
    if request.stations:
        return [replace(stations.task(request, options.offload), burst=BURST)]
    return [_task(options, index, pair, queue, request.queues) for index, pair in enumerate(request.cross_connects)]


def _task(options: PlanedOptions, index: int, pair: Sequence[str], queue: int, queues: int) -> Task:
    """Return a cross-connect, on one queue of its ports. The bridges of its queues know the same stations."""
    name = f"{options.function}{index}"
    shared = {"table": name} if options.function == "bridge" and queues > 1 else {}
    return Task(
        queue_name(name, queue),
        options.function,
        tuple(pair),
        queue=queue,
        burst=BURST,
        drop_one_in=options.drop_one_in,
        bridge=shared,
    )


def _memory(request: SwitchRequest) -> Memory:
    return memory(
        ports=len(request.ports),
        ring_size=common.ring_size(request),
        max_frame_bytes=request.max_frame_bytes,
        hugepages=request.hugepages,
        pools=1,
        queues=request.queues,
    )


def _port(number: int, port: SwitchPort, request: SwitchRequest, backend: str | None) -> Port:
    if port.kind in ("af_packet", "memif"):
        device = common.dpdk_vdev(number, port, request)
        return Port(port.name, "ethdev", port.ring_size, request.queues, device=device)
    kind: PortKind = "vhost-user" if port.kind == "vhost-user" else "virtio-user"
    path = common.socket_path(port)
    return Port(port.name, kind, port.ring_size, request.queues, path, backend=backend or "")
