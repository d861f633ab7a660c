# SPDX-License-Identifier: BSD-3-Clause
"""Scenario p2p: two wires."""

from planebench.model.scenario import Scenario, register
from planebench.scenarios.shapes import pair

register(
    Scenario(
        name="p2p",
        order=10,
        path="NIC -> switch -> NIC",
        meaning="Forwarding between two NICs: the baseline.",
        use="between NICs",
        build=lambda _: pair("n0", "n1"),
    )
)
