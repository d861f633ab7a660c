# SPDX-License-Identifier: BSD-3-Clause
"""``vm``: the static planed in a QEMU guest with vhost-user NICs (guest_image.py: Debian's kernel, nothing else)."""

from __future__ import annotations

import json
from dataclasses import replace

from planebench.host.process import Supervisor
from planebench.host.programs import Found, NotFound, required
from planebench.model.switch import Option
from planebench.testbed.hosting import guest_image, machine, qemu
from planebench.testbed.hosting.base import IDLE, HostedRequest, RunningVnf
from planebench.testbed.hosting.inside import document_of, folder_of

DOCUMENT = "/document.json"
"""Where the guest's /init finds planed's document."""
ARCHIVE_ALIGNMENT = 4
"""Alignment of concatenated cpio archives (Linux, Documentation/driver-api/early-userspace/buffer-format.rst)."""


class VmHosting:
    """A guest for each VNF. With emulation it is up in 4 s if a CPU is free."""

    name = "vm"
    title = "QEMU guest"
    options: tuple[Option, ...] = (
        machine.RINGS,
        replace(machine.VCPUS, default="polling CPUs, plus one with KVM if a CPU is free"),
        replace(machine.MEMORY, default="computed from planed's tables"),
        machine.ACCEL,
        IDLE,
    )
    ready_within_s = 60.0

    def find(self) -> Found | NotFound:
        remedy = guest_image.remedy()
        return NotFound(remedy) if remedy else qemu.look()

    def start(self, request: HostedRequest, supervisor: Supervisor) -> RunningVnf:
        found = required("QEMU", qemu.find())
        image = guest_image.guest_image(request.planed)
        accelerator = qemu.accelerator(found, str(request.values.get(machine.ACCEL.key, "auto")))
        # With one more vCPU planed's control and the kernel do not wait for the time slices of a polling worker. A VNF
        # that shares CPUs has a worker that sleeps. Emulated CPUs wait for each other: on two CPUs with pollers a guest
        # took 24 s and more to boot with two of them, and 9 s with one.
        vcpus = machine.vcpu_count(request, 1 if accelerator.name == "kvm" and not request.shares_cpu else 0)
        first = vcpus - len(request.cpus)
        document = machine.guest_document(document_of(request), request.ports, request.cpus, first)
        files_bytes = sum(file.stat().st_size for file in (image.initramfs, *request.files))
        least_mb = machine.least_memory_mb(document, files_bytes)
        # The image with an archive of this VNF's own files, by their absolute names.
        files = {DOCUMENT: json.dumps(document.to_json()).encode()}
        files |= {str(file): file.read_bytes() for file in request.files}
        initramfs = folder_of(request) / "initramfs"
        base = image.initramfs.read_bytes()
        padding = bytes(-len(base) % ARCHIVE_ALIGNMENT)
        initramfs.write_bytes(base + padding + guest_image.archive(files))
        initramfs.chmod(0o644)  # for the user that QEMU is; the folder is closed
        words = [qemu.COMMAND_LINE, f"hugepages={machine.hugepages(document)}"]
        if first:
            words.append(f"isolcpus={first}-{first + len(request.cpus) - 1}")  # for the workers
        running = machine.start(
            request,
            found,
            supervisor,
            hosting="vm",
            accelerator=accelerator,
            vcpus=vcpus,
            memory_mb=machine.memory_mb(request, least_mb, least_mb),
            boot=qemu.Kernel(image.kernel, initramfs, " ".join(words)),
            details={"kernel": f"Linux {image.version}"},
        )
        initramfs.unlink()  # QEMU has it in memory
        return running
