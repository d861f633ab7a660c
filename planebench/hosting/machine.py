# SPDX-License-Identifier: BSD-3-Clause
"""A VNF in a virtual machine: started with pinned CPUs, watched, killed, ended."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from planebench.host.evidence import WatchedThread
from planebench.host.process import Process, Supervisor
from planebench.host.programs import Found
from planebench.hosting import devices, machine_options, qemu
from planebench.hosting.base import HostedRequest
from planebench.hosting.inside import RunningProcess, Sandbox, attach, folder_of
from planebench.hosting.kvm_probe import Accelerator
from planebench.model.errors import UsageError
from planebench.model.hosting import HostingFacts, HostingName
from planebench.planed.document import Document


class Sockets(Sandbox):
    """The sockets of a guest, which QEMU leaves behind."""

    def __init__(self, folder: Path) -> None:
        self.monitor, self.rpc = folder / "qmp", folder / "rpc"

    def remove(self) -> None:
        for path in (self.monitor, self.rpc):
            path.unlink(missing_ok=True)


class RunningMachine(RunningProcess):
    """QEMU with one VNF in it, which forwards once it has booted. Made by :func:`start`."""

    same_clock = False
    """The guest's TSC begins with the guest, and under TCG it is another clock altogether."""

    @property
    def _title(self) -> str:
        return f"VNF {self.name}"


def start(
    request: HostedRequest,
    found: Found,
    supervisor: Supervisor,
    *,
    hosting: HostingName,
    accelerator: Accelerator,
    vcpus: int,
    memory_mb: int,
    boot: qemu.Kernel | qemu.Disk,
    details: Mapping[str, str],
    inside: Callable[[Document], Document] = lambda document: document,
) -> RunningMachine:
    """Start QEMU on the control CPUs, pin the guest's CPUs and boot. Raises StartError with the last log lines.

    ``inside`` is as in :class:`RunningVnf`.
    """
    from planebench.hosting import qmp  # asyncio takes its time to import: not at every start of the command

    folder = folder_of(request)
    sockets = Sockets(folder)
    passed = devices.passed_devices(request)
    if len(passed) > qemu.DEVICES_MAX:
        raise UsageError(f"{request.name}: {len(passed)} devices, but a guest has places for {qemu.DEVICES_MAX}")
    guest = qemu.Machine(
        name=request.name,
        version=found.version,
        accelerator=accelerator.name,
        vcpus=vcpus,
        memory_mb=memory_mb,
        boot=boot,
        nics=machine_options.nics(request),
        settings=machine_options.nic_settings(request),
        hugepages=request.hugepages,
        monitor=sockets.monitor,
        rpc=sockets.rpc if request.document is not None else None,
        devices=tuple(nic.address for nic in passed),
    )
    argv = [str(found.binary), *qemu.arguments(guest)]
    process = supervisor.spawn(request.name, argv, cpus=request.control_cpus, workdir=folder)
    places = machine_options.vcpu_places(request, vcpus)
    try:
        tids = qmp.begin(process, sockets.monitor, places)
        planed = attach(process, guest.rpc, f"VNF {request.name}") if guest.rpc else None
    except BaseException:
        process.terminate()
        raise
    facts = HostingFacts(
        vnf=request.name,
        hosting=hosting,
        program=f"QEMU {guest.version}",
        emulated=guest.accelerator == "tcg",
        details={"accelerator": accelerator.told, **_details(guest, places), **details},
    )
    return RunningMachine(process, facts, sockets, _threads(request, process, tids), planed, inside)


def _details(guest: qemu.Machine, places: Sequence[frozenset[int]]) -> dict[str, str]:
    """Return the CPUs, memory and rings of a guest in words."""
    settings = guest.settings
    pages = "2 MiB pages of a memfd" if guest.hugepages else "memfd"
    queues = f", {settings.queues} queue pairs" if settings.queues > 1 else ""
    return {
        "cpus": ", ".join(f"vCPU {number} on {_cpus(place)}" for number, place in enumerate(places)),
        "memory": f"{guest.memory_mb} MiB, {pages}",
        "rings": f"{settings.rings}, {settings.device_ring_size} entries{queues}",
        **({"devices": ", ".join(guest.devices)} if guest.devices else {}),
    }


def _threads(request: HostedRequest, process: Process, tids: tuple[int, ...]) -> tuple[WatchedThread, ...]:
    first = len(tids) - len(request.cpus)
    return tuple(
        WatchedThread("vnf", process.pid, tid, f"{request.name}-vcpu{first + number}")
        for number, tid in enumerate(tids[first:])
    )


def _cpus(place: frozenset[int]) -> str:
    return "CPU " + ", ".join(str(cpu) for cpu in sorted(place))
