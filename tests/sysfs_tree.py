# SPDX-License-Identifier: BSD-3-Clause
"""Trees of /proc and /sys of machines that are not here, and a kernel that answers what is written there."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

PCI = "sys/bus/pci"
_WRITE = Path.write_text


class Killed(BaseException):
    """kill -9, as far as files can tell."""


@dataclass
class Tree:
    """A root folder that fills as devices and CPUs are added, and the changes that its kernel makes."""

    root: Path
    binds: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Address -> the kernel drivers that know the device, the first one taking it in a probe."""

    def __post_init__(self) -> None:
        self.set("proc/sys/kernel/random/boot_id", "this-boot")
        self.set("proc/net/route", "Iface Destination Gateway Flags RefCnt Use Metric Mask MTU Window IRTT")
        self.driver("vfio-pci")

    def set(self, path: str, value: str) -> None:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(f"{value}\n".encode())

    def link(self, path: str, target: str) -> None:
        link = self.root / path
        link.parent.mkdir(parents=True, exist_ok=True)
        link.unlink(missing_ok=True)
        link.symlink_to(target)

    def get(self, path: str) -> str:
        return (self.root / path).read_text().strip()

    def driver(self, name: str) -> None:
        (self.root / f"{PCI}/drivers/{name}").mkdir(parents=True, exist_ok=True)

    def device(
        self, address: str, driver: str | None = None, group: str | None = None, knows: str = "", **values: str
    ) -> None:
        """Add a PCI device, by default a NIC; ``knows``: the driver that takes it, if it has none."""
        defaults = {"class": "0x020000", "vendor": "0x8086", "device": "0x1572", "numa_node": "0"}
        for name, value in {**defaults, "driver_override": "(null)", **values}.items():
            self.set(f"{PCI}/devices/{address}/{name}", value)
        if group is not None:
            self.link(f"{PCI}/devices/{address}/iommu_group", f"../../../../kernel/iommu_groups/{group}")
            self.set(f"sys/kernel/iommu_groups/{group}/type", "DMA")
            self.link(f"sys/kernel/iommu_groups/{group}/devices/{address}", f"../../../../devices/{address}")
        own = (driver or knows or "ixgbe") if driver != "vfio-pci" else knows or "ixgbe"
        self.binds[address] = (own,)
        self.driver(own)
        if driver:
            self.driver(driver)
            self.link(f"{PCI}/devices/{address}/driver", f"../../drivers/{driver}")

    def interface(self, address: str, name: str, below: str = "net", up: bool = True, **values: str) -> None:
        """Give a device an interface."""
        defaults = {"flags": "0x1003" if up else "0x1002", "address": "02:00:00:00:00:01"}
        carrier = {"carrier": "1", "speed": "10000"} if up else {}
        for key, value in {**defaults, **carrier, **values}.items():
            self.set(f"{PCI}/devices/{address}/{below}/{name}/{key}", value)
        self.link(f"sys/class/net/{name}", str(self.root / f"{PCI}/devices/{address}/{below}/{name}"))

    def route(self, interface: str, destination: str = "00000000", mask: str = "00000000") -> None:
        """Add an IPv4 route; addresses as the kernel prints them."""
        line = f"{interface} {destination} 00000000 0001 0 0 0 {mask} 0 0 0"
        self.set("proc/net/route", self.get("proc/net/route") + "\n" + line)

    def drivers(self) -> dict[str, tuple[str | None, str]]:
        """Return driver and driver_override of every device."""
        found = {}
        for device in sorted((self.root / PCI / "devices").iterdir()):
            link = device / "driver"
            found[device.name] = (link.readlink().name if link.is_symlink() else None, self._override(device))
        return found

    def _override(self, device: Path) -> str:
        return (device / "driver_override").read_text().strip()

    def kernel(self, file: Path) -> None:
        """Do what the kernel does after a value was written to a file."""
        text = file.read_text().strip()
        if file.name == "driver_override":
            file.write_bytes(f"{text or '(null)'}\n".encode())
        elif file.name == "sriov_numvfs":
            self._make_vfs(file.parent, int(text))
        elif file.name in ("unbind", "bind", "drivers_probe"):
            file.unlink()
            if file.name == "unbind":
                (self.root / PCI / "devices" / text / "driver").unlink()
            else:
                self._attach(text, file.parent.name if file.name == "bind" else None)

    def _make_vfs(self, physical: Path, count: int) -> None:
        """Make VFs, or remove all; the kernel refuses another number where there are some."""
        links = sorted(physical.glob("virtfn*"))
        if count and links:
            raise OSError(16, "Device or resource busy")
        for link in links:
            shutil.rmtree(self.root / PCI / "devices" / link.readlink().name)
            link.unlink()
        for number in range(count):
            address = f"{physical.name[:-4]}02.{number}"
            self.device(address, "iavf", f"{60 + number}")
            self.link(f"{PCI}/devices/{address}/physfn", f"../{physical.name}")
            self.interface(address, f"vf{number}", up=False)
            self.link(f"{PCI}/devices/{physical.name}/virtfn{number}", f"../{address}")

    def _attach(self, address: str, driver: str | None) -> None:
        device = self.root / PCI / "devices" / address
        override = self._override(device)
        known = self.binds[address] if override == "(null)" else (override,)
        taker = next((name for name in known if driver in (None, name)), None)
        if (device / "driver").is_symlink() or taker is None:
            raise OSError(19, "No such device")
        if (device / "iommu_group").is_symlink() or taker != "vfio-pci" or self._unsafe():
            (device / "driver").symlink_to(f"../../drivers/{taker}")

    def _unsafe(self) -> bool:
        mode = self.root / "sys/module/vfio/parameters/enable_unsafe_noiommu_mode"
        return mode.exists() and mode.read_text().strip() == "Y"

    def run(self, monkeypatch: pytest.MonkeyPatch, before: Callable[[Path], None] = lambda file: None) -> None:
        """Have this kernel see every file that is written below the root; ``before`` may refuse or kill."""

        def write_text(file: Path, text: str, encoding: str | None = None) -> int:
            if not file.is_relative_to(self.root):
                return _WRITE(file, text, encoding=encoding)
            before(file)
            if not file.parent.is_dir():
                raise OSError(2, "No such file or directory")
            length = _WRITE(file, text, encoding=encoding)
            self.kernel(file)
            return length

        monkeypatch.setattr(Path, "write_text", write_text)


