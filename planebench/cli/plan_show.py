# SPDX-License-Identifier: BSD-3-Clause
"""``plan show``: what a run would measure, what not and why, and its estimated time."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from planebench.cli.show import print_json
from planebench.host.facts import collect, kinds_text
from planebench.host.hwloc import with_topology
from planebench.model.cpus import Cpus, range_text
from planebench.model.records import Point
from planebench.placement import Placement
from planebench.plans.budget import describe
from planebench.plans.expand import points_of
from planebench.running.machine import run_cpus
from planebench.running.survey import Survey, placements_of, survey
from planebench.scenarios.shapes import build
from planebench.traffic.capture import remarks
from planebench.wiring.wires.base import cabled, named_ends


def show_plan(
    name: str, overrides: Mapping[str, Any], json: bool, time_budget: str | None = None, topology: str | None = None
) -> None:
    """Print the points of a plan and the time they take. Raises UsageError for a plan that ``run`` would not take.

    ``topology``: another machine to place the points on, as :func:`planebench.host.hwloc.with_topology` takes it.
    """
    facts = with_topology(collect(), topology) if topology is not None else None
    held = survey(name, overrides, facts=facts).within(time_budget)
    plan = held.plan
    cpus = run_cpus(facts, plan.switch_cores, plan.wire, plan.tester) if facts is not None else None
    placed = placements_of(held.measured, cpus) if cpus is not None else {}
    if json:
        print_json(_document(held) | ({"placements": _placement_rows(placed, cpus)} if cpus is not None else {}))
        return
    kinds = facts.core_kinds if facts is not None else ()
    told = [f"kinds of cores: {kinds_text(kinds)}; a warning names pollers that are not on the first one"] * bool(kinds)
    for line in (*_lines(held), *told, *_placement_lines(placed)):
        print(line)


def _placement_rows(placed: Mapping[Point, Placement], cpus: Cpus) -> list[dict[str, Any]]:
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


def _placement_lines(placed: Mapping[Point, Placement]) -> Iterator[str]:
    for point, it in placed.items():
        vnfs = f"all on CPU {range_text(it.roaming)}" if it.roaming else _on_nodes(it, it.vnf_cpus)
        yield (
            f"CPUs of {point.scenario_label}: switch {_on_nodes(it, it.switch_cpus)}; tester "
            f"{_on_nodes(it, it.tester_cpus)}; {f'VNFs {vnfs}; ' if it.vnf_cpus else ''}other threads "
            f"{range_text(it.control_cpus)}"
        )
        yield from (f"warning: {text}" for text in it.warnings)


def _on_nodes(placement: Placement, cpus: Sequence[int]) -> str:
    """Return CPUs in their order with their NUMA node where there are several: ``8, 9 (node 1)``."""
    nodes = list(dict.fromkeys(map(placement.memory_node, cpus)))
    parts = [(node, [cpu for cpu in cpus if placement.memory_node(cpu) == node]) for node in nodes]
    texts = (", ".join(map(str, those)) + (f" (node {node})" if node is not None else "") for node, those in parts)
    return ", ".join(texts)


def _document(held: Survey) -> dict[str, Any]:
    plan = held.plan
    parts = {part.name: frozenset(points_of(part)) for part in plan.parts}
    return {
        "plan": plan.name,
        "papers": plan.papers,
        "parts": [{"part": part.name, "for": part.purpose} for part in plan.parts],
        "points": [
            {
                "id": point.point_id,
                **dataclasses.asdict(point),
                "parts": [name for name, points in parts.items() if point in points],
                "left_out": held.absent.get(point, ""),
            }
            for point in held.points
        ],
        "trials": describe(plan),
        "skipped": [dataclasses.asdict(entry) for entry in held.skipped],
        "missing": list(held.missing),
        "not_reproduced": [dataclasses.asdict(entry) for entry in plan.left_out],
        "estimate_s": round(held.takes_s, 1),
        "estimate_max_s": round(held.at_most_s, 1),
    }


def _lines(held: Survey) -> Iterator[str]:
    plan = held.plan
    for part in plan.sections:
        if plan.parts:
            yield f"part {part.name}: {part.purpose}" if part.purpose else f"part {part.name}"
        for point in points_of(part):
            if point not in held.absent:
                yield f"  {point.point_id}" if plan.parts else point.point_id
    yield from _paths_in_nics(held)
    for entry in held.skipped:
        yield f"left out: {entry.what}: {entry.reason}"
    for profile in plan.traffic:
        yield from (f"warning: {text}" for text in remarks(profile))
    for sentence in held.missing:
        yield f"needed before a run: {sentence}"
    for entry in plan.left_out:
        yield f"not reproduced: {entry.what}: {entry.reason}"
    if plan.papers:
        yield f"reproduces: {', '.join(plan.papers)}"
    if plan.send_burst:
        yield f"VNFs send {plan.send_burst} packets at once, or what has come in {plan.drain_us} us"
    yield describe(plan)
    yield f"{len(held.measured)} points, {held.takes_words}"


def _paths_in_nics(held: Survey) -> Iterator[str]:
    """Draw the paths of switches that are NICs: the cable, and the virtual function of each VNF."""
    drawn = {(point.switch, point.scenario_label): point for point in held.measured}
    for (label, where), point in drawn.items():
        adapter = held.adapters[label]
        if adapter.vnf_interface != "vf":
            continue
        topology = build(point.scenario, point.chain_length)
        (wire,) = cabled(topology, adapter.vnf_interface)
        ends = named_ends((wire,), held.plan.wire)[wire]
        yield f"path of {label} {where}, and back by the same cable:"
        lead = f"  tester {ends.tester} == {ends.switch} "
        for number, vnf in enumerate(topology.vnfs):
            if number in (0, 1, len(topology.vnfs) - 1):
                what = "..." if 1 == number < len(topology.vnfs) - 1 else f"VF {number} ({vnf.mac}) -- {vnf.name}"
                yield f"{lead if number == 0 else ' ' * len(lead)}+-- {what}"
