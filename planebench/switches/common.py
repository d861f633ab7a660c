# SPDX-License-Identifier: BSD-3-Clause
"""Functions that several adapters use: checks of a request, processes, arguments of DPDK, sums of counters."""

from __future__ import annotations

import contextlib
import os
import re
import socket
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from planebench.host import procfs
from planebench.host.evidence import ThreadRef
from planebench.host.process import Process, on_failure, stretched
from planebench.host.programs import Found, program_output, required
from planebench.model.conditions import (
    MANIFEST_KEYS,
    NOT_BASIC,
    UNKNOWN,
    FeatureClaim,
    FeatureState,
    everywhere,
    of_losses,
)
from planebench.model.cpus import cpu_text
from planebench.model.errors import DiedError, PlanebenchError, StartError
from planebench.switches.adapter import STANDARD_FRAME_BYTES, Adapter, RunningSwitch
from planebench.testbed.request import (
    JUMBO_DATA_BYTES,
    STANDARD_DATA_BYTES,
    SwitchPort,
    SwitchRequest,
    af_packet_devargs,
)

FCS_BYTES = 4
DPDK_WORKER_NAMES = ("lcore-worker", "rte-worker", "dpdk-worker")
"""The names of DPDK's threads but the main one: up to 22.11, from 23.03, and from 23.11."""


ASK = ("-v", "--no-huge", "--no-shconf", "--no-pci", "--no-telemetry", "-m8", "--", "--help")
"""EAL prints its version and the program stops at its help text: no port, no memory to speak of."""


class ProcessGroup(RunningSwitch):
    """The processes of one switch: what is the same for all switches that are processes.

    A subclass says which threads forward, and adds ``counters`` if the switch counts.
    """

    thread_marks: tuple[str, ...] = ()
    """Parts of the names of the threads that forward. Without any it is the main thread."""
    main_forwards: bool = False
    """Whether the main thread forwards beside them."""

    def __init__(self, title: str, processes: Sequence[Process]) -> None:
        """Take the processes of a switch: the one that forwards, then its helpers."""
        self.title = title
        self.processes = tuple(processes)
        self.process = processes[0]

    def pids(self) -> tuple[int, ...]:
        return tuple(process.pid for process in self.processes)

    def polling_threads(self) -> tuple[ThreadRef, ...]:
        pid = self.process.pid
        return tuple(
            ThreadRef(pid, tid, name)
            for tid, name in procfs.threads(pid).items()
            if any(mark in name for mark in self.thread_marks)
            or (tid == pid and (self.main_forwards or not self.thread_marks))
        )

    def check(self) -> None:
        for process in self.processes:
            if not process.alive():
                raise DiedError(f"{self.title}: {process.exit_report()}")

    def stop(self) -> None:
        for process in self.processes:
            if process.alive():
                process.ask_to_end()
        for process in self.processes:
            process.terminate()

    def died(self, problem: object) -> DiedError:
        """Return the error for a switch that does not answer, with the report of its process."""
        self.process.wait(0.2)  # a process that crashes closes its sockets a moment before it is dead
        return DiedError(f"{problem}; {self.process.exit_report()}")

    @contextlib.contextmanager
    def answering(self) -> Iterator[None]:
        """Raise DiedError if the switch has ended, or if the block, which asks it, raises PlanebenchError."""
        self.check()
        try:
            yield
        except PlanebenchError as error:
            raise error if isinstance(error, DiedError) else self.died(error) from error

    def stopped_on_failure(self) -> contextlib.AbstractContextManager[None]:
        """Stop the switch if the block, which waits for it to come up, raises."""
        return on_failure(self.stop)


def nic_counters(ports: Mapping[str, Mapping[str, int]]) -> dict[str, int]:
    """Return the extended statistics, by port and name, that speak of lost frames, as ``n0:rx_crc_errors``."""
    return {f"{port}:{name}": count for port, found in ports.items() for name, count in of_losses(found).items()}


def nic_drops(counters: Mapping[str, int]) -> dict[str, int]:
    """Return those of :func:`nic_counters` that are drops, as no basic counter has them."""
    return {key: count for key, count in counters.items() if key.partition(":")[2] in NOT_BASIC}


class CpuTime:
    """CPU time of threads from now on, in TSC cycles, for a switch that counts no cycles itself."""

    def __init__(self, tids: Iterable[int], tsc_hz: int | None) -> None:
        self._tids = tuple(tids)
        self._tsc_hz = tsc_hz
        self._before_ns = self._run_ns() or 0

    def cycles(self) -> int | None:
        """Return the busy cycles; None without threads, TSC frequency, or an answer of the kernel."""
        run_ns = self._run_ns()
        return None if run_ns is None or not self._tsc_hz else (run_ns - self._before_ns) * self._tsc_hz // 10**9

    def _run_ns(self) -> int | None:
        return total(map(procfs.run_ns, self._tids)) if self._tids else None


