# SPDX-License-Identifier: BSD-3-Clause
"""The switches that planebench can drive: one adapter a file, in :mod:`planebench.switches.registry`."""

from __future__ import annotations

from collections.abc import Mapping

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
