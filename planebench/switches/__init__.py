# SPDX-License-Identifier: BSD-3-Clause
"""The switches planebench can drive: one adapter a file, listed here."""

from __future__ import annotations

import difflib

from planebench.model.errors import UsageError
from planebench.switches import ovs_dpdk, planed, testpmd
from planebench.switches.base import SwitchAdapter

_ALL: tuple[SwitchAdapter, ...] = (planed.ADAPTER, ovs_dpdk.ADAPTER, testpmd.ADAPTER)
ADAPTERS: dict[str, SwitchAdapter] = {adapter.name: adapter for adapter in _ALL}
"""Name -> adapter, in the order in which they are listed."""


def get_adapter(name: str) -> SwitchAdapter:
    """The adapter called ``name``. Raises UsageError with the valid names, the closest first."""
    if name in ADAPTERS:
        return ADAPTERS[name]
    close = difflib.get_close_matches(name, ADAPTERS, n=1, cutoff=0.5)
    hint = f"did you mean {close[0]}? " if close else ""
    raise UsageError(f"there is no switch {name!r}; {hint}valid names: {', '.join(ADAPTERS)}")