def total(counts: Iterable[int | None]) -> int | None:
    """Return the sum of counters; None, unknown, if one of them is: a sum of some would be a wrong number."""
    known = list(counts)
    return None if None in known else sum(count for count in known if count is not None)


def answers(ask: Callable[[], object]) -> bool:
    """Return whether a switch that comes up answers: ``ask`` returns something, and raises no PlanebenchError."""
    try:
        return bool(ask())
    except PlanebenchError:
        return False


def answer_on(path: Path, request: bytes, timeout_s: float) -> bytes:
    """Return everything that comes by a unix socket after a request, until it is closed there. Raises OSError."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(stretched(timeout_s))
        connection.connect(str(path))
        connection.sendall(request)
        return b"".join(iter(lambda: connection.recv(1 << 16), b""))


def sockets_exist(ports: Sequence[SwitchPort]) -> bool:
    """Return whether the switch listens on every vhost-user port."""
    return all(port.path.is_socket() for port in ports if port.kind == "vhost-user")


def prepared(adapter: Adapter, request: SwitchRequest) -> tuple[Found, tuple[SwitchPort, ...]]:
    """Return where a switch is that starts now, and its ports: in pairs, or with stations as they are.

    Removes the vhost-user sockets of an earlier one that was killed: DPDK's net_vhost refuses an existing path.
    Raises NotInstalledError.
    """
    found = required(adapter.title, adapter.find())
    for port in request.ports:
        if port.kind == "vhost-user":
            port.path.unlink(missing_ok=True)
    return found, paired_ports(request)


def paired_ports(request: SwitchRequest) -> tuple[SwitchPort, ...]:
    """Return the ports in the order of the cross-connects: 0 with 1, 2 with 3, ...; with stations, as they are."""
    ports = {port.name: port for port in request.ports}
    return request.ports if request.stations else tuple(ports[name] for pair in request.cross_connects for name in pair)


def is_jumbo(request: SwitchRequest) -> bool:
    """Return whether a switch has to leave its defaults for the largest frame."""
    return request.max_frame_bytes > STANDARD_FRAME_BYTES


def mtu_bytes(request: SwitchRequest) -> int:
    """Return the MTU for the largest frame (without Ethernet header and FCS), at least 1500."""
    return max(request.max_frame_bytes, STANDARD_FRAME_BYTES) - 14 - FCS_BYTES


def dpdk_vdev(number: int, port: SwitchPort, request: SwitchRequest) -> str:
    """Return the ``--vdev`` of a port, for a switch that uses DPDK's virtual devices."""
    if port.kind == "virtio-user":
        several = f",queues={request.queues}" if request.queues > 1 else ""
        return f"net_virtio_user{number},path={port.path},queue_size={port.ring_size}{several}"
    if port.kind == "vhost-user":
        return f"net_vhost{number},iface={port.path},queues={request.queues}"
    if port.kind == "memif":
        rsize = port.ring_size.bit_length() - 1
        return f"net_memif{number},role=client,id=0,socket={port.path},socket-abstract=no,rsize={rsize}"
    if port.kind == "af_xdp":
        return f"net_af_xdp{number},iface={port.interface}"
    rings = af_packet_devargs(port.interface, port.ring_size, request.max_frame_bytes)
    return f"net_af_packet{number},{rings}"


def allow_list(ports: Sequence[SwitchPort]) -> list[str]:
    """Return the EAL arguments that let a program probe its own NICs, and no other PCI device."""
    return [argument for port in ports if port.kind == "pci" for argument in ("-a", port.address)] or ["--no-pci"]


def devices(ports: Sequence[SwitchPort], request: SwitchRequest) -> list[str]:
    """Return the EAL arguments of all ports: the allow-list, and a ``--vdev`` for each port that is no NIC."""
    vdevs = [f"--vdev={dpdk_vdev(n, port, request)}" for n, port in enumerate(ports) if port.kind != "pci"]
    return [*allow_list(ports), *vdevs]


def dpdk_order(ports: Sequence[SwitchPort]) -> tuple[SwitchPort, ...]:
    """Return the ports in the order in which DPDK numbers them: NICs by their address, then vdevs as given.

    EAL scans the PCI bus in the order of addresses, and probes the bus of vdevs last.
    """
    nics = [port for port in ports if port.kind == "pci"]
    nics.sort(key=lambda port: [int(part, 16) for part in re.split("[:.]", port.address)])
    return (*nics, *(port for port in ports if port.kind != "pci"))


def mbuf_bytes(request: SwitchRequest) -> int:
    """Return the data room of an mbuf that holds the largest frame in one piece."""
    return JUMBO_DATA_BYTES if is_jumbo(request) else STANDARD_DATA_BYTES


