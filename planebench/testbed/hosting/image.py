# SPDX-License-Identifier: BSD-3-Clause
"""``image``: a disk image of the user in a QEMU guest, ``image:/path/vnf.qcow2``.

It boots by BIOS from a virtio disk, finds two virtio-net NICs at 00:02.0 and 00:03.0, and forwards between them. The
image is never written: QEMU keeps what the guest writes in an unnamed temporary file.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Literal

from planebench.host.process import Supervisor
from planebench.host.programs import Found, NotFound, required
from planebench.model.errors import UsageError
from planebench.model.switch import Option
from planebench.testbed.hosting import machine, qemu
from planebench.testbed.hosting.base import HostedRequest, RunningVnf

QCOW2 = b"QFI\xfb"
"""The first bytes of such a file (QEMU, docs/interop/qcow2.txt)."""
SECTOR_BYTES = 512
BOOT_SECTOR_END = b"\x55\xaa"
DEFAULT_MEMORY_MB = 512
LEAST_MEMORY_MB = 64


class ImageHosting:
    """A guest that boots from the user's image."""

    name = "image"
    title = "disk image in a QEMU guest"
    options: tuple[Option, ...] = (
        Option("path", "file", "disk image, qcow2 or raw, that forwards between its two virtio NICs"),
        machine.RINGS,
        replace(machine.VCPUS, default="as many as it has CPUs of the host"),
        replace(machine.MEMORY, default=str(DEFAULT_MEMORY_MB)),
        machine.ACCEL,
    )
    ready_within_s = 300.0

    def find(self) -> Found | NotFound:
        return qemu.look()

    def start(self, request: HostedRequest, supervisor: Supervisor) -> RunningVnf:
        found = required("QEMU", qemu.find())
        path = Path(str(request.values["path"]))
        disk = qemu.Disk(path, image_format(path))
        return machine.start(
            request,
            found,
            supervisor,
            hosting="image",
            accelerator=qemu.accelerator(found, str(request.values.get(machine.ACCEL.key, "auto"))),
            vcpus=machine.vcpu_count(request, 0),
            memory_mb=machine.memory_mb(request, DEFAULT_MEMORY_MB, LEAST_MEMORY_MB),
            boot=disk,
            details={"image": f"{path}, {disk.format}, {path.stat().st_size} bytes"},
        )


def image_format(path: Path) -> Literal["qcow2", "raw"]:
    """Return the format of an image by its first sector. Raises UsageError for any other file, and for a raw disk
    without boot sector."""
    try:
        with path.open("rb") as file:
            sector = file.read(SECTOR_BYTES)
    except OSError as error:
        raise UsageError(f'image "{path}" cannot be read: {error.strerror}; give a readable file') from error
    if sector.startswith(QCOW2):
        return "qcow2"
    if len(sector) == SECTOR_BYTES and sector.endswith(BOOT_SECTOR_END):
        return "raw"
    raise UsageError(
        f'image "{path}" is neither qcow2 nor a raw disk with a boot sector; convert it: '
        f"`qemu-img convert -O qcow2 {path} {path.with_suffix('.qcow2')}`"
    )
