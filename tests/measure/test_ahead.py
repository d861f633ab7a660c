# SPDX-License-Identifier: BSD-3-Clause
"""What of a plan is to come, and how long that takes."""

from __future__ import annotations

import pytest
from builders import planned_trials

from planebench.measure.ahead import TRUSTED_S, Pace, Stage, stages
from planebench.plan.estimate import estimate
from planebench.plan.expand import expand
from planebench.plan.override import override
from planebench.plan.schema import load_plan

STAGES = (Stage("p2p", "r_plus", 10, 20.0), Stage("p2p", "latency", 4, 40.0), Stage("v2v", "r_plus", 5, 10.0))


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.mark.parametrize(
    "options", [{}, {"plan": "conext19"}, {"search": "ndr,b2b", "restarts": 1, "repeat": 4}, {"loads": "none"}]
)
def test_stages_are_all_of_a_plan(options: dict[str, object]) -> None:
    name = str(options.get("plan", "quick"))
    plan = override(load_plan(name), **{key: value for key, value in options.items() if key != "plan"})
    points = expand(plan)
    found = stages(plan, points)
    assert sum(stage.steps for stage in found) == planned_trials(plan, points)
    assert sum(stage.seconds for stage in found) == pytest.approx(estimate(plan, points))
    of = [plan.latency.of] if plan.latency.loads and plan.latency.of != "r_plus" else []
    methods = ["r_plus", *of, *plan.search.methods, *(["latency"] if plan.latency.loads else [])]
    seen: dict[str, list[str]] = {}
    for stage in found:
        seen.setdefault(stage.topology, []).append(stage.method)
    assert set(seen) == {point.scenario_label for point in points}
    for order in seen.values():
        assert [m for m in dict.fromkeys(order) if m in methods] == [m for m in methods if m in order], (
            "searches after R+"
        )
        asked = plan.search.methods if not plan.parts else set(plan.search.methods) & set(order)  # a part has its own
        assert all(order.count(method) == plan.search.starts for method in asked)
    assert {s.method for s in found} == set(methods)


def test_what_is_ahead_shrinks_from_the_front(clock: Clock) -> None:
    pace = Pace(STAGES, clock)
    assert (pace.done, pace.steps, pace.left_s()) == (0, 19, 70.0)
    pace.advance(12)
    assert (pace.done, pace.steps, pace.left_s()) == (12, 19, 30.0)
    pace.advance(7)
    assert (pace.done, pace.steps, pace.left_s()) == (19, 19, 0.0)


def test_a_further_pass_comes_at_the_end(clock: Clock) -> None:
    pace = Pace(STAGES, clock)
    pace.advance(19)
    assert pace.left_s() == 0.0
    pace.extend((Stage("v2v", "r_plus", 4, 8.0),))
    assert (pace.steps, pace.left_s()) == (23, 8.0)


def test_the_time_left_goes_by_seconds_not_by_steps(clock: Clock) -> None:
    pace = Pace(STAGES, clock)
    assert pace.left_s() == 70.0
    pace.trial_begins()
    clock.now += 20
    pace.advance(10)
    assert pace.left_s() == 50.0, "10 of 19 steps, but 20 of 70 seconds"
    clock.now += 30
    assert pace.left_s() == 20.0, "it goes on falling while nothing is told"
    clock.now += 300
    assert pace.left_s() == 0.0


def test_a_machine_that_is_slower_than_the_plan_thinks(clock: Clock) -> None:
    pace = Pace(STAGES, clock)
    pace.trial_begins()
    clock.now += 60
    pace.advance(10)
    assert pace.left_s() == 50.0 * (60 + TRUSTED_S) / (20 + TRUSTED_S)


def test_what_an_earlier_session_measured_does_not_make_this_one_fast(clock: Clock) -> None:
    pace = Pace(STAGES, clock)
    pace.advance(10)
    assert pace.left_s() == 50.0
    pace.trial_begins()
    clock.now += 10
    pace.advance(1)
    assert pace.left_s() == 40.0


def test_a_search_that_takes_longer_than_expected_moves_both_ends(clock: Clock) -> None:
    pace = Pace((Stage("p2p", "ndr", 2, 4.0), Stage("p2p", "latency", 2, 6.0)), clock)
    pace.trial_begins()
    for second, (expected, left_s) in enumerate(((True, 8.0), (True, 6.0), (False, 6.0))):
        clock.now += 2
        pace.advance(expected=expected)
        assert (pace.done, pace.left_s()) == (second + 1, left_s)
    assert pace.steps == 5


def test_a_search_that_ends_early_leaves_less_and_is_no_sign_of_a_fast_machine(clock: Clock) -> None:
    pace = Pace((Stage("p2p", "ndr", 10, 20.0), Stage("p2p", "latency", 2, 6.0)), clock)
    pace.trial_begins()
    clock.now += 2
    pace.advance()
    pace.drop(9)
    assert (pace.done, pace.steps, pace.left_s()) == (1, 3, 6.0)
