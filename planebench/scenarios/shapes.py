# SPDX-License-Identifier: BSD-3-Clause
"""From a scenario to its topology."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from planebench.model.errors import UsageError
from planebench.model.hosting import HostingName
from planebench.model.scenario import SCENARIOS, ScenarioName, scenario_named
from planebench.model.topology import END, Topology, Vnf, topology_port


def pair(a: str, b: str) -> Topology:
    """Return two ports with one cross-connect; both are ends."""
    return Topology(ports=(topology_port(a), topology_port(b)), cross_connects=((a, b),), ends=(a, b))


def build(
    scenario: ScenarioName,
    count: int = 0,
    vnfs: Sequence[Vnf] = (),
    *,
    chain: str = "",
    echo: bool = False,
    ends: HostingName = "process",
) -> Topology:
    """Return the topology of a scenario with ``count`` VNFs; those that ``vnfs`` does not define are l2fwd.

    ``vnfs`` have no names and no ports yet; where they are side by side it is the one that all of them are like.
    ``chain`` is their text (planebench.vnfs.topology). With ``echo`` end b sends every frame back, by which some
    scenarios measure latency. ``ends`` is the hosting of the ends that are in VNFs.
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
    whole = replace(
        made,
        scenario=scenario,
        chain_length=number,
        side_by_side=found.side_by_side,
        chain=chain,
        vnfs=(*made.vnfs, *(_hosted_ends(made, ends) if ends != "process" else ())),
    )
    return echoing(whole) if echo else whole


def echoing(topology: Topology) -> Topology:
    """Return the topology with an end b that sends every frame back, hosted or not."""
    b = topology.ends[1]
    if b not in topology.hosted_ports:
        return replace(topology, vnfs=(*topology.vnfs, Vnf("echo", (b, b))))
    return replace(topology, vnfs=tuple(replace(it, kind="l2fwd") if b in it.ports else it for it in topology.vnfs))


def _hosted_ends(topology: Topology, hosting: HostingName) -> tuple[Vnf, ...]:
    """Return a VNF for each end that is in one."""
    ports = [port for port in topology.ends if port in topology.vnf_ports]
    return tuple(Vnf(f"vnf{number}", (port, port), END, hosting=hosting) for number, port in enumerate(ports))


def _names_of_echo() -> str:
    return ", ".join(name for name, known in SCENARIOS.items() if known.latency_by_echo)
