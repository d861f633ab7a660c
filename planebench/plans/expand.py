# SPDX-License-Identifier: BSD-3-Clause
"""From a plan to its points: the Cartesian product, less what a scenario does not have."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from planebench.model.chain_name import join, vnf_texts
from planebench.model.errors import UsageError
from planebench.model.header import Skipped
from planebench.model.records import Direction, Point, ScenarioName
from planebench.model.spec import parse_switch
from planebench.plans.plan import Plan
from planebench.scenarios import valid_directions
from planebench.scenarios.registry import FRAME_SIZE_MAX_BYTES


@dataclass(frozen=True, slots=True)
class SwitchLabel:
    """A switch of a run: its label in results, and the adapter behind it, with its options as the user wrote them."""

    label: str
    adapter: str


def switch_labels(switches: tuple[str, ...]) -> tuple[SwitchLabel, ...]:
    """``planed``, and ``planed#2`` for the second entry of the same label; the option ``name`` is a label."""
    seen: Counter[str] = Counter()
    labels = []
    for text in switches:
        label = parse_switch(text).label
        seen[label] += 1
        labels.append(SwitchLabel(label if seen[label] == 1 else f"{label}#{seen[label]}", text))
    return tuple(labels)


def expand(plan: Plan) -> tuple[Point, ...]:
    """Every point of the plan, once, in the order of the plan: switch, scenario, chain, direction, frame size.

    A direction that a scenario does not have is left out of it. UsageError when nothing is left.
    """
    points = tuple(
        Point(label.label, scenario, direction, length, size, plan.wire, plan.hosting, chain)
        for label in switch_labels(plan.switches)
        for scenario in plan.scenarios
        for length, chain in (_chains(plan) if scenario == "loopback" else ((0, ""),))
        for direction in _directions(plan, scenario)
        for size in plan.frame_sizes_bytes
    )
    if not points:
        raise UsageError(f"nothing to measure: {'; '.join(entry.reason for entry in skipped(plan))}")
    return points


def skipped(plan: Plan) -> tuple[Skipped, ...]:
    """The scenarios of the plan that have none of its directions."""
    return tuple(
        Skipped(
            scenario,
            f"direction {', '.join(plan.directions)} is not valid for {scenario}. "
            f"Valid: {', '.join(valid_directions(scenario))}",
        )
        for scenario in plan.scenarios
        if not _directions(plan, scenario)
    )


def max_frame_bytes(plan: Plan) -> int:
    """The largest frame that ports must take: 1518, or more where the plan has it."""
    return max(FRAME_SIZE_MAX_BYTES, *plan.frame_sizes_bytes)


def _chains(plan: Plan) -> tuple[tuple[int, str], ...]:
    """Length and name of every chain, once: a chain of nothing but plain l2fwd is one of a length."""
    named = [vnf_texts(chain, 0) for chain in plan.chains]
    return tuple(dict.fromkeys([*((n, "") for n in plan.chain_lengths), *((len(v), join(v)) for v in named)]))


def _directions(plan: Plan, scenario: ScenarioName) -> tuple[Direction, ...]:
    return tuple(direction for direction in plan.directions if direction in valid_directions(scenario))
