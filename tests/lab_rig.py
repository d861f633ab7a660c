# SPDX-License-Identifier: BSD-3-Clause
"""The pocket lab: a QEMU guest with emulated NICs, cables between them, an IOMMU, and the files of this machine.

The guest runs Debian's kernel. Its root is that of this machine, read-only, below a layer in memory, so that
planebench, DPDK's and Open vSwitch's programs run in it without an installation. It has no network to the outside. It
tells whether frames arrive and devices come back; its CPUs and NICs are emulated, so no rate of it means anything.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import os
import platform
import re
import shlex
import socket
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

import pytest
import xen_rig
import yaml
from debian_packages import apt_get, cached, unpack
from planed_rig import planed_binary
from qemu.qmp import QMPClient

from planebench.host import procfs
from planebench.host.evidence import read_counts
from planebench.host.process import MOST, VARIABLE, Process, Supervisor
from planebench.host.programs import NotFound, run_tool
from planebench.model.errors import StartError
from planebench.testbed.hosting import guest_image, qemu

KERNEL_PACKAGE = "linux-image-amd64"
"""The cloud kernel of hosted VNFs has neither VFIO nor these NICs."""
MODULES = (
    *("virtio_ring", "virtio", "virtio_pci_legacy_dev", "virtio_pci_modern_dev", "virtio_pci", "virtio_console"),
    *("netfs", "fscache", "9pnet", "9pnet_virtio", "9p", "overlay"),
    *("irqbypass", "vfio", "vfio_virqfd", "vfio-pci-core", "vfio-pci", "vfio_iommu_type1"),
    *("failover", "net_failover", "virtio_net", "e1000e", "vmxnet3", "dca", "i2c-algo-bit", "igb", "igbvf"),
    *("veth", "tun", "uio", "uio_pci_generic"),
    *xen_rig.MODULES,
)
"""In the order of their dependencies. A module that this kernel has built in is left out."""
MODELS = {
    "e1000e": "e1000e,romfile=",
    "igb": "igb,romfile=",
    "vmxnet3": "vmxnet3,romfile=",
    "virtio-net": "virtio-net-pci,romfile=,disable-legacy=on,iommu_platform=on,speed=10000,duplex=full",
}
"""The devices of QEMU by the names that a topology gives them."""
SINCE = {"igb": (8, 0)}
"""The first QEMU that has a model. Where an older one does it is preferred: see BOOTS."""
HERE = Path(__file__).parent / "lab"
RUNS = "/run/lab/runs"
"""The folder of runs in the guest, which are gone with it."""
DRIVERS = (
    *("bus_pci", "bus_vdev", "mempool_ring", "mempool_stack", "net_af_packet", "net_e1000", "net_memif", "net_null"),
    *("net_pcap", "net_ring", "net_tap", "net_vhost", "net_virtio", "net_vmxnet3"),
)
"""DPDK's drivers that its programs load in a guest: to load all 128 takes minutes there, for each start."""
BOOT_DEADLINE_S = 300.0
QUIET_BOOT_S = 10.0
"""The time of a boot where the host has nothing else to do."""
QUIET_PATIENCE = 12.0
"""The factor for deadlines in the guest of a host that has nothing else to do."""
COMMAND_DEADLINE_S = 120.0
TIMEOUT_MORE_S = 20.0
"""So much later than in the guest a command is given up outside of it: its output comes before."""
OUTPUT_LINES = 40
"""So much of the output of a command is in the log of the test."""
BOOTS = 3
"""Tries: QEMU 10.0 may end by an assertion when memory regions change: one boot of about eight."""
IDLE_S, IDLE_SHARE = 45.0, 0.5
"""A guest that wanted less than this share of one CPU for so long hangs. Those that did wanted a quarter."""
HANG = "the guest of the lab hangs"
QEMU_FAULTS = ("iotlb_to_section: Assertion", HANG)
_FIRST_PORT_SLOT = 0x10
_LOAD_FEW_DRIVERS = f"""
for folder in /usr/lib/*/dpdk/pmds-*; do
	[ -d "$folder" ] || continue
	mkdir "$folder-all" && mount --bind "$folder" "$folder-all" && mount -t tmpfs -o mode=755 tmpfs "$folder"
	ln -s -t "$folder" "$folder-all"/librte_*.so.[0-9][0-9]
	for driver in {" ".join(DRIVERS)}; do ln -s -t "$folder" "$folder-all/librte_$driver".so.*.*; done
done
"""
"""The EAL loads the files of this folder that end in .so or in the whole version of the ABI. The linker finds the
others, to which programs are linked, by their shorter names."""
_SANDBOX = "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny"


