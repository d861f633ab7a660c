# SPDX-License-Identifier: BSD-3-Clause
"""Every switch there is, by name, and how one is found from what a user writes."""

from __future__ import annotations

import difflib

from planebench.model.errors import UsageError
from planebench.model.spec import parse_switch
from planebench.switches import ovs_dpdk, planed, sim, testpmd
from planebench.switches.base import Configurable, SwitchAdapter

_ALL: tuple[SwitchAdapter, ...] = (planed.ADAPTER, ovs_dpdk.ADAPTER, testpmd.ADAPTER, sim.ADAPTER)
ADAPTERS: dict[str, SwitchAdapter] = {adapter.name: adapter for adapter in _ALL}
"""Name -> adapter, in the order in which they are listed."""


def get_adapter(text: str) -> SwitchAdapter:
    """The adapter of a switch as a user names it: ``planed``, ``planed:drop_one_in=1000``, ``sim:capacity=10M``.

    Raises UsageError with the valid names, the closest first, or the valid options.
    """
    spec = parse_switch(text)
    if spec.adapter not in ADAPTERS:
        close = difflib.get_close_matches(spec.adapter, ADAPTERS, n=1, cutoff=0.5)
        hint = f"did you mean {close[0]}? " if close else ""
        raise UsageError(f"there is no switch {spec.adapter!r}; {hint}valid names: {', '.join(ADAPTERS)}")
    adapter = ADAPTERS[spec.adapter]
    if not spec.options:
        return adapter
    if not isinstance(adapter, Configurable):
        raise UsageError(f'switch "{text}": {spec.adapter} has no options but name; leave them out')
    return adapter.with_options(spec.options)
