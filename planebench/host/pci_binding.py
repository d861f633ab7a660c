# SPDX-License-Identifier: BSD-3-Clause
"""NICs for a run: bound to vfio-pci, with virtual functions, and given back. Nothing that the machine needs is taken.

What is refused is refused before anything is changed. A kill at any moment leaves the journal, from which the next
start or ``doctor --undo`` restores all drivers.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from planebench.host import interfaces, pci
from planebench.host.device_settings import (
    NO_IOMMU_MODE,
    device_journal,
    device_path,
    read_driver,
    read_up,
    set_link,
    value_of,
)
from planebench.host.journal import ROOT, ChangedValue, Journal
from planebench.host.pci import VFIO, Nic
from planebench.host.procfs import entries, link_name, read_text
from planebench.host.programs import run_tool
from planebench.model.errors import StartError, UsageError

MODPROBE_TIMEOUT_S = 10.0
BRIDGE_CLASS = "0x06"
HARMLESS_DRIVERS = (VFIO, "pcieport", "pci-stub")
"""Drivers that other devices of an IOMMU group may have (Linux, drivers/vfio/vfio_iommu_type1.c: a viable group)."""
NO_IOMMU_WARNING = (
    "this machine has no IOMMU: vfio works in its unsafe mode, in which a NIC can read and write all memory; enable "
    "VT-d or AMD-Vi in the firmware and boot with `intel_iommu=on iommu=pt` (AMD: `iommu=pt`)"
)
MAC_PREFIX = "02:00:00:00:56"
"""Of the MAC addresses of VFs: locally administered; the VF's number is the last byte."""
UNSUPPORTED = "not supported"
"""Of what the kernel answers for a driver that lacks an operation (EOPNOTSUPP)."""


@dataclass(frozen=True, slots=True)
class Bound:
    """NICs that are ready for a DPDK program, in the order they were asked for, and what the user has to know."""

    nics: tuple[Nic, ...]
    warnings: tuple[str, ...] = ()


@contextmanager
def bound(addresses: Sequence[str], journal: Journal | None = None) -> Iterator[Bound]:
    """Bind NICs (:func:`bind`) as long as the context lasts; what this process changed before stays."""
    journal = journal or device_journal()
    before = journal.owned()
    taken = bind(addresses, journal)
    its = {NO_IOMMU_MODE, *(device_path(nic.address, "driver") for nic in taken.nics)} - before
    try:
        yield taken
    finally:
        journal.undo_own(its)


def bind(
    addresses: Sequence[str], journal: Journal | None = None, *, for_guest: bool = False, keep: bool = False
) -> Bound:
    """Bind NICs to vfio-pci, those that need it. What killed runs left is restored first.

    ``for_guest``: a virtual machine or a container has the NICs, so those of bifurcated drivers are bound, too.
    ``keep``: until ``doctor --undo``; then NICs that were bound before an error stay so.

    Raises UsageError, with nothing changed, for a NIC that must not be taken (:func:`refusal`), and StartError where
    the system refuses; then all NICs have their drivers again.
    """
    journal = journal or device_journal()
    root = journal.root
    journal.undo_abandoned()
    nics = check(addresses, journal, for_guest=for_guest)
    wanted = [nic for nic in nics if needs_binding(nic, for_guest=for_guest)]
    if not wanted:
        return Bound(nics, _warnings(nics))
    if os.geteuid() != 0:
        raise StartError(f"only root can bind NIC {wanted[0].address} to {VFIO}: `sudo planebench ...`")
    _load_vfio(root)
    changes = _no_iommu_changes(root, wanted)
    for path in (device_path(nic.address, "driver") for nic in wanted):
        old = read_driver(root, path) or ""
        changes.append(ChangedValue(path, old, value_of(VFIO, VFIO), "the NIC is driven by the measured programs"))
    if keep:
        for outcome in journal.apply(changes):
            if outcome.kind == "failed":
                raise StartError(f"cannot bind: {outcome.text}; `dmesg` may say more")
    else:
        journal.apply_or_undo(changes, "cannot bind")
    nics = tuple(pci.nic(nic.address, root) for nic in nics)
    return Bound(nics, _warnings(nics))


def keep_bound(addresses: Sequence[str], user: int | None = None, journal: Journal | None = None) -> Bound:
    """Bind NICs until ``doctor --undo``, for runs of a ``user`` who may not bind them: the device files become theirs.

    ``user`` is a user id; None for root. Raises as :func:`bind`; then NICs that were bound before the error stay so.
    """
    journal = journal or device_journal()
    found = bind(addresses, journal, keep=True)
    for nic in found.nics:
        if user is not None and nic.driver == VFIO and nic.iommu_group is not None:
            os.chown(journal.root / "dev/vfio" / nic.iommu_group, user, -1)
    return found


