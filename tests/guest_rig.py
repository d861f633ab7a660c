# SPDX-License-Identifier: BSD-3-Clause
"""QEMU guests by hand, for tests of planed: emulated, so that they run anywhere."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import pytest
from planed_rig import CPUS, PATIENCE_S, Document, planed_binary

from planebench.host.process import Process, Supervisor
from planebench.hosting.guest_image import GuestImage, archive, guest_image
from planebench.model.errors import StartError

QEMU = "qemu-system-x86_64"
MEMORY_MB = 256
WORDS = "console=ttyS0 quiet panic=-1 no_timer_check mitigations=off nokaslr net.ifnames=0"
"""Of the kernel. no_timer_check: it gives up where an emulated CPU gets no time while it looks at its timer."""


def image() -> GuestImage:
    """What guests boot; the test is skipped where there can be none."""
    if not shutil.which(QEMU):
        pytest.skip(f"no {QEMU}: scripts/setup.sh qemu-system-x86")
    try:
        return guest_image(Path(planed_binary()))
    except StartError as error:
        pytest.skip(str(error))


def card(wire: Document, number: int, features: str = "") -> list[str]:
    """A NIC at 00:0N.0, N from 2 on, behind which is a vhost-user port of planed."""
    queues = wire.get("queues", 1)
    # vectors=0: QEMU 7.2 without KVM ends by SIGSEGV when such a device has MSI-X.
    nic = f"virtio-net-pci,netdev=n{number},mac=52:54:00:00:00:0{number},addr={number + 2},romfile=,vectors=0"
    nic += ",disable-legacy=on" + (",mq=on" if queues > 1 else "") + (f",{features}" if features else "")
    socket = ["-chardev", f"socket,id=c{number},path={wire['path']}"]
    return [*socket, "-netdev", f"vhost-user,id=n{number},chardev=c{number},queues={queues}", "-device", nic]


def boot(
    supervisor: Supervisor,
    name: str,
    files: Mapping[str, bytes],
    arguments: Iterable[str],
    words: Sequence[str] = (),
) -> tuple[Process, Path]:
    """A guest with these files over those of every guest, and what it says on its serial line."""
    guest, where = image(), supervisor.workdir(name)
    (where / "initramfs").write_bytes(guest.initramfs.read_bytes() + archive(files))
    said = where / "serial.log"
    said.touch()
    command = [
        *(QEMU, "-accel", "tcg", "-machine", "q35,memory-backend=m0", "-cpu", "max", "-smp", "1"),
        *("-m", str(MEMORY_MB), "-object", f"memory-backend-memfd,id=m0,size={MEMORY_MB}M,share=on"),
        *("-kernel", str(guest.kernel), "-initrd", str(where / "initramfs"), "-append", " ".join([WORDS, *words])),
        *("-nodefaults", "-display", "none", "-no-reboot", "-serial", f"file:{said}"),
        *arguments,
    ]
    return supervisor.spawn(name, command, cpus=frozenset(CPUS), workdir=where), said


def until_said(guest: Process, said: Path, what: str) -> str:
    """All that the guest has said, once it has said this."""
    end = time.monotonic() + PATIENCE_S
    while what not in (words := said.read_text(errors="replace")):
        assert guest.alive(), f"{guest.obituary()}\n{words}"
        assert time.monotonic() < end, words
        time.sleep(0.1)
    return words
