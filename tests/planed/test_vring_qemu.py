# SPDX-License-Identifier: BSD-3-Clause
"""Linux's virtio-net in a QEMU guest: it sleeps until it is called, where DPDK's drivers poll.

One guest has both ends of a patch, each in a network namespace of its own, so all that goes between them goes through
planed. No KVM is needed. scripts/guest.sh gets what it boots.
"""

from __future__ import annotations

import re
import shutil
import time
from pathlib import Path

import pytest
from planed_rig import CPU, CPUS, PATIENCE_S, Planed, task, until
from vring_rig import device, ports

from planebench.host.process import Process, Supervisor

pytestmark = [pytest.mark.dataplane, pytest.mark.slow]

PARTS = Path(__file__).parents[2] / "build" / "guest"
QEMU = "qemu-system-x86_64"
MODULES = (
    "virtio_ring",
    "virtio",
    "virtio_pci_legacy_dev",
    "virtio_pci_modern_dev",
    "virtio_pci",
    "failover",
    "net_failover",
    "virtio_net",
)
"""In the order in which they need each other."""

INIT = """#!/bin/busybox sh
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev
for module in {modules}; do insmod /modules/$module.ko; done
unshare -n sleep 1000 &
sleep 1
ip link set eth1 netns $!
ip addr add 10.0.0.1/24 dev eth0
ip link set eth0 up
nsenter -t $! -n ip addr add 10.0.0.2/24 dev eth1
nsenter -t $! -n ip link set eth1 up
echo PING-SLOW; ping -c 10 -i 0.3 10.0.0.2
echo PING-LARGE; ping -c 10 -i 0.1 -s 1472 10.0.0.2
echo PING-FAST; ping -A -c 1000 10.0.0.2
echo GUEST-DONE
sleep 1000
"""


def archive(files: dict[str, bytes]) -> bytes:
    """An initramfs (cpio, "newc"); a name that ends in / is a directory."""
    made = []
    for number, (name, data) in enumerate([*files.items(), ("TRAILER!!!", b"")], start=1):
        mode = 0o040755 if name.endswith("/") else 0o100755
        path = name.rstrip("/").encode() + b"\0"
        fields = (number, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(path), 0)
        head = b"070701" + b"".join(b"%08x" % field for field in fields) + path
        made += [head + bytes(-len(head) % 4), data + bytes(-len(data) % 4)]
    return b"".join(made)


def initramfs() -> bytes:
    folders = ("bin/", "dev/", "proc/", "sys/", "modules/")
    files: dict[str, bytes] = dict.fromkeys(folders, b"")
    files["bin/busybox"] = (PARTS / "busybox").read_bytes()
    files |= {f"modules/{name}.ko": (PARTS / "modules" / f"{name}.ko").read_bytes() for name in MODULES}
    return archive({**files, "init": INIT.format(modules=" ".join(MODULES)).encode()})


def network_cards(planed: Planed, features: str) -> list[str]:
    arguments = []
    for number, wire in enumerate(planed.wires):
        # vectors=0: QEMU 7.2 without KVM ends by SIGSEGV when such a device has MSI-X.
        card = f"virtio-net-pci,netdev=n{number},mac=52:54:00:00:00:0{number + 1},romfile=,vectors=0,{features}"
        arguments += ["-chardev", f"socket,id=c{number},path={wire['path']}"]
        arguments += ["-netdev", f"vhost-user,id=n{number},chardev=c{number}", "-device", card]
    return arguments


def boot(supervisor: Supervisor, planed: Planed, name: str, features: str) -> tuple[Process, Path]:
    """The guest, and what it says on its serial line."""
    where = supervisor.workdir(name)
    (where / "initramfs").write_bytes(initramfs())
    said = where / "serial.log"
    said.touch()
    command = [
        *(QEMU, "-accel", "tcg", "-machine", "q35,memory-backend=m0", "-cpu", "max", "-smp", "1", "-m", "192"),
        *("-object", "memory-backend-memfd,id=m0,size=192M,share=on"),
        *("-kernel", str(PARTS / "vmlinuz"), "-initrd", str(where / "initramfs")),
        *("-append", "console=ttyS0 quiet panic=-1 no_timer_check mitigations=off nokaslr net.ifnames=0"),
        *("-nodefaults", "-display", "none", "-no-reboot", "-serial", f"file:{said}"),
        *network_cards(planed, features),
    ]
    return supervisor.spawn(name, command, cpus=frozenset(CPUS), workdir=where), said


def until_done(guest: Process, said: Path) -> str:
    """All that the guest has said, once it says that it has done."""
    end = time.monotonic() + PATIENCE_S
    while "GUEST-DONE" not in (words := said.read_text(errors="replace")):
        assert guest.alive(), guest.obituary()
        assert time.monotonic() < end, words
        time.sleep(0.1)
    return words


@pytest.mark.parametrize("packed", ["off", "on"])
@pytest.mark.parametrize("mergeable", ["on", "off"])
def test_a_linux_guest_that_sleeps(planed: Planed, supervisor: Supervisor, packed: str, mergeable: str) -> None:
    """Every ping is answered: each way, a few bytes or a full frame, from idle and one after the other."""
    if not shutil.which(QEMU) or not PARTS.exists():
        pytest.skip(f"no {QEMU}, or no {PARTS}: run scripts/guest.sh")
    planed.wires = tuple(device(name, planed.workdir / f"{name}.sock") for name in "ab")
    planed.apply(planed.wires, [task("sw", "patch", "a", "b")], cpu=CPU)
    name = f"guest-{packed}-{mergeable}"
    guest, said = boot(supervisor, planed, name, f"packed={packed},mrg_rxbuf={mergeable},disable-legacy=on")
    words = until_done(guest, said)
    answers = re.findall(r"(\d+) packets transmitted, (\d+) packets received", words)
    assert answers == [("10", "10"), ("10", "10"), ("1000", "1000")], words
    switch = planed.tasks()["sw"]
    assert switch["rx_packets"] == switch["tx_packets"] + switch["drops"]["tx_full"] >= 2 * 1020
    assert all(port["link_up"] for port in ports(planed).values())
    guest.terminate()
    until(lambda: not any(port["link_up"] for port in ports(planed).values()), "the switch sees it go")
