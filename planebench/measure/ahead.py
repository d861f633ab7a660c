# SPDX-License-Identifier: BSD-3-Clause
"""What of a plan is still to come, and how long it takes: the plan's own estimate, mended by how this session goes."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Sequence

from planebench.model.records import Point
from planebench.model.status import Stage
from planebench.plans import Group, Plan, group_points
from planebench.plans.estimate import START_S, expected_trials, trial_s
from planebench.traffic import latency_labels

LATENCY = "latency"

TRUSTED_S = 10.0
"""For so many seconds of a session the plan's estimate weighs as much as what was seen of the session itself."""


def stages(plan: Plan, points: Sequence[Point]) -> tuple[Stage, ...]:
    """A plan as a campaign works it off: topology by topology, R+ first, then each search, then latency."""
    found = (_stage(plan, group, m) for group in group_points(points) for m in _methods(plan))
    return tuple(stage for stage in found if stage.steps)


def _methods(plan: Plan) -> tuple[str, ...]:
    return ("r_plus", *plan.search.methods, LATENCY)


def _stage(plan: Plan, group: Group, method: str) -> Stage:
    steps = len(group.points) * _steps_a_point(plan, group, method)
    starts = len(group.switches) * (1 + plan.throughput.restarts) if method == "r_plus" else 0
    seconds = steps * trial_s(plan, method) + starts * START_S
    return Stage(group.points[0].scenario_label, method, len(group.points), steps, seconds)


def _steps_a_point(plan: Plan, group: Group, method: str) -> int:
    if method != LATENCY:
        return expected_trials(plan, method)
    latency = plan.latency
    labels = latency_labels(group.scenario, latency.loads, latency.v2v_pps, latency.rates_pps)
    return len(labels) * latency.repetitions


class Pace:
    """Counts the steps of a run, in the order of its stages."""

    def __init__(self, planned: Sequence[Stage], clock: Callable[[], float] = time.monotonic) -> None:
        self._stages = tuple(planned)
        self._clock = clock
        self._begun_s = self._at_s = clock()
        self._free_s: float | None = None
        """Planned seconds that cost this session nothing; None before its first trial."""
        self.done = 0
        self._left_s = self._planned_left_s()

    @property
    def steps(self) -> int:
        """How many steps there are in all."""
        return sum(stage.steps for stage in self._stages)

    def trial_begins(self) -> None:
        """The first trial of a session: what was dealt with before has been measured by an earlier one."""
        if self._free_s is None:
            self._free_s = self._passed_s()

    def advance(self, steps: int) -> None:
        """So many steps are dealt with, measured or not."""
        self.done += steps
        measured_s = 0.0 if self._free_s is None else self._passed_s() - self._free_s
        self._at_s = self._clock()
        pace = (self._at_s - self._begun_s + TRUSTED_S) / (measured_s + TRUSTED_S)
        self._left_s = self._planned_left_s() * pace

    def left_s(self) -> float:
        """Seconds that the rest will take."""
        return max(0.0, self._left_s - (self._clock() - self._at_s))

    def ahead(self) -> tuple[Stage, ...]:
        """The stages still to come; of the first, what is left of it."""
        behind, found = self.done, []
        for stage in self._stages:
            left = min(stage.steps, stage.steps - behind)
            behind = max(0, behind - stage.steps)
            if left > 0:
                found.append(dataclasses.replace(stage, steps=left, seconds=stage.seconds * left / stage.steps))
        return tuple(found)

    def _planned_left_s(self) -> float:
        return sum(stage.seconds for stage in self.ahead())

    def _passed_s(self) -> float:
        return sum(stage.seconds for stage in self._stages) - self._planned_left_s()
