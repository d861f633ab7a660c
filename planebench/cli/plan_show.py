# SPDX-License-Identifier: BSD-3-Clause
"""``plan show``: what would be measured, how, what not and why, and the time it takes, before anything runs."""

from __future__ import annotations

import dataclasses
import json as json_module
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from planebench.measure.refusals import refusals
from planebench.model.header import Skipped
from planebench.model.records import Point
from planebench.plans import (
    Plan,
    describe,
    duration_words,
    estimate,
    expand,
    fit,
    parse_budget,
    points_of,
    skipped,
    switch_labels,
)
from planebench.running.prepare import check_named_chains, planned
from planebench.switches.base import Found, NotFound
from planebench.switches.registry import get_adapter


@dataclass(frozen=True, slots=True)
class Survey:
    """A plan against what is here: its points, and those that will not be measured, with the reason."""

    points: tuple[Point, ...]
    absent: Mapping[Point, str]

    @property
    def measured(self) -> tuple[Point, ...]:
        """The points that take time."""
        return tuple(point for point in self.points if point not in self.absent)


def survey(plan: Plan) -> Survey:
    """Hold a plan against the switches of this machine. A switch that must be there counts as there."""
    labels = switch_labels(plan.switches)
    adapters = {label.label: get_adapter(label.adapter) for label in labels}
    missing = {
        label.label: found.words.removeprefix("is ")
        for label in labels
        if plan.missing_switches == "skip" and isinstance(found := _find(label.adapter), NotFound)
    }
    points = expand(plan)
    absent = {point: missing[point.switch] for point in points if point.switch in missing}
    return Survey(points, refusals(plan, points, adapters, hugepages=False) | absent)


@cache
def _find(adapter: str) -> Found | NotFound:
    return get_adapter(adapter).find()


def show_plan(name: str, overrides: Mapping[str, Any], json: bool, time_budget: str | None = None) -> None:
    """Print the points of a plan and the time they take. UsageError for a plan that ``run`` would not take."""
    plan, smaller = planned(name, overrides)
    check_named_chains(plan)
    found = survey(plan)
    if time_budget is not None:
        plan = fit(plan, found.measured, parse_budget(time_budget))
    if json:
        print(json_module.dumps(_document(plan, found, smaller), indent=1))
        return
    for line in _lines(plan, found, smaller):
        print(line)


def _document(plan: Plan, found: Survey, smaller: tuple[Skipped, ...]) -> dict[str, Any]:
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
                "left_out": found.absent.get(point, ""),
            }
            for point in found.points
        ],
        "trials": describe(plan),
        "skipped": [dataclasses.asdict(entry) for entry in (*smaller, *skipped(plan), *_absent(found))],
        "not_reproduced": [dataclasses.asdict(entry) for entry in plan.left_out],
        "estimate_s": round(estimate(plan, found.measured), 1),
    }


def _lines(plan: Plan, found: Survey, smaller: tuple[Skipped, ...]) -> Iterator[str]:
    for part in plan.sections:
        if plan.parts:
            yield f"part {part.name}: {part.purpose}" if part.purpose else f"part {part.name}"
        for point in points_of(part):
            if point not in found.absent:
                yield f"  {point.point_id}" if plan.parts else point.point_id
    for entry in (*smaller, *skipped(plan), *_absent(found)):
        yield f"left out: {entry.what}: {entry.reason}"
    for entry in plan.left_out:
        yield f"not reproduced: {entry.what}: {entry.reason}"
    if plan.papers:
        yield f"reproduces: {', '.join(plan.papers)}"
    yield describe(plan)
    yield f"{len(found.measured)} points, about {duration_words(estimate(plan, found.measured))}"


def _absent(found: Survey) -> Iterator[Skipped]:
    """One entry for each switch and reason, with the scenarios that it is true of."""
    scenarios: dict[tuple[str, str], dict[str, None]] = {}
    for point, reason in found.absent.items():
        scenarios.setdefault((point.switch, reason), {})[point.scenario_label] = None
    for (switch, reason), labels in scenarios.items():
        everywhere = not any(point.switch == switch for point in found.measured)
        yield Skipped(switch if everywhere else f"{switch} {', '.join(labels)}", reason)
