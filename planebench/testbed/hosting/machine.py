# SPDX-License-Identifier: BSD-3-Clause
"""A VNF in a virtual machine: its options, its start with pinned CPUs, and planed's document in it."""

from __future__ import annotations

import stat
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from planebench.host.evidence import ThreadRef
from planebench.host.process import Supervisor, on_failure
from planebench.host.programs import Found, required
from planebench.model.dimensions import HostingFacts, HostingName
from planebench.model.errors import UsageError
from planebench.model.scenarios import FRAME_SIZE_MAX_BYTES
from planebench.model.switch import Option
from planebench.planed.document import Document, Port
from planebench.testbed.hosting import base, bubblewrap, qemu
from planebench.testbed.hosting.base import HostedPort, HostedRequest, RunningVnf
from planebench.testbed.hosting.bubblewrap import Shown
from planebench.testbed.hosting.inside import RPC, attach, give, own_folder
from planebench.testbed.hosting.qemu import Accelerator, NicSettings, Rings, device_address, pci_address

VCPUS_MAX = 64
SCRATCH = Path("/var/tmp")
"""Where QEMU keeps what a guest writes to its disk."""
MEMORY_MAX_MB = 2**20

RINGS = Option("rings", "text", "virtqueue layout offered to the guest", "split", ("split", "packed"))
ACCEL = Option("accel", "text", "auto: kvm if QEMU can use it, else tcg (emulation)", "auto", ("auto", "kvm", "tcg"))


HUGEPAGE_MB = 2
LINUX_MB = 128
"""What the guest needs beside planed's hugepages and its files: the kernel, page tables, room to allocate in."""
FILE_COPIES = 3
"""Copies of each file: in QEMU's archive, in the root file system, and in the memory of a program that reads it."""
VCPUS = Option("vcpus", "whole", "number of CPUs of the guest", least=1, most=VCPUS_MAX)
MEMORY = Option("memory_mb", "whole", "memory of the guest in MiB", least=64, most=MEMORY_MAX_MB)
"""A hosting says what their defaults are."""


def vcpu_count(request: HostedRequest, more: int) -> int:
    """Return the requested number, or ``more`` than the VNF has CPUs of the host. Raises UsageError for too few."""
    least = len(request.cpus)
    wanted = int(_text(request, "vcpus", str(least + more)))
    if wanted < least:
        raise UsageError(
            f"{request.name}: vcpus={wanted}, but the VNF polls on {least} CPUs; give vcpus={least} or more"
        )
    return wanted


def memory_mb(request: HostedRequest, default: int, least: int) -> int:
    """Return the requested memory, or ``default``. Raises UsageError for less than ``least``."""
    wanted = int(_text(request, "memory_mb", str(default)))
    if wanted < least:
        raise UsageError(f"{request.name}: memory_mb={wanted} is too small; give memory_mb={least} or more")
    return wanted + wanted % 2  # whole hugepages


def nic_settings(request: HostedRequest) -> NicSettings:
    """Return the settings of the NICs. Only a user's image needs mergeable buffers: planed's hold the largest frame."""
    rings: Rings = "packed" if _text(request, "rings", "split") == "packed" else "split"
    own = request.document is None
    return NicSettings(rings, request.ring_size, request.queues, own and request.max_frame_bytes > FRAME_SIZE_MAX_BYTES)


