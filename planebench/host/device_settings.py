# SPDX-License-Identifier: BSD-3-Clause
"""All settings of devices that a run changes and puts back: clocks, interrupts, drivers and virtual functions.

``root`` is where /proc, /sys and /dev are: tests have a tree of their own.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

from planebench.host import pci
from planebench.host.journal import (
    ROOT,
    ChangedValue,
    Journal,
    Saved,
    Setting,
    ValueOutcome,
    at,
    state_path,
    this_process,
)
from planebench.host.procfs import entries, link_name, read_text
from planebench.host.programs import run_tool
from planebench.model.cpus import parse_cpus, range_text

# The clock of CPUs, by cpufreq: while something is measured the lowest and the highest frequency of a CPU are the same
# value, whatever its governor is.

FREQUENCY = Setting(
    tuple(f"/sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_{bound}_freq" for bound in ("min", "max"))
)
_WHY = "a switch is measured at a clock that was asked for"


def clock_refusal(cpus: Collection[int], mhz: int, root: Path = ROOT) -> str:
    """Return why these CPUs cannot run at a clock, as a sentence; empty if they can."""
    for cpu in sorted(cpus):
        bounds = [_khz(cpu, f"cpuinfo_{bound}_freq", root) for bound in ("min", "max")]
        if None in bounds:
            return (
                f"CPU {cpu} has no cpufreq, so nobody can set its clock (a virtual machine, or no driver); planed can "
                "emulate one: --switch planed --duty 0.5,1"
            )
        low, high = (khz // 1000 for khz in bounds if khz is not None)
        if not low <= mhz <= high:
            return f"CPU {cpu} runs at {low} to {high} MHz, not at {mhz}"
    return ""


@contextmanager
def fixed(cpus: Collection[int], mhz: int, journal: Journal) -> Iterator[None]:
    """Keep CPUs at a clock. Raises StartError, with nothing changed, if the system refuses."""
    changes = [change for cpu in sorted(cpus) for change in _changes(cpu, mhz * 1000, journal.root)]
    if changes:
        journal.apply_or_undo(changes, f"cannot set the clock to {mhz} MHz")
    try:
        yield
    finally:
        journal.undo_own({change.path for change in changes})


def _changes(cpu: int, khz: int, root: Path) -> Iterator[ChangedValue]:
    """Yield the changes of a CPU. The kernel refuses a lowest frequency above the highest one: the order matters."""
    highest = _khz(cpu, "scaling_max_freq", root) or 0
    for bound in ("max", "min") if khz > highest else ("min", "max"):
        path = f"/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_{bound}_freq"
        old = read_text(at(root, path))
        if old is not None and old != str(khz):
            yield ChangedValue(path, old, str(khz), _WHY)


def _khz(cpu: int, name: str, root: Path) -> int | None:
    text = read_text(at(root, f"/sys/devices/system/cpu/cpu{cpu}/cpufreq/{name}"))
    return int(text) if text and text.isdigit() else None


# Interrupts of NICs, which are kept away from pollers.

AFFINITY = Setting(("/proc/irq/[0-9]*/smp_affinity_list",))


def keep_away(pollers: Collection[int], control: Collection[int], journal: Journal) -> tuple[ValueOutcome, ...]:
    """Move the interrupts of NICs from the CPUs of pollers to those of ``control``, until this process undoes it.

    Nothing is done where control threads share their CPUs with pollers, and for interrupts that the kernel does not let
    us move. Raises StoreError if the old places cannot be saved.
    """
    if set(pollers) & set(control):
        return ()
    root = journal.root
    devices = [root / pci.DEVICES / nic.address for nic in pci.nics(root) if nic.driver]
    names = [entry.name for device in devices for entry in entries(device / "msi_irqs")]
    lines = [read_text(device / "irq") or "" for device in devices if not entries(device / "msi_irqs")]
    changes = []
    for number in sorted({int(name) for name in (*names, *lines) if name.isdigit() and name != "0"}):
        path = f"/proc/irq/{number}/smp_affinity_list"
        old = read_text(at(root, path))
        if old and set(pollers) & set(parse_cpus(old)) and os.access(at(root, path), os.W_OK):
            changes.append(ChangedValue(path, old, range_text(control), "the interrupts of a NIC disturb no poller"))
    return journal.apply(changes, this_process())


# The driver of a PCI device.

UNBOUND = "none"
NO_IOMMU_MODE = "/sys/module/vfio/parameters/enable_unsafe_noiommu_mode"
_NO_OVERRIDE = ("", "(null)")
_DRIVER = re.compile(r"([\w-]+)(?: \(driver_override ([\w-]+)\))?")


def device_path(address: str, name: str) -> str:
    """Return the path of a value of a PCI device in the journal.

    ``driver``, ``sriov_numvfs``: the number of VFs of a NIC, ``up``: whether its interface is up, ``on`` or ``off``.
    """
    return f"/sys/bus/pci/devices/{address}/{name}"


def value_of(driver: str | None, override: str | None) -> str:
    """Return driver and driver_override as one value: ``ixgbe``, ``none``, ``vfio-pci (driver_override vfio-pci)``."""
    return (driver or UNBOUND) + (f" (driver_override {override})" if override else "")


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
    (device / "driver_override").write_text(override or "\n", encoding="ascii")
    if bound and bound != driver:
        (device / "driver/unbind").write_text(device.name, encoding="ascii")
    if driver not in (UNBOUND, bound):
        taking = "drivers_probe" if driver == override else f"drivers/{driver}/bind"
        (root / "sys/bus/pci" / taking).write_text(device.name, encoding="ascii")
    now = link_name(device / "driver") or UNBOUND
    if now != driver:
        raise OSError(errno.ENODEV, f"driver {driver} did not take it" + ("" if now == UNBOUND else f", {now} has it"))


def _is_on_the_way(now: str, entry: Saved) -> bool:
    """Return whether a value has the parts of the old and the new one only: a kill left it between them."""
    seen, old, new = (_DRIVER.fullmatch(value) for value in (now, entry.old, entry.new))
    if not (seen and old and new):
        return False
    return seen[1] in (UNBOUND, old[1], new[1]) and seen[2] in (old[2], new[2])


DRIVER = Setting(("/sys/bus/pci/devices/????:??:??.?/driver",), read_driver, write_driver, _is_on_the_way)
NO_IOMMU = Setting((NO_IOMMU_MODE,))


# The virtual functions of a NIC. Whether its interface is up is the value of a path that no file has: the program
# ``ip`` sets it.

IP_TIMEOUT_S = 10.0


def write_number(root: Path, path: str, value: str) -> None:
    """Set the number of VFs, which the kernel takes from 0 only. Raises OSError."""
    file = at(root, path)
    if value != "0" and read_text(file) != "0":
        file.write_text("0", encoding="ascii")
    file.write_text(value, encoding="ascii")


def read_up(root: Path, path: str) -> str | None:
    """Return whether the interface of a NIC is up, ``on`` or ``off``; None if it has none."""
    interface = _interface(root, path)
    flags = read_text(root / "sys/class/net" / interface / "flags") if interface else None
    return None if flags is None else ("on" if int(flags, 16) & 1 else "off")


def write_up(root: Path, path: str, value: str) -> None:
    """Bring the interface of a NIC up or down. Raises OSError."""
    interface = _interface(root, path)
    if interface is None:
        raise OSError(errno.ENODEV, "its NIC has no interface")
    set_link(interface, "up" if value == "on" else "down")


def _interface(root: Path, path: str) -> str | None:
    names = [entry.name for entry in entries(at(root, path).parent / "net")]
    return names[0] if names else None


def set_link(interface: str, *words: str) -> None:
    """Set something of an interface, as ``ip link set`` takes it. Raises OSError."""
    argv = ["ip", "link", "set", "dev", interface, *words]
    done = run_tool(argv, IP_TIMEOUT_S)
    if not done.ok:
        said = done.stderr.strip().splitlines()
        raise OSError(errno.EIO, f"`{' '.join(argv)}` said: {said[-1] if said else 'nothing'}")


_DEVICE = "/sys/bus/pci/devices/????:??:??.?"
NUMBER = Setting((f"{_DEVICE}/sriov_numvfs",), write=write_number)
UP = Setting((f"{_DEVICE}/up",), read_up, write_up)


DEVICE_SETTINGS: tuple[Setting, ...] = (DRIVER, NO_IOMMU, NUMBER, UP, AFFINITY, FREQUENCY)


def device_journal(state: Path | None = None, root: Path = ROOT) -> Journal:
    """Return the journal of this machine, which ``doctor --undo`` reads too."""
    return Journal(state or state_path(), DEVICE_SETTINGS, root)


@contextmanager
def undone_at_exit() -> Iterator[None]:
    """Restore at exit all devices that this process changed since."""
    if os.geteuid() != 0:
        yield
        return
    journal = device_journal()
    before = journal.owned()
    try:
        yield
    finally:
        journal.undo_own(journal.owned() - before)
