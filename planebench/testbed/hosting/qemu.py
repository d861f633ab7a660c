# SPDX-License-Identifier: BSD-3-Clause
"""QEMU: the program, the command line of a guest, its monitor (QMP), and whether it can use KVM.

Devices have fixed places on the guest's PCI bus, so that the program in the guest can be told where its ports are.
Facts about QEMU are from its manual and hw/net/virtio-net.c, net/vhost-user.c.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import re
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, cast

from qemu.qmp import ConnectError, QMPClient, QMPError

from planebench.host.process import Process, stretched, wait_ready
from planebench.host.programs import Found, NotFound, find_program, run_tool, version_lines
from planebench.model.errors import StartError, UsageError
from planebench.testbed.hosting import bubblewrap, guest_image
from planebench.testbed.hosting.base import HostedPort
from planebench.testbed.hosting.inside import ids_outside

PROGRAM = "qemu-system-x86_64"
REMEDY = "install QEMU: `apt-get install qemu-system-x86` (Debian, Ubuntu) or `dnf install qemu-system-x86` (Fedora)"

DEADLINE_S = 30.0
"""QEMU answers once its devices are there and the switch has taken their calls: a second where CPUs are shared."""
RETRY_S = 0.02

logging.getLogger("qemu.qmp").setLevel(logging.CRITICAL)  # what it could not do is told by its exceptions

AcceleratorName = Literal["kvm", "tcg"]
Rings = Literal["split", "packed"]

FIRST_NIC_SLOT = 2
"""Of the PCI bus: 0 is the bridge to the host, and 31 the chip set's own."""
DISK_SLOT = 16
RPC_SLOT = 17
FIRST_DEVICE_SLOT = 18
RPC_PORT = "planed"
"""The name that /init of the guest image looks for (guest_image.py)."""
LEAST_RING = 256
MOST_RING = 1024
"""Entries of a ring of QEMU's virtio-net: VIRTIO_NET_RX_QUEUE_MIN_SIZE and VIRTQUEUE_MAX_SIZE."""
RECONNECT_MS_SINCE = (9, 2)
RECONNECT_MS = 100
RECONNECT_S = 1
"""Interval of attempts to reconnect to a switch, equal to that of planed's driver; before 9.2 in seconds."""
_SANDBOX = "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny"
"""A guest that breaks out of QEMU finds no new programs and no rights. What QEMU needs at run time it keeps."""
_OFFLOADS = (
    *("csum", "gso", "guest_csum", "guest_tso4", "guest_tso6", "guest_ecn", "guest_ufo"),
    *("host_tso4", "host_tso6", "host_ecn", "host_ufo"),
)
"""No VNF is offered checksums or segmentation by its switch, whatever it runs in (switches/common.py)."""
DEVICE = Path("/dev/kvm")
COMMAND_LINE = "console=ttyS0 quiet panic=-1 no_timer_check mitigations=off nokaslr"
"""no_timer_check: a virtual CPU without CPU time is not a broken timer. panic=-1: end at once."""
_PROBE = ("-m", "256M", "-no-reboot", "-serial", "stdio", "-append", f"{COMMAND_LINE} earlyprintk=ttyS0")
"""A guest that says what is wrong also before there is a console."""
PROBE_S = 20.0
"""A kernel without a root takes a second to its panic with KVM that works, also where two CPUs are shared."""
_KVM_ERROR = re.compile(r"^(?:KVM internal error.*|emulation failure)$", re.MULTILINE)
"""An exit of KVM that QEMU cannot handle, and of which kind it is."""


