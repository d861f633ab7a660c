# SPDX-License-Identifier: BSD-3-Clause
"""A search driven to its end on a simulated switch, a trial at a time, as a campaign does it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from builders import make_point, sim_spec

from planebench.analysis.search.replay import so_far, step
from planebench.analysis.search.task import Ask, SearchSettings
from planebench.measure.sim.runner import SimRunner
from planebench.measure.trial import TrialRequest
from planebench.model.records import Load, Point, Trial
from planebench.model.results import SearchResult

TRIALS_MAX = 1000


@dataclass
class Rig:
    """One point of a simulated switch and its log."""

    spec: str
    seed: int = 1
    settings: SearchSettings = field(default_factory=SearchSettings)
    point: Point = field(default_factory=lambda: make_point("sim"))
    trials: list[Trial] = field(default_factory=list)
    change: Callable[[Trial], Trial] = field(default=lambda trial: trial)

    def __post_init__(self) -> None:
        self.runner = SimRunner(sim_spec(self.spec), self.seed, self.trials, now=lambda: "")

    def next(self, method: str, repetition: int = 0) -> Ask | SearchResult:
        return step(method, self.settings, self.point, self.trials, repetition)

    def answer(self, method: str, ask: Ask) -> None:
        senders = 2 if self.point.direction == "bidirectional" else 1
        load = Load("saturating") if ask.load_pps is None else Load("paced", ask.load_pps / senders)
        self._run(TrialRequest(self.point, "search", load, ask.duration_s, repetition=ask.repetition, search=method))

    def saturate(self, repetitions: int) -> None:
        for repetition in range(repetitions):
            duration_s = self.settings.r_plus_duration_s
            self._run(TrialRequest(self.point, "r_plus", Load("saturating"), duration_s, repetition=repetition))

    def _run(self, request: TrialRequest) -> None:
        trial = self.change(self.runner.run(request))
        self.trials.append(dataclasses.replace(trial, index=len(self.trials)))

    def finish(self, method: str, repetition: int = 0) -> SearchResult:
        while isinstance(answer := self.next(method, repetition), Ask):
            assert len(self.trials) < TRIALS_MAX, f"{method} on {self.spec}: no end in sight"
            self.answer(method, answer)
        return answer

    def so_far(self, method: str, trials: Sequence[Trial]) -> SearchResult:
        return so_far(method, self.settings, self.point, trials)

    def used(self, result: SearchResult) -> list[Trial]:
        return [self.trials[i] for i in result.trials]


@pytest.fixture
def rig() -> Callable[..., Rig]:
    def make(spec: str, seed: int = 1, **settings: Any) -> Rig:
        point = settings.pop("point", None) or make_point("sim")
        return Rig(spec, seed, SearchSettings(**settings), point)

    return make
