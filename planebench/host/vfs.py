# SPDX-License-Identifier: BSD-3-Clause
"""Virtual functions of a NIC for a run: made, configured, and removed again through the journal."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from planebench.host import interfaces, pci
from planebench.host.device_settings import (
    Attribute,
    attribute_path,
    device_journal,
    number_path,
    read_attribute,
    read_up,
    up_path,
)
from planebench.host.journal import ROOT, ChangedValue, Journal
from planebench.host.pci import Nic
from planebench.host.procfs import link_name
from planebench.model.errors import StartError, UsageError

MAC_PREFIX = "02:00:00:00:56"
"""Of the MAC addresses of VFs: locally administered; the VF's number is the last byte."""


def make_vfs(
    address: str,
    count: int,
    journal: Journal | None = None,
    *,
    macs: Sequence[str] = (),
    trust: bool = True,
    spoof_check: bool = False,
) -> tuple[Nic, ...]:
    """Make the first ``count`` VFs of a NIC, bring its interface up, and return the VFs by number.

    ``macs``: their addresses, by default MAC_PREFIX and the number. ``trust`` lets a VF receive what is not sent to its
    address; without ``spoof_check`` it sends frames with any source address, as a forwarder does. All of it is undone
    as bindings are (:mod:`planebench.host.pci_binding`).

    Raises UsageError, with nothing changed, for a NIC that cannot have them or must not be touched, StartError where
    the system refuses; then the NIC is as it was.
    """
    journal = journal or device_journal()
    journal.undo_abandoned()
    root = journal.root
    nic = pci.nic(address, root)
    reason = refusal(nic, count, root)
    if reason:
        raise UsageError(f"NIC {nic.address} gets no virtual functions: {reason}")
    now_up = read_up(root, up_path(nic.address)) or "off"
    changes = [ChangedValue(number_path(nic.address), str(nic.vfs), str(count), "the VNFs have virtual functions")]
    if now_up == "off":
        changes.append(ChangedValue(up_path(nic.address), now_up, "on", "its virtual functions have a link"))
    journal.apply_or_undo(changes, "cannot make virtual functions")
    made = virtual_functions(nic.address, root)
    if len(made) != count:
        journal.undo_own({change.path for change in changes})
        raise StartError(f"NIC {nic.address} made {len(made)} of {count} virtual functions; `dmesg` may say why")
    wanted: list[tuple[int, Attribute, str]] = []
    for number in range(count):
        mac = macs[number] if number < len(macs) else f"{MAC_PREFIX}:{number:02x}"
        wanted.append((number, "mac", mac))
        wanted.append((number, "trust", "on" if trust else "off"))
        wanted.append((number, "spoofchk", "on" if spoof_check else "off"))
    attributes = []
    for number, attribute, value in wanted:
        path = attribute_path(nic.address, number, attribute)
        old = read_attribute(root, path)
        if old not in (None, value):  # None: the driver does not tell
            attributes.append(ChangedValue(path, str(old), value, "the VNF forwards frames of others"))
    try:
        journal.apply_or_undo(attributes, "cannot configure virtual functions")
    except StartError:
        journal.undo_own({change.path for change in changes})
        raise
    return tuple(pci.nic(function, root) for function in made)


def refusal(nic: Nic, count: int, root: Path = ROOT) -> str | None:
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
        return f"it has {nic.vfs} already; use them, or remove them: `echo 0 | sudo tee {number_path(nic.address)}`"
    if not nic.interfaces:
        return f"its driver ({nic.driver or 'none'}) is not one of the kernel that makes them; give it back to that"
    return None


def virtual_functions(address: str, root: Path = ROOT) -> tuple[str, ...]:
    """Return the addresses of the VFs of a NIC, by number."""
    links = (root / pci.DEVICES / address).glob("virtfn*")
    numbered = sorted((int(link.name.removeprefix("virtfn")), link_name(link)) for link in links)
    return tuple(name for _, name in numbered if name)