@dataclass(frozen=True, slots=True)
class Topology:
    """The NICs of a guest, by name, with the name of their model, and the cables: each holds two of the names."""

    nics: Mapping[str, str]
    cables: tuple[tuple[str, str], ...]
    iommu: bool = True
    vcpus: int = 4
    memory_mb: int = 2560
    hugepages: int = 512
    nodes: int = 1
    """NUMA nodes, each with its share of the memory, and of the vCPUs, of which none is isolated then."""
    host: int = 1
    """Number of the guest, in the MAC addresses of its NICs."""
    outside: Mapping[str, tuple[Path, Path]] = field(default_factory=dict)
    """NICs whose cable leads to another guest: the socket of this end, and that of the other one."""
    xen: bool = False
    """Whether Linux is the first domain of Xen, with two of the vCPUs and part of the memory; no hugepages then."""

    def address(self, nic: str) -> str:
        """Return the PCI address of a NIC: each is behind a root port of its own, thus in an IOMMU group of its own."""
        return f"0000:{1 + list(self.nics).index(nic):02x}:00.0"

    def with_nics(self, model: str) -> Topology:
        """Return the topology with NICs of another model."""
        return replace(self, nics=dict.fromkeys(self.nics, model))


@dataclass(frozen=True, slots=True)
class Done:
    """The end of a command: exit code and output, in which standard output and standard error are mixed."""

    code: int
    output: str = field(repr=False)

    def document(self) -> dict[str, Any]:
        """Return what a command with --json printed, which must have ended with 0; warnings may go before it."""
        assert self.code == 0, self.output
        found: dict[str, Any] = json.loads(self.output[self.output.index("{") :])
        return found

    def documents(self) -> list[dict[str, Any]]:
        """Return the lines of JSON that a script printed, which must have ended with 0."""
        assert self.code == 0, self.output
        return [json.loads(line) for line in self.output.splitlines() if line.startswith("{")]


def topology(name: str) -> Topology:
    """Return the topology of a file ``lab/topologies/NAME.yaml``."""
    document = yaml.safe_load((HERE / "topologies" / f"{name}.yaml").read_text())
    cables = tuple((a, b) for a, b in document.pop("cables"))
    return Topology(cables=cables, **document)


