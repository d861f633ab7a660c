# SPDX-License-Identifier: BSD-3-Clause
"""The steps of a plan that are still to come and their estimated time, corrected by the pace of this session."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterator, Sequence

from planebench.analysis.search import METHODS
from planebench.model.plan import Plan
from planebench.model.records import Point
from planebench.model.status import Stage
from planebench.model.switch import USUAL_COST
from planebench.plan.estimate import expected_trials, visit_s
from planebench.plan.passes import Costs, Visit, latency_of, passes, searches_of

LATENCY = "latency"

TRUSTED_S = 10.0
"""Seconds of a session after which its own pace has the same weight as the estimate of the plan."""


def stages(plan: Plan, points: Sequence[Point], costs: Costs | None = None) -> tuple[Stage, ...]:
    """Return the stages of a plan in the order of a campaign: pass by pass, in each topology R+ first, latency last.

    Their seconds are those of ``estimate``.
    """
    every = passes(plan, points, costs or {})
    return tuple(stage for visits in every for visit in visits for stage in stages_of(plan, visit, costs or {}))


def stages_of(plan: Plan, visit: Visit, costs: Costs) -> Iterator[Stage]:
    """Yield the stages of a visit, and share its estimated seconds out by the sending time of their trials."""
    points = len(visit.group.points)
    steps = {"r_plus": points * len(visit.repetitions)}
    steps |= {method: len(of) * expected_trials(plan, method) for method, of in searches_of(plan, visit).items()}
    steps[LATENCY] = len(latency_of(plan, visit))
    sending_s = {"r_plus": plan.throughput.duration_s, LATENCY: plan.latency.duration_s}
    weights: dict[str, float] = {}
    for method, n in steps.items():
        one_s = sending_s.get(method) or plan.search.duration_s or METHODS[method].standard_s
        weights[method] = n * (plan.throughput.warmup_s + one_s + USUAL_COST.trial_overhead_s)
    a_weight_s = visit_s(plan, visit, costs) / sum(weights.values())
    for method, n in steps.items():
        if n:
            yield Stage(visit.group.points[0].scenario_label, method, points, n, weights[method] * a_weight_s)


class Pace:
    """Counts the steps of a run, in the order of its stages."""

    def __init__(self, planned: Sequence[Stage], clock: Callable[[], float] = time.monotonic) -> None:
        self._stages = tuple(planned)
        self.steps = sum(stage.steps for stage in planned)
        """The number of all steps."""
        self._planned_s = sum(stage.seconds for stage in planned)
        self._clock = clock
        self._begun_s = self._at_s = clock()
        self._free_s: float | None = None
        """Planned seconds that cost this session nothing; None before its first trial."""
        self.done = 0
        self._left_s = self._planned_left_s()

    def extend(self, more: Sequence[Stage]) -> None:
        """Add stages at the end: a further pass begins."""
        self._stages += tuple(more)
        self.steps += sum(stage.steps for stage in more)
        self._planned_s += sum(stage.seconds for stage in more)
        self.advance(0)

    def trial_begins(self) -> None:
        """Note the first trial of a session; earlier steps were measured by an earlier session."""
        if self._free_s is None:
            self._free_s = self._planned_s - self._planned_left_s()

    def advance(self, steps: int) -> None:
        """Note that the given number of steps is done, measured or not."""
        self.done += steps
        planned_left_s = self._planned_left_s()
        measured_s = 0.0 if self._free_s is None else self._planned_s - planned_left_s - self._free_s
        self._at_s = self._clock()
        pace = (self._at_s - self._begun_s + TRUSTED_S) / (measured_s + TRUSTED_S)
        self._left_s = planned_left_s * pace

    def left_s(self) -> float:
        """Return seconds that the rest will take."""
        return max(0.0, self._left_s - (self._clock() - self._at_s))

    def ahead(self) -> tuple[Stage, ...]:
        """Return the stages still to come; of the first, what is left of it."""
        behind, found = self.done, []
        for stage in self._stages:
            left = min(stage.steps, stage.steps - behind)
            behind = max(0, behind - stage.steps)
            if left > 0:
                found.append(dataclasses.replace(stage, steps=left, seconds=stage.seconds * left / stage.steps))
        return tuple(found)

    def _planned_left_s(self) -> float:
        return sum(stage.seconds for stage in self.ahead())