def needs_binding(nic: Nic, *, for_guest: bool = False) -> bool:
    """Return whether a DPDK program, or a guest, needs another driver for a NIC than it has."""
    return nic.driver != VFIO and (for_guest or not nic.is_bifurcated)


def check(addresses: Sequence[str], journal: Journal | None = None, *, for_guest: bool = False) -> tuple[Nic, ...]:
    """Return the NICs with these addresses. Raises UsageError with one sentence if any of them must not be taken."""
    journal = journal or device_journal()
    root = journal.root
    full = [pci.full_address(address) for address in addresses]
    twice = sorted({address for address in full if full.count(address) > 1})
    if twice:
        raise UsageError(f"NIC {twice[0]} is named twice; each end of a cable is a port of its own")
    nics = tuple(pci.nic(address, root) for address in full)
    essential = interfaces.essential_interfaces(root, interfaces.ssh_connection())
    owners = journal.owners()
    for nic in nics:
        reason = refusal(nic, full, root, essential, for_guest=for_guest)
        owner = owners.get(device_path(nic.address, "driver"))
        if owner and not reason:
            reason = f"process {owner} of planebench uses it; wait until it ends"
        if reason:
            raise UsageError(f"NIC {nic.address} is not taken: {reason}")
    return nics


def refusal(
    nic: Nic, requested: Collection[str], root: Path, essential: Mapping[str, str], *, for_guest: bool = False
) -> str | None:
    """Return why a NIC must not be taken; None if it may be.

    ``requested``: addresses of all NICs of the run. ``essential``: the interfaces that the machine is reached by.
    """
    for interface in nic.interfaces:
        if interface in essential:
            return f"its interface {interface} carries {essential[interface]} of this machine; name another NIC"
    if nic.driver in pci.UIO_DRIVERS:
        return (
            f"{nic.driver} has it, which lets it write to any memory; give it back to its kernel driver, "
            "planebench binds it to vfio-pci itself"
        )
    if for_guest and not nic.has_iommu:
        return (
            "it has no IOMMU, and without one neither QEMU nor a container without capabilities can use vfio; enable "
            "VT-d or AMD-Vi in the firmware and boot with `intel_iommu=on iommu=pt` (AMD: `iommu=pt`)"
        )
    for interface in nic.interfaces:
        flags = read_text(root / "sys/class/net" / interface / "flags") or "0"
        if int(flags, 16) & 1 and (use := interfaces.uses(root, interface)):
            return f"its interface {interface} is up and {use}; take it down first: `ip link set {interface} down`"
    if not needs_binding(nic, for_guest=for_guest):
        return None
    if nic.driver and not nic.interfaces:
        return f"driver {nic.driver} has it, but it has no interface here: it may belong to another network namespace"
    if nic.vfs:
        return f"it has {nic.vfs} virtual functions, which end with its driver; remove them first, or name one of them"
    if not nic.has_iommu:
        return None
    for member in entries(root / f"sys/kernel/iommu_groups/{nic.iommu_group}/devices"):
        device = root / pci.DEVICES / member.name
        driver = link_name(device / "driver")
        if driver is None or driver in HARMLESS_DRIVERS or member.name in (nic.address, *requested):
            continue
        if not (read_text(device / "class") or "").startswith(BRIDGE_CLASS):
            return (
                f"device {member.name} (driver {driver}) is in its IOMMU group {nic.iommu_group}, so vfio would need "
                "that device too; use another slot, or name both"
            )
    return None


def _load_vfio(root: Path) -> None:
    """Load the module vfio-pci unless it is there. Raises StartError."""
    driver = root / "sys/bus/pci/drivers" / VFIO
    if driver.is_dir():
        return
    loaded = run_tool(["modprobe", VFIO], MODPROBE_TIMEOUT_S)
    if not driver.is_dir():
        words = loaded.stderr.strip().splitlines()
        raise StartError(
            f"the kernel has no driver {VFIO}: `modprobe {VFIO}` said {words[-1] if words else 'nothing'!r}; install "
            "the modules of this kernel"
        )


