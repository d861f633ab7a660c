# SPDX-License-Identifier: BSD-3-Clause
"""The planed documents of VNFs and ends that are not tasks of the tester: each is a process, with a worker on each CPU.
Pure."""

from __future__ import annotations

from typing import Literal

from planebench.model.topology import END, MONITOR_MAC, Topology, Vnf
from planebench.placement.place import Placement
from planebench.planed.document import NAME_MAX, Document, Port, Task, Worker
from planebench.scenarios.queues import queue_name
from planebench.wiring.links import LinkSettings
from planebench.wiring.memory import TESTER_POOLS, memory
from planebench.wiring.tasks import each_queue, end_tasks

CACHED_MBUFS = 256
"""Mbufs of a function beside its rings, whose buffers hold the frames."""


def vnf_documents(topology: Topology, placement: Placement, links: LinkSettings) -> tuple[Document | None, ...]:
    """Return a document for each hosted VNF, with a worker on each CPU of the VNF; None for a VNF of the user."""
    return tuple(
        _vnf_document(vnf, number, topology, placement, links) if vnf.kind else None
        for number, vnf in zip(topology.hosted_numbers, topology.hosted_vnfs, strict=True)
    )


def port_macs(vnf: Vnf, number: int) -> tuple[str, ...]:
    """Return the address of each port of a hosted VNF; a port that occurs twice counts once."""
    if vnf.mac:
        return (vnf.mac,)
    return tuple(f"02:00:00:00:04:{2 * number + port + 1:02x}" for port in range(len(set(vnf.ports))))


def shares_cpu(topology: Topology, placement: Placement, number: int) -> bool:
    """Return whether a hosted VNF shares its CPU with other pollers, and should sleep without traffic.

    VNFs side by side always poll: their competition is what is measured (ic16's over-provisioning).
    """
    return bool(placement.cpu_neighbours(number)) and not topology.side_by_side


def _vnf_document(vnf: Vnf, number: int, topology: Topology, placement: Placement, links: LinkSettings) -> Document:
    ports = tuple(dict.fromkeys(vnf.ports))
    made = end_tasks(topology, vnf.ports[0]) if vnf.kind == END else (_function(vnf, topology),)
    tasks = tuple(it for task in made for it in each_queue(task, links.queues))
    suffix = f"-v{number}"
    usual = "sleep" if shares_cpu(topology, placement, number) else "poll"
    idle: Literal["sleep", "poll"] = "sleep" if vnf.hosting_values.get("idle", usual) == "sleep" else "poll"
    cpus = placement.cpus_of_vnf(number)
    needed = memory(
        ports=len(ports),
        ring_size=links.ring_size,
        max_frame_bytes=links.max_frame_bytes,
        hugepages=links.hugepages and not topology.side_by_side,
        pools=TESTER_POOLS if ports[0] in topology.ends else 1,
        queues=links.queues,
        vnf_bytes=vnf.memory_bytes,
        cached_mbufs=CACHED_MBUFS,
    )
    return Document(
        links.name[: NAME_MAX - len(suffix)] + suffix,
        needed,
        tuple(_port(port, mac, links) for port, mac in zip(ports, port_macs(vnf, number), strict=True)),
        tasks,
        tuple(
            Worker(queue_name(f"w-{vnf.name}", place), cpu, tuple(it.name for it in tasks[place :: len(cpus)]), idle)
            for place, cpu in enumerate(cpus)
        ),
        links.nice,
    )


def _function(vnf: Vnf, topology: Topology) -> Task:
    """Return the task of a network function; side by side all send to the monitor."""
    peers = (MONITOR_MAC, MONITOR_MAC) if topology.side_by_side else ()
    ports = tuple(dict.fromkeys(vnf.ports))
    return Task(vnf.name, vnf.kind, ports, settings=vnf.settings, peer_macs=peers, sending=vnf.sending)


def _port(name: str, mac: str, links: LinkSettings) -> Port:
    if links.vnf_interface == "vf":
        return Port(name, "ethdev", links.ring_size, links.queues, device=links.ends[name].tester)
    return Port(name, "virtio-user", links.ring_size, links.queues, links.socket(name), mac=mac)
