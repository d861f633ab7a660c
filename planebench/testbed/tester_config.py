# SPDX-License-Identifier: BSD-3-Clause
"""The planed document of the tester, and the request to the switch: the two sides of the same ports.

A wire port ``n*`` is what the wire says (:mod:`planebench.testbed.wires`). A VNF port ``v*`` is a vhost-user device of
the switch that the tester drives as a VNF would; of a switch in the kernel, an end of a veth pair.
So the tester comes up in two stages: :func:`wire_stage` before the switch starts, :func:`full_stage` after.

VNFs and ends that are no tasks of the tester have documents of their own: each is a process, with a worker on each CPU.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from planebench.model.dimensions import port_clock
from planebench.model.scenarios import queue_name, queue_stream
from planebench.model.topology import END, MONITOR_MAC, Topology, TopologyPort, Vnf
from planebench.planed.document import NAME_MAX, Document, Idle, Port, Task, Worker
from planebench.testbed.placement import Placement
from planebench.testbed.request import TESTER_POOLS, LinkSettings, Station, SwitchPort, SwitchRequest, memory
from planebench.testbed.wires.base import af_packet_port, cabled, is_kernel_interface, wire_kind

CACHED_MBUFS = 256
"""Mbufs of a function beside its rings, whose buffers hold the frames."""
KERNEL_GAP_NS = 2_000_000
KERNEL_DEVICES = ("net_af_packet", "net_af_xdp")
CONTROL = "fib_source"
"""Kind of the task that is the control plane of a VNF whose forwarding the switch has."""
CONTROL_ADDRESS = "198.18.4.{}"
"""The VNF's own, by its number from 1."""


def tester_tasks(
    topology: Topology, queues: int = 1, inside: Sequence[Task] = (), *, one_wire: bool = False
) -> tuple[Task, ...]:
    """Return every task of a topology in polling order: monitors, VNFs in chain order, generators; one for each queue.

    VNFs side by side are no tasks of the tester.

    ``inside`` are those of a switch that is part of the tester. It has one wire, as one that is a NIC (``one_wire``):
    what the VNFs send back leaves by the port by which it came, so the monitor of the second end is there, and that end
    sends nothing.

    Both ends can send and receive, whatever the direction of a trial: a direction only chooses which generators start,
    so one live topology serves all of them. Hosted ends have their tasks in processes of their own
    (:func:`vnf_documents`).
    Receiving comes first so that a burst which has arrived leaves the ring before more is sent.
    """
    one_wire = one_wire or bool(inside)
    ends = topology.ends[:1] if one_wire else topology.ends
    monitors = {topology.ends[1]: topology.ends[0]} if one_wire else {port: port for port in ends}
    tasks = (
        *(Task(f"mon-{end}", "monitor", (it,)) for end, it in monitors.items() if it not in topology.hosted_ports),
        *inside,
        *(
            Task(vnf.name, vnf.kind, vnf.ports, settings=vnf.settings, sending=vnf.sending)
            for vnf in topology.chained_vnfs
        ),
        *(
            Task(f"gen-{port}", "generator", (port,), stream)
            for stream, port in enumerate(ends)
            if port not in topology.hosted_ports
        ),
    )
    return tuple(it for task in tasks for it in each_queue(task, queues))


def each_queue(task: Task, queues: int) -> tuple[Task, ...]:
    """Return the task on each queue of its ports."""
    found = []
    for queue in range(queues):
        stream = None if task.stream is None else queue_stream(task.stream, queue)
        found.append(replace(task, name=queue_name(task.name, queue), stream=stream, queue=queue))
    return tuple(found)


