# SPDX-License-Identifier: BSD-3-Clause
"""planed as a switch: its options, its settings, and the configuration document for a request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from planebench.host.programs import PATH_OPTION
from planebench.model.manifest import LOOK_PER_RING
from planebench.model.option import Option
from planebench.model.topology import MONITOR_MAC
from planebench.planed.document import Document, Memory, Port, PortKind, Task, Worker
from planebench.scenarios.queues import queue_name
from planebench.switches import common
from planebench.switches import planed_stations as stations
from planebench.switches.manifest import manifest
from planebench.wiring.adapter import DUTY_OPTION, WORKERS_OPTION
from planebench.wiring.memory import memory
from planebench.wiring.request import SwitchPort, SwitchRequest

BURST = 64
FUNCTIONS = {
    "patch": "patch: one task per cross-connect, both directions",
    "bridge": "bridge: one learning switch per cross-connect",
}
BACKENDS = ("dpdk", "vring")
DEFAULT_BACKEND = "vring"
"""planed's default for a document without the key."""
INSTRUCTION_SETS = ("scalar", "avx2", "avx512")
DROP_ONE_IN_MAX = 2**32 - 1
OFFLOADS = ("fib",)
NICS = ("veb",)


Values = Mapping[str, Any]
"""The options of planed that the user gave, by key."""
NO_VALUES: Values = MappingProxyType({})

OPTIONS = (
    PATH_OPTION,  # another build of the switch alone: tester and VNFs are of the one that is found
    # A scenario has pairs of ports: a bridge learns and looks up, and has one other port to flood to.
    Option("function", "text", "forwarding function", "patch", tuple(FUNCTIONS)),
    Option("backend", "text", "data path of the ports: DPDK's or planed's", DEFAULT_BACKEND, BACKENDS),
    WORKERS_OPTION,
    Option("isa", "text", "instruction set of the data path", "the best", INSTRUCTION_SETS),
    DUTY_OPTION,
    Option("offload", "text", "forwarding in place of VNFs side by side", "nothing", OFFLOADS),
    Option("nic", "text", "a NIC in place of the switch of VNFs side by side, emulated in the tester", "none", NICS),
    # Off in comparisons: other switches get none from the tester and DPDK's VNFs, and each frame costs a look more.
    Option("guest_offloads", "text", "checksum and segmentation offloads for guests", "off", ("off", "on")),
    # On by default, as in VPP's memif.
    Option("zero_copy", "text", "frames pass from memif to memif without a copy", "on", ("on", "off")),
    # A switch with a known loss, counted as "fault", to test what has to find it.
    Option("drop_one_in", "whole", "drop one in N frames (fault injection)", "none", least=1, most=DROP_ONE_IN_MAX),
)


def switch_settings(request: SwitchRequest, values: Values) -> dict[str, str]:
    """Return planed's part of the fairness manifest."""
    chosen = {key: str(values[key]) for key in ("drop_one_in", "isa") if key in values}
    if (percent := _duty_percent(values)) is not None:
        chosen["clock"] = f"EMULATED: {percent} % of the CPU's, by a wait after each poll"
    if request.queues > 1:
        chosen["workers"] = str(len(request.worker_cpus))
    backend = values.get("backend", DEFAULT_BACKEND)
    if backend != "dpdk":
        chosen["index_look"] = LOOK_PER_RING
    return manifest(
        request,
        function=_function_words(request, values),
        nic_driver=_nic_driver(request, values),
        vnf_interface="vhost-user (DPDK net_vhost)" if backend == "dpdk" else "vhost-user (planed's)",
        burst=str(BURST),
        buffers=f"{_memory(request).mbuf_count} mbufs, one pool",
        backend=backend,
        **common.offloads(request, mergeable_wires=backend == "dpdk", guests=offers_offloads(values)),
        **chosen,
    )


def _nic_driver(request: SwitchRequest, values: Values) -> str:
    if values.get("backend") == "dpdk":
        return common.nic_driver(request)
    memif = "planed's memif" + (" (zero copy)" if passes_buffers(values) else "")
    return common.nic_driver(request, virtio="planed's", memif=memif, vhost="planed's vhost-user")


