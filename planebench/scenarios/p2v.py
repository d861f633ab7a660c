# SPDX-License-Identifier: BSD-3-Clause
"""Scenario p2v: a wire and a VNF, which is the far end itself. Its ends differ, so it has a reversed direction."""

from planebench.model.scenario import Scenario, register
from planebench.scenarios.shapes import pair

register(
    Scenario(
        name="p2v",
        order=20,
        path="NIC -> switch -> VNF",
        meaning="First or last hop of a service chain; shows the cost of virtual I/O.",
        use="between NIC and VNF",
        build=lambda _: pair("n0", "v0"),
        directions=("unidirectional", "bidirectional", "reversed"),
        ends=("wire", "vnf"),
    )
)