def _no_iommu_changes(root: Path, nics: Sequence[Nic]) -> list[ChangedValue]:
    """Return the change to vfio's mode without IOMMU, for a machine that has none.

    Raises StartError where vfio has no such mode, and where the machine has an IOMMU that leaves a NIC out.
    """
    bare = [nic for nic in nics if not nic.has_iommu]
    if not bare:
        return []
    groups = entries(root / "sys/kernel/iommu_groups")
    if any(read_text(group / "name") != pci.NO_IOMMU for group in groups):  # not one of vfio's mode without an IOMMU
        raise StartError(
            f"NIC {bare[0].address} is in no IOMMU group, though this machine has an IOMMU; boot with "
            "`intel_iommu=on iommu=pt` (AMD: `iommu=pt`), or use another slot"
        )
    mode = read_text(root / NO_IOMMU_MODE.lstrip("/"))
    if mode is None:
        raise StartError(
            f"NIC {bare[0].address} has no IOMMU, and this kernel's vfio has no mode without one; enable VT-d or "
            "AMD-Vi in the firmware and boot with `intel_iommu=on iommu=pt` (AMD: `iommu=pt`)"
        )
    return [] if mode == "Y" else [ChangedValue(NO_IOMMU_MODE, mode, "Y", "vfio works without an IOMMU")]


def _warnings(nics: Sequence[Nic]) -> tuple[str, ...]:
    return (NO_IOMMU_WARNING,) if any(not nic.has_iommu and not nic.is_bifurcated for nic in nics) else ()


def make_vfs(address: str, count: int, journal: Journal | None = None, *, macs: Sequence[str] = ()) -> tuple[Nic, ...]:
    """Make the first ``count`` VFs of a NIC, bring its interface up, and return the VFs by number.

    ``macs``: their addresses, by default MAC_PREFIX and the number. A VF is trusted to receive what is not sent to its
    address, and is not checked for the source addresses of what it sends: it forwards. All of it is undone as bindings
    are.

    Raises UsageError, with nothing changed, for a NIC that cannot have them or must not be touched, StartError where
    the system refuses; then the NIC is as it was.
    """
    journal = journal or device_journal()
    journal.undo_abandoned()
    root = journal.root
    nic = pci.nic(address, root)
    reason = vfs_refusal(nic, count, root)
    if reason:
        raise UsageError(f"NIC {nic.address} gets no virtual functions: {reason}")
    now_up = read_up(root, device_path(nic.address, "up")) or "off"
    changes = [
        ChangedValue(
            device_path(nic.address, "sriov_numvfs"), str(nic.vfs), str(count), "the VNFs have virtual functions"
        )
    ]
    if now_up == "off":
        changes.append(ChangedValue(device_path(nic.address, "up"), now_up, "on", "its virtual functions have a link"))
    journal.apply_or_undo(changes, "cannot make virtual functions")
    made = virtual_functions(nic.address, root)
    if len(made) != count:
        journal.undo_own({change.path for change in changes})
        raise StartError(f"NIC {nic.address} made {len(made)} of {count} virtual functions; `dmesg` may say why")
    for vf in range(count):
        mac = macs[vf] if vf < len(macs) else f"{MAC_PREFIX}:{vf:02x}"
        for words in (("mac", mac), ("trust", "on"), ("spoofchk", "off")):
            try:
                set_link(nic.interfaces[0], "vf", str(vf), *words)
            except OSError as error:
                if UNSUPPORTED in str(error):  # a driver without that attribute
                    continue
                journal.undo_own({change.path for change in changes})
                raise StartError(f"cannot configure virtual functions: {error}") from error
    return tuple(pci.nic(function, root) for function in made)


def vfs_refusal(nic: Nic, count: int, root: Path = ROOT) -> str | None:
    """Return why a NIC cannot have ``count`` VFs, or must not be touched; None if it can."""
    essential = interfaces.essential_interfaces(root, interfaces.ssh_connection())
    carried = next((interface for interface in nic.interfaces if interface in essential), None)
    if carried:
        return f"its interface {carried} carries {essential[carried]} of this machine, and its driver would reset it"
    if not nic.vfs_possible:
        return "it has none (no SR-IOV), or they are off in the firmware"
    if not 1 <= count <= nic.vfs_possible:
        return f"{count} were asked for, and it can have 1 to {nic.vfs_possible}"
    if nic.vfs:
        file = device_path(nic.address, "sriov_numvfs")
        return f"it has {nic.vfs} already; use them, or remove them: `echo 0 | sudo tee {file}`"
    if not nic.interfaces:
        return f"its driver ({nic.driver or 'none'}) is not one of the kernel that makes them; give it back to that"
    return None


def virtual_functions(address: str, root: Path = ROOT) -> tuple[str, ...]:
    """Return the addresses of the VFs of a NIC, by number."""
    links = (root / pci.DEVICES / address).glob("virtfn*")
    numbered = sorted((int(link.name.removeprefix("virtfn")), link_name(link)) for link in links)
    return tuple(name for _, name in numbered if name)
