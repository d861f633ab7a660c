# SPDX-License-Identifier: BSD-3-Clause
"""planed as a switch: one ``patch`` or ``bridge`` task for each cross-connect and each queue.

Between the network and many VNFs it is one task of kind ``fib_offload`` (docs/fib-offload.md). Conventional, it
gives each frame to the VNF whose MAC it has, and takes what comes back; with ``offload=fib`` it forwards by the union
of the VNFs' FIBs, and they hold only their control. It is the same program both times.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Self

from planebench.host.evidence import ThreadRef
from planebench.host.planed_program import REMEDY, find_planed, missing_planed, planed_version
from planebench.host.process import Supervisor, on_failure
from planebench.host.programs import PATH_OPTION, Found, NotFound
from planebench.model.conditions import LOOK_PER_RING
from planebench.model.errors import UsageError
from planebench.model.records import SwitchCycles
from planebench.model.results import FURTHER_COUNTERS
from planebench.model.scenarios import queue_name
from planebench.model.switch import Option
from planebench.model.topology import MONITOR_MAC
from planebench.planed.client import Call, get_ports, get_statistics
from planebench.planed.document import Document, Memory, Port, Task, Worker
from planebench.planed.process import CONNECT_DEADLINE_S, PlanedProcess
from planebench.planed.statistics import Statistics
from planebench.switches import common
from planebench.switches.adapter import DUTY_OPTION, WORKERS_OPTION, Adapter, RunningSwitch, Situation, Traits
from planebench.switches.common import manifest
from planebench.testbed.request import SwitchPort, SwitchRequest, memory
from planebench.testbed.traffic_files import synthetic_routes_of

TASK = "fib_offload"
ROUTES_PER_S = 1_000_000
"""The least rate at which the table of a function fills, on a busy machine too."""
BURST = 64
FUNCTIONS = {
    "patch": "patch: one task per cross-connect, both directions",
    "bridge": "bridge: one learning switch per cross-connect",
}
BACKENDS = ("dpdk", "planed")
DEFAULT_BACKEND = "planed"
"""planed's default for a document without the key."""
INSTRUCTION_SETS = ("scalar", "avx2", "avx512")
DROP_ONE_IN_MAX = 2**32 - 1
OFFLOADS = ("fib",)
NICS = ("veb",)


OptionValues = Mapping[str, Any]
"""The options of planed that the user gave, by key."""
NO_VALUES: OptionValues = MappingProxyType({})

OPTIONS = (
    PATH_OPTION,  # another build of the switch alone: tester and VNFs are of the one that is found
    # A scenario has pairs of ports: a bridge learns and looks up, and has one other port to flood to.
    Option("function", "text", "forwarding function", "patch", tuple(FUNCTIONS)),
    Option("backend", "text", "data path of vhost-user and virtio-user: DPDK's or planed's", DEFAULT_BACKEND, BACKENDS),
    WORKERS_OPTION,
    Option("isa", "text", "instruction set of the data path", "the best", INSTRUCTION_SETS),
    DUTY_OPTION,
    Option("offload", "text", "forwarding in place of VNFs side by side", "nothing", OFFLOADS),
    Option("nic", "text", "a NIC in place of the switch of VNFs side by side, emulated in the tester", "none", NICS),
    # Off in comparisons: other switches get none from the tester and DPDK's VNFs, and each frame costs a look more.
    Option("guest_offloads", "text", "checksum and segmentation offloads for guests", "off", ("off", "on")),
    # A switch with a known loss, counted as "fault", to test what has to find it.
    Option("drop_one_in", "whole", "drop one in N frames (fault injection)", "none", least=1, most=DROP_ONE_IN_MAX),
)
SIDE_BY_SIDE_ONLY = ("offload", "nic")
NOT_SIDE_BY_SIDE = ("workers", "drop_one_in", "guest_offloads")
NIC_PORT, NIC_TASK = "nic", "veb"
"""The port and the task of an emulated NIC (its virtual Ethernet bridge)."""
LOAD_DEADLINE_S = 120.0
NEXT_HOPS = 16
OWN_ROUTES = 1
"""Of a VNF: its own address."""
PAUSED_S = 86_400
"""A topology is paused while other switches are measured; its sessions and routes must be there when it goes on."""
CHARGED_MAX_MB = 256 * 1024
"""planed takes no larger one."""


