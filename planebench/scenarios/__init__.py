# SPDX-License-Identifier: BSD-3-Clause
"""The four scenarios (METHODOLOGY section 1) as abstract topologies: ports, cross-connects, VNFs. No I/O."""

from planebench.scenarios.flows import Flow, flows, valid_directions
from planebench.scenarios.registry import (
    DIRECTIONS,
    SCENARIO_INFOS,
    SCENARIOS,
    ScenarioInfo,
    parse_chain_length,
    parse_direction,
    parse_frame_size,
    parse_scenario,
)
from planebench.scenarios.topology import Topology, TopologyPort, Vnf, build

__all__ = [
    "DIRECTIONS",
    "SCENARIOS",
    "SCENARIO_INFOS",
    "Flow",
    "ScenarioInfo",
    "Topology",
    "TopologyPort",
    "Vnf",
    "build",
    "flows",
    "parse_chain_length",
    "parse_direction",
    "parse_frame_size",
    "parse_scenario",
    "valid_directions",
]
