# SPDX-License-Identifier: BSD-3-Clause
"""The common part of switches in the kernel: veth ports only, no process, and a core of their own.

A frame sent into a veth pair is forwarded in the softirq of its sender: on the tester's core, at the tester's expense.
So a kernel thread (threaded NAPI) on the switch's core polls each port, and its schedstat has the CPU time. A veth has
NAPI only with an XDP program or with GRO; GRO merges and reorders frames, so it is a program that passes all. This
requires root. Without root the sender forwards its frames, and the fairness manifest says so.
docs/switches/debian.md lists what was tried.
"""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from planebench.host import procfs
from planebench.host.evidence import ThreadRef
from planebench.host.facts import CAP_SYS_NICE, has_capability, is_machine_root
from planebench.host.interfaces import interfaces_of
from planebench.host.process import Process, Supervisor, on_failure
from planebench.host.programs import Found, NotFound
from planebench.model.conditions import FeatureClaim, everywhere
from planebench.model.cpus import cpu_text
from planebench.model.errors import DiedError, StartError, UsageError
from planebench.model.records import SwitchCycles
from planebench.model.switch import Option
from planebench.switches import common
from planebench.switches.adapter import STANDARD_FRAME_BYTES, Adapter, RunningSwitch
from planebench.switches.common import manifest
from planebench.testbed.request import SwitchRequest, VnfInterface

SETUP_TIMEOUT_S = 20.0
NAPI_WEIGHT = 64
"""Frames that the kernel takes from an interface at once (NAPI_POLL_WEIGHT)."""
VETH_RING_SIZE = 256
"""Frames that wait for an interface's thread (veth.c)."""
TERMS: dict[str, str | FeatureClaim] = {
    "nic_driver": "veth",
    "vnf_interface": "veth (the kernel's); VNFs use DPDK's af_packet",
    "ring_size": f"{VETH_RING_SIZE} (veth's, fixed)",
    "checksum_offload": everywhere("off", "frames have their checksums"),
    "segmentation_offload": everywhere("off", "GRO off, senders send whole frames"),
    "mergeable_buffers": FeatureClaim(None, None),
    "memory": "the kernel's (4 KiB pages)",
    "buffers": "the kernel's",
}
"""The part of the fairness manifest that is equal for all kernel switches."""
PortPairs = tuple[tuple[str, str], ...]


class KernelAdapter(Adapter):
    """A switch in the kernel. A subclass has an ``action`` of kernel_setup.py, or its own :meth:`connect`."""

    wires = frozenset({"veth"})
    vnf_interface: VnfInterface = "veth"
    max_frame_bytes = STANDARD_FRAME_BYTES  # of DPDK's af_packet, the socket of a VNF
    is_program = False
    one_per_namespace = True  # bridges, programs of interfaces, threads
    options: tuple[Option, ...] = ()
    one_queue_because = "a veth has one, and --switch-cores gives its ports cores in turn"
    takes_nics: bool = False
    """Whether interfaces that the user names may be its ports: it then runs where their interrupts come."""
    function: str
    """For the manifest."""
    action: str
    """The action of kernel_setup.py that connects pairs of interfaces."""

    def find(self) -> Found | NotFound:
        if sys.platform != "linux":
            return NotFound(self.remedy)
        return Found(f"Linux {platform.release()}", Path("/proc/sys/kernel/osrelease"))

    def settings(self, request: SwitchRequest) -> dict[str, str]:
        own, sender = cpu_text(request.cpus), "those of tester and VNFs (a core of its own requires root)"
        return manifest(
            request,
            function=self.function,
            cores=own if has_core() else sender,
            burst=str(NAPI_WEIGHT),
            **TERMS,
        )

    def connect(self, request: SwitchRequest, supervisor: Supervisor, pairs: PortPairs) -> Process | None:
        """Connect the interfaces of each pair in the namespace of ``request.netns_pid``. Raises StartError.

        Return a process if something must be undone before the interfaces go: it does so when it is asked to end.
        """
        set_up(self.action, [",".join(pair) for pair in pairs], request, supervisor)
        return None

    def start(self, request: SwitchRequest, supervisor: Supervisor) -> RunningSwitch:
        ports = common.prepared(self, request)[1]
        names = {port.name: port.interface for port in ports}
        interfaces = {port.name: names[port.name] for port in ports if port.kind != "netmap"}
        made = request.netns_pid is not None
        if not (made or self.takes_nics):
            raise UsageError(f"{self.name} needs interfaces in a network namespace; use the veth wire")
        whole = made and len(interfaces) == len(names)
        switch = RunningKernel(self.title, interfaces, request, supervisor, whole=whole)
        with on_failure(switch.stop):
            if made and has_core():
                switch.place()
            pairs = tuple((names[a], names[b]) for a, b in request.cross_connects)
            switch.keeper = self.connect(request, supervisor, pairs)
        return switch


def has_core() -> bool:
    """Return whether forwarding runs on the switch's core: as root we load XDP programs and pin kernel threads.

    That takes CAP_SYS_NICE, and a container does not see kernel threads, of which kthreadd is the first.
    """
    seen = procfs.read_text("/proc/2/comm") == "kthreadd"
    return seen and is_machine_root() and has_capability(CAP_SYS_NICE)


