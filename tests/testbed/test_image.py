# SPDX-License-Identifier: BSD-3-Clause
"""A disk image of the user's own as a VNF: Linux that bridges its two NICs, booted by a boot loader from qcow2."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from planed_rig import planed_binary
from vm_rig import Bed, guest_supervisor

from planebench.host.process import Supervisor
from planebench.testbed.hosting import guest_image
from planebench.testbed.hosting.base import RunningVnf
from planebench.testbed.hosting.image import ImageHosting

pytestmark = [pytest.mark.dataplane, pytest.mark.slow, pytest.mark.all]

TOOLS = {"syslinux": "syslinux", "mformat": "mtools", "qemu-img": "qemu-utils"}
"""Programs and the Debian packages that have them; none of them needs root."""
DISK_MB = 48

CONFIG = """DEFAULT linux
PROMPT 0
LABEL linux
  KERNEL vmlinuz
  INITRD initrd
  APPEND console=ttyS0 quiet panic=-1 no_timer_check mitigations=off nokaslr net.ifnames=0 ipv6.disable=1
"""

INIT = """#!/bin/busybox sh
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev
for module in {modules}; do insmod /modules/$module.ko; done
echo SCRIBBLE | dd of=/dev/vda bs=512 seek=90000 conv=notrunc,fsync && echo WRITTEN
brctl addbr br0
for nic in eth0 eth1; do brctl addif br0 $nic; ip link set $nic up; done
ip link set br0 up
echo BRIDGE-UP
exec sleep 100000
"""
MODULES = (
    *("virtio_ring", "virtio", "virtio_pci_legacy_dev", "virtio_pci_modern_dev", "virtio_pci"),
    *(guest_image.DISK_MODULE, *guest_image.NETWORK_MODULES),
)
"""In the order in which they need each other."""


@pytest.fixture(scope="module")
def supervisor() -> Iterator[Supervisor]:
    if missing := [package for tool, package in TOOLS.items() if not shutil.which(tool)]:
        pytest.skip(f"no boot loader, or no tools for disk images: apt-get install {' '.join(missing)}")
    with guest_supervisor() as it:
        yield it


def run(*words: str | Path) -> None:
    subprocess.run([str(word) for word in words], check=True, capture_output=True, timeout=60)


def disk(folder: Path) -> Path:
    """A FAT file system without partitions, which a BIOS boots as it does a disk, made into a qcow2 file."""
    guest = guest_image.guest_image(Path(planed_binary()))
    files = {f"modules/{name}.ko": (guest.modules / f"{name}.ko").read_bytes() for name in MODULES}
    files["init"] = INIT.format(modules=" ".join(MODULES)).encode()
    initrd, config, raw, image = (folder / name for name in ("initrd", "syslinux.cfg", "disk.raw", "vnf.qcow2"))
    initrd.write_bytes(guest.initramfs.read_bytes() + guest_image.archive(files))
    config.write_text(CONFIG)
    run("mformat", "-C", "-i", raw, "-T", str(DISK_MB * 2048), "-h", "64", "-s", "32", "::")
    run("syslinux", "--install", raw)
    run("mcopy", "-i", raw, initrd, config, "::")
    run("mcopy", "-i", raw, guest.kernel, "::vmlinuz")
    run("qemu-img", "convert", "-O", "qcow2", raw, image)
    return image


def files_kept_by(vnf: RunningVnf) -> list[str]:
    """What it writes to and would leave behind, however it ended: but its log, and what is in /proc and /dev."""
    found = []
    for link in Path(f"/proc/{vnf.process.pid}/fd").iterdir():
        flags = int((link.parents[1] / "fdinfo" / link.name).read_text().split("flags:")[1].split()[0], 8)
        target = str(link.readlink())
        if flags & os.O_ACCMODE != os.O_RDONLY and target.startswith("/") and not target.endswith(" (deleted)"):
            found.append(target)
    return [it for it in found if it != str(vnf.process.log_path) and not it.startswith(("/dev/", "/proc/"))]


def test_a_users_image_bridges_every_frame_and_is_not_written(supervisor: Supervisor, tmp_path: Path) -> None:
    image = disk(tmp_path)
    image.chmod(0o444)
    before = hashlib.sha256(image.read_bytes()).digest()
    with Bed(supervisor) as bed:
        start = time.monotonic()
        vnf = ImageHosting().start(bed.request("own", None, values={"path": str(image), "memory_mb": 256}), supervisor)
        vnf.forward()
        bed.until_it_forwards(vnf)
        print(f"{vnf.facts.details['accelerator']}; forwards after {time.monotonic() - start:.1f} s")
        assert vnf.planed is None and vnf.facts.hosting == "image"
        assert vnf.facts.details["image"] == f"{image}, qcow2, {image.stat().st_size} bytes"
        for frame_bytes in (64, 1518):
            sent, dropped = bed.exchange(vnf, frame_bytes)
            assert len(sent) == 2 and not dropped
        assert "WRITTEN" in vnf.process.log_path.read_text()
        assert not files_kept_by(vnf)
        assert hashlib.sha256(image.read_bytes()).digest() == before
        vnf.stop()
