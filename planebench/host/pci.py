# SPDX-License-Identifier: BSD-3-Clause
"""PCI network devices, read from sysfs below a *root*, so that the tree of another machine is test data."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from planebench.host.procfs import entries, link_name, read_text
from planebench.model.errors import UsageError

ROOT = Path("/")
DEVICES = "sys/bus/pci/devices"
VFIO = "vfio-pci"
BIFURCATED_DRIVERS = ("mlx5_core", "mlx4_core")
"""Kernel drivers that DPDK works beside, through libibverbs: a NIC that has one is never rebound."""
UIO_DRIVERS = ("igb_uio", "uio_pci_generic")
USER_SPACE_DRIVERS = (VFIO, *UIO_DRIVERS)
NETWORK_CLASS = "0x02"
VIRTIO_VENDOR = "0x1af4"
NO_IOMMU = "vfio-noiommu"
"""Name that vfio gives to the group of a device without an IOMMU (Linux, drivers/vfio/group.c)."""
_ADDRESS = re.compile(r"(?:([0-9a-f]{4,8}):)?([0-9a-f]{2}):([01][0-9a-f])\.([0-7])", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Nic:
    """A PCI network device. ``numa_node`` is None if the firmware does not report it; ``driver`` None is unbound."""

    address: str
    driver: str | None
    numa_node: int | None
    iommu_group: str | None
    vendor: str = ""
    """As sysfs has it: ``0x8086``."""
    has_iommu: bool = True
    """Whether an IOMMU translates what the device reads and writes."""
    interfaces: tuple[str, ...] = ()
    """Its kernel interfaces in this network namespace."""
    link: bool | None = None
    """Whether the link is up; None if no interface that is up tells."""
    speed_mbps: int | None = None
    """None if no interface that is up tells."""
    vfs_possible: int = 0
    vfs: int = 0
    """Number of virtual functions now."""
    physical: str | None = None
    """Address of the physical function that this virtual function belongs to."""

    @property
    def is_bifurcated(self) -> bool:
        """Return whether DPDK works beside the kernel driver that the device has."""
        return self.driver in BIFURCATED_DRIVERS


def full_address(text: str) -> str:
    """Return a PCI address with its domain: ``0000:3b:00.1`` for ``3b:00.1``. Raises UsageError."""
    match = _ADDRESS.fullmatch(text.strip())
    if match is None:
        raise UsageError(f"{text!r} is not a PCI address; give one such as 0000:3b:00.1 (`lspci -D` lists them)")
    domain, bus, device, function = match.groups()
    return f"{domain or '0000'}:{bus}:{device}.{function}".lower()


def nics(root: Path = ROOT) -> tuple[Nic, ...]:
    """Return every PCI network device below ``root``, by address."""
    return tuple(_nic(device) for device in entries(root / DEVICES) if _is_nic(device))


def nic(address: str, root: Path = ROOT) -> Nic:
    """Return the network device with this address. Raises UsageError where there is none."""
    device = root / DEVICES / full_address(address)
    if not device.is_dir():
        known = ", ".join(nic.address for nic in nics(root)) or "none"
        raise UsageError(f"there is no PCI device {device.name}; the network devices of this machine: {known}")
    if not _is_nic(device):
        raise UsageError(f"PCI device {device.name} is no network device (class {read_text(device / 'class')})")
    return _nic(device)


def has_iommu(device: Path) -> bool:
    """Return whether a device is in a group of an IOMMU."""
    return link_name(device / "iommu_group") is not None and read_text(device / "iommu_group/name") != NO_IOMMU


def _is_nic(device: Path) -> bool:
    return (read_text(device / "class") or "").startswith(NETWORK_CLASS)


def _nic(device: Path) -> Nic:
    # The interfaces of virtio are one level deeper.
    interfaces = [folder for pattern in ("net/*", "virtio*/net/*") for folder in sorted(device.glob(pattern))]
    up = [folder for folder in interfaces if read_text(folder / "carrier") is not None]
    speeds = [_whole(read_text(folder / "speed")) or -1 for folder in up]  # the kernel has -1 for unknown
    node = _whole(read_text(device / "numa_node"))
    return Nic(
        address=device.name,
        driver=link_name(device / "driver"),
        numa_node=node if node is not None and node >= 0 else None,
        iommu_group=link_name(device / "iommu_group"),
        vendor=read_text(device / "vendor") or "",
        has_iommu=has_iommu(device),
        interfaces=tuple(folder.name for folder in interfaces),
        link=any(read_text(folder / "carrier") == "1" for folder in up) if up else None,
        speed_mbps=next((speed for speed in speeds if speed > 0), None),
        vfs_possible=_whole(read_text(device / "sriov_totalvfs")) or 0,
        vfs=_whole(read_text(device / "sriov_numvfs")) or 0,
        physical=link_name(device / "physfn"),
    )


def _whole(text: str | None) -> int | None:
    try:
        return int(text) if text else None
    except ValueError:
        return None
