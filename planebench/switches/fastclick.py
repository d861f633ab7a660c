# SPDX-License-Identifier: BSD-3-Clause
"""FastClick: Click with DPDK and batches. ``FromDPDKDevice -> ToDPDKDevice`` each way (conext19), a thread a worker.

The first router thread is DPDK's main lcore, on the switch's core; EAL puts its own threads on the other cores of the
process's mask. NDESC says how many descriptors of a ring a driver uses: of a virtio ring at most those that it has,
and drivers of vhost, memif and af_packet rings ignore it. So the ring is that of the bench whatever NDESC is.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from planebench.host.process import Process, Supervisor, wait_ready
from planebench.host.programs import PATH_OPTION, Found, NotFound, program_output
from planebench.model.conditions import everywhere
from planebench.model.errors import PlanebenchError, StartError, UsageError
from planebench.model.records import SwitchCycles
from planebench.model.switch import Option
from planebench.switches import common
from planebench.switches.adapter import WORKERS_OPTION, Adapter, Traits
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
QUEUES = tuple(str(2**n) for n in range(17))
TX_QUEUE = 1024
"""ToDPDKDevice's IQUEUE: frames that it keeps for a ring that is full, before it drops."""
EAL_MB = 96
MBUF_OVERHEAD_BYTES = 512
"""struct rte_mbuf, Click's annotations, object header, the share of the free ring, rounding."""
RX_DROPS = {"hw_dropped": "rx_missed", "hw_errors": "rx_errors", "nombufs": "rx_nombuf"}
"""Handlers of FromDPDKDevice, and our names of their counters. ToDPDKDevice's hw_errors counts retries, not drops."""
USEFUL_KCYCLES = "useful_kcycles"
"""Thousands of TSC cycles of tasks that found work, of each thread; only in a build with --enable-cpu-load."""
CONTROL_TIMEOUT_S = 5.0
COMPLAINTS = 12
_COMPLAINT = re.compile(r"rror|ail|annot|nvalid|nknown")
_GREETING = re.compile(rb"Click::ControlSocket/\d+\.\d+\r\n")
_LINE = re.compile(rb"(\d{3})([ -])([^\r\n]*)\r\n")
_DATA = re.compile(rb"DATA (\d+)\r\n")
_VERSION = re.compile(r"^click \(FastClick\) (\S+)$", re.MULTILINE)


