# SPDX-License-Identifier: BSD-3-Clause
"""Scenario bridged: a chain of VNFs over two servers (can17's bridging by NIC), here two switches of one machine."""

from dataclasses import replace

from planebench.model.chain_name import CHAIN_LENGTH_MAX
from planebench.model.scenario import Scenario, register
from planebench.model.topology import Topology, Vnf
from planebench.scenarios.shapes import build

LINK = ("m0", "m1")
"""The ports by which the two switches are connected."""


def _bridged(vnfs: tuple[Vnf, ...]) -> Topology:
    """Build the chain of loopback, with the link in the middle; of an odd number the first switch has one VNF more."""
    whole = build("loopback", len(vnfs), vnfs)
    half = -(-len(vnfs) // 2)
    near, far = whole.cross_connects[half]
    cross_connects = (
        *whole.cross_connects[:half],
        (near, LINK[0]),
        (LINK[1], far),
        *whole.cross_connects[half + 1 :],
    )
    return replace(whole, cross_connects=cross_connects, link=LINK)


register(
    Scenario(
        name="bridged",
        order=42,
        path="NIC -> switch -> VNF 1 -> ... -> switch -> second switch -> ... -> VNF N -> second switch -> NIC",
        meaning=(
            "Service chain of N VNFs over two servers, half of it on each. Here both switches are processes of one "
            "machine, and the cable between them is a virtio link or a veth pair."
        ),
        build=_bridged,
        vnfs="chain",
        vnfs_max=CHAIN_LENGTH_MAX,
        count_name="chain length",
        two_switches=True,
    )
)
