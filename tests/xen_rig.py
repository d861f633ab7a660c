# SPDX-License-Identifier: BSD-3-Clause
"""Xen in the lab: Debian's hypervisor below the kernel of the guest, and its tools, which a test starts there."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

from debian_packages import cached, unpack

from planebench.host.programs import run_tool
from planebench.model.errors import StartError
from planebench.testbed.hosting.guest_image import FETCH_DEADLINE_S

META_PACKAGE = "xen-system-amd64"
CPU = "max,-smap"
"""The first domain's kernel is in ring 3, where QEMU (7.2) lets ``iret`` read the stack as if it were in ring 0."""
SLOWER = 5
"""The factor for the time of a boot: Xen emulates much of what its first domain does, and QEMU emulates Xen."""
MODULES = ("xen-evtchn", "xen-gntdev", "xen-gntalloc", "xen-privcmd", "xenfs", "xen-netback", "llc", "stp", "bridge")
_ONLY_DEPENDS = [f"--no-{kind}" for kind in ("recommends", "suggests", "conflicts", "breaks", "replaces", "enhances")]


def words(memory_mb: int) -> str:
    """Return the command line of Xen, with the memory of its first domain."""
    return f"com1=115200,8n1 console=com1 noreboot dom0_max_vcpus=2 dom0_mem={memory_mb}M,max:{memory_mb}M"


def folder() -> Path:
    """Return the folder with ``xen.elf`` and ``usr``; the first call downloads Debian's packages. Raises StartError."""
    return cached("xen", _make)


def _make(new: Path) -> None:
    asked = ["apt-cache", "depends", "--recurse", *_ONLY_DEPENDS, META_PACKAGE]
    packages = re.findall(r"^(?:xen|libxen|libyajl)\S+$", run_tool(asked, FETCH_DEADLINE_S).stdout, re.MULTILINE)
    if not packages:
        raise StartError(f"Debian's lists have no package {META_PACKAGE}; run `apt-get update` as root")
    unpack(new, packages, "Xen")
    packed = next(new.glob("unpacked/boot/xen-*-amd64.gz"))
    (new / "unpacked/xen.elf").write_bytes(gzip.decompress(packed.read_bytes()))