def in_namespace(what: str, argv: Sequence[str], request: SwitchRequest, supervisor: Supervisor) -> str:
    """Run a program in the switch's network namespace and return its output. Raises StartError if it fails.

    It runs at the priority of pollers; otherwise a tester that polls on the same CPU would leave it almost no time.
    """
    done = supervisor.spawn(what, argv, cpus=request.control_cpus, workdir=request.workdir, netns_pid=request.netns_pid)
    done.finish(SETUP_TIMEOUT_S, "the kernel could not be set up")
    return done.log_tail(1000)


def set_up(action: str, arguments: Sequence[str], request: SwitchRequest, supervisor: Supervisor) -> str:
    """Run ``kernel_setup.py ACTION ARGUMENTS`` in the switch's namespace and return its output. Raises StartError."""
    argv = [sys.executable, "-I", str(Path(__file__).with_name("kernel_setup.py")), action, *arguments]
    return in_namespace(f"kernel-{action}", argv, request, supervisor)


class RunningKernel(RunningSwitch):
    """A switch that is a state of the kernel in a network namespace, which a process of the wire holds.

    ``ports`` maps port names to interfaces; ``whole``: the switch has no others, and the
    kernel counts what they receive.
    """

    def __init__(
        self,
        title: str,
        ports: Mapping[str, str],
        request: SwitchRequest,
        supervisor: Supervisor,
        *,
        whole: bool = True,
    ) -> None:
        self.title = title
        self._whole = whole
        self.keeper: Process | None = None
        """What :meth:`KernelAdapter.connect` returned."""
        self._ports = ports
        self._request = request
        self._supervisor = supervisor
        self._holder = request.netns_pid or os.getpid()
        self._holder_start = procfs.start_ticks(self._holder)
        self._threads: tuple[ThreadRef, ...] = ()
        self._time = common.CpuTime((), None)
        self._stopped = False

    def place(self) -> None:
        """Give each port a kernel thread on the switch's cores in turn. Raises StartError."""
        cpus = self._request.cpus
        text = set_up("input", [cpu_text(cpus), *self._ports.values()], self._request, self._supervisor)
        lines = [line.split() for line in text.splitlines()]
        threads = [ThreadRef(int(tid), int(tid), f"napi/{interface}") for interface, tid in lines]
        names = {f"ksoftirqd/{cpu}" for cpu in cpus}  # continue the work of a port's thread whose time slice is over
        for folder in Path("/proc").glob("[0-9]*"):
            if (name := procfs.read_text(folder / "comm")) in names:
                threads.append(ThreadRef(int(folder.name), int(folder.name), name))
        self._threads = tuple(threads)
        self._time = common.CpuTime((thread.tid for thread in self._threads), self._request.tsc_hz)

    def polling_threads(self) -> tuple[ThreadRef, ...]:
        """Return a kernel thread for each port, and the softirq threads of their cores, which continue their work."""
        return self._threads

    def counters(self) -> SwitchCycles:
        """Return counters of the interfaces. Raises DiedError also if the namespace is gone.

        Busy cycles are the CPU time of the threads, which sleep without frames. They are unknown without threads and
        without the frequency of the TSC in the request.
        """
        self.check()
        if not self._whole:
            return SwitchCycles()
        counts = interfaces_of(self._holder)
        ports = {port: counts[name] for port, name in self._ports.items() if name in counts}
        whole = len(ports) == len(self._ports)
        return SwitchCycles(
            busy_cycles=self._time.cycles(),
            packets=sum(count.rx_packets for count in ports.values()) if whole else None,
            forwarded_packets=sum(count.tx_packets for count in ports.values()) if whole else None,
            drops={
                f"{port}:{reason}": number
                for port, count in ports.items()
                for reason, number in (("rx_dropped", count.rx_dropped), ("tx_dropped", count.tx_dropped))
            },
        )

    def check(self) -> None:
        if self._stopped:
            raise DiedError(f"{self.title} was stopped")
        if self.keeper is not None and not self.keeper.alive():
            raise DiedError(f"{self.title}: {self.keeper.exit_report()}")
        if not procfs.is_running(self._holder) or procfs.start_ticks(self._holder) != self._holder_start:
            raise DiedError(f"{self.title}: process {self._holder}, which held its network namespace, is gone")
        for thread in self._threads:
            if not procfs.is_running(thread.tid):
                raise DiedError(f"{self.title}: kernel thread {thread.name} is gone")

    def stop(self) -> None:
        """Remove bridges, programs and filters; the rest goes with the namespace. Never raises; safe to repeat."""
        if self._stopped:
            return
        self._stopped = True
        if self.keeper is not None:
            self.keeper.terminate(SETUP_TIMEOUT_S)
        made = self._request.netns_pid is not None
        if made and procfs.is_running(self._holder) and procfs.start_ticks(self._holder) == self._holder_start:
            try:
                set_up("clear", list(self._ports.values()), self._request, self._supervisor)
            except StartError:
                return  # the namespace is going, and takes all with it
