# SPDX-License-Identifier: BSD-3-Clause
"""The scenarios (METHODOLOGY sections 1 and 6) as abstract topologies: ports, cross-connects, VNFs. No I/O.

Each module of this package that calls ``register`` is a scenario; all are found by being here.
"""

from importlib import import_module
from pkgutil import iter_modules

from planebench.model.scenario import SCENARIOS, Scenario, register, scenario_named, scenarios_with
from planebench.model.topology import Topology, TopologyPort, Vnf
from planebench.scenarios.flows import Flow, all_flows, flows, valid_directions
from planebench.scenarios.registry import (
    DIRECTIONS,
    parse_chain_length,
    parse_direction,
    parse_frame_size,
    parse_scenario,
    parse_vnf_count,
)
from planebench.scenarios.shapes import build

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")

__all__ = [
    "DIRECTIONS",
    "SCENARIOS",
    "Flow",
    "Scenario",
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
    "register",
    "scenario_named",
    "scenarios_with",
    "valid_directions",
]