def _text(request: HostedRequest, key: str, default: str) -> str:
    return str(request.values.get(key, default))


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
) -> RunningVnf:
    """Start QEMU on the control CPUs, pin the guest's CPUs and boot. Raises StartError with the last log lines."""
    folder = own_folder(request)
    monitor, rpc = folder / "qmp", folder / RPC  # which QEMU leaves behind
    container = required("bubblewrap", bubblewrap.find())
    kvm = [qemu.DEVICE] if accelerator.name == "kvm" else []
    passed = base.bind_ports(request, for_guest=True)
    guest = qemu.Guest(
        name=request.name,
        version=found.version,
        accelerator=accelerator.name,
        vcpus=vcpus,
        memory_mb=memory_mb,
        boot=boot,
        nics=tuple(port for port in request.ports if not port.address),
        settings=nic_settings(request),
        hugepages=request.hugepages,
        monitor=monitor,
        rpc=rpc if request.document is not None else None,
        devices=tuple(nic.address for nic in passed),
    )
    process = bubblewrap.spawn(
        container.binary,
        request,
        supervisor,
        [*bubblewrap.system(), *_files(request, found.binary, boot, supervisor), *bubblewrap.shown(kvm)],
        [str(found.binary), *qemu.arguments(guest)],
        cpus=request.control_cpus,
        devices=base.device_files(passed),
    )
    # The last vCPUs forward and are pinned, those before are for the guest's Linux.
    first = vcpus - len(request.cpus)
    places = (*(request.control_cpus,) * first, *(frozenset({cpu}) for cpu in request.cpus))
    with on_failure(process.terminate):
        vcpus_here = qemu.begin(process, monitor, places)
        planed = attach(request, process, f"VNF {request.name}") if guest.rpc else None
    settings = guest.settings
    cpus = [", ".join(str(cpu) for cpu in sorted(place)) for place in places]
    queues = f", {settings.queues} queue pairs" if settings.queues > 1 else ""
    told = {
        "user": bubblewrap.user_of(request),
        "accelerator": accelerator.told,
        "cpus": ", ".join(f"vCPU {number} on CPU {place}" for number, place in enumerate(cpus)),
        "memory": f"{guest.memory_mb} MiB, {'2 MiB pages of a memfd' if guest.hugepages else 'memfd'}",
        "rings": f"{settings.rings}, {settings.device_ring_size} entries{queues}",
    }
    if guest.devices:
        told["devices"] = ", ".join(guest.devices)
    facts = HostingFacts(
        vnf=request.name,
        hosting=hosting,
        program=f"QEMU {guest.version}",
        emulated=guest.accelerator == "tcg",
        details={**told, **details},
    )
    forwarding = list(enumerate(vcpus_here))[first:]
    threads = tuple(ThreadRef(*ids, f"{request.name}-vcpu{number}", "vnf") for number, ids in forwarding)
    return RunningVnf(process, facts, threads, planed, f"VNF {request.name}", (monitor, rpc), same_clock=False)


def _files(
    request: HostedRequest, binary: Path, boot: qemu.Kernel | qemu.Disk, supervisor: Supervisor
) -> tuple[Shown, ...]:
    """Return QEMU with its own files, what a guest boots from, and a folder on disk for what it writes.

    Raises UsageError for an image that is closed.
    """
    own = bubblewrap.shown([] if binary.is_relative_to("/usr") else [bubblewrap.around(binary.parent, request.workdir)])
    if isinstance(boot, qemu.Kernel):
        return (*own, *bubblewrap.shown((boot.path, boot.initramfs)))
    if request.uid is not None and not boot.path.stat().st_mode & stat.S_IROTH:
        raise UsageError(f"{boot.path} is closed to the user that QEMU gets, for you are root: `chmod o+r {boot.path}`")
    scratch = Path(tempfile.mkdtemp(prefix="planebench-", dir=SCRATCH))
    supervisor.track_path(scratch)
    return (*own, *bubblewrap.shown((boot.path,)), Shown(give(request, scratch), SCRATCH, "--bind"))


def guest_document(document: Document, ports: Sequence[HostedPort], cpus: Sequence[int], first_vcpu: int) -> Document:
    """Return the document with the same functions and settings at the guest's NICs, on hugepages.

    DPDK drives the NICs through hugepages, whose physical addresses the switch gets.
    Worker CPUs are among ``cpus``, which are numbered in the guest from ``first_vcpu`` on. The workers get no priority:
    in the guest they compete only with planed's own control thread, which could not answer then.
    """
    virtio, passed = ([port.name for port in ports if bool(port.address) is are] for are in (False, True))
    slots = {name: pci_address(number) for number, name in enumerate(virtio)}
    slots |= {name: device_address(number) for number, name in enumerate(passed)}
    free = list(enumerate(cpus, first_vcpu))
    workers = []
    for worker in document.workers:
        place = next(place for place in free if place[1] == worker.cpu)
        free.remove(place)  # two CPUs of the guest may share one of the host
        workers.append(replace(worker, cpu=place[0]))
    nics = []  # each has its own MAC address
    for port in document.ports:
        nics.append(Port(port.name, "ethdev", port.ring_size, port.queues, device=slots[port.name]))
    return replace(
        document,
        memory=replace(document.memory, hugepages=True),
        ports=tuple(nics),
        workers=tuple(workers),
        nice=None,
    )


def hugepages(document: Document) -> int:
    """Return the number of 2 MiB pages that planed needs for this document."""
    return -(-document.memory.size_mb // HUGEPAGE_MB)


def least_memory_mb(document: Document, files_bytes: int) -> int:
    """Return the least memory of a guest with this document and files of ``files_bytes``."""
    return LINUX_MB + hugepages(document) * HUGEPAGE_MB + FILE_COPIES * -(-files_bytes // 2**20)