class Lab:
    """A running guest. A context manager, which ends it."""

    def __init__(self, supervisor: Supervisor, topology: Topology) -> None:
        self.topology = topology
        self._supervisor = supervisor
        self._boot()

    def _boot(self) -> None:
        for _ in range(BOOTS):
            begun = time.monotonic()
            self._workdir = self._supervisor.topology_folder("lab")
            self.process = _start(self._supervisor, self.topology, self._workdir)
            if self._is_up():
                break
            self.process.kill()
        else:
            raise StartError(f"the guest of the lab does not boot: {self.process.exit_report()}")
        took_s = time.monotonic() - begun
        self.slowness = max(1.0, took_s / QUIET_BOOT_S)
        """How much longer everything takes than on a host that has nothing else to do."""
        print(f"lab: booted in {took_s:.0f} s, all deadlines are times {self.slowness:.1f}")
        self._connection = socket.socket(socket.AF_UNIX)
        self._received = b""
        self._connection.connect(str(self._workdir / "agent"))
        self._hide_temporary_files()
        self.sh(_LOAD_FEW_DRIVERS)

    def boot_if_ended(self) -> None:
        """Boot the guest again if QEMU has ended."""
        if not self.process.alive():
            print(f"lab: boots again: {self.process.exit_report()}")
            self._connection.close()
            self._boot()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()
        self.process.kill()

    def sh(self, script: str, timeout_s: float = COMMAND_DEADLINE_S, **environment: str) -> Done:
        """Run a shell script in the guest and return its end."""
        exports = "".join(f"export {name}={shlex.quote(value)}\n" for name, value in environment.items())
        limit_s = self.slowness * timeout_s
        limited = shlex.join(["timeout", "-k", "10", f"{limit_s:.0f}", "sh", "-c", script])
        line = base64.b64encode((exports + limited).encode()) + b"\n"
        print(f"lab$ {script.strip()}", flush=True)
        begun = time.monotonic()
        end = begun + limit_s + self.slowness * TIMEOUT_MORE_S
        self._connection.settimeout(limit_s)
        self._connection.sendall(line)
        code, size = self._receive_line(end, script).split()
        done = Done(int(code), self._receive_bytes(int(size), end, script).decode(errors="replace"))
        print(*done.output[-10_000:].splitlines()[-OUTPUT_LINES:], sep="\n")
        print(f"lab: exit code {code} after {time.monotonic() - begun:.1f} s", flush=True)
        return done

    def run(self, *argv: str, timeout_s: float = COMMAND_DEADLINE_S, **environment: str) -> Done:
        """Run a program in the guest and return its end."""
        return self.sh(shlex.join(argv), timeout_s, **environment)

    def planebench(
        self, *argv: str, timeout_s: float = COMMAND_DEADLINE_S, patience: float = QUIET_PATIENCE, **more: str
    ) -> Done:
        """Run the command ``planebench`` of this test in the guest, with ``more`` variables in its environment.

        ``patience``: the factor for its deadlines on a quiet host; less, where the test waits for one of them.
        """
        environment = self.environment(patience) | more
        return self.run(sys.executable, "-m", "planebench", *argv, timeout_s=timeout_s, **environment)

    def script(
        self, name: str, *argv: str, timeout_s: float = COMMAND_DEADLINE_S, patience: float = QUIET_PATIENCE
    ) -> Done:
        """Run a Python script of ``lab/inside``, which may import the rigs of the tests."""
        path = HERE / "inside" / name
        return self.run(sys.executable, str(path), *argv, timeout_s=timeout_s, **self.environment(patience))

    def cross_cables(self) -> list[dict[str, Any]]:
        """Return what inside/cables.py counts of each direction of each cable."""
        cables = [f"{self.address(a)}={self.address(b)}" for a, b in self.topology.cables]
        return self.script("cables.py", *cables, timeout_s=300).documents()

    def refusals(self, *cases: str) -> list[dict[str, Any]]:
        """Return what inside/refusals.py prints of these cases, for the cable of the NICs t0 and s0."""
        cable = f"{self.address('t0')}={self.address('s0')}"
        return self.script("refusals.py", cable, self.address("x0"), *cases, timeout_s=400, patience=3).documents()

    def address(self, nic: str) -> str:
        """Return the PCI address of a NIC of the topology."""
        return self.topology.address(nic)

    def driver(self, nic: str) -> str | None:
        """Return the name of the driver of a NIC, or None."""
        done = self.sh(f"basename $(readlink /sys/bus/pci/devices/{self.address(nic)}/driver)")
        return done.output.strip() if done.code == 0 else None

    def set_link(self, nic: str, up: bool) -> None:
        """Pull the cable out of a NIC, or plug it in again."""
        print(f"lab: cable of {nic} {'in' if up else 'out'}")
        self._monitor("set_link", name=nic, up=up)

    def environment(self, patience: float = QUIET_PATIENCE) -> dict[str, str]:
        """Return what makes our programs in the guest those of this test, with deadlines for its slow CPUs."""
        folders = [str(HERE.parent), *filter(None, [os.environ.get("PYTHONPATH")])]
        planed = str(Path(planed_binary()).resolve())
        factor = f"{min(patience * self.slowness, MOST):.0f}"
        return {"PYTHONPATH": os.pathsep.join(folders), "PLANEBENCH_PLANED": planed, VARIABLE: factor}

    def _hide_temporary_files(self) -> None:
        """Give the guest a /tmp of its own, unless its programs are there: that of a busy machine changes."""
        ours = (HERE, Path(sys.prefix), Path(planed_binary()))
        if not any(path.resolve().is_relative_to("/tmp") for path in ours):
            self.sh("mount -t tmpfs tmpfs /tmp")

    def _monitor(self, command: str, **arguments: Any) -> object:
        async def execute() -> object:
            client = QMPClient()
            await client.connect(str(self._workdir / "monitor"))
            try:
                return await client.execute(command, arguments)
            finally:
                await client.disconnect()

        return asyncio.run(asyncio.wait_for(execute(), self.slowness * COMMAND_DEADLINE_S))

    def _is_up(self) -> bool:
        """Wait until the guest is up. Return False if it ended, or hangs."""
        begun, idle = time.monotonic(), Idleness(self.process.pid)
        deadline = begun + BOOT_DEADLINE_S * (xen_rig.SLOWER if self.topology.xen else 1)
        while self.process.alive() and time.monotonic() < deadline:
            if "LAB-UP" in self.process.log_tail(400):
                return True
            if idle.for_too_long():
                print(f"lab: {HANG} {time.monotonic() - begun:.0f} s after its start")
                return False
            time.sleep(0.1)
        return False

    def _receive_line(self, end: float, script: str) -> str:
        while b"\n" not in self._received:
            self._receive(end, script)
        line, _, self._received = self._received.partition(b"\n")
        return line.decode()

    def _receive_bytes(self, size: int, end: float, script: str) -> bytes:
        while len(self._received) < size:
            self._receive(end, script)
        data, self._received = self._received[:size], self._received[size:]
        return data

    def _receive(self, end: float, script: str) -> None:
        """Receive what comes next. A command ends at its time limit in the guest; after that, the guest hangs.

        A guest without cables to another one, which it may wait for, hangs if it sleeps.
        """
        idle = Idleness(self.process.pid)
        self._connection.settimeout(1.0)
        while time.monotonic() < end and (self.topology.outside or not idle.for_too_long()):
            with contextlib.suppress(TimeoutError):
                if data := self._connection.recv(65536):
                    self._received += data
                    return
                time.sleep(1.0)  # QEMU closes its sockets before it is gone
                what = "the guest of the lab ended" if self.process.alive() else self.process.exit_report()
                self.process.kill()
                raise TimeoutError(f"`{script.strip()[-200:]}`: {what}")
        self.process.kill()
        raise TimeoutError(f"{HANG} at `{script.strip()[-200:]}`:\n{self.process.log_tail(30)}")