@dataclass(frozen=True, slots=True)
class NicSettings:
    """The common settings of all NICs of a guest."""

    rings: Rings = "split"
    ring_size: int = LEAST_RING
    queues: int = 1
    mergeable: bool = False
    """Buffers that a frame may take several of: a driver of frames that are larger than its buffers needs them."""

    @property
    def device_ring_size(self) -> int:
        """Return the ring size of the device; a driver may use fewer entries. Raises UsageError if it is too large."""
        if self.ring_size > MOST_RING:
            raise UsageError(
                f"ring size {self.ring_size} is too large: QEMU's virtio-net supports {MOST_RING} at most. Use a "
                "smaller ring size, or host the VNF in a process or a container"
            )
        return max(self.ring_size, LEAST_RING)


@dataclass(frozen=True, slots=True)
class Disk:
    """An image that the guest boots from. The guest's writes go to an unnamed temporary file, not to the image."""

    path: Path
    format: Literal["qcow2", "raw"]


@dataclass(frozen=True, slots=True)
class Kernel:
    """A Linux kernel that QEMU loads itself."""

    path: Path
    initramfs: Path
    command_line: str


@dataclass(frozen=True, slots=True)
class Guest:
    """One guest. Its serial line is QEMU's standard output.

    ``rpc`` and ``monitor`` are sockets that QEMU makes: of a virtio port of the guest, and its own monitor. A guest
    with a monitor does not start before it is told to (:func:`begin`). ``version`` is QEMU's.
    """

    name: str
    version: str
    accelerator: AcceleratorName
    vcpus: int
    memory_mb: int
    boot: Kernel | Disk
    nics: tuple[HostedPort, ...] = ()
    """virtio-net devices, at whose other ends the switch listens."""
    settings: NicSettings = NicSettings()
    hugepages: bool = False
    monitor: Path | None = None
    rpc: Path | None = None
    devices: tuple[str, ...] = ()
    """PCI addresses of devices of the host, bound to vfio-pci, that the guest has."""


def find() -> Found | NotFound:
    """Return QEMU on PATH and its version."""
    binary = find_program(PROGRAM)
    if binary is None:
        return NotFound(REMEDY)
    lines = version_lines(binary)
    match = re.search(r"version (\d+(?:\.\d+)+)", lines[0]) if lines else None
    if match is None:
        return NotFound(f"{binary} does not start; run `{binary} --version` for the reason")
    return Found(match[1], binary)


def look() -> Found | NotFound:
    """Return QEMU with a version for people, which begins with its name, if there is the container that it runs in."""
    found, container = find(), bubblewrap.find()
    if isinstance(container, NotFound):
        return container
    return Found(f"QEMU {found.version}", found.binary) if isinstance(found, Found) else found


def pci_address(nic: int) -> str:
    """Return the PCI address of the guest's n-th NIC."""
    return f"0000:00:{FIRST_NIC_SLOT + nic:02x}.0"


def device_address(device: int) -> str:
    """Return the PCI address in the guest of the n-th device of the host."""
    return f"0000:00:{FIRST_DEVICE_SLOT + device:02x}.0"


def arguments(machine: Guest) -> list[str]:
    """Return the arguments of QEMU."""
    accelerator, model = ("kvm", "host") if machine.accelerator == "kvm" else ("tcg,thread=multi", "max")
    # The memory is a shared memfd, in which the switch reads and writes rings and frames.
    pages = ",hugetlb=on,hugetlbsize=2M,prealloc=on" if machine.hugepages else ""
    words = [
        *("-name", f"{machine.name},debug-threads=on", "-no-user-config", "-nodefaults"),
        *("-display", "none", "-no-reboot", "-sandbox", _SANDBOX),
        *("-accel", accelerator, "-cpu", model, "-smp", str(machine.vcpus)),
        *("-machine", "q35,memory-backend=memory", "-m", f"{machine.memory_mb}M"),
        *("-object", f"memory-backend-memfd,id=memory,size={machine.memory_mb}M,share=on{pages}"),
        *("-chardev", "stdio,id=console,signal=off", "-serial", "chardev:console"),
    ]
    if machine.rpc:
        words += ["-chardev", _socket("rpc", machine.rpc, "server=on,wait=off")]
        words += ["-device", f"virtio-serial-pci,addr={RPC_SLOT:#x}"]
        words += ["-device", f"virtserialport,chardev=rpc,nr=1,name={RPC_PORT}"]
    if machine.monitor:
        words += ["-chardev", _socket("monitor", machine.monitor, "server=on,wait=off")]
        words += ["-mon", "chardev=monitor,mode=control", "-S"]
    boot = machine.boot
    if isinstance(boot, Kernel):
        words += ["-kernel", str(boot.path), "-initrd", str(boot.initramfs), "-append", boot.command_line]
    else:
        words += ["-drive", f"if=none,id=disk,file={_escaped(boot.path)},format={boot.format},snapshot=on"]
        words += ["-device", f"virtio-blk-pci,drive=disk,addr={DISK_SLOT:#x},bootindex=0"]
    for number, nic in enumerate(machine.nics):
        words += _nic(number, nic, machine)
    for number, address in enumerate(machine.devices):
        words += ["-device", f"vfio-pci,host={address},addr={FIRST_DEVICE_SLOT + number:#x}"]
    return words


