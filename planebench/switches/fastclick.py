# SPDX-License-Identifier: BSD-3-Clause
"""FastClick: Click with DPDK and batches. ``FromDPDKDevice -> ToDPDKDevice`` each way (conext19), a thread a worker.

The first router thread is DPDK's main lcore, on the switch's core; EAL puts its own threads on the other cores of the
process's mask. NDESC says how many descriptors of a ring a driver uses: of a virtio ring at most those that it has,
and drivers of vhost, memif and af_packet rings ignore it. So the ring is that of the bench whatever NDESC is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from planebench.host.process import Process, Supervisor
from planebench.host.programs import PATH_OPTION, Found, NotFound, program_output
from planebench.model.conditions import everywhere
from planebench.model.errors import UsageError
from planebench.model.records import SwitchCycles
from planebench.model.switch import Option
from planebench.switches import common
from planebench.switches.adapter import WORKERS_OPTION, Adapter, ThreadRef, Traits
from planebench.switches.click import RunningClick, cross_connects, find_click
from planebench.switches.common import manifest
from planebench.testbed.request import SwitchPort, SwitchRequest

PLACES = (
    "/usr/local/bin/click",
    "/opt/fastclick/bin/click",
    "/opt/fastclick/userlevel/click",
    "/usr/src/fastclick*/userlevel/click",
    "~/fastclick*/userlevel/click",
)
BURST = 32
BUFFERS = 65535
"""FastClick's own default (DPDKInfo, NB_MBUF)."""
JUMBO_BUFFERS = 16383
"""Mbufs of 9856 bytes, which take as much memory."""
TX_QUEUE = 1024
"""ToDPDKDevice's IQUEUE: frames that it keeps for a ring that is full, before it drops."""
EAL_MB = 96
MBUF_OVERHEAD_BYTES = 512
"""struct rte_mbuf, Click's annotations, object header, the share of the free ring, rounding."""
RX_DROPS = {"hw_dropped": "rx_missed", "hw_errors": "rx_errors", "nombufs": "rx_nombuf"}
"""Handlers of FromDPDKDevice, and our names of their counters. ToDPDKDevice's hw_errors counts retries, not drops."""
USEFUL_KCYCLES = "useful_kcycles"
"""Thousands of TSC cycles of tasks that found work, of each thread; only in a build with --enable-cpu-load."""
OPTIONS: tuple[Option, ...] = (
    PATH_OPTION,
    WORKERS_OPTION,
    Option("burst", "whole", "maximum number of frames received from a port at once", str(BURST), least=1, most=1024),
    Option("ndesc", "whole", "NDESC: descriptors of a ring to use", "ring size", least=1, most=32768),
    Option(
        "iqueue", "whole", "IQUEUE: frames queued for a full ring, a power of 2", str(TX_QUEUE), least=1, most=65536
    ),
    Option("blocking", "flag", "BLOCKING: wait for a full ring instead of dropping", "false"),
    Option("buffers", "whole", "NB_MBUF: packet buffers", str(BUFFERS), least=1023, most=1 << 20),
)


