# SPDX-License-Identifier: BSD-3-Clause
"""Interrupts of CPUs: how many came, and which of NICs are kept away from pollers."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path

from planebench.host import pci
from planebench.host.journal import ROOT, Change, Journal, Outcome, Setting, at, this_process
from planebench.host.procfs import entries, read_text
from planebench.model.cpus import parse_cpus, range_text

MSR_SMI_COUNT = 0x34
"""Number of system management interrupts since reset (Intel SDM, volume 4)."""
AFFINITY = Setting(("/proc/irq/[0-9]*/smp_affinity_list",))


def interrupt_counts(cpus: Iterable[int], root: Path = ROOT) -> Mapping[str, int] | None:
    """Return the interrupts of these CPUs since boot by name (``LOC``, ``eth0-TxRx-3``); None if unknown.

    Take differences with :func:`count_difference`.
    """
    header, *lines = (read_text(root / "proc/interrupts") or "").splitlines() or [""]
    columns = [name.removeprefix("CPU") for name in header.split()]
    wanted = {number for number, cpu in enumerate(columns) if cpu.isdigit() and int(cpu) in set(cpus)}
    if not wanted:
        return None
    found = Counter[str]()
    for line in lines:
        name, _, rest = line.partition(":")
        fields = rest.split()
        counts = fields[: len(columns)]
        label = fields[-1] if name.strip().isdigit() and len(fields) > len(columns) else name.strip()
        found[label] += sum(int(count) for number, count in enumerate(counts) if number in wanted and count.isdigit())
    return found


def count_difference(before: Mapping[str, int] | None, after: Mapping[str, int] | None) -> dict[str, int] | None:
    """Return the interrupts from one count to the next by name, without those that did not come; None if unknown."""
    if before is None or after is None:
        return None
    both = {name: count - before.get(name, 0) for name, count in after.items()}
    return {name: count for name, count in both.items() if count > 0}


def smi_count(cpus: Iterable[int], root: Path = ROOT) -> int | None:
    """Return the most system management interrupts of one of these CPUs since reset; None if the CPU does not tell.

    It is read through /dev/cpu/N/msr, which root has where the module msr is loaded.
    """
    counts = [_msr(root / f"dev/cpu/{cpu}/msr", MSR_SMI_COUNT) for cpu in cpus]
    known = [count for count in counts if count is not None]
    return max(known) if counts and len(known) == len(counts) else None


def _msr(device: Path, register: int) -> int | None:
    try:
        fd = os.open(device, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        data = os.pread(fd, 8, register)
    except OSError:
        return None
    finally:
        os.close(fd)
    return int.from_bytes(data, "little") if len(data) == 8 else None


def keep_away(pollers: Collection[int], control: Collection[int], journal: Journal) -> tuple[Outcome, ...]:
    """Move the interrupts of NICs from the CPUs of pollers to those of ``control``, until this process undoes it.

    Nothing is done where control threads share their CPUs with pollers, and for interrupts that the kernel does not let
    us move. Raises StoreError if the old places cannot be saved.
    """
    if set(pollers) & set(control):
        return ()
    changes = list(_moves(frozenset(pollers), range_text(control), journal.root))
    return journal.apply(changes, this_process()) if changes else ()


def _moves(pollers: frozenset[int], control: str, root: Path) -> Iterator[Change]:
    for number in _nic_interrupts(root):
        path = f"/proc/irq/{number}/smp_affinity_list"
        old = read_text(at(root, path))
        if old and pollers & set(parse_cpus(old)) and os.access(at(root, path), os.W_OK):
            yield Change(path, old, control, "the interrupts of a NIC disturb no poller")


def _nic_interrupts(root: Path) -> list[int]:
    """Return the numbers of the interrupts of all NICs that the kernel drives."""
    devices = [root / pci.DEVICES / nic.address for nic in pci.nics(root) if nic.driver]
    names = [entry.name for device in devices for entry in entries(device / "msi_irqs")]
    lines = [read_text(device / "irq") or "" for device in devices if not entries(device / "msi_irqs")]
    return sorted({int(name) for name in (*names, *lines) if name.isdigit() and name != "0"})