def assign_tasks(
    placement: Placement, topology: Topology, queues: int = 1, inside: Sequence[Task] = (), *, one_wire: bool = False
) -> tuple[Worker, ...]:
    """Return the workers of the tester, one for each CPU with tasks, tasks in the order of :func:`tester_tasks`.

    Generator and monitor of an end share a CPU: that of their queue where the tester has one for each, else that of the
    end, on all queues. The queues of a VNF of several CPUs take turns on them.
    """
    cpus_of: dict[str, tuple[int, ...]] = {}
    for end, port in enumerate(topology.ends):
        cpus = placement.tester_cpus
        own = cpus if placement.tester_by_queue else (cpus[end % len(cpus)],)
        cpus_of |= {f"mon-{port}": own, f"gen-{port}": own}
    for number, vnf in enumerate(topology.vnfs):
        placed = number < len(placement.vnf_cpus)  # one without placement runs on the CPU of end b
        cpus_of[vnf.name] = placement.cpus_of_vnf(number) if placed else placement.tester_cpus[-1:]
    cpus_of |= {task.name: placement.tester_cpus[:1] for task in inside}
    cpu_of: dict[str, int] = {}
    for name, places in cpus_of.items():
        cpu_of |= {queue_name(name, queue): places[queue % len(places)] for queue in range(queues)}
    names = [task.name for task in tester_tasks(topology, queues, inside, one_wire=one_wire)]
    return tuple(
        Worker(f"w{cpu}", cpu, tuple(name for name in names if cpu_of[name] == cpu))
        for cpu in sorted({cpu_of[name] for name in names})
    )


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
    tasks = tester_tasks(topology, links.queues, inside, one_wire=links.one_wire)
    if queue := wire_kind(links.wire).receive_queue(links):  # the switch sends on another queue
        at_wire = {task.name for task in tasks if task.kind == "monitor" and task.ports[0] in topology.wire_ports}
        tasks = tuple(replace(task, queue=queue) if task.name in at_wire else task for task in tasks)
    made = with_gaps(_document(topology, links, _own_ports(topology, links), tasks, workers))
    return made if links.inside is None else replace(made, ports=(*made.ports, *links.inside.ports))


def with_gaps(document: Document) -> Document:
    """Return a document that says how long a turn may take before it is a gap of its workers, which the host caused.

    A turn at ports of the kernel takes 100 to 500 us: its system calls carry bursts to the next interface, or through
    VALE. What is shorter than KERNEL_GAP_NS is the tester's own work there.
    """
    in_kernel = any(port.kind == "netmap" or port.device.startswith(KERNEL_DEVICES) for port in document.ports)
    gap_ns = KERNEL_GAP_NS if in_kernel else None
    return replace(document, workers=tuple(replace(it, gap_threshold_ns=gap_ns) for it in document.workers))


