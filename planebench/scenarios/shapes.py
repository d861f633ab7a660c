# SPDX-License-Identifier: BSD-3-Clause
"""From a scenario to its topology."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from planebench.model.errors import UsageError
from planebench.model.scenario import SCENARIOS, ScenarioName, scenario_named
from planebench.model.topology import Topology, Vnf, topology_port


def pair(a: str, b: str) -> Topology:
    """Return two ports with one cross-connect; both are ends."""
    return Topology(ports=(topology_port(a), topology_port(b)), cross_connects=((a, b),), ends=(a, b))


def build(
    scenario: ScenarioName, count: int = 0, vnfs: Sequence[Vnf] = (), *, chain: str = "", echo: bool = False
) -> Topology:
    """Return the topology of a scenario with ``count`` VNFs; those that ``vnfs`` does not define are l2fwd.

    ``vnfs`` have no names and no ports yet; where they are side by side it is the one that all of them are like.
    ``chain`` is their text (planebench.vnfs.topology). With ``echo`` end b sends every frame back, by which some
    scenarios measure latency.
    Raises UsageError for a number or an echo that does not fit the scenario.
    """
    found = scenario_named(scenario)
    if echo and not found.latency_by_echo:
        raise UsageError(f"echo applies only to {_names_of_echo()}, not to {scenario}; remove it")
    if not found.has_vnfs and (count or vnfs):
        with_vnfs = " and ".join(name for name, known in SCENARIOS.items() if known.has_vnfs)
        raise UsageError(f"{count} VNFs do not fit {scenario}: only {with_vnfs} have a chain of network functions")
    number = found.parse_count(count) if found.has_vnfs else 0
    made = found.build(tuple(vnfs) if found.chained and vnfs else (*vnfs, Vnf())[:1] * number)
    b = made.ends[1]
    return replace(
        made,
        scenario=scenario,
        chain_length=number,
        side_by_side=found.side_by_side,
        chain=chain,
        vnfs=(*made.vnfs, Vnf("echo", (b, b))) if echo else made.vnfs,
    )


def _names_of_echo() -> str:
    return ", ".join(name for name, known in SCENARIOS.items() if known.latency_by_echo)
