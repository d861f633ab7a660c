# SPDX-License-Identifier: BSD-3-Clause
"""The stated time of a run holds: campaigns on simulated switches whose starts and trials pass time on a clock."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from unittest.mock import MagicMock

import pytest
from builders import make_header

from planebench.measure.campaign import Campaign
from planebench.measure.live import LiveSettings
from planebench.measure.trial import TrialRequest
from planebench.model.plan import Plan
from planebench.model.quantity import utc_text
from planebench.model.records import Trial
from planebench.model.run import Run
from planebench.placement import Cpus
from planebench.plans.costs import REPEAT_WAIT_S, overhead_s
from planebench.plans.estimate import estimate, estimate_longest
from planebench.plans.expand import expand, switch_labels
from planebench.plans.load import load_plan
from planebench.plans.override import override
from planebench.plans.tries import USUAL_TRIES, expected_tries
from planebench.sim.runner import SimRunner
from planebench.sim.spec import SimSpec
from planebench.stats.looks import Open
from planebench.store import RunWriter, read_run
from planebench.switches.registry import get_adapter
from planebench.switches.sim import SimAdapter

EDGES_S = 4.0
"""The first starts and the last trial: time that further passes do not see, and that is in the reserve of a run."""


class Clock:
    """The time of a simulated run, in seconds."""

    def __init__(self, slower: float = 1.0) -> None:
        self.seconds, self._slower = 0.0, slower

    def take(self, seconds: float) -> None:
        self.seconds += self._slower * seconds

    def now(self) -> str:
        return utc_text(datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=self.seconds), "milliseconds")


class TimedRunner(SimRunner):
    """A simulated switch whose trials take their time; one that is repeated begins later."""

    def __init__(self, plan: Plan, spec: SimSpec, seed: int, past: Sequence[Trial], clock: Clock) -> None:
        super().__init__(spec, seed, past, clock.now)
        self._plan, self._clock, self._last = plan, clock, None

    def run(self, request: TrialRequest) -> Trial:
        self._clock.take(REPEAT_WAIT_S if request == self._last else 0.0)
        self._last = request
        trial = super().run(request)
        self._clock.take(request.duration_s + overhead_s(self._plan, {}, request.point))
        return trial


class TimedAdapter(SimAdapter):
    """A simulated switch whose start takes its time."""

    def __init__(self, plan: Plan, spec: SimSpec, clock: Clock) -> None:
        super().__init__(spec)
        self._plan, self._clock = plan, clock

    def runner(self, label: str, seed: int, past: Sequence[Trial]) -> TimedRunner:
        self._clock.take(self.cost.start_s)
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
            adapters={label: TimedAdapter(plan, it.spec, clock) for label, it in adapters.items()},
            cpus=Cpus((0, 1)),
            settings=LiveSettings(Path("planed"), ring_size=256, hugepages=False, max_frame_bytes=1518, wire="memif"),
            writer=writer,
            listener=MagicMock(),
            supervisor=MagicMock(),
            decide=decide,
            clock=lambda: clock.seconds,
        ).run()
    return clock.seconds, read_run(writer.path).trials


@pytest.mark.parametrize("slower", [0.95, 1.05])
@pytest.mark.parametrize("disturbed", ["0%", "20%", "50%", "90%"])
def test_a_run_ends_within_its_stated_time_however_many_trials_are_disturbed(
    tmp_path: Path, disturbed: str, slower: float
) -> None:
    """Repetitions and further passes end with it; of the passes that every point gets no trial is left out."""
    plan = plan_of(disturbed)
    points, tries = expand(plan), dict.fromkeys(("r_plus", "latency"), USUAL_TRIES)
    most_s = estimate_longest(plan, points, {}, tries)
    took_s, trials = run(replace(plan, time_budget_s=most_s), tmp_path, slower=slower)
    assert 0.85 * most_s < took_s < most_s + EDGES_S
    wanted = {(point, number) for point in points for number in range(plan.throughput.repetitions)}
    assert wanted <= {(t.point, t.repetition) for t in trials if t.role == "r_plus"}
    assert (max(t.repetition for t in trials) > 2) == (disturbed in ("0%", "20%"))


def test_a_run_takes_as_long_as_the_repetitions_of_the_last_one_tell(tmp_path: Path) -> None:
    plan = plan_of("40%", frame_size="64,256,1024")
    plan = replace(plan, throughput=replace(plan.throughput, repetitions_max=None))
    points = expand(plan)
    first_s, past = run(plan, tmp_path / "first")
    tries = expected_tries(past)
    assert tries["r_plus"] == pytest.approx(1.6, abs=0.15)
    second_s, _ = run(replace(plan, seed=2), tmp_path / "second")
    for took_s in (first_s, second_s):
        assert estimate(plan, points, {}, tries) == pytest.approx(took_s, rel=0.05)
    assert estimate(plan, points) < 0.8 * first_s


def test_of_roles_with_few_trials_the_usual_is_expected() -> None:
    assert set(expected_tries(()).values()) == {USUAL_TRIES}


def test_a_time_budget_ends_repetitions_in_the_estimate_too() -> None:
    plan, twice = plan_of("0%"), {"r_plus": 2.0, "latency": 2.0}
    points = expand(plan)
    once_s, twice_s = estimate(plan, points), estimate(plan, points, {}, twice)
    assert twice_s > 1.6 * once_s
    tight = replace(plan, time_budget_s=1.2 * once_s)
    assert (
        estimate(tight, points, {}, twice) == estimate_longest(tight, points, {}, twice) == pytest.approx(1.2 * once_s)
    )
    impossible = replace(plan, time_budget_s=0.5 * once_s)
    assert estimate(impossible, points, {}, twice) == once_s
