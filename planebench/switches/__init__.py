# SPDX-License-Identifier: BSD-3-Clause
"""The switches that planebench can drive: one adapter a file, in :mod:`planebench.switches.registry`.

Here are their names: a wrong one is told before adapters are imported.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from importlib.metadata import entry_points

from planebench.model.chain_name import split
from planebench.model.errors import UsageError, unknown
from planebench.model.switch import SwitchSpec, parse_switch

SWITCHES: Mapping[str, str] = {
    "planed": "switches.planed",
    "ovs-dpdk": "switches.ovs",
    "testpmd": "switches.testpmd",
    "vpp": "switches.vpp",
    "bess": "switches.bess",
    "fastclick": "switches.fastclick",
    "snabb": "switches.snabb",
    "t4p4s": "switches.t4p4s",
    "grout": "switches.grout",
    "linux-bridge": "switches.linux_bridge",
    "xdp": "switches.xdp",
    "vale": "switches.vale",
    "sriov": "switches.sriov",
    "sim": "measure.sim.adapter",
}
"""Name -> module of planebench with its ADAPTER, in the order in which they are listed. The simulator is one of
``measure``: it runs trials, too."""
ENTRY_POINTS = "planebench.switches"
"""Group of the entry points of other packages' switches."""


def check_switches(text: str) -> None:
    """Raise UsageError for a switch of a list that there is not."""
    for spec in (parse_switch(item.strip()) for item in split(text, ",") if item.strip()):
        if spec.adapter not in SWITCHES:
            others = [point.name for point in entry_points(group=ENTRY_POINTS)]
            if spec.adapter not in others:
                raise unknown_switch(spec, (*SWITCHES, *others))


def unknown_switch(spec: SwitchSpec, names: Collection[str]) -> UsageError:
    """Return the error for a switch that is none of ``names``, the closest first."""
    error = unknown("switch", spec.adapter, names)
    if spec.adapter == "dpdk":
        error = UsageError(f'unknown switch "dpdk", did you mean testpmd or ovs-dpdk? Valid: {", ".join(names)}')
    hint = f'; "{spec.label}=" was taken for a label: options of a switch are joined by ":", not by ","'
    return UsageError(f"{error}{hint}") if spec.label != spec.adapter else error