class FastClickAdapter(Adapter):
    """``fastclick``: the user-level ``click`` of FastClick with its DPDK elements."""

    name = "fastclick"
    title = "FastClick"
    remedy = (
        "build FastClick with DPDK (https://github.com/tbarbette/fastclick: ./configure --enable-dpdk "
        "--enable-user-multithread --enable-batch) and set PLANEBENCH_FASTCLICK to its folder"
    )
    wires = frozenset({"virtio", "vhost", "memif", "veth", "pci"})
    options = OPTIONS
    traits = Traits("modular", "structured", ("rtc",), "vhost-user", "low", ("C++",), "modular router", "conext19")

    def with_options(self, texts: Mapping[str, str]) -> Self:
        """Return an adapter with these options. Raises UsageError also for an IQUEUE that FastClick refuses."""
        adapter = super().with_options(texts)
        iqueue = adapter.value("iqueue", TX_QUEUE)
        if iqueue & (iqueue - 1):
            raise UsageError(f'switch {self.name}: iqueue "{iqueue}" is not valid. Valid: a power of 2')
        return adapter

    def find(self) -> Found | NotFound:
        where = self.installation()
        found = find_click(where, "FastClick", PLACES)
        if found is None:
            return NotFound(self.remedy)
        said = program_output(found[0], "-q", "-e", "Idle", "-h", "classes", line_buffered=True)
        if "FromDPDKDevice" not in said.stdout.split():
            return NotFound(f"{self.remedy} ({found[0]} is FastClick without DPDK)")
        return Found(found[1], found[0])

    def settings(self, request: SwitchRequest) -> dict[str, str]:
        blocking = self.value("blocking", False)
        return manifest(
            request,
            function="patch: FromDPDKDevice -> ToDPDKDevice each way",
            nic_driver=common.nic_driver(request),
            vnf_interface="vhost-user (DPDK net_vhost)",
            burst=str(self.value("burst", BURST)),
            checksum_offload=everywhere("default", "not requested; DPDK's drivers at their defaults"),
            segmentation_offload=everywhere("default", "not requested; DPDK's drivers at their defaults"),
            mergeable_buffers=everywhere("default"),
            buffers=f"{self.buffers(request)} mbufs, one pool",
            ndesc=str(self.value("ndesc", common.ring_size(request))),
            tx_queue=f"{self.value('iqueue', TX_QUEUE)} frames in software per port (IQUEUE)",
            tx_retry="until the ring takes them (BLOCKING true)" if blocking else "from the software queue",
        )

    def start(self, request: SwitchRequest, supervisor: Supervisor) -> RunningFastClick:
        found, ports = common.prepared(self, request)
        graph, control = request.workdir / "fastclick.click", request.workdir / "fastclick.ctl"
        graph.write_text(self.graph(request, ports, control))
        control.unlink(missing_ok=True)  # of an earlier one, which leaves it behind: it would not start
        eal = self.eal_arguments(request, ports, f"{supervisor.root.name}-fastclick")
        process = self.spawn([str(found.binary), *eal, str(graph)], request, supervisor)
        switch = RunningFastClick(process, control, request, self.value("iqueue", TX_QUEUE))
        switch.wait_ready()
        return switch

    def buffers(self, request: SwitchRequest) -> int:
        """Return the number of mbufs."""
        return int(self.value("buffers", JUMBO_BUFFERS if common.is_jumbo(request) else BUFFERS))

    def graph(self, request: SwitchRequest, ports: Sequence[SwitchPort], control: Path) -> str:
        """Return the router configuration."""
        ndesc = self.value("ndesc", common.ring_size(request))
        burst, iqueue = self.value("burst", BURST), self.value("iqueue", TX_QUEUE)
        blocking = str(self.value("blocking", False)).lower()
        size = f", MBUF_SIZE {common.mbuf_bytes(request)}" if common.is_jumbo(request) else ""
        # A thread for each queue of every port: by default each port has threads of its own.
        threads = f", MAXTHREADS {len(request.worker_cpus)}, THREADOFFSET 0" if request.queues > 1 else ""
        lines = [f"DPDKInfo(NB_MBUF {self.buffers(request)}{size});"]
        for number, port in enumerate(common.dpdk_order(ports)):
            # MODE none: the default is RSS, which virtio-user refuses.
            lines += [
                f"{port.name}_in :: FromDPDKDevice({number}, N_QUEUES {request.queues}{threads}, MODE none, "
                f"BURST {burst}, NDESC {ndesc});",
                f"{port.name}_out :: ToDPDKDevice({number}, N_QUEUES {request.queues}, BLOCKING {blocking}, "
                f"IQUEUE {iqueue}, NDESC {ndesc});",
            ]
        return "\n".join([*lines, *cross_connects(request), f"ControlSocket(UNIX, {control});", ""])

    def eal_arguments(self, request: SwitchRequest, ports: Sequence[SwitchPort], prefix: str) -> list[str]:
        """Return ``--dpdk ... --``. Port ids follow ``common.dpdk_order``."""
        mbuf_bytes = common.mbuf_bytes(request) + MBUF_OVERHEAD_BYTES
        size_mb = EAL_MB + -(-self.buffers(request) * mbuf_bytes // 2**20)
        return [
            "--dpdk",
            f"--lcores={','.join(f'{lcore}@{cpu}' for lcore, cpu in enumerate(request.worker_cpus))}",
            "--no-telemetry",
            f"--file-prefix={prefix}",
            *common.eal_memory_arguments(hugepages=request.hugepages, size_mb=size_mb),
            *common.devices(ports, request),
            "--",
        ]


class RunningFastClick(RunningClick):
    """A FastClick that forwards. Counters come from its control socket."""

    def __init__(self, process: Process, control: Path, request: SwitchRequest, spare: int) -> None:
        super().__init__("FastClick", process, control)
        self._request = request
        self._spare = spare
        """Frames that may be neither sent nor dropped yet: the software queue of a port."""
        self._kept = Kept()

    def polling_threads(self) -> tuple[ThreadRef, ...]:
        """Return DPDK's main thread and its workers."""
        workers = common.threads_named(self.process.pid, common.DPDK_WORKER_NAMES)
        return (*super().polling_threads(), *workers)

    def counters(self) -> SwitchCycles:
        names = [port.name for port in self._request.ports]
        numbers = self.read([*handlers(names), USEFUL_KCYCLES], {USEFUL_KCYCLES: len(self._request.worker_cpus)})
        kcycles = numbers.get(USEFUL_KCYCLES)
        queues = software_queues(numbers, self._request.cross_connects, self._spare)
        return SwitchCycles(
            busy_cycles=None if kcycles is None else 1000 * kcycles,
            packets=common.total(numbers.get(f"{name}_in.count") for name in names),
            forwarded_packets=common.total(numbers.get(f"{name}_out.count") for name in names),
            drops=drops(numbers, names, queues) | self._kept.look(queues),
        )


def handlers(ports: Iterable[str]) -> list[str]:
    """Return the read handlers of the counters."""
    elements = (("in", ("count", *RX_DROPS)), ("out", ("count", "dropped")))
    return [f"{port}_{end}.{name}" for port in ports for end, names in elements for name in names]


@dataclass(frozen=True, slots=True)
class SoftwareQueue:
    """Total numbers of frames that entered the software queue of a port and left it to the ring. The queue is FIFO."""

    entered: int
    sent: int


def software_queues(
    numbers: Mapping[str, int], pairs: Iterable[tuple[str, str]], spare: int
) -> dict[str, SoftwareQueue]:
    """Return the queue of each port; none for a port with missing or inconsistent counters.

    FastClick built with --enable-dpdk-packet drops at a full ring without counting. Then more frames are neither sent
    nor dropped than the ``spare`` frames that a queue holds.
    """
    found = {}
    for source, sink in (way for pair in pairs for way in (pair, pair[::-1])):
        got = [numbers.get(name) for name in (f"{source}_in.count", f"{sink}_out.dropped", f"{sink}_out.count")]
        received, dropped, sent = (-1 if number is None else number for number in got)
        if None not in got and 0 <= received - dropped - sent <= spare:
            found[sink] = SoftwareQueue(received - dropped, sent)
    return found


def drops(numbers: Mapping[str, int], ports: Iterable[str], queues: Mapping[str, SoftwareQueue]) -> dict[str, int]:
    """Return drops by ``PORT:REASON``; drops at a full ring only for ports with consistent counters."""
    found = {
        f"{port}:{reason}": numbers[f"{port}_in.{name}"]
        for port in ports
        for name, reason in RX_DROPS.items()
        if f"{port}_in.{name}" in numbers
    }
    return found | {f"{port}:tx_full": numbers[f"{port}_out.dropped"] for port in queues}


class Kept:
    """Frames that remain in a software queue at the end of a trial, and are lost for that trial.

    Each frame that waits when the counters are read is counted once, even if it is sent later.
    """

    def __init__(self) -> None:
        self._seen: dict[str, int] = {}
        """Number of frames, of those that entered, which earlier calls examined."""
        self._kept: Counter[str] = Counter()

    def look(self, queues: Mapping[str, SoftwareQueue]) -> dict[str, int]:
        """Return ``PORT:kept``, the number of frames that waited now or at an earlier call."""
        for port, queue in queues.items():
            self._kept[port] += max(0, queue.entered - max(queue.sent, self._seen.get(port, 0)))
            self._seen[port] = queue.entered
        return {f"{port}:kept": self._kept[port] for port in queues}


ADAPTER = FastClickAdapter()
