# SPDX-License-Identifier: BSD-3-Clause
"""Scenario v2v: two VNFs, which are the ends themselves."""

from planebench.model.scenario import Scenario, register
from planebench.scenarios.shapes import pair

register(
    Scenario(
        name="v2v",
        order=30,
        path="VNF -> switch -> VNF",
        meaning="One hop between two VNFs; limited by memory bandwidth, not by a NIC.",
        use="between VNFs",
        build=lambda _: pair("v0", "v1"),
        ends=("vnf", "vnf"),
        latency_by_echo=True,
    )
)
