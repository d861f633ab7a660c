# SPDX-License-Identifier: BSD-3-Clause
"""The planed document of the tester, and the request to the switch: the two sides of the same ports.

A wire port ``n*`` is what the wire says (:mod:`planebench.wiring.wires`). A VNF port ``v*`` is a vhost-user device of
the switch that the tester drives as a VNF would; of a switch in the kernel, an end of a veth pair.
So the tester comes up in two stages: :func:`wire_stage` before the switch starts, :func:`full_stage` after.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from planebench.model.clock import port_clock
from planebench.model.topology import MONITOR_MAC, Topology, TopologyPort
from planebench.placement.place import Placement
from planebench.planed.document import Document, Port, Task, Worker
from planebench.wiring.links import LinkSettings
from planebench.wiring.memory import memory
from planebench.wiring.request import Station, SwitchPort, SwitchRequest
from planebench.wiring.tasks import tester_tasks
from planebench.wiring.wires.base import af_packet_port, cabled, is_kernel_interface, wire_kind


def wire_stage(topology: Topology, links: LinkSettings) -> Document:
    """Return the tester before the switch starts: its wire ports, no pollers, and the memory of the full stage.

    Where the switch listens, its wire ports come with the full stage.
    """
    early = not wire_kind(links.wire).switch_listens
    wires = [port for port in _own_ports(topology, links) if port.side == "wire" and early]
    return _document(topology, links, wires, (), ())


def full_stage(topology: Topology, workers: Sequence[Worker], links: LinkSettings) -> Document:
    """Return the tester once the switch listens: every port, every task, and the workers of ``assign_tasks``."""
    inside = links.inside.tasks if links.inside is not None else ()
    tasks = tester_tasks(topology, links.queues, links.updates, inside, one_wire=links.one_wire)
    tasks = tuple(_on_receive_queue(task, topology, links) for task in tasks)
    made = _document(topology, links, _own_ports(topology, links), tasks, workers)
    return made if links.inside is None else replace(made, ports=(*made.ports, *links.inside.ports))


def _own_ports(topology: Topology, links: LinkSettings) -> list[TopologyPort]:
    """Return the ports whose other side is the tester, not a VNF in a process of its own."""
    absent = topology.wire_ports[1:] if links.one_wire else ()
    own = [p for p in topology.ports if p.name not in topology.hosted_ports or p.name == links.updates]
    return [port for port in own if port.name not in absent]


def switch_request(
    topology: Topology,
    placement: Placement,
    links: LinkSettings,
    *,
    netns_pid: int | None = None,
    tsc_hz: int | None = None,
) -> SwitchRequest:
    """Return the request to a switch adapter for this topology; ``netns_pid`` and ``tsc_hz`` as in SwitchRequest."""
    uncabled = set(topology.wire_ports) - set(cabled(topology, links.vnf_interface))
    return SwitchRequest(
        ports=tuple(_switch_port(port, links) for port in topology.ports if port.name not in uncabled),
        cross_connects=topology.cross_connects,
        cpu=placement.switch_cpu,
        control_cpus=placement.control_cpus,
        workdir=links.workdir,
        hugepages=links.hugepages,
        max_frame_bytes=links.max_frame_bytes,
        netns_pid=netns_pid,
        queues=links.queues,
        more_cpus=placement.more_switch_cpus,
        tsc_hz=tsc_hz,
        stations=tuple(Station(vnf.ports[0], vnf.mac, vnf.routes) for vnf in topology.vnfs) * topology.side_by_side,
        monitor_mac=MONITOR_MAC if topology.side_by_side else "",
        updates=links.updates,
        bare=topology.bare,
        macs=topology.macs,
    )


def _document(
    topology: Topology,
    links: LinkSettings,
    ports: Sequence[TopologyPort],
    tasks: Sequence[Task],
    workers: Sequence[Worker],
) -> Document:
    own = [_tester_port(port, topology, links) for port in _own_ports(topology, links)]
    needed = memory(
        ports=len(own) + (len(links.inside.ports) if links.inside is not None else 0),
        ring_size=max((port.ring_size or 0 for port in own), default=links.ring_size),
        max_frame_bytes=links.max_frame_bytes,
        hugepages=links.hugepages,
        queues=links.queues,
        vnf_bytes=sum(vnf.memory_bytes for vnf in topology.chained_vnfs),
    )
    return Document(
        links.name,
        needed,
        tuple(_tester_port(port, topology, links) for port in ports),
        tuple(tasks),
        tuple(workers),
        links.nice,
    )


def _on_receive_queue(task: Task, topology: Topology, links: LinkSettings) -> Task:
    """Return a task with a monitor of a wire on the queue that the switch sends on."""
    queue = wire_kind(links.wire).receive_queue(links)
    if not queue or task.kind != "monitor" or task.ports[0] not in topology.wire_ports:
        return task
    return replace(task, queue=queue)


def _tester_port(port: TopologyPort, topology: Topology, links: LinkSettings) -> Port:
    stamps = port.side == "wire" or is_kernel_interface(port, links)
    clock = port_clock(links.clock) if stamps else "software"
    common = Port(port.name, "ethdev", links.ring_size, links.queues, mac=_mac(port, topology), clock=clock)
    if port.side == "wire":
        return wire_kind(links.wire).tester_port(common, port.name, links)
    if links.vnf_interface == "veth":
        return af_packet_port(common, links.ends[port.name].tester, links)
    return replace(common, kind="virtio-user", path=links.socket(port.name))


def _mac(port: TopologyPort, topology: Topology) -> str:
    """Return the MAC by which the switch knows a VNF side by side with others; empty for any other port."""
    return next((vnf.mac for vnf in topology.vnfs if topology.side_by_side and port.name == vnf.ports[0]), "")


def _switch_port(port: TopologyPort, links: LinkSettings) -> SwitchPort:
    common = SwitchPort(port.name, "vhost-user", ring_size=links.ring_size)
    if port.side == "wire":
        return wire_kind(links.wire).switch_port(common, port.name, links)
    if links.vnf_interface == "veth":
        return replace(common, kind="af_packet", interface=links.ends[port.name].switch)
    if links.vnf_interface == "vf":
        return replace(common, kind="vf")
    return replace(common, path=links.socket(port.name))
