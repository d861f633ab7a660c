# SPDX-License-Identifier: BSD-3-Clause
"""``vm``: the static planed in a QEMU guest with vhost-user NICs (guest_image.py: Debian's kernel, nothing else)."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

from planebench.host.process import Supervisor
from planebench.host.programs import Found, NotFound
from planebench.model.errors import PlanebenchError, StartError
from planebench.model.switch import Option
from planebench.planed.document import Document
from planebench.testbed.hosting import base as devices
from planebench.testbed.hosting import guest_image, machine, qemu
from planebench.testbed.hosting import machine as guest_document
from planebench.testbed.hosting import machine as machine_options
from planebench.testbed.hosting.base import IDLE, HostedRequest
from planebench.testbed.hosting.inside import folder_of
from planebench.testbed.hosting.kvm_probe import COMMAND_LINE, Accelerator, KvmProbe, known_failure

DOCUMENT = "/document.json"
"""Where the guest's /init finds planed's document."""
ARCHIVE_ALIGNMENT = 4
"""Alignment of concatenated cpio archives (Linux, Documentation/driver-api/early-userspace/buffer-format.rst)."""


class VmHosting:
    """A guest for each VNF. With emulation it is up in 4 s if a CPU is free."""

    name = "vm"
    title = "QEMU guest"
    remedy = qemu.REMEDY
    options: tuple[Option, ...] = (
        machine_options.RINGS,
        machine_options.vcpus_option("polling CPUs, plus one with KVM if a CPU is free"),
        machine_options.memory_option("computed from planed's tables"),
        machine_options.ACCEL,
        devices.DEVICES,
        IDLE,
    )
    ready_within_s = 60.0

    def find(self) -> Found | NotFound:
        remedy = guest_image.remedy()
        return NotFound(remedy) if remedy else qemu.look()

    def start(self, request: HostedRequest, supervisor: Supervisor) -> machine.RunningMachine:
        found = qemu.require(self.title)
        if request.document is None:
            raise StartError(f"{request.name}: a guest of planed needs a document")
        image = guest_image.guest_image(request.planed)
        probe = KvmProbe(found, image.kernel, image.initramfs, request.control_cpus, supervisor)
        accelerator = probe.accelerator(machine_options.wanted_accelerator(request))
        vcpus = machine_options.vcpu_count(request, _linux_vcpus(request, accelerator))
        first = vcpus - len(request.cpus)
        inside = partial(guest_document.guest_document, ports=request.ports, cpus=request.cpus, first_vcpu=first)
        document = inside(request.document)
        least_mb = guest_document.least_memory_mb(document, _bytes_of(image.initramfs, *request.files))
        kernel = _kernel(image, document, request, first)
        running = machine.start(
            request,
            found,
            supervisor,
            hosting="vm",
            accelerator=accelerator,
            vcpus=vcpus,
            memory_mb=machine_options.memory_mb(request, least_mb, least_mb),
            boot=kernel,
            details={"kernel": f"Linux {image.version}"},
            inside=inside,
        )
        kernel.initramfs.unlink()  # QEMU has it in memory
        return running


HOSTING = VmHosting()


def why_emulated(planed: Path, cpus: frozenset[int], *, boots: bool) -> str:
    """Return why VMs would be emulated here, or cannot start; empty if KVM works.

    Without ``boots`` it is empty, too, where only a test boot, which may take ten seconds, would tell.
    """
    known = known_failure()
    if known or not boots:
        return known
    try:
        image = guest_image.guest_image(planed)
        with Supervisor() as supervisor:
            found = qemu.require(HOSTING.title)
            return KvmProbe(found, image.kernel, image.initramfs, cpus, supervisor).outcome().why
    except PlanebenchError as error:
        return str(error)


def _linux_vcpus(request: HostedRequest, accelerator: Accelerator) -> int:
    """Return the number of vCPUs for planed's control and the kernel, which otherwise wait for the time slices of a
    polling worker.

    A VNF that shares CPUs has a worker that sleeps. Emulated CPUs wait for each other: on two CPUs with pollers a guest
    took 24 s and more to boot with two of them, and 9 s with one.
    """
    return 1 if accelerator.name == "kvm" and not request.shares_cpu else 0


def _kernel(image: guest_image.GuestImage, document: Document, request: HostedRequest, first: int) -> qemu.Kernel:
    """Return the image with an archive of this VNF's own files. CPUs from ``first`` on are for its workers."""
    initramfs = folder_of(request) / "initramfs"
    base = image.initramfs.read_bytes()
    padding = bytes(-len(base) % ARCHIVE_ALIGNMENT)
    initramfs.write_bytes(base + padding + guest_image.archive(_own_files(document, request.files)))
    isolated = [f"isolcpus={first}-{first + len(request.cpus) - 1}"] if first else []
    words = [COMMAND_LINE, f"hugepages={guest_document.hugepages(document)}", *isolated]
    return qemu.Kernel(image.kernel, initramfs, " ".join(words))


def _own_files(document: Document, files: tuple[Path, ...]) -> dict[str, bytes]:
    """Return the files by their absolute names."""
    return {DOCUMENT: json.dumps(document.to_json()).encode(), **{str(file): file.read_bytes() for file in files}}


def _bytes_of(*files: Path) -> int:
    return sum(file.stat().st_size for file in files)
