# SPDX-License-Identifier: BSD-3-Clause
"""The switches of planebench by name, in the order in which they are listed. Imports nothing: the shell asks here."""

from collections.abc import Mapping

SWITCHES: Mapping[str, str] = {
    "planed": "planed",
    "ovs-dpdk": "ovs_dpdk",
    "testpmd": "testpmd",
    "vpp": "vpp",
    "bess": "bess",
    "fastclick": "fastclick",
    "click": "click",
    "snabb": "snabb",
    "t4p4s": "t4p4s",
    "grout": "grout",
    "linux-bridge": "linux_bridge",
    "xdp": "xdp",
    "vale": "vale",
    "ovs-netdev": "ovs_netdev",
    "sriov": "sriov",
    "sim": "sim",
}
"""Name -> module of planebench.switches with its ADAPTER."""