def _function_words(request: SwitchRequest, values: Values) -> str:
    if request.bare is not None:
        routes = f" with {request.bare.routes} routes" if request.bare.routes else ""
        return f"none: {request.bare.kind}{routes} straight on the wires"
    if not request.stations:
        return FUNCTIONS[function_of(values)]
    return stations.words(request, values.get("offload"), values.get("nic"))


def offers_offloads(values: Values) -> bool:
    """Return whether guests are offered checksum and segmentation offloads."""
    return values.get("guest_offloads") == "on"


def passes_buffers(values: Values) -> bool:
    """Return whether frames pass from memif to memif without a copy."""
    return values.get("backend") != "dpdk" and values.get("zero_copy", "on") == "on"


def function_of(values: Values) -> str:
    """Return the kind of planed's tasks in a scenario without stations."""
    return str(values.get("function", "patch"))


def switch_document(request: SwitchRequest, name: str, values: Values = NO_VALUES) -> Document:
    """Return the planed document of a switch request. ``name`` is the EAL file prefix too."""
    count = len(request.worker_cpus)
    by_queue = [_tasks(request, values, queue) for queue in range(request.queues)]
    kind = stations.TASK if request.stations else request.bare.kind if request.bare else function_of(values)
    return Document(
        name.lower(),
        _memory(request),
        tuple(_port(number, port, request, values) for number, port in enumerate(common.ordered_ports(request))),
        tuple(task for tasks in by_queue for task in tasks),
        tuple(
            Worker(
                queue_name(kind, number),
                request.cpus[number],
                tuple(task.name for tasks in by_queue[number::count] for task in tasks),
                duty_percent=_duty_percent(values),
            )
            for number in range(count)
        ),
        nice=-20,
    )


def _duty_percent(values: Values) -> int | None:
    """Return the emulated clock in percent of the CPU's; None for the CPU's own."""
    percent = round(100 * float(values.get("duty", 1)))
    return None if percent >= 100 else max(percent, 1)


def _tasks(request: SwitchRequest, values: Values, queue: int) -> list[Task]:
    """Return one task for all stations, or one for each cross-connect; of a network function that alone."""
    if request.bare is not None:
        function, ports = request.bare, tuple(port.name for port in request.ports)
        macs = (MONITOR_MAC,) * len(ports)
        return [
            Task(
                function.name,
                function.kind,
                ports,
                settings=function.settings,
                peer_macs=macs,
                burst=BURST,
                sending=function.sending,
            )
        ]
    if request.stations:
        return [replace(stations.station_task(request, values.get("offload")), burst=BURST)]
    return [_task(values, index, pair, queue, request.queues) for index, pair in enumerate(request.cross_connects)]


def _task(values: Values, index: int, pair: Sequence[str], queue: int, queues: int) -> Task:
    """Return a cross-connect, on one queue of its ports. The bridges of its queues know the same stations."""
    kind = function_of(values)
    name = f"{kind}{index}"
    shared = {"table": name} if kind == "bridge" and queues > 1 else {}
    return Task(
        queue_name(name, queue),
        kind,
        tuple(pair),
        queue=queue,
        burst=BURST,
        drop_one_in=values.get("drop_one_in"),
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
        vnf_bytes=0 if request.bare is None else request.bare.memory_bytes,
    )


def _port(number: int, port: SwitchPort, request: SwitchRequest, values: Values) -> Port:
    backend = str(values.get("backend", ""))
    if port.kind == "pci":
        return Port(port.name, "ethdev", port.ring_size, request.queues, device=common.pci_address(port))
    if port.kind in ("af_packet", "af_xdp"):
        device = common.dpdk_vdev(number, port, request)
        return Port(port.name, "ethdev", port.ring_size, request.queues, device=device)
    path = common.socket_path(port)
    if port.kind == "memif":
        own_or_dpdk = "dpdk" if backend == "dpdk" else ""
        shared = passes_buffers(values)
        ring, queues = port.ring_size, request.queues
        return Port(port.name, "memif-client", ring, queues, path, backend=own_or_dpdk, zero_copy=shared)
    kind: PortKind = "vhost-user" if port.kind == "vhost-user" else "virtio-user"
    offered = offers_offloads(values) and kind == "vhost-user"
    return Port(port.name, kind, port.ring_size, request.queues, path, backend=backend, offloads=offered)
