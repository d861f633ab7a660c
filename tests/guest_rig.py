# SPDX-License-Identifier: BSD-3-Clause
"""QEMU guests for tests of planed, each NIC with rings of its own kind: emulated, so that they run anywhere."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import pytest
from planed_rig import CPUS, PATIENCE_S, Document, planed_binary

from planebench.host.process import Process, Supervisor
from planebench.host.programs import NotFound, required
from planebench.model.errors import StartError
from planebench.testbed.hosting import qemu
from planebench.testbed.hosting.guest_image import GuestImage, archive, guest_image
from planebench.testbed.hosting.qemu import COMMAND_LINE

MEMORY_MB = 256


def image() -> GuestImage:
    """What guests boot; the test is skipped where there can be none."""
    if isinstance(found := qemu.find(), NotFound):
        pytest.skip(found.remedy)
    try:
        return guest_image(Path(planed_binary()))
    except StartError as error:
        pytest.skip(str(error))


def card(wire: Document, number: int, features: str) -> list[str]:
    """The n-th NIC, behind which is a vhost-user port of planed."""
    queues = wire.get("queues", 1)
    # vectors=0: QEMU 7.2 without KVM ends by SIGSEGV when such a device has MSI-X.
    nic = f"virtio-net-pci,netdev=n{number},mac=52:54:00:00:00:0{number},addr={number + qemu.FIRST_NIC_SLOT}"
    nic += f",romfile=,vectors=0,disable-legacy=on,{features}" + (",mq=on" if queues > 1 else "")
    socket = ["-chardev", f"socket,id=c{number},path={wire['path']}"]
    return [*socket, "-netdev", f"vhost-user,id=n{number},chardev=c{number},queues={queues}", "-device", nic]


def boot(
    supervisor: Supervisor,
    name: str,
    files: Mapping[str, bytes],
    cards: Iterable[str],
    *,
    words: Sequence[str] = (),
    rpc: Path | None = None,
) -> Process:
    """A guest with these files over those of every guest. Its log is what it says on its serial line."""
    guest, where = image(), supervisor.workdir(name)
    initramfs = where / "initramfs"
    initramfs.write_bytes(guest.initramfs.read_bytes() + archive(files))
    kernel = qemu.Kernel(guest.kernel, initramfs, " ".join([COMMAND_LINE, "net.ifnames=0", *words]))
    found = required(name, qemu.find())
    machine = qemu.Guest(name, found.version, "tcg", vcpus=1, memory_mb=MEMORY_MB, boot=kernel, rpc=rpc)
    command = [str(found.binary), *qemu.arguments(machine), *cards]
    return supervisor.spawn(name, command, cpus=frozenset(CPUS), workdir=where)


def said(guest: Process) -> str:
    """All that it has said so far."""
    return guest.log_path.read_text(errors="replace")


def until_said(guest: Process, what: str) -> str:
    """All that it has said, once it has said this."""
    end = time.monotonic() + PATIENCE_S
    while what not in (words := said(guest)):
        assert guest.alive(), f"{guest.exit_report()}\n{words}"
        assert time.monotonic() < end, words
        time.sleep(0.1)
    return words
