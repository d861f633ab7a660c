# SPDX-License-Identifier: BSD-3-Clause
"""``plan show``: what a run would measure, what not and why, and its estimated time."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

from planebench.cli.show import print_json
from planebench.plans.budget import describe
from planebench.plans.expand import points_of
from planebench.running.survey import Survey, survey
from planebench.scenarios.shapes import build
from planebench.wiring.wires.base import cabled, named_ends


def show_plan(name: str, overrides: Mapping[str, Any], json: bool, time_budget: str | None = None) -> None:
    """Print the points of a plan and the time they take. Raises UsageError for a plan that ``run`` would not take."""
    held = survey(name, overrides).within(time_budget)
    if json:
        print_json(_document(held))
        return
    for line in _lines(held):
        print(line)


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
    for sentence in held.missing:
        yield f"needed before a run: {sentence}"
    for entry in plan.left_out:
        yield f"not reproduced: {entry.what}: {entry.reason}"
    if plan.papers:
        yield f"reproduces: {', '.join(plan.papers)}"
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