def _nic(number: int, nic: HostedPort, machine: Guest) -> list[str]:
    settings = machine.settings
    queues: dict[str, str] = {"mq": "on"} if settings.queues > 1 else {}
    if machine.accelerator == "tcg":  # without KVM QEMU 7.2 crashes once Linux drives a NIC with MSI-X
        queues["vectors"] = "0"
    elif queues:
        queues["vectors"] = str(2 * settings.queues + 2)
    # By which it connects again to a switch that restarts: name and unit changed in QEMU 9.2.
    reconnect = f"reconnect={RECONNECT_S}"
    if tuple(int(part) for part in machine.version.split(".")[:2]) >= RECONNECT_MS_SINCE:
        reconnect = f"reconnect-ms={RECONNECT_MS}"
    device = {
        "netdev": f"net{number}",
        "mac": nic.mac,
        "addr": f"{FIRST_NIC_SLOT + number:#x}",
        "romfile": "",
        "disable-legacy": "on",
        "packed": "on" if settings.rings == "packed" else "off",
        "mrg_rxbuf": "on" if settings.mergeable else "off",
        "rx_queue_size": str(settings.device_ring_size),
        "tx_queue_size": str(settings.device_ring_size),
        **queues,
        **dict.fromkeys(_OFFLOADS, "off"),
    }
    netdev = f"vhost-user,id=net{number},chardev=net{number}"
    return [
        *("-chardev", _socket(f"net{number}", nic.socket, reconnect)),
        *("-netdev", netdev + (f",queues={settings.queues}" if settings.queues > 1 else "")),
        *("-device", "virtio-net-pci," + ",".join(f"{key}={value}" for key, value in device.items())),
    ]


def _socket(name: str, path: Path, more: str) -> str:
    return f"socket,id={name},path={_escaped(path)},{more}"


def _escaped(path: Path) -> str:
    return str(path).replace(",", ",,")


def begin(process: Process, monitor: Path, cpus: Sequence[frozenset[int]]) -> tuple[tuple[int, int], ...]:
    """Pin the CPUs of a waiting guest to ``cpus``, in their order, start the guest, and return process and thread id of
    each, here: QEMU knows them as they are in its container.

    Raises StartError, with the last log lines, if QEMU dies or does not answer.
    """
    wait_ready(process.name, monitor.is_socket, [process], DEADLINE_S)
    try:
        return asyncio.run(asyncio.wait_for(_begin(process, monitor, cpus), stretched(DEADLINE_S)))
    except (QMPError, OSError, TimeoutError, EOFError, KeyError) as error:  # a thread that it has not
        process.wait(0.2)
        raise StartError(f"{process.name} does not start: {error or 'no answer'}; {process.exit_report()}") from error