class Idleness:
    """Whether a guest sleeps: one that boots or runs a command wants a CPU or two."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._looked, self._wanted_s = time.monotonic(), self._wanted_cpu_s()

    def for_too_long(self) -> bool:
        """Return whether the guest wanted next to nothing in the last IDLE_S. Asks the kernel once in that time."""
        now = time.monotonic()
        if now < self._looked + IDLE_S:
            return False
        before, before_s = self._looked, self._wanted_s
        self._looked, self._wanted_s = now, self._wanted_cpu_s()
        return self._wanted_s - before_s < IDLE_SHARE * (now - before)

    def _wanted_cpu_s(self) -> float:
        """Return the CPU time that the guest has had or waited for since its start, in seconds."""
        counts = filter(None, (read_counts(self._pid, tid) for tid in procfs.threads(self._pid)))
        return sum(count.run_ns + count.wait_ns for count in counts) / 1e9


def on(*guests: str) -> pytest.MarkDecorator:
    """Return the mark of tests that run in guests of lab/conftest.py, one after the other."""
    return pytest.mark.parametrize("guest", guests, indirect=True)


@contextlib.contextmanager
def booted(topology: Topology) -> Iterator[Lab]:
    """Boot a guest with this topology, and end it. Skip the test where this machine cannot."""
    require(topology)
    with Supervisor() as supervisor, Lab(supervisor, topology) as lab:
        yield lab


def require(topology: Topology) -> None:
    """Skip the test, with the reason, if this machine cannot boot a guest with this topology."""
    if platform.machine() != "x86_64":
        pytest.skip(f"the lab is for x86-64; this machine is {platform.machine()}")
    try:
        _qemu(topology)
        guest_image.kernel_folder(KERNEL_PACKAGE, MODULES)
        if topology.xen:
            xen_rig.folder()
    except StartError as error:
        pytest.skip(str(error))


def _start(supervisor: Supervisor, topology: Topology, workdir: Path) -> Process:
    kernel = guest_image.kernel_folder(KERNEL_PACKAGE, MODULES)
    initramfs = workdir / "initramfs"
    initramfs.write_bytes(guest_image.archive(_files(kernel, topology)))
    isolated = topology.nodes == 1 and not topology.xen
    # no_timer_check: where the host is busy the guest's timer may stand still for that check, and the kernel gives up.
    # tsc=reliable: the kernel reads the TSC instead of a timer that QEMU emulates with all other devices waiting.
    words = [
        f"console={'hvc0' if topology.xen else 'ttyS0'} loglevel=3 panic=-1",
        "net.ifnames=0 no_timer_check tsc=reliable mitigations=off",
        f"hugepages={topology.hugepages}",
    ]
    words += [f"isolcpus=managed_irq,domain,2-{topology.vcpus - 1}"] if isolated else []
    words += ["intel_iommu=on iommu=pt"] if topology.iommu else []
    files = kernel / "vmlinuz", initramfs
    boot = _below_xen(topology, *files, " ".join(words)) if topology.xen else _boot(*files, " ".join(words))
    command = [*_qemu(topology), *_machine(topology, workdir), *boot]
    for number, (nic, model) in enumerate(topology.nics.items()):
        command += _nic(topology, number, nic, model)
    cpus = frozenset(os.sched_getaffinity(0))
    return supervisor.spawn("lab", command, cpus=cpus, workdir=workdir, high_priority=False)


def _boot(kernel: Path, initramfs: Path, words: str) -> list[str]:
    return ["-kernel", str(kernel), "-initrd", str(initramfs), "-append", words]


def _below_xen(topology: Topology, kernel: Path, initramfs: Path, words: str) -> list[str]:
    """Return what boots Xen, whose modules are the kernel, with its words, and the initramfs."""
    xen = ["-append", xen_rig.words(topology.memory_mb * 5 // 8)]
    return ["-kernel", str(xen_rig.folder() / "xen.elf"), *xen, "-initrd", f"{kernel} {words},{initramfs}"]


def _files(kernel: Path, topology: Topology) -> dict[str, bytes]:
    wanted = [name for name in MODULES if topology.xen or name not in xen_rig.MODULES]
    modules = [name for name in wanted if (kernel / f"{name}.ko").exists()]
    files = {f"modules/{name}.ko": (kernel / f"{name}.ko").read_bytes() for name in modules}
    files |= dict.fromkeys(("dev/", "proc/", "sys/"), b"")
    files |= {"init": (HERE / "init.sh").read_bytes(), "agent.sh": (HERE / "agent.sh").read_bytes()}
    files["modules/order"] = " ".join(modules).encode()
    return files | {"bin/busybox": guest_image.busybox(kernel.parent)}


def _machine(topology: Topology, workdir: Path) -> list[str]:
    return [
        *("-name", "lab,debug-threads=on", "-no-user-config", "-nodefaults", "-display", "none", "-no-reboot"),
        *("-sandbox", _SANDBOX),
        # smm=off: with SMM, QEMU 10.0 ends by that assertion each time (BOOTS).
        *("-machine", "q35,kernel-irqchip=split,smm=off"),
        *("-accel", "tcg,thread=multi", "-cpu", xen_rig.CPU if topology.xen else "max"),
        *("-m", f"{topology.memory_mb}M", "-smp", f"{topology.vcpus},sockets={topology.nodes}"),
        *_nodes(topology),
        *(("-device", "intel-iommu,intremap=on,caching-mode=on") if topology.iommu else ()),
        *("-chardev", "stdio,id=console,signal=off", "-serial", "chardev:console"),
        *("-chardev", f"socket,id=monitor,path={workdir}/monitor,server=on,wait=off"),
        *("-mon", "chardev=monitor,mode=control"),
        *("-chardev", f"socket,id=agent,path={workdir}/agent,server=on,wait=off"),
        *("-device", "virtio-serial-pci,addr=3", "-device", "virtserialport,chardev=agent,nr=1,name=lab"),
        *("-fsdev", "local,id=root,path=/,security_model=none,readonly=on,multidevs=remap"),
        *("-device", "virtio-9p-pci,fsdev=root,mount_tag=root,addr=2"),
    ]


def _nodes(topology: Topology) -> list[str]:
    """Return the NUMA nodes, each a socket; every other one is as far as on a server of two sockets."""
    size, cpus, words = topology.memory_mb // topology.nodes, topology.vcpus // topology.nodes, []
    for node in range(topology.nodes):
        first = node * cpus
        words += ["-object", f"memory-backend-memfd,id=memory{node},size={size}M,share=on"]
        words += ["-numa", f"node,nodeid={node},cpus={first}-{first + cpus - 1},memdev=memory{node}"]
    pairs = [(a, b) for a in range(topology.nodes) for b in range(topology.nodes) if a != b]
    return [*words, *(word for a, b in pairs for word in ("-numa", f"dist,src={a},dst={b},val=21"))]


def _nic(topology: Topology, number: int, nic: str, model: str) -> list[str]:
    """Return a NIC behind a root port of its own. A cable is a hub with two ports; to another guest, two sockets."""
    hub = next((i for i, cable in enumerate(topology.cables) if nic in cable), len(topology.cables) + number)
    end = f"hubport,id=net{number},hubid={hub}"
    if nic in topology.outside:
        ours, theirs = topology.outside[nic]
        ends = f"local.type=unix,local.path={ours},remote.type=unix,remote.path={theirs}"
        end = f"dgram,id=net{number},{ends}"
    port = f"pcie-root-port,id=port{number},bus=pcie.0,addr={_FIRST_PORT_SLOT + number:#x},chassis={number + 1}"
    mac = f"52:54:00:00:{topology.host:02x}:{number:02x}"
    device = f"{MODELS[model]},id={nic},bus=port{number},netdev=net{number},mac={mac}"
    return ["-device", port, "-netdev", end, "-device", device]


def _qemu(topology: Topology) -> list[str]:
    """Return the program and its first arguments: this machine's, or Debian's backport of a newer one.

    Raises StartError if there is none.
    """
    found = qemu.find()
    if isinstance(found, NotFound):
        raise StartError(found.remedy)
    version = tuple(int(part) for part in found.version.split("."))
    if version >= max((SINCE.get(model, (0, 0)) for model in topology.nics.values()), default=(0, 0)):
        return [str(found.binary)]
    folder = _backport()
    return [str(folder / "usr/bin" / qemu.PROGRAM), "-L", str(folder / "usr/share/qemu"), "-L", "/usr/share/seabios"]


def _backport() -> Path:
    """Return the folder into which Debian's backport of QEMU is unpacked; nothing is installed. Raises StartError."""
    return cached("qemu-backport", _unpack_backport)


def _unpack_backport(folder: Path) -> None:
    codename = re.search(r"^VERSION_CODENAME=(\w+)$", Path("/etc/os-release").read_text(), re.MULTILINE)
    keyring = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
    if codename is None or not keyring.exists():
        raise StartError("the lab needs QEMU 8.0 or later, and this is not Debian, which has a backport")
    source = f"deb [signed-by={keyring}] http://deb.debian.org/debian {codename[1]}-backports main\n"
    (folder / "sources.list").write_text(source)
    for name in ("lists/partial", "cache/archives/partial"):
        (folder / name).mkdir(parents=True)
    options = {"Dir::Etc::sourcelist": "sources.list", "Dir::Etc::sourceparts": "none", "Dir::State::lists": "lists"}
    options["Dir::Cache"] = "cache"
    own = [word for key, value in options.items() for word in ("-o", f"{key}={folder / value}")]
    what = "Debian's backport of QEMU"
    apt_get(folder, what, *own, "update")
    unpack(folder, ("qemu-system-x86", "qemu-system-common", "qemu-system-data"), what, own)
    if run_tool([folder / "unpacked/usr/bin" / qemu.PROGRAM, "--version"]).code != 0:
        raise StartError("Debian's backport of QEMU does not start on this machine")
