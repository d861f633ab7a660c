# SPDX-License-Identifier: BSD-3-Clause
"""All settings of devices that a run changes and puts back."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from planebench.host import cpu_frequency, interrupts, pci_driver, vf_values
from planebench.host.journal import ROOT, Journal, Setting, state_path

DEVICE_SETTINGS: tuple[Setting, ...] = (
    pci_driver.DRIVER,
    pci_driver.NO_IOMMU,
    vf_values.NUMBER,
    vf_values.UP,
    vf_values.ATTRIBUTES,
    interrupts.AFFINITY,
    cpu_frequency.FREQUENCY,
)


def device_journal(state: Path | None = None, root: Path = ROOT) -> Journal:
    """Return the journal of this machine, which ``doctor --undo`` reads too."""
    return Journal(state or state_path(), DEVICE_SETTINGS, root)


def restore_abandoned() -> None:
    """Restore devices that processes changed which were killed; nothing for users who may not."""
    if os.geteuid() == 0:
        device_journal().undo_abandoned()


@contextlib.contextmanager
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
