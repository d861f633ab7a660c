# SPDX-License-Identifier: BSD-3-Clause
"""The scenarios (METHODOLOGY sections 1 and 6) as abstract topologies: ports, cross-connects, VNFs. No I/O."""

from planebench.scenarios.flows import Flow, all_flows, flows, valid_directions
from planebench.scenarios.registry import (
    DIRECTIONS,
    SCENARIO_INFOS,
    SCENARIOS,
    ScenarioInfo,
    parse_chain_length,
    parse_direction,
    parse_frame_size,
    parse_scenario,
    parse_vnf_count,
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
    "all_flows",
    "build",
    "flows",
    "parse_chain_length",
    "parse_direction",
    "parse_frame_size",
    "parse_scenario",
    "parse_vnf_count",
    "valid_directions",
]
