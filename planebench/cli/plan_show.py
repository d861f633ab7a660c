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
