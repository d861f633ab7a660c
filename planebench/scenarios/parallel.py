# SPDX-License-Identifier: BSD-3-Clause
"""Scenario parallel: VNFs side by side between two wires. The switch gives each what is sent to its MAC address, and
they send everything to one monitor, so traffic goes one way."""

from dataclasses import replace

from planebench.model.scenario import Scenario, register
from planebench.model.topology import Topology, Vnf, topology_port

VNF_COUNT_MAX = 63
"""The maximum number of VNFs side by side, as in ic16."""


def vnf_mac(number: int) -> str:
    """Return the MAC address of VNF 0, 1, ... side by side."""
    return f"02:00:00:00:02:{number + 1:02x}"


def _parallel(vnfs: tuple[Vnf, ...]) -> Topology:
    """Build n0, n1, and VNF k behind port vk."""
    return Topology(
        ports=tuple(map(topology_port, ("n0", "n1", *(f"v{k}" for k in range(len(vnfs)))))),
        cross_connects=(),
        vnfs=tuple(
            replace(
                vnf,
                name=f"vnf{k}",
                ports=(f"v{k}", f"v{k}"),
                mac=vnf_mac(k),
                routes=int(vnf.settings.get("synthetic", 0)),
            )
            for k, vnf in enumerate(vnfs)
        ),
        ends=("n0", "n1"),
    )


register(
    Scenario(
        name="parallel",
        order=50,
        path="NIC -> switch -> one of N VNFs, by MAC -> switch -> NIC",
        meaning=(
            "N independent VNFs, each with its own MAC address and process; shows many VNFs sharing few switch cores."
        ),
        build=_parallel,
        directions=("unidirectional",),
        vnfs="side-by-side",
        vnfs_max=VNF_COUNT_MAX,
        count_name="number of VNFs",
    )
)
