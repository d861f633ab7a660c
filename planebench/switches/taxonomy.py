# SPDX-License-Identifier: BSD-3-Clause
"""The taxonomy of the switches of conext19, from the data of the paper: adapters have no copy of it."""

from __future__ import annotations

from planebench.papers.data import conext19_tables
from planebench.wiring.adapter import Traits


def published(switch: str) -> Traits:
    """Return the row of a switch in Table 1 of conext19."""
    return Traits(**conext19_tables().taxonomy[switch].model_dump(), source="conext19")