def station_task(request: SwitchRequest, offload: str | None) -> Task:
    """Return the one task, without its burst."""
    wires = [port.name for port in request.ports if not port.of_vnf]
    routes = sum(station.routes + OWN_ROUTES for station in request.stations) if offload else 0
    vnfs = [
        {
            "vnf": number,
            "port": station.port,
            "mac": station.mac,
            "wires": wires,
            "offload": offload is not None and station.routes > 0,
            # L2 in the place of a VNF without routes: Fig. 11 of ic16.
            **({"reflect": request.monitor_mac} if offload is not None and not station.routes else {}),
            "quota_routes": station.routes + OWN_ROUTES,
            "quota_next_hops": NEXT_HOPS,
            "grace_s": PAUSED_S,
            "hold_s": PAUSED_S,
        }
        for number, station in enumerate(request.stations, start=1)
    ]
    settings = {"wires": wires, "routes4": max(routes, 1024), "routes6": 0, "vnfs": vnfs}
    return Task(TASK, TASK, tuple(port.name for port in request.ports), settings=settings)


def load(call: Call, request: SwitchRequest, offload: str | None) -> None:
    """Load the FIBs of all VNFs into the forwarder; every route leads to the monitor. Raises RpcError."""
    wire = [port.name for port in request.ports if not port.of_vnf][-1:]
    for number, station in enumerate(request.stations if offload else (), start=1):
        if not station.routes:
            continue
        params = {"task": TASK, "vnf": number, "routes": station.routes, "wire": wire[0], "mac": request.monitor_mac}
        call(f"{TASK}.load_synthetic", params, timeout_s=LOAD_DEADLINE_S)


def offers_offloads(values: OptionValues) -> bool:
    return values.get("guest_offloads") == "on"


def switch_document(request: SwitchRequest, name: str, values: OptionValues = NO_VALUES) -> Document:
    """Return the planed document of a switch request. ``name`` is the EAL file prefix too.

    It has one task for all stations, or one for each cross-connect and queue; of a network function that alone.
    """
    ports = tuple(_port(*numbered, request, values) for numbered in enumerate(common.paired_ports(request)))
    title = str(values.get("function", "patch"))
    if request.bare is not None:
        bare, names = request.bare, tuple(port.name for port in request.ports)
        title, macs = bare.kind, (MONITOR_MAC,) * len(names)
        task = Task(bare.name, title, names, settings=bare.settings, peer_macs=macs, burst=BURST, sending=bare.sending)
        by_queue = [[task] for _ in range(request.queues)]
    elif request.stations:
        title, task = TASK, replace(station_task(request, values.get("offload")), burst=BURST)
        by_queue = [[task] for _ in range(request.queues)]
    else:
        by_queue = [_cross_connects(request, queue, title, values) for queue in range(request.queues)]
    count = len(request.worker_cpus)
    workers = []
    for number, cpu in enumerate(request.worker_cpus):
        names = tuple(task.name for tasks in by_queue[number::count] for task in tasks)
        workers.append(Worker(queue_name(title, number), cpu, names, duty_percent=_duty_percent(values)))
    every = tuple(task for tasks in by_queue for task in tasks)
    return Document(name.lower(), _memory(request), ports, every, tuple(workers), nice=-20)


def _port(number: int, port: SwitchPort, request: SwitchRequest, values: OptionValues) -> Port:
    backend, made = str(values.get("backend", "")), Port(port.name, "ethdev", port.ring_size, request.queues)
    if port.kind == "pci":
        return replace(made, device=port.address)
    if port.kind in ("af_packet", "af_xdp"):
        return replace(made, device=common.dpdk_vdev(number, port, request))
    made = replace(made, path=port.path)
    if port.kind == "memif":
        return replace(made, kind="memif-client", zero_copy=True)
    if port.kind == "vhost-user":
        charged_mb, offloads = None if backend == "dpdk" else _charged_mb(port, request), offers_offloads(values)
        return replace(made, kind="vhost-user", backend=backend, offloads=offloads, max_charged_mb=charged_mb)
    return replace(made, kind="virtio-user", backend=backend)