def eal_memory_arguments(*, hugepages: bool, size_mb: int) -> list[str]:
    """Return EAL arguments that leave no file behind. A vhost device accepts few memory regions: single-file
    segments."""
    if hugepages:
        return ["--in-memory", "--single-file-segments", "-m", str(size_mb)]
    return ["--no-huge", "--no-shconf", "--single-file-segments", "-m", str(size_mb)]


def calm_others(pid: int, polling: Sequence[ThreadRef]) -> None:
    """Set the threads that do not forward to nice 0, so that they do not preempt a tester that polls on the same core.

    Needed for a switch whose other threads are never idle, such as VPP's main thread.
    """
    for tid in set(procfs.threads(pid)) - {thread.tid for thread in polling}:
        with contextlib.suppress(OSError):  # it has ended, or has no high priority to give up
            if os.getpriority(os.PRIO_PROCESS, tid) < 0:
                os.setpriority(os.PRIO_PROCESS, tid, 0)


def check_workers(title: str, threads: Sequence[ThreadRef], request: SwitchRequest, process: Process) -> None:
    """Raise StartError unless a switch has a forwarding thread for each worker: its counters are read as theirs."""
    if len(threads) != len(request.worker_cpus):
        wanted = f"{title} has {len(threads)} of {len(request.worker_cpus)} workers"
        raise StartError(f"{wanted}; {process.exit_report()}")


def offloads(request: SwitchRequest, *, mergeable_wires: bool, guests: bool = False) -> dict[str, FeatureClaim]:
    """Return the offloads that the ends of the switch's ports negotiate, for its settings.

    ``guests`` says that the switch offers checksum and segmentation offloads at its vhost-user ports: what comes of it
    is the other end's choice. Tester and VNFs offer and request no checksum and no segmentation offload. Their drivers
    do not request mergeable buffers; the tester's end of a virtio wire offers them, and ``mergeable_wires`` says
    whether the switch's driver accepts them.
    """
    kinds = {port.kind for port in request.ports if not port.of_vnf}
    wires: FeatureState | None = "off" if "vhost-user" in kinds else None
    if "virtio-user" in kinds:
        wires = "on" if mergeable_wires else "off"
    vnfs = {port.kind for port in request.ports if port.of_vnf}
    offered = FeatureClaim(
        "offered" if "vhost-user" in kinds else "off" if kinds else None,
        "offered" if "vhost-user" in vnfs else "off" if vnfs else None,
    )
    return {
        "checksum_offload": offered if guests else everywhere("off"),
        "segmentation_offload": offered if guests else everywhere("off"),
        "mergeable_buffers": FeatureClaim(wires, "off" if vnfs else None),
    }


def nic_driver(request: SwitchRequest, own: Mapping[str, str] = MappingProxyType({})) -> str:
    """Return the drivers of the wire ports of a switch, for its settings; ``-`` without wire ports.

    They are DPDK's, but for kinds of ports of which ``own`` names another.
    """
    drivers = {
        "virtio-user": "DPDK's virtio-user",
        "memif": "DPDK's memif",
        "af_packet": "DPDK's af_packet",
        "af_xdp": "DPDK's AF_XDP",
        "pci": "DPDK's, of the NIC",
        "vhost-user": "DPDK's vhost",
        **own,
    }
    return ", ".join(dict.fromkeys(drivers[port.kind] for port in request.ports if not port.of_vnf)) or "-"


def dpdk_version(binary: Path, says: str = "") -> str | None:
    """Return e.g. ``DPDK 22.11.11``, which EAL prints of any program; None if it does not start, or its output does not
    contain ``says``."""
    output = program_output(binary, *ASK)
    words = output.stdout + output.stderr
    found = re.search(r"RTE Version: '(.+?)'", words)
    return found[1] if found and says in words else None


def release(version: str) -> tuple[int, int]:
    """Return year and month of a version such as ``DPDK 22.11.11`` or ``26.06-release``; (0, 0) if there are none."""
    found = re.search(r"(\d+)\.(\d+)", version)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def manifest(request: SwitchRequest, *, function: str, burst: str, **more: str | FeatureClaim) -> dict[str, str]:
    """Return a complete fairness manifest from the request and the values of the adapter; other keys are ``unknown``.
    planebench.model.conditions says what the keys are.
    """
    known = {
        "function": function,
        "cores": cpu_text(request.worker_cpus),
        "queues": str(request.queues),
        "ring_size": ", ".join(str(size) for size in sorted({port.ring_size for port in request.ports})),
        "burst": burst,
        "memory": "hugepages" if request.hugepages else "4 KiB pages (no hugepages)",
        **{key: str(value) for key, value in more.items()},
    }
    return {**{key: known.pop(key, UNKNOWN) for key in MANIFEST_KEYS}, **known}