def kill_after(survivors: int) -> Callable[[Path], None]:
    """Return a hook that kills instead of the write after so many."""
    left = iter(range(survivors))

    def kill(file: Path) -> None:
        if next(left, None) is None:
            raise Killed

    return kill


def server(
    root: Path, sockets: int, cores: int, threads: int = 1, l3_cores: int = 0, isolated: str = "", cpuinfo: str = ""
) -> Tree:
    """Return the tree of a server with so many cores a socket, numbered as Linux numbers them on Xeon and EPYC.

    ``l3_cores``: cores that share an L3 cache (a CCX); 0 for all of a socket.
    """
    tree, total, l3_cores = Tree(root), sockets * cores, l3_cores or cores
    last = total * threads - 1
    tree.set("sys/devices/system/cpu/online", f"0-{last}")
    tree.set("sys/devices/system/cpu/isolated", isolated)
    tree.set("proc/cpuinfo", cpuinfo or "model name : a server\nflags : constant_tsc nonstop_tsc")
    for cpu in range(total * threads):
        core = cpu % total
        first = core - core % l3_cores
        group = ",".join(f"{first + t * total}-{first + l3_cores - 1 + t * total}" for t in range(threads))
        folder = f"sys/devices/system/cpu/cpu{cpu}"
        siblings = ",".join(str(core + thread * total) for thread in range(threads))
        tree.set(f"{folder}/topology/thread_siblings_list", siblings)
        tree.set(f"{folder}/cache/index3/level", "3")
        tree.set(f"{folder}/cache/index3/shared_cpu_list", group)
    for socket in range(sockets):
        low, high = socket * cores, (socket + 1) * cores - 1
        parts = (f"{low + thread * total}-{high + thread * total}" for thread in range(threads))
        tree.set(f"sys/devices/system/node/node{socket}/cpulist", ",".join(parts))
    return tree


def set_speeds(tree: Tree, file: str, *runs: tuple[int, int]) -> None:
    """Set a figure of the CPUs, from CPU 0 on: so many CPUs with so much."""
    speeds = [speed for count, speed in runs for _ in range(count)]
    for cpu, speed in enumerate(speeds):
        tree.set(f"sys/devices/system/cpu/cpu{cpu}/{file}", str(speed))
