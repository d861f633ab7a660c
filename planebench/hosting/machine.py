# SPDX-License-Identifier: BSD-3-Clause
"""A VNF in a virtual machine as it runs: started with its CPUs pinned, watched, killed, ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from planebench.host.evidence import WatchedThread
from planebench.host.process import Process, Supervisor
from planebench.host.programs import Found
from planebench.hosting import machine_options, qemu
from planebench.hosting.base import HostedRequest
from planebench.hosting.inside import attach, folder_of
from planebench.hosting.kvm_probe import Accelerator
from planebench.model.errors import DiedError
from planebench.model.hosting import Hosting, HostingFacts
from planebench.planed.process import PlanedProcess


@dataclass(frozen=True, slots=True)
class Wanted:
    """A guest that is to be started: what of it the request does not say."""

    hosting: Hosting
    accelerator: Accelerator
    vcpus: int
    memory_mb: int
    boot: qemu.Kernel | qemu.Disk
    details: Mapping[str, str]


class RunningMachine:
    """QEMU with one VNF in it."""

    same_clock = False
    """The guest's TSC begins with the guest, and under TCG it is another clock altogether."""

    def __init__(
        self,
        facts: HostingFacts,
        process: Process,
        threads: tuple[WatchedThread, ...],
        sockets: tuple[Path, ...],
        planed: PlanedProcess | None,
    ) -> None:
        self.name = facts.vnf
        self.facts = facts
        self.planed = planed
        self._process = process
        self._threads = threads
        self._sockets = sockets

    @property
    def processes(self) -> tuple[Process, ...]:
        """QEMU."""
        return (self._process,)

    def threads(self) -> tuple[WatchedThread, ...]:
        """Return those CPUs of the guest that forward."""
        return self._threads

    def forward(self) -> None:
        """It begins by itself, once it has booted."""

    def check(self) -> None:
        """Raise DiedError, with the last words of guest and QEMU, if it is gone."""
        if not self._process.alive():
            raise DiedError(f"VNF {self.name} died: {self._process.exit_report()}")

    def ask_to_end(self) -> None:
        """SIGTERM: QEMU ends at once, whatever the guest does."""
        if self._process.alive():
            self._process.ask_to_end()

    def kill(self) -> None:
        """SIGKILL to QEMU: for the switch the guest is gone from one moment to the next."""
        self._process.kill()
        self._clean()

    def stop(self) -> None:
        """End it, paused or not."""
        self._process.terminate()
        self._clean()

    def _clean(self) -> None:
        if self.planed is not None:
            self.planed.close()
        for socket in self._sockets:
            socket.unlink(missing_ok=True)


def start(wanted: Wanted, request: HostedRequest, found: Found, supervisor: Supervisor) -> RunningMachine:
    """Start QEMU on the control CPUs, pin those of the guest, have it boot. Raises StartError with its last words."""
    from planebench.hosting import qmp  # asyncio takes its time to import: not at every start of the command

    folder = folder_of(request)
    machine = _machine(wanted, request, found, folder)
    assert machine.monitor is not None
    process = supervisor.spawn(
        request.name,
        [str(found.binary), *qemu.arguments(machine)],
        cpus=request.control_cpus,
        workdir=folder,
    )
    try:
        tids = qmp.begin(process, machine.monitor, machine_options.vcpu_places(request, machine.vcpus))
        planed = attach(process, machine.rpc, f"VNF {request.name}") if machine.rpc else None
    except BaseException:
        process.terminate()
        raise
    sockets = tuple(path for path in (machine.monitor, machine.rpc) if path)
    return RunningMachine(_facts(wanted, machine, request), process, _threads(request, process, tids), sockets, planed)


def _machine(wanted: Wanted, request: HostedRequest, found: Found, folder: Path) -> qemu.Machine:
    return qemu.Machine(
        name=request.name,
        version=found.version,
        accelerator=wanted.accelerator.name,
        vcpus=wanted.vcpus,
        memory_mb=wanted.memory_mb,
        boot=wanted.boot,
        nics=machine_options.nics(request),
        settings=machine_options.nic_settings(request),
        hugepages=request.hugepages,
        monitor=folder / "qmp",
        rpc=folder / "rpc" if request.document is not None else None,
    )


def _threads(request: HostedRequest, process: Process, tids: tuple[int, ...]) -> tuple[WatchedThread, ...]:
    first = len(tids) - len(request.cpus)
    return tuple(
        WatchedThread("vnf", process.pid, tid, f"{request.name}-vcpu{first + number}")
        for number, tid in enumerate(tids[first:])
    )


def _facts(wanted: Wanted, machine: qemu.Machine, request: HostedRequest) -> HostingFacts:
    settings = machine.settings
    places = machine_options.vcpu_places(request, machine.vcpus)
    pinned = ", ".join(f"vCPU {number} on {_cpus(place)}" for number, place in enumerate(places))
    pages = "2 MiB pages of a memfd" if machine.hugepages else "memfd"
    queues = f", {settings.queues} queue pairs" if settings.queues > 1 else ""
    return HostingFacts(
        vnf=request.name,
        hosting=wanted.hosting,
        program=f"QEMU {machine.version}",
        emulated=machine.accelerator == "tcg",
        details={
            "accelerator": wanted.accelerator.told,
            "cpus": pinned,
            "memory": f"{machine.memory_mb} MiB, {pages}",
            "rings": f"{settings.rings}, {settings.device_ring_size} entries{queues}",
            **wanted.details,
        },
    )


def _cpus(place: frozenset[int]) -> str:
    return "CPU " + ", ".join(str(cpu) for cpu in sorted(place))
