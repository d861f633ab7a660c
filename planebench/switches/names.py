# SPDX-License-Identifier: BSD-3-Clause
"""The switches of planebench by name, in the order in which they are listed. Imports nothing: the shell asks here."""

from collections.abc import Mapping

SWITCHES: Mapping[str, str] = {
    "planed": "switches.planed",
    "ovs-dpdk": "switches.ovs_dpdk",
    "testpmd": "switches.testpmd",
    "vpp": "switches.vpp",
    "bess": "switches.bess",
    "fastclick": "switches.fastclick",
    "click": "switches.click",
    "snabb": "switches.snabb",
    "t4p4s": "switches.t4p4s",
    "grout": "switches.grout",
    "linux-bridge": "switches.linux_bridge",
    "xdp": "switches.xdp",
    "vale": "switches.vale",
    "ovs-netdev": "switches.ovs_netdev",
    "sriov": "switches.sriov",
    "sim": "measure.sim.adapter",
}
"""Name -> module of planebench with its ADAPTER. The simulator is one of ``measure``: it runs trials, too."""
