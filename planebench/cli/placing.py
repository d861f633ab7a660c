# SPDX-License-Identifier: BSD-3-Clause
"""``plan show --topology``: where the processes of each topology of a plan would be on another machine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from planebench.host.facts import HostFacts, kinds_text
from planebench.measure.machine import run_cpus
from planebench.measure.survey import Survey
from planebench.model.cpus import Cpus, range_text
from planebench.model.records import Point, TopologyKey
from planebench.testbed.chain import point_cores
from planebench.testbed.placement import Placement, place_vnfs


def placement_rows(held: Survey, facts: HostFacts) -> list[dict[str, Any]]:
    """Return the placement of each topology on the machine of ``facts``, as data."""
    placed, cpus = _placed(held, facts)
    return [
        {
            "scenario": point.scenario,
            "vnfs": point.chain_length,
            "hosting": point.hosting,
            "placement": point.placement,
            "switch_cpus": it.switch_cpus,
            "tester_cpus": it.tester_cpus,
            "vnf_cpus": it.vnf_cpus,
            "roaming_cpus": sorted(it.roaming),
            "control_cpus": sorted(it.control_cpus),
            "core_kinds": cpus.kind_names(it.pollers),
            "numa_node": {str(cpu): node for cpu, node in sorted(it.nodes.items()) if cpu in it.pollers},
            "warnings": it.warnings,
        }
        for point, it in placed.items()
    ]


def placement_lines(held: Survey, facts: HostFacts) -> Iterator[str]:
    """Yield the placement of each topology on the machine of ``facts``, with warnings."""
    if facts.core_kinds:
        yield f"kinds of cores: {kinds_text(facts.core_kinds)}; a warning names pollers that are not on the first one"
    for point, it in _placed(held, facts)[0].items():
        vnfs = f"all on CPU {range_text(it.roaming)}" if it.roaming else _on_nodes(it, it.vnf_cpus)
        yield (
            f"CPUs of {point.scenario_label}: switch {_on_nodes(it, it.switch_cpus)}; tester "
            f"{_on_nodes(it, it.tester_cpus)}; {f'VNFs {vnfs}; ' if it.vnf_cpus else ''}other threads "
            f"{range_text(it.control_cpus)}"
        )
        yield from (f"warning: {text}" for text in it.warnings)


def _placed(held: Survey, facts: HostFacts) -> tuple[dict[Point, Placement], Cpus]:
    """Return the placement of each topology on a machine, by the first of its points, and the CPUs of the machine."""
    plan = held.plan
    cpus = run_cpus(facts, plan.switch_cores, plan.wire, plan.tester, tester_cores=plan.tester_cores)
    found: dict[TopologyKey, tuple[Point, Placement]] = {}
    for point in held.measured:
        if point.topology not in found:
            hosted = range(point.chain_length) if point.side_by_side else point.hosted
            cores = point_cores(point) * (point.chain_length if point.side_by_side else 1)
            placed = place_vnfs(cpus, cores, hosted=hosted, placing=point.placement, idle_tester=point.idle_tester)
            found[point.topology] = point, placed
    return dict(found.values()), cpus


def _on_nodes(placement: Placement, cpus: Sequence[int]) -> str:
    """Return CPUs in their order with their NUMA node where there are several: ``8, 9 (node 1)``."""
    nodes = list(dict.fromkeys(map(placement.memory_node, cpus)))
    parts = [(node, [cpu for cpu in cpus if placement.memory_node(cpu) == node]) for node in nodes]
    texts = (", ".join(map(str, those)) + (f" (node {node})" if node is not None else "") for node, those in parts)
    return ", ".join(texts)
