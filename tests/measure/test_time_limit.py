# SPDX-License-Identifier: BSD-3-Clause
"""The stated time of a run holds: campaigns on simulated switches whose starts and trials pass time on a clock."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from unittest.mock import MagicMock

import pytest
from builders import make_header, planned_trials

from planebench.analysis.compare import Open
from planebench.measure.ahead import Pace, stages
from planebench.measure.campaign import Campaign
from planebench.measure.live import LiveSettings
from planebench.measure.sim.adapter import SimAdapter
from planebench.measure.sim.runner import SimRunner, SimSpec
from planebench.measure.trial import TrialRequest
from planebench.model.cpus import Cpus
from planebench.model.header import Run
from planebench.model.plan import Plan
from planebench.model.records import Trial
from planebench.model.switch import USUAL_COST, SwitchCost, Value
from planebench.model.text import utc_text
from planebench.plan.estimate import estimate, estimate_longest
from planebench.plan.expand import expand, switch_labels
from planebench.plan.override import override
from planebench.plan.passes import SOCKET_S, overhead_s
from planebench.plan.schema import load_plan
from planebench.store import RunWriter, read_run
from planebench.switches.registry import get_adapter

COSTS = dict.fromkeys(("sim", "sim#2"), SwitchCost(start_s=USUAL_COST.start_s - SOCKET_S))
"""Starts as fast as without VNFs, on every topology."""


class Clock:
    """The time of a simulated run, in seconds."""

    def __init__(self, slower: float = 1.0) -> None:
        self.seconds, self._slower = 0.0, slower

    def take(self, seconds: float) -> None:
        self.seconds += self._slower * seconds

    def now(self) -> str:
        return utc_text(datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=self.seconds), "milliseconds")


class TimedRunner(SimRunner):
    """A simulated switch whose trials take their time."""

    def __init__(self, plan: Plan, spec: SimSpec, seed: int, past: Sequence[Trial], clock: Clock) -> None:
        super().__init__(spec, seed, past, clock.now)
        self._plan, self._clock = plan, clock

    def run(self, request: TrialRequest) -> Trial:
        trial = super().run(request)
        self._clock.take(request.duration_s + overhead_s(self._plan, {}, request.point))
        return trial


class TimedAdapter(SimAdapter):
    """A simulated switch whose start takes its time."""

    def __init__(self, plan: Plan, values: Mapping[str, Value], clock: Clock) -> None:
        super().__init__(values)
        self._plan, self._clock = plan, clock

    def runner(self, label: str, seed: int, past: Sequence[Trial]) -> TimedRunner:
        self._clock.take(COSTS["sim"].start_s)
        return TimedRunner(self._plan, self.spec, seed, past, self._clock)


def plan_of(disturbed: str, **options: object) -> Plan:
    """conext19 in three to five passes, and without its searches, whose number of trials is a guess."""
    spec = f"sim:disturbed_share={disturbed}"
    chosen = {"scenario": "p2p,v2v", "frame_size": "64", "hosting": "process", "wire": "memif", "search": "r_plus"}
    chosen |= options
    plan = override(load_plan("conext19"), switch=f"{spec},{spec}:capacity=9M", **chosen)
    return replace(_shorter(plan), parts=tuple(map(_shorter, plan.parts)))


def _shorter(plan: Plan) -> Plan:
    throughput = replace(plan.throughput, repetitions=3, repetitions_max=5)
    return replace(plan, throughput=throughput, latency=replace(plan.latency, repetitions=3))


def run(plan: Plan, folder: Path, *, slower: float = 1.0, always_open: bool = True) -> tuple[float, tuple[Trial, ...]]:
    """Run a plan; return its seconds and its trials. ``always_open``: further passes have every point."""
    clock = Clock(slower)
    points = tuple(replace(point, switch="") for point in expand(plan) if point.switch == "sim")

    def decide(run: Run) -> tuple[Open, ...]:
        return tuple(Open(point, ("sim", "sim#2"), 2) for point in points) if always_open else ()

    adapters = {label.label: get_adapter(label.adapter) for label in switch_labels(plan.switches)}
    with RunWriter.create(folder, make_header()) as writer:
        Campaign(
            plan=plan,
            points=expand(plan),
            adapters={label: TimedAdapter(plan, it.values, clock) for label, it in adapters.items()},
            cpus=Cpus((0, 1)),
            settings=LiveSettings(Path("planed"), ring_size=256, hugepages=False, max_frame_bytes=1518, wire="memif"),
            writer=writer,
            pace=Pace(()),
            listener=MagicMock(),
            supervisor=MagicMock(),
            decide=decide,
        ).run()
    return clock.seconds, read_run(writer.path).trials


@pytest.mark.parametrize("disturbed", ["0%", "90%"])
def test_a_run_takes_the_time_that_was_said_whatever_the_host_does(tmp_path: Path, disturbed: str) -> None:
    plan = plan_of(disturbed)
    points = expand(plan)
    took_s, trials = run(plan, tmp_path, always_open=False)
    assert took_s == pytest.approx(estimate(plan, points, COSTS), rel=1e-6)
    assert took_s == pytest.approx(sum(stage.seconds for stage in stages(plan, points, COSTS))), "so does the bar"
    assert len(trials) == planned_trials(plan, points)


@pytest.mark.parametrize("slower", [0.95, 1.05])
def test_further_passes_end_within_the_stated_time(tmp_path: Path, slower: float) -> None:
    """Of the passes that every point gets no trial is left out, even where there is no time for them."""
    plan = plan_of("0%")
    points = expand(plan)
    most_s = estimate_longest(plan, points, COSTS)
    took_s, trials = run(replace(plan, time_budget_s=most_s), tmp_path / "most", slower=slower)
    assert 0.85 * most_s < took_s < 1.05 * most_s
    assert max(t.repetition for t in trials) > 2
    short, trials = run(replace(plan, time_budget_s=0.1 * most_s), tmp_path / "short", slower=slower)
    assert short == pytest.approx(slower * estimate(plan, points, COSTS))
    assert len(trials) == planned_trials(plan, points)


def test_the_longest_time_is_the_budget_but_never_less_than_the_shortest() -> None:
    plan = plan_of("0%")
    points = expand(plan)
    once_s = estimate(plan, points)
    assert estimate_longest(plan, points) > 1.3 * once_s
    assert estimate_longest(replace(plan, time_budget_s=1.2 * once_s), points) == pytest.approx(1.2 * once_s)
    assert estimate_longest(replace(plan, time_budget_s=0.5 * once_s), points) == once_s


@pytest.mark.parametrize(("slower", "passes"), [(1.0, 5), (1.1, 4), (1.4, 3), (3.0, 3)])
def test_passes_after_the_third_begin_only_while_there_is_time(tmp_path: Path, slower: float, passes: int) -> None:
    plan = plan_of("0%", loads="none", traffic="plain")
    plan = replace(plan, parts=(), throughput=replace(plan.throughput, repetitions=5, repetitions_max=8))
    budget_s = 1.01 * estimate(plan, expand(plan), COSTS)
    _, trials = run(replace(plan, time_budget_s=budget_s), tmp_path, slower=slower, always_open=False)
    assert {t.repetition for t in trials} == set(range(passes))
