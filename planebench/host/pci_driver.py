# SPDX-License-Identifier: BSD-3-Clause
"""The driver of a PCI device as a value that the journal changes and puts back."""

from __future__ import annotations

import errno
import os
import re
from pathlib import Path

from planebench.host.journal import Saved, Setting, at
from planebench.host.pci import VFIO
from planebench.host.procfs import link_name, read_text

UNBOUND = "none"
NO_IOMMU_MODE = "/sys/module/vfio/parameters/enable_unsafe_noiommu_mode"
_NO_OVERRIDE = ("", "(null)")
_DRIVER = re.compile(r"([\w-]+)(?: \(driver_override ([\w-]+)\))?")


def driver_path(address: str) -> str:
    """Return the path of a device's driver in the journal."""
    return f"/sys/bus/pci/devices/{address}/driver"


def value_of(driver: str | None, override: str | None) -> str:
    """Return driver and driver_override as one value: ``ixgbe``, ``none``, ``vfio-pci (driver_override vfio-pci)``."""
    return (driver or UNBOUND) + (f" (driver_override {override})" if override else "")


def taken_by_vfio() -> str:
    """Return the value of a device that was bound to vfio-pci by planebench."""
    return value_of(VFIO, VFIO)


def read_driver(root: Path, path: str) -> str | None:
    """Return the value of a device; None if the device is gone."""
    device = at(root, path).parent
    if not device.is_dir():
        return None
    override = read_text(device / "driver_override") or ""
    return value_of(link_name(device / "driver"), None if override in _NO_OVERRIDE else override)


def write_driver(root: Path, path: str, value: str) -> None:
    """Bind a device to the driver of a value, and set its driver_override. Raises OSError.

    The override comes first: with it no other driver takes the device in between. A driver without an override is
    asked to take the device itself, because a probe of the bus could find another one.
    """
    match = _DRIVER.fullmatch(value)
    if match is None:
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
    driver, override = match.groups()
    device = at(root, path).parent
    bound = link_name(device / "driver")
    _write(device / "driver_override", override or "\n")
    if bound and bound != driver:
        _write(device / "driver/unbind", device.name)
    if driver not in (UNBOUND, bound):
        by_override = driver == override
        _write(at(root, "/sys/bus/pci/drivers_probe" if by_override else _bind_of(driver)), device.name)
    now = link_name(device / "driver") or UNBOUND
    if now != driver:
        raise OSError(errno.ENODEV, f"driver {driver} did not take it" + ("" if now == UNBOUND else f", {now} has it"))


def _bind_of(driver: str) -> str:
    return f"/sys/bus/pci/drivers/{driver}/bind"


def _write(file: Path, text: str) -> None:
    file.write_text(text, encoding="ascii")


def _is_on_the_way(now: str, entry: Saved) -> bool:
    """Return whether a value has the parts of the old and the new one only: a kill left it between them."""
    seen, old, new = (_DRIVER.fullmatch(value) for value in (now, entry.old, entry.new))
    if not (seen and old and new):
        return False
    return seen[1] in (UNBOUND, old[1], new[1]) and seen[2] in (old[2], new[2])


DRIVER = Setting(("/sys/bus/pci/devices/????:??:??.?/driver",), read_driver, write_driver, _is_on_the_way)
NO_IOMMU = Setting((NO_IOMMU_MODE,))
