# SPDX-License-Identifier: BSD-3-Clause
"""The registry of switches by name.

planebench.switches lists those of planebench; others come from installed packages with an entry point of the
group ``planebench.switches``, whose name is the name of the switch and whose object is its adapter
(docs/adding-a-switch.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points

from planebench.model.errors import UsageError, unknown
from planebench.model.switch import parse_switch
from planebench.switches import ENTRY_POINTS, SWITCHES
from planebench.switches.adapter import Adapter

ADAPTERS: dict[str, Adapter] = {
    name: import_module(f"planebench.{module}").ADAPTER for name, module in SWITCHES.items()
}
"""The adapters of planebench by name, in the order in which they are listed."""


def all_adapters() -> Mapping[str, Adapter]:
    """Return the adapters of planebench and those of other packages that can be loaded. Loads the latter once."""
    return ADAPTERS | _foreign()[0]


def broken_adapters() -> Mapping[str, str]:
    """Return the entry points that cannot be loaded, and why."""
    return _foreign()[1]


@cache
def _foreign() -> tuple[dict[str, Adapter], dict[str, str]]:
    found: dict[str, Adapter] = {}
    broken: dict[str, str] = {}
    for point in entry_points(group=ENTRY_POINTS):
        try:
            if point.name in ADAPTERS or point.name in found:
                raise UsageError(f"a switch {point.name} exists already; give it another name")
            adapter = point.load()
            if not isinstance(adapter, Adapter):
                what = "class" if isinstance(adapter, type) else type(adapter).__name__
                raise UsageError(f"its object is a {what}; derive it from planebench.switches.base.Adapter")
            if adapter.name != point.name:
                raise UsageError(f"its name is {adapter.name}, not that of the entry point")
            found[point.name] = adapter
        except Exception as error:  # whatever a stranger's import may do
            broken[point.name] = f"{point.value}: {error}"
    return found, broken


def get_adapter(text: str) -> Adapter:
    """Return the adapter of a switch as a user names it: ``planed``, ``planed:drop_one_in=1000``, ``sim:capacity=10M``.

    Raises UsageError with the valid names, the closest first, or the valid options.
    """
    spec = parse_switch(text)
    adapters = ADAPTERS if spec.adapter in ADAPTERS else all_adapters()  # ours need no look at other packages
    if spec.adapter not in adapters and spec.adapter in broken_adapters():
        raise UsageError(f"switch {spec.adapter} cannot be loaded: {broken_adapters()[spec.adapter]}")
    if spec.adapter not in adapters:
        error = unknown("switch", spec.adapter, adapters)
        if spec.adapter == "dpdk":
            error = UsageError(f'unknown switch "dpdk", did you mean testpmd or ovs-dpdk? Valid: {", ".join(adapters)}')
        hint = f'; "{spec.label}=" was taken for a label: options of a switch are joined by ":", not by ","'
        raise UsageError(f"{error}{hint}") if spec.label != spec.adapter else error
    adapter = adapters[spec.adapter]
    return adapter.with_options(spec.options) if spec.options else adapter
