# SPDX-License-Identifier: BSD-3-Clause
"""The steps of a plan that are still to come and their estimated time, corrected by the pace of this session."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from planebench.analysis.search.methods import METHODS
from planebench.model.plan import Plan
from planebench.model.records import Point
from planebench.model.switch import USUAL_COST
from planebench.plan.estimate import expected_trials, visit_s
from planebench.plan.passes import Costs, Visit, latency_of, passes, searches_of

LATENCY = "latency"


@dataclass(frozen=True, slots=True)
class Stage:
    """One method on one topology: about so many trials.

    ``method``: ``r_plus``, a search, or ``latency``. ``seconds``: by the plan, starting the switches included.
    """

    topology: str
    method: str
    steps: int
    seconds: float


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
    steps = {"r_plus": len(visit.group.points) * len(visit.repetitions)}
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
            yield Stage(visit.group.points[0].scenario_label, method, n, weights[method] * a_weight_s)


class Pace:
    """Counts the trials of a run, in the order of its stages: ``done`` of ``steps``."""

    def __init__(self, planned: Sequence[Stage], clock: Callable[[], float] = time.monotonic) -> None:
        self._ahead = list(planned)
        self._clock = clock
        self._begun_s = self._at_s = clock()
        self._measures = False
        self._measured_s = 0.0
        """Planned seconds of the trials that this session has measured."""
        self._trial_s = 0.0
        """Planned seconds of one trial of the stage that goes on."""
        self.done = 0
        self._look()

    @property
    def steps(self) -> int:
        """Return the number of all trials: those done, and those that are expected."""
        return self.done + sum(stage.steps for stage in self._ahead)

    def extend(self, more: Sequence[Stage]) -> None:
        """Add stages at the end: a further pass begins."""
        self._ahead += more
        self._look()

    def trial_begins(self) -> None:
        """Note the first trial of a session; earlier ones were measured by an earlier session."""
        self._measures = True

    def advance(self, steps: int = 1, *, expected: bool = True) -> None:
        """Note that trials are done; some are not expected, as a search takes as many as it takes."""
        seconds = self._take(steps) if expected else steps * self._trial_s
        self.done += steps
        self._measured_s += seconds if self._measures else 0.0
        self._look()

    def drop(self, steps: int) -> None:
        """Note that the next trials will not take place, as of a search that has ended."""
        self._take(steps)
        self._look()

    def left_s(self) -> float:
        """Return seconds that the rest will take."""
        return max(0.0, self._left_s - (self._clock() - self._at_s))

    def _take(self, steps: int) -> float:
        """Return the planned seconds of the next trials, which are no longer ahead."""
        seconds = 0.0
        while steps > 0 and self._ahead:
            stage = self._ahead.pop(0)
            taken, self._trial_s = min(steps, stage.steps), stage.seconds / stage.steps
            if left := stage.steps - taken:
                self._ahead.insert(0, dataclasses.replace(stage, steps=left, seconds=left * self._trial_s))
            seconds += taken * self._trial_s
            steps -= taken
        return seconds

    def _look(self) -> None:
        self._at_s = self._clock()
        pace = (self._at_s - self._begun_s + TRUSTED_S) / (self._measured_s + TRUSTED_S)
        self._left_s = pace * sum(stage.seconds for stage in self._ahead)