class FastClickAdapter(Adapter):
    name = "fastclick"
    title = "FastClick"
    remedy = (
        "build FastClick with DPDK (https://github.com/tbarbette/fastclick: ./configure --enable-dpdk "
        "--enable-user-multithread --enable-batch) and set PLANEBENCH_FASTCLICK to its folder"
    )
    wires = frozenset({"virtio", "vhost", "memif", "veth", "pci"})
    nic_ring_size = 4096  # conext19, Table 2
    options = (
        PATH_OPTION,
        WORKERS_OPTION,
        Option("ndesc", "whole", "NDESC: descriptors of a ring to use", "the ring of each port", least=1, most=32768),
        Option("iqueue", "text", "IQUEUE: frames queued for a full ring", str(TX_QUEUE), QUEUES),
    )
    traits = Traits("modular", "structured", ("rtc",), "vhost-user", "low", ("C++",), "modular router", "conext19")

    def find(self) -> Found | NotFound:
        """Look for it among the programs with its name: Click, and a package tool of Debian.

        Raises UsageError if the user names another one.
        """
        where = self.installation()
        for binary in where.programs("click", PLACES):
            # It aborts after --version, with its output still in its buffer.
            match = _VERSION.search(program_output(binary, "--version", line_buffered=True).stdout)
            if match is None and where.path is not None:
                raise UsageError(f'{where.said_by} "{binary}" is not FastClick, by its --version; name another one')
            if match is not None:
                said = program_output(binary, "-q", "-e", "Idle", "-h", "classes", line_buffered=True)
                if "FromDPDKDevice" not in said.stdout.split():
                    return NotFound(f"{self.remedy} ({binary} is FastClick without DPDK)")
                return Found(match[1], binary)
        return NotFound(self.remedy)

    def settings(self, request: SwitchRequest) -> dict[str, str]:
        return manifest(
            request,
            function="patch: FromDPDKDevice -> ToDPDKDevice each way",
            nic_driver=common.nic_driver(request),
            vnf_interface="vhost-user (DPDK net_vhost)",
            burst=str(BURST),
            checksum_offload=everywhere("default", "not requested; DPDK's drivers at their defaults"),
            segmentation_offload=everywhere("default", "not requested; DPDK's drivers at their defaults"),
            mergeable_buffers=everywhere("default"),
            buffers=f"{_buffers(request)} mbufs, one pool",
            ndesc=str(self.value("ndesc", "the ring of each port")),
            tx_queue=f"{self.value('iqueue', TX_QUEUE)} frames in software per port (IQUEUE)",
            tx_retry="from the software queue",
        )

    def start(self, request: SwitchRequest, supervisor: Supervisor) -> RunningFastClick:
        found, ports = common.prepared(self, request)
        graph, control = request.workdir / "fastclick.click", request.workdir / "fastclick.ctl"
        graph.write_text(self.graph(request, ports, control))
        control.unlink(missing_ok=True)  # of an earlier one, which leaves it behind: it would not start
        eal = self.eal_arguments(request, ports, f"{supervisor.root.name}-fastclick")
        process = self.spawn([str(found.binary), *eal, str(graph)], request, supervisor)
        switch = RunningFastClick(process, control, request, int(self.value("iqueue", TX_QUEUE)))
        switch.wait_ready()
        return switch

    def graph(self, request: SwitchRequest, ports: Sequence[SwitchPort], control: Path) -> str:
        iqueue = self.value("iqueue", TX_QUEUE)
        size = f", MBUF_SIZE {common.mbuf_bytes(request)}" if common.is_jumbo(request) else ""
        # A thread for each queue of every port: by default each port has threads of its own.
        threads = f", MAXTHREADS {len(request.worker_cpus)}, THREADOFFSET 0" if request.queues > 1 else ""
        lines = [f"DPDKInfo(NB_MBUF {_buffers(request)}{size});"]
        for number, port in enumerate(common.dpdk_order(ports)):
            ndesc = self.value("ndesc", port.ring_size)
            # MODE none: the default is RSS, which virtio-user refuses.
            lines += [
                f"{port.name}_in :: FromDPDKDevice({number}, N_QUEUES {request.queues}{threads}, MODE none, "
                f"BURST {BURST}, NDESC {ndesc});",
                f"{port.name}_out :: ToDPDKDevice({number}, N_QUEUES {request.queues}, BLOCKING false, "
                f"IQUEUE {iqueue}, NDESC {ndesc});",
            ]
        ways = [way for pair in request.cross_connects for way in (pair, pair[::-1])]
        connections = (f"{source}_in -> {sink}_out;" for source, sink in ways)
        return "\n".join([*lines, *connections, f"ControlSocket(UNIX, {control});", ""])

    def eal_arguments(self, request: SwitchRequest, ports: Sequence[SwitchPort], prefix: str) -> list[str]:
        """Return ``--dpdk ... --``. Port ids follow ``common.dpdk_order``."""
        mbuf_bytes = common.mbuf_bytes(request) + MBUF_OVERHEAD_BYTES
        size_mb = EAL_MB + -(-_buffers(request) * mbuf_bytes // 2**20)
        return [
            "--dpdk",
            f"--lcores={','.join(f'{lcore}@{cpu}' for lcore, cpu in enumerate(request.worker_cpus))}",
            "--no-telemetry",
            f"--file-prefix={prefix}",
            *common.eal_memory_arguments(hugepages=request.hugepages, size_mb=size_mb),
            *common.devices(ports, request),
            "--",
        ]


def _buffers(request: SwitchRequest) -> int:
    return JUMBO_BUFFERS if common.is_jumbo(request) else BUFFERS


class RunningFastClick(common.ProcessGroup):
    thread_marks, main_forwards = common.DPDK_WORKER_NAMES, True

    def __init__(self, process: Process, control: Path, request: SwitchRequest, spare: int) -> None:
        super().__init__("FastClick", [process])
        self._control = control
        self._request = request
        self._spare = spare
        """Frames that may be neither sent nor dropped yet: the software queue of a port."""
        self._kept = Kept()

    def wait_ready(self) -> None:
        """Wait until the router runs. Otherwise stop it and raise StartError with its error messages."""
        version = partial(ask, self._control, ["version"], timeout_s=1.0)  # it is served when the router runs
        try:
            with self.stopped_on_failure():
                wait_ready(self.title, lambda: common.answers(version), self.processes)
        except StartError as error:
            log = self.process.log_path.read_text(errors="replace").splitlines()
            lines = [line.rstrip() for line in log if _COMPLAINT.search(line)][:COMPLAINTS]
            raise StartError(f"{error}\nIts error messages:\n" + "\n".join(lines)) from error

    def counters(self) -> SwitchCycles:
        names = [port.name for port in self._request.ports]
        with self.answering():
            texts = ask(self._control, [*handlers(names), USEFUL_KCYCLES])
        kcycles = sum_of(texts.pop(USEFUL_KCYCLES, ""), len(self._request.worker_cpus))
        known = {name: sum_of(text, 1) for name, text in texts.items()}
        numbers = {name: number for name, number in known.items() if number is not None}
        queues = software_queues(numbers, self._request.cross_connects, self._spare)
        return SwitchCycles(
            busy_cycles=None if kcycles is None else 1000 * kcycles,
            packets=common.total(numbers.get(f"{name}_in.count") for name in names),
            forwarded_packets=common.total(numbers.get(f"{name}_out.count") for name in names),
            drops=drops(numbers, names, queues) | self._kept.look(queues),
        )


def sum_of(text: str, count: int) -> int | None:
    """Return the sum of the numbers in a text; None unless there are ``count`` of them and nothing else."""
    words = text.split()
    whole = len(words) == count and all(re.fullmatch(r"[0-9]+", word) for word in words)
    return sum(map(int, words)) if whole else None


def ask(path: Path, handlers: Sequence[str], timeout_s: float = CONTROL_TIMEOUT_S) -> dict[str, str]:
    """Return the answers of read handlers by name, without handlers that the router does not have.

    All handlers are read between two bursts, so the counters are of one moment. Raises PlanebenchError without an
    answer.
    """
    request = "".join(f"READ {name}\r\n" for name in handlers) + "QUIT\r\n"
    try:
        received = common.answer_on(path, request.encode(), timeout_s)
    except OSError as error:
        raise PlanebenchError(f"the control socket {path} does not answer: {error}") from error
    return parse_answers(received, handlers)


def parse_answers(received: bytes, handlers: Sequence[str]) -> dict[str, str]:
    """Return the answers of a control socket to READs of ``handlers``, in this order, up to the first that is
    incomplete or unexpected."""
    answers: dict[str, str] = {}
    greeting = _GREETING.match(received)
    at = greeting.end() if greeting else len(received)
    for name in handlers:
        while (line := _LINE.match(received, at)) and line[2] == b"-":
            at = line.end()
        if line is None:
            break
        at = line.end()
        if line[1] != b"200":
            continue
        data = _DATA.match(received, at)
        if line[3] != f"Read handler '{name}' OK".encode() or data is None or data.end() + int(data[1]) > len(received):
            break
        at = data.end() + int(data[1])
        answers[name] = received[data.end() : at].decode(errors="replace").strip()
    return answers


def handlers(ports: Iterable[str]) -> list[str]:
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
