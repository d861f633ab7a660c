# SPDX-License-Identifier: BSD-3-Clause
"""Scenario bare: one process straight on the two wires, in the place of switch and VNFs. It has the FIBs of all of the
VNFs that it stands for, and gets their traffic."""

from dataclasses import replace

from planebench.model.scenario import Scenario, register
from planebench.model.topology import Topology, Vnf
from planebench.scenarios.parallel import VNF_COUNT_MAX, vnf_mac
from planebench.scenarios.shapes import pair


def _bare(vnfs: tuple[Vnf, ...]) -> Topology:
    """Build n0, n1, and the function of the VNFs with as many routes as they have together."""
    count, function = len(vnfs), vnfs[0]
    routes = int(function.settings.get("synthetic", 0)) * count
    settings = {**function.settings, "synthetic": routes} if routes else function.settings
    whole = replace(
        function, name="function", settings=settings, memory_bytes=function.memory_bytes * count, routes=routes
    )
    return replace(pair("n0", "n1"), bare=whole, macs=tuple(vnf_mac(number) for number in range(count)))


register(
    Scenario(
        name="bare",
        order=45,
        path="NIC -> one process -> NIC",
        meaning="The function of N VNFs in one process on the wires, without a switch: the baseline of parallel.",
        use="one process on the wires",
        build=_bare,
        directions=("unidirectional",),
        vnfs="side-by-side",
        vnfs_max=VNF_COUNT_MAX,
        count_name="number of VNFs",
        bare=True,
    )
)