def _own_ports(topology: Topology, links: LinkSettings) -> list[TopologyPort]:
    """Return the ports whose other side is the tester, not a VNF in a process of its own."""
    absent = topology.wire_ports[1:] if links.one_wire else ()
    own = [port for port in topology.ports if port.name not in topology.hosted_ports]
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
    chosen = [vnf for vnf in topology.hosted_vnfs if "memory_mb" in vnf.hosting_values]
    memory_mb = {port: int(str(vnf.hosting_values["memory_mb"])) for vnf in chosen for port in vnf.ports}
    uncabled = set(topology.wire_ports) - set(cabled(topology, links.vnf_interface))
    ports = []
    for port in (it for it in topology.ports if it.name not in uncabled):
        common = SwitchPort(port.name, "vhost-user", ring_size=links.ring_of(port.name))
        if port.side == "wire":
            common = wire_kind(links.wire).switch_port(common, port.name, links)
        elif links.vnf_interface == "veth":
            common = replace(common, kind="af_packet", interface=links.ends[port.name].switch)
        elif links.vnf_interface == "vf":
            common = replace(common, kind="vf")
        elif links.vnf_interface == "netmap":
            common = replace(common, kind="netmap", interface=links.ends[port.name].switch)
        else:
            common = replace(common, path=links.socket(port.name), vnf_memory_mb=memory_mb.get(port.name))
        ports.append(common)
    return SwitchRequest(
        ports=tuple(ports),
        cross_connects=topology.cross_connects,
        cpu=placement.switch_cpu,
        control_cpus=placement.control_cpus,
        workdir=links.workdir,
        hugepages=links.hugepages,
        max_frame_bytes=links.max_frame_bytes,
        netns_pid=netns_pid,
        queues=links.switch_queues or links.queues,
        more_cpus=placement.more_switch_cpus,
        tsc_hz=tsc_hz,
        stations=tuple(Station(vnf.ports[0], vnf.mac, vnf.routes) for vnf in topology.vnfs) * topology.side_by_side,
        monitor_mac=MONITOR_MAC if topology.side_by_side else "",
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
    inside = links.inside.ports if links.inside is not None else ()
    needed = memory(
        rings=[port.ring_size or links.ring_size for port in (*own, *inside)],
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


def _tester_port(port: TopologyPort, topology: Topology, links: LinkSettings) -> Port:
    stamps = port.side == "wire" or is_kernel_interface(port, links)
    clock = port_clock(links.clock) if stamps else "software"
    common = Port(port.name, "ethdev", links.ring_of(port.name), links.queues, clock=clock)
    if port.side == "wire":
        return wire_kind(links.wire).planed_port(common, port.name, links)
    if links.vnf_interface == "veth":
        return af_packet_port(common, links.ends[port.name].tester, links)
    if links.vnf_interface == "netmap":
        return replace(common, kind="netmap", device=links.ends[port.name].tester)
    return replace(common, kind="virtio-user", path=links.socket(port.name))


def vnf_documents(topology: Topology, placement: Placement, links: LinkSettings) -> tuple[Document | None, ...]:
    """Return a document for each hosted VNF, with a worker on each CPU of the VNF; None for a VNF of the user.

    Where the switch forwards in the place of VNFs, each is its control plane, which sleeps between looks at its port.
    """
    found: list[Document | None] = []
    made: tuple[Task, ...]
    for number, vnf in zip(topology.hosted_numbers, topology.hosted_vnfs, strict=True):
        if not vnf.kind:
            found.append(None)
            continue
        ports = tuple(dict.fromkeys(vnf.ports))
        if links.controls:
            # All routes lead to the monitor by the second wire.
            settings: dict[str, object] = {"routes": max(vnf.routes, 1), "wire": 1, "mac": MONITOR_MAC}
            settings["address"] = CONTROL_ADDRESS.format(number + 1)
            made = (Task(vnf.name, CONTROL, ports, settings=settings),)
        elif vnf.kind == END:
            made = tuple(Task(f"mon-{port}", "monitor", (port,)) for port in ports)
            made += tuple(Task(f"gen-{port}", "generator", (port,), topology.ends.index(port)) for port in ports)
        else:
            peers = (MONITOR_MAC, MONITOR_MAC) if topology.side_by_side else ()  # all send to the monitor
            made = (Task(vnf.name, vnf.kind, ports, settings=vnf.settings, peer_macs=peers, sending=vnf.sending),)
        tasks = made if links.controls else tuple(it for task in made for it in each_queue(task, links.queues))
        suffix = f"-v{number}"
        usual = "sleep" if shares_cpu(topology, placement, number) else "poll"
        idle: Idle = "sleep" if vnf.hosting_values.get("idle", usual) == "sleep" else "poll"
        cpus = placement.cpus_of_vnf(number)
        if links.controls:
            idle, cpus = "nap", cpus[:1]
        common = Port("", "virtio-user", links.ring_size, links.queues)
        devices = []
        for name, mac in zip(ports, port_macs(vnf, number), strict=True):
            if links.controls == "idle":
                devices.append(replace(common, name=name, kind="ethdev", device="net_null0,no-rx=1"))
            elif links.vnf_interface == "vf":
                devices.append(replace(common, name=name, kind="ethdev", device=links.ends[name].tester))
            else:
                devices.append(replace(common, name=name, path=links.socket(name), mac=mac))
        needed = memory(
            rings=[links.ring_size] * len(ports),
            max_frame_bytes=links.max_frame_bytes,
            hugepages=links.hugepages and not topology.side_by_side,
            pools=TESTER_POOLS if ports[0] in topology.ends else 1,
            queues=links.queues,
            vnf_bytes=0 if links.controls else vnf.memory_bytes,
            cached_mbufs=CACHED_MBUFS,
        )
        workers = []
        for place, cpu in enumerate(cpus):
            names = tuple(task.name for task in tasks[place :: len(cpus)])
            workers.append(Worker(queue_name(f"w-{vnf.name}", place), cpu, names, idle))
        document = Document(
            links.name[: NAME_MAX - len(suffix)] + suffix,
            needed,
            tuple(devices),
            tasks,
            tuple(workers),
            0 if links.controls else links.nice,
        )
        found.append(document)
    return tuple(found)


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