async def _begin(process: Process, monitor: Path, cpus: Sequence[frozenset[int]]) -> tuple[tuple[int, int], ...]:
    while True:  # QEMU binds its socket a moment before it listens
        client = QMPClient()
        try:
            await client.connect(str(monitor))
            break
        except ConnectError as error:
            if not (isinstance(error.exc, ConnectionRefusedError) and process.alive()):
                raise
        await asyncio.sleep(RETRY_S)
    try:
        found = cast(list[dict[str, Any]], await client.execute("query-cpus-fast"))
        outside = ids_outside(process.pid)
        threads = [outside[int(cpu["thread-id"])] for cpu in sorted(found, key=lambda cpu: int(cpu["cpu-index"]))]
        for (_, tid), where in zip(threads, cpus, strict=True):
            os.sched_setaffinity(tid, where)
        await client.execute("cont")
        return tuple(threads)
    finally:
        with contextlib.suppress(QMPError, OSError, EOFError):
            await client.disconnect()


@dataclass(frozen=True, slots=True)
class Accelerator:
    """The accelerator of a guest, and in ``told`` the reason for it."""

    name: AcceleratorName
    told: str


def accelerator(found: Found, wanted: str) -> Accelerator:
    """Return the accelerator for ``auto``, ``kvm`` or ``tcg``. Raises StartError if required KVM does not work."""
    if wanted == "tcg":
        return Accelerator("tcg", "tcg, as requested")
    why = kvm_failure(found.binary, guest_image.kept_kernel())
    if not why:
        return Accelerator("kvm", "kvm, with which QEMU has made a CPU")
    if wanted == "kvm":
        raise StartError(f"accel=kvm, but KVM does not work: {why}; use accel=tcg or auto")
    return Accelerator("tcg", f"tcg, because KVM does not work: {why}")


@lru_cache(maxsize=4)
def kvm_failure(binary: Path, kernel: Path | None) -> str:
    """Return why QEMU cannot use KVM here; empty if it makes a CPU of the host, and this CPU boots ``kernel``.

    /dev/kvm alone proves little: nested hypervisors have one that refuses registers of the CPU, or that cannot run some
    of its instructions. A kernel that no guest has needed yet is not there to be booted.
    """
    if not DEVICE.exists():
        return f"{DEVICE} does not exist"
    if not os.access(DEVICE, os.R_OK | os.W_OK):
        return f"no permission to open {DEVICE}; add this user to group kvm"
    machine = ("-accel", "kvm", "-cpu", "host", "-machine", "q35", "-nodefaults", "-no-user-config", "-display", "none")
    said = run_tool([binary, *machine, "-S", "-monitor", "stdio"], stdin="quit\n")
    if not said.ok:
        # The first line with an error: QEMU may print registers after it.
        lines = said.stderr.splitlines()
        first = next((line for line in lines if "error" in line.lower()), lines[-1] if lines else "")
        return first or f"exit code {said.code}"
    return "" if kernel is None else _boot_failure([str(binary), *machine, *_PROBE, "-kernel", str(kernel)])


def _boot_failure(argv: Sequence[str]) -> str:
    """Return why a QEMU does not end by itself with 0, as with a kernel that has no root; empty if it does."""
    end, said = time.monotonic() + stretched(PROBE_S), ""
    with (
        tempfile.NamedTemporaryFile() as log,
        subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT) as probe,
    ):
        try:
            # After an error of KVM's QEMU stops the guest, and waits for its monitor.
            while (code := probe.poll()) is None and time.monotonic() < end and not _KVM_ERROR.search(said):
                time.sleep(RETRY_S)
                said = Path(log.name).read_text(errors="replace")
        finally:
            probe.kill()
        said = Path(log.name).read_text(errors="replace")
    if code == 0:
        return ""
    how = f"has not booted a kernel after {stretched(PROBE_S):g} s" if code is None else f"ended with exit code {code}"
    last = said.strip().rpartition("\n")[2].strip() or "nothing"
    return ", ".join(_KVM_ERROR.findall(said)) or f"a guest {how}; the last it said: {last}"