def _charged_mb(port: SwitchPort, request: SwitchRequest) -> int | None:
    """Return what frames may make of a VNF's memory: all that it was given, and its rings and buffers beside that."""
    if port.vnf_memory_mb is None:
        return None
    buffers_bytes = 2 * request.queues * port.ring_size * request.max_frame_bytes
    return min(port.vnf_memory_mb + 1 + buffers_bytes // 2**20, CHARGED_MAX_MB)


def _cross_connects(request: SwitchRequest, queue: int, function: str, values: OptionValues) -> list[Task]:
    """Return the tasks of one queue."""
    tasks = []
    for index, pair in enumerate(request.cross_connects):
        title = f"{function}{index}"
        # The bridges of the queues know the same stations.
        bridge = {"table": title} if function == "bridge" and request.queues > 1 else {}
        fault = values.get("drop_one_in")
        name = queue_name(title, queue)
        tasks.append(Task(name, function, pair, queue=queue, burst=BURST, drop_one_in=fault, bridge=bridge))
    return tasks


def _duty_percent(values: OptionValues) -> int | None:
    """Return the emulated clock in percent of the CPU's; None for the CPU's own."""
    percent = round(100 * float(values.get("duty", 1)))
    return None if percent >= 100 else max(percent, 1)


def _memory(request: SwitchRequest) -> Memory:
    return memory(
        rings=[port.ring_size for port in request.ports],
        max_frame_bytes=request.max_frame_bytes,
        hugepages=request.hugepages,
        pools=1,
        queues=request.queues,
        vnf_bytes=0 if request.bare is None else request.bare.memory_bytes,
    )


class PlanedAdapter(Adapter):
    """``planed``: patch tasks copy packets from ring to ring; or learning bridges of two ports."""

    name = "planed"
    title = "planed"
    start_s = 0.6  # its vhost does not wait for a socket
    remedy = REMEDY
    options: tuple[Option, ...] = OPTIONS
    traits = Traits("self-contained", "structured", ("rtc",), "vhost-user", "medium", ("C",), "NFV data plane")

    wires = frozenset({"virtio", "vhost", "memif", "veth", "pci", "af_xdp"})
    stations = True
    functions = True

    @property
    def offloads(self) -> bool:
        return "offload" in self.values

    def refusal(self, situation: Situation) -> str:
        if text := super().refusal(situation):
            return text
        layout, offload = situation.layout, self.values.get("offload")
        unfit: tuple[str, ...] = NOT_SIDE_BY_SIDE if layout.side_by_side else SIDE_BY_SIDE_ONLY
        if layout.bare:
            unfit = (*SIDE_BY_SIDE_ONLY, *NOT_SIDE_BY_SIDE, "function")
        for key in unfit:
            if self.values.get(key, "off") not in ("off", 1):
                return f"planed has no {key} in scenario {situation.scenario}; remove {key}"
        if offload and "nic" in self.values:
            return "a NIC does not forward in place of its VNFs; remove nic or offload"
        if offload and situation.chain not in ("", "l2fwd") and not synthetic_routes_of(situation.chain):
            return (
                f"offload={offload} forwards by MAC or by the VNFs' FIBs, so the VNFs must be l2fwd, or routers with "
                "known routes, e.g. --chain l3fwd:fib=cuckoo:synthetic=1M"
            )
        return ""

    def with_options(self, texts: Mapping[str, str]) -> Self:
        """Return an adapter with these options. Raises UsageError also for options that exclude each other."""
        adapter = super().with_options(texts)
        function = adapter.value("function", "patch")
        if "drop_one_in" in adapter.values and function != "patch":
            raise UsageError(f"switch planed: function {function} does not support drop_one_in; remove one of them")
        if offers_offloads(adapter.values) and adapter.values.get("backend") == "dpdk":
            raise UsageError("switch planed: backend=dpdk does not support guest_offloads=on; remove one of them")
        return adapter

    def find(self) -> Found | NotFound:
        chosen = PATH_OPTION.key in self.values
        binary = self.installation().program("planed") if chosen else find_planed()
        version = planed_version(binary)
        if binary is None or version is None:
            return missing_planed()
        return Found(version.removeprefix("planed").strip(), binary)

    def settings(self, request: SwitchRequest) -> dict[str, str]:
        values: OptionValues = self.values
        chosen = {key: str(values[key]) for key in ("drop_one_in", "isa") if key in values}
        if (percent := _duty_percent(values)) is not None:
            chosen["clock"] = f"EMULATED: {percent} % of the CPU's, by a wait after each poll"
        if request.queues > 1:
            chosen["workers"] = str(len(request.worker_cpus))
        backend = values.get("backend", DEFAULT_BACKEND)
        drivers = {"memif": "planed's memif (zero copy)"}
        if backend != "dpdk":
            chosen["index_look"] = LOOK_PER_RING
            drivers |= {"virtio-user": "planed's", "vhost-user": "planed's vhost-user"}
        vnfs = len(request.stations)
        if request.bare is not None:
            routes = f" with {request.bare.routes} routes" if request.bare.routes else ""
            function = f"none: {request.bare.kind}{routes} straight on the wires"
        elif not vnfs:
            function = FUNCTIONS[values.get("function", "patch")]
        elif values.get("nic") is not None:
            function = (
                f"none: a NIC that switches is emulated by a task of the tester, on its core; frames to {vnfs} VNFs by "
                "MAC, replies leave by the same port"
            )
        elif values.get("offload") is not None:
            function = f"fib_offload: forwards by the FIBs of {vnfs} VNFs, whose processes are control planes"
        else:
            function = f"fib_offload: frames to {vnfs} VNFs by MAC, and back; each forwards in a process of its own"
        return manifest(
            request,
            function=function,
            nic_driver=common.nic_driver(request, drivers),
            vnf_interface="vhost-user (DPDK net_vhost)" if backend == "dpdk" else "vhost-user (planed's)",
            burst=str(BURST),
            buffers=f"{_memory(request).mbuf_count} mbufs, one pool",
            backend=backend,
            **common.offloads(request, mergeable_wires=backend == "dpdk", guests=offers_offloads(values)),
            **chosen,
        )

    def inside(self, request: SwitchRequest) -> Document | None:
        """Return the ports and the task of an emulated NIC: one memif, and a virtual function for each VNF.

        It forwards as planed does between the network and VNFs, so that both differ only in whose core that takes.
        """
        if "nic" not in self.values or not request.stations:
            return None
        wire, vnfs = request.ports[0], [port for port in request.ports if port.of_vnf]
        names = {port.name: f"vf{number}" for number, port in enumerate(vnfs)}
        inner = replace(
            request,
            ports=(replace(wire, name=NIC_PORT), *(replace(port, name=names[port.name]) for port in vnfs)),
            stations=tuple(replace(station, port=names[station.port]) for station in request.stations),
        )
        ports = (
            Port(NIC_PORT, "memif-client", wire.ring_size, path=wire.path),
            *(replace(_port(0, port, request, {}), name=names[port.name], queues=1) for port in vnfs),
        )
        task = replace(station_task(inner, None), name=NIC_TASK)
        return Document(NIC_PORT, Memory(False, 0, 0, 0), ports, (task,))

    def start(self, request: SwitchRequest, supervisor: Supervisor) -> RunningSwitch:
        if "nic" in self.values:
            return RunningSwitch()  # a task of the tester, which ends it, and counts its drops
        found, _ = common.prepared(self, request)
        planed = PlanedProcess.start(
            switch_document(request, f"{supervisor.root.name}-switch", self.values),
            supervisor,
            planed=found.binary,
            name="planed-switch",
            title="planed",
            workdir=request.workdir,
            cpus=request.control_cpus,  # workers pin themselves
            netns_pid=request.netns_pid,
            connect_s=CONNECT_DEADLINE_S + (request.bare.routes / ROUTES_PER_S if request.bare is not None else 0),
            arguments=("--isa", str(self.values["isa"])) if "isa" in self.values else (),
        )
        with on_failure(planed.stop):
            load(planed.call, request, self.value("offload", None))
        return RunningPlaned(planed, nics=any(port.kind == "pci" for port in request.ports))


class RunningPlaned(common.ProcessGroup):
    def __init__(self, planed: PlanedProcess, *, nics: bool = False) -> None:
        super().__init__("planed", [planed.process])
        self._planed = planed
        self.call: Call = planed.call
        """Calls a method of the switch."""
        self._nics = nics

    def polling_threads(self) -> tuple[ThreadRef, ...]:
        workers, pid = self._stats().workers, self.process.pid
        return tuple(ThreadRef(pid, worker.tid, worker.name) for worker in workers)

    def counters(self) -> SwitchCycles:
        stats = self._stats()
        tasks, drops, counters = stats.tasks, parse_drops(stats), dict[str, int]()
        for name in FURTHER_COUNTERS:
            if (count := common.total(getattr(task, name) for task in tasks)) is not None:
                counters[name] = count
        if self._nics:
            nic = common.nic_counters({port.name: port.xstats for port in get_ports(self.call)})
            counters |= nic
            drops |= common.nic_drops(nic)
        return SwitchCycles(
            busy_cycles=sum(task.busy_cycles for task in tasks),
            packets=sum(task.rx_packets for task in tasks),
            drops=drops,
            forwarded_packets=sum(task.tx_packets for task in tasks),
            bursts=common.total(task.rx_bursts for task in tasks),
            counters=counters,
        )

    def stop(self) -> None:
        self._planed.close()
        super().stop()

    def _stats(self) -> Statistics:
        with self.answering():
            return get_statistics(self._planed.call)


def parse_drops(stats: Statistics) -> dict[str, int]:
    """Return the drops of a ``stats.get``: full rings and receive counters by port (``v0:tx_full``), others by
    reason."""
    drops: Counter[str] = Counter()
    for task in stats.tasks:
        for port, reasons in task.drops_by_port.items():
            drops.update({f"{port}:{reason}": count for reason, count in reasons.items()})
        drops.update({reason: count for reason, count in task.drops.items() if reason != "tx_full"})
    for state in stats.ports:
        drops.update({f"{state.name}:{reason}": count for reason, count in state.drops.items()})
    return dict(drops)


ADAPTER = PlanedAdapter()
