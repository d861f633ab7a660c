# SPDX-License-Identifier: BSD-3-Clause
"""Scenario loopback: a chain of VNFs between two wires."""

from dataclasses import replace

from planebench.model.chain_name import CHAIN_LENGTH_MAX
from planebench.model.scenario import Scenario, register
from planebench.model.topology import Topology, Vnf, topology_port


def _loopback(vnfs: tuple[Vnf, ...]) -> Topology:
    """Build n0-v0 [VNF 0] v1-v2 [VNF 1] v3- ... -n1: ports in path order, cross-connected two by two."""
    path = ("n0", *(f"v{k}" for k in range(2 * len(vnfs))), "n1")
    return Topology(
        ports=tuple(map(topology_port, path)),
        cross_connects=tuple(zip(path[::2], path[1::2], strict=True)),
        vnfs=tuple(replace(vnf, name=f"vnf{k}", ports=(f"v{2 * k}", f"v{2 * k + 1}")) for k, vnf in enumerate(vnfs)),
        ends=("n0", "n1"),
    )


register(
    Scenario(
        name="loopback",
        order=40,
        path="NIC -> switch -> VNF 1 -> switch -> ... -> VNF N -> switch -> NIC",
        meaning="Service chain of N VNFs: every packet crosses the switch N + 1 times.",
        build=_loopback,
        vnfs="chain",
        vnfs_max=CHAIN_LENGTH_MAX,
        count_name="chain length",
    )
)
