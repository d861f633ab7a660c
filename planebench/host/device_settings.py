# SPDX-License-Identifier: BSD-3-Clause
"""All settings of devices that a run changes and puts back."""

from __future__ import annotations

from pathlib import Path

from planebench.host import pci_driver, vf_values
from planebench.host.journal import ROOT, Journal, Setting, state_path

DEVICE_SETTINGS: tuple[Setting, ...] = (
    pci_driver.DRIVER,
    pci_driver.NO_IOMMU,
    vf_values.NUMBER,
    vf_values.UP,
    vf_values.ATTRIBUTES,
)


def device_journal(state: Path | None = None, root: Path = ROOT) -> Journal:
    """Return the journal of this machine, which ``doctor --undo`` reads too."""
    return Journal(state or state_path(), DEVICE_SETTINGS, root)
