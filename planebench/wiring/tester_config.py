# SPDX-License-Identifier: BSD-3-Clause
"""The planed document of the tester, and the request to the switch: the two sides of the same ports.

A wire port ``n*`` is a vhost-user device that the tester listens on and the switch drives (``virtio``), the server of a
memif (``memif``), or one end of a veth pair (``veth``). A VNF port ``v*`` is a vhost-user device of the switch that the
tester drives as a VNF would; of a switch in the kernel, an end of a veth pair.
So the tester comes up in two stages: :func:`wire_stage` before the switch starts, :func:`full_stage` after.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from planebench.model.records import ClockChoice, WireName
from planebench.model.topology import MONITOR_MAC, Topology, TopologyPort
from planebench.placement.place import Placement
from planebench.planed.document import Document, Port, PortKind, Task, Worker
from planebench.wiring.devargs import af_packet_devargs, memif_devargs
from planebench.wiring.memory import memory
from planebench.wiring.request import Station, SwitchPort, SwitchRequest, VnfInterface
from planebench.wiring.tasks import tester_tasks

_WITHOUT_CLOCK = ("virtio", "memif", "veth")
"""Wires on which ``auto`` is software: there is no device, and the clock of the kernel costs something."""


@dataclass(frozen=True, slots=True)
class VethPair:
    """The two kernel interfaces of one wire."""

    tester: str
    switch: str


@dataclass(frozen=True, slots=True)
class LinkSettings:
    """The realization of the ports of one topology; equal for every switch of a comparison.

    ``workdir`` is private to the topology and short: sockets live in it (107 characters at most, with their name).
    ``name`` is the tester's EAL file prefix and must differ between testers that live at the same time.
    ``veths`` has a pair for each port that is one of kernel interfaces (:meth:`is_veth`), and no other.
    """

    workdir: Path
    wire: WireName = "virtio"
    ring_size: int = 256
    hugepages: bool = False
    max_frame_bytes: int = 1518
    name: str = "tester"
    nice: int | None = None
    queues: int = 1
    """Queue pairs of every port; 1 on the veth wire, and on the memif wire."""
    memif_receive_queue: int = 0
    """The queue on which a tester with a memif wire receives (``Adapter.memif_send_queue``); it sends on queue 0."""
    veths: Mapping[str, VethPair] = field(default_factory=dict)
    vnf_interface: VnfInterface = "vhost-user"
    updates: str = ""
    """The port of a VNF side by side with others at which the tester is its control, and sends its FIB messages."""

    clock: ClockChoice = "auto"
    """The clock of the ports of the tester."""

    def is_veth(self, port: TopologyPort) -> bool:
        """Return whether a port is an end of a pair of kernel interfaces."""
        return self.wire == "veth" if port.side == "wire" else self.vnf_interface == "veth"

    def socket(self, port: str) -> Path:
        """Return the unix socket of a vhost-user port, the same path on both sides."""
        return self.workdir / f"{port}.sock"


def wire_stage(topology: Topology, links: LinkSettings) -> Document:
    """Return the tester before the switch starts: its wire ports, no pollers, and the memory of the full stage."""
    wires = [port for port in topology.ports if port.side == "wire"]
    return _document(topology, links, wires, (), ())


def full_stage(topology: Topology, workers: Sequence[Worker], links: LinkSettings) -> Document:
    """Return the tester once the switch listens: every port, every task, and the workers of ``assign_tasks``."""
    tasks = [_on_memif(task, topology, links) for task in tester_tasks(topology, links.queues, links.updates)]
    return _document(topology, links, _own_ports(topology, links), tasks, workers)


def _own_ports(topology: Topology, links: LinkSettings) -> list[TopologyPort]:
    """Return the ports whose other side is the tester, not a VNF in a process of its own."""
    return [p for p in topology.ports if p.name not in topology.hosted_ports or p.name == links.updates]


def switch_request(
    topology: Topology,
    placement: Placement,
    links: LinkSettings,
    *,
    netns_pid: int | None = None,
    tsc_hz: int | None = None,
) -> SwitchRequest:
    """Return the request to a switch adapter for this topology; ``netns_pid`` and ``tsc_hz`` as in SwitchRequest."""
    return SwitchRequest(
        ports=tuple(_switch_port(port, links) for port in topology.ports),
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
    )


def _document(
    topology: Topology,
    links: LinkSettings,
    ports: Sequence[TopologyPort],
    tasks: Sequence[Task],
    workers: Sequence[Worker],
) -> Document:
    needed = memory(
        ports=len(_own_ports(topology, links)),
        ring_size=links.ring_size,
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


def _on_memif(task: Task, topology: Topology, links: LinkSettings) -> Task:
    """Return a task with a monitor of a memif on the queue that the switch sends on."""
    if links.wire != "memif" or task.kind != "monitor" or task.ports[0] not in topology.wire_ports:
        return task
    return replace(task, queue=links.memif_receive_queue)


def _tester_port(port: TopologyPort, topology: Topology, links: LinkSettings) -> Port:
    stamps = port.side == "wire" or links.is_veth(port)
    clock = port_clock(links.clock, links.wire) if stamps else "software"
    common = Port(port.name, "ethdev", links.ring_size, links.queues, mac=_mac(port, topology), clock=clock)
    if links.is_veth(port):
        arguments = af_packet_devargs(links.veths[port.name].tester, links.ring_size, links.max_frame_bytes)
        return replace(common, device=f"net_af_packet_{port.name},{arguments}")
    if port.side == "wire" and links.wire == "memif":
        arguments = memif_devargs("server", links.socket(port.name), links.ring_size)
        queues = max(links.queues, links.memif_receive_queue + 1)
        return replace(common, device=f"net_memif_{port.name},{arguments}", queues=queues)
    kind: PortKind = "vhost-user" if port.side == "wire" else "virtio-user"
    return replace(common, kind=kind, path=links.socket(port.name))


def port_clock(choice: ClockChoice, wire: str) -> ClockChoice:
    """Return the clock to ask for at a port: wires of memory have none to look for."""
    return "software" if choice == "auto" and wire in _WITHOUT_CLOCK else choice


def _mac(port: TopologyPort, topology: Topology) -> str:
    """Return the MAC by which the switch knows a VNF side by side with others; empty for any other port."""
    return next((vnf.mac for vnf in topology.vnfs if topology.side_by_side and port.name == vnf.ports[0]), "")


def _switch_port(port: TopologyPort, links: LinkSettings) -> SwitchPort:
    if links.is_veth(port):
        interface = links.veths[port.name].switch
        return SwitchPort(port.name, "af_packet", interface=interface, ring_size=links.ring_size)
    if port.side == "wire":
        kind: Literal["virtio-user", "memif"] = "memif" if links.wire == "memif" else "virtio-user"
        return SwitchPort(port.name, kind, path=links.socket(port.name), ring_size=links.ring_size)
    return SwitchPort(port.name, "vhost-user", path=links.socket(port.name), ring_size=links.ring_size)
