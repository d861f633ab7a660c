# SPDX-License-Identifier: BSD-3-Clause
"""--time-budget: what is made shorter, in which order, and where it ends."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planebench.model.errors import UsageError
from planebench.model.plan import Plan
from planebench.plan import list_suites
from planebench.plan.estimate import (
    LEAST_MAX,
    LONG_S,
    REPETITIONS_MAX,
    RESERVE_S,
    TRIAL_FLOOR_S,
    describe,
    duration_words,
    estimate,
    fit,
    parse_budget,
)
from planebench.plan.expand import expand
from planebench.plan.override import override
from planebench.plan.schema import load_plan, plan_from_document

SUITES = {name: plan for name in list_suites() if (plan := load_plan(name)).throughput.repetitions <= 20}
"""All but those of very many starts, whose estimates take a second each."""


def time_of(plan: Plan) -> float:
    return estimate(plan, expand(plan)) + RESERVE_S


@pytest.mark.parametrize(
    ("text", "seconds"), [("90s", 90), ("20m", 1200), ("1h", 3600), ("1.5h", 5400), ("45", 45), (" 2m ", 120)]
)
def test_times(text: str, seconds: float) -> None:
    assert parse_budget(text) == seconds


@pytest.mark.parametrize("text", ["", "m", "0s", "-1m", "1d", "1m30s", "nan", "9999h"])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"is not valid. Valid: e.g. 90s, 20m, 1h"):
        parse_budget(text)


@settings(max_examples=10, deadline=None)
@given(st.sampled_from(sorted(SUITES)), st.floats(30, 7200))
def test_it_fits_or_is_as_short_as_it_can_be_or_another_plan_was_meant(suite: str, budget_s: float) -> None:
    plan = override(SUITES[suite], switch="planed,testpmd")
    points = expand(plan)
    try:
        fitted = fit(plan, points, budget_s)
    except UsageError as error:
        assert "does not fit into" in str(error)
        least_s = time_of(fit(plan, points, 50 * budget_s))
        assert least_s > LEAST_MAX * budget_s
        return
    assert expand(fitted) == points
    assert fitted.time_budget_s == budget_s - RESERVE_S
    if time_of(fitted) > budget_s:
        assert time_of(fitted) <= LEAST_MAX * budget_s
        assert fitted.throughput.duration_s == min(TRIAL_FLOOR_S, plan.throughput.duration_s)
        assert {part.latency.repetitions for part in fitted.sections} == {1}


def test_latency_is_repeated_less_before_switches_are_started_less() -> None:
    plan = override(SUITES["quick"], switch="sim,sim", scenario="p2p,v2v")
    fitted = [fit(plan, expand(plan), budget_s) for budget_s in range(100, 20, -2)]
    stages = dict.fromkeys((it.throughput.restarts, it.latency.repetitions) for it in fitted)
    assert list(stages) == [(None, 3), (None, 2), (None, 1), (1, 1)]


def test_lengths_go_first_then_repetitions_then_restarts(document: dict[str, Any]) -> None:
    document["throughput"] |= {"repetitions": 5, "restarts": 3}
    plan = plan_from_document(document, "it")
    points = expand(plan)
    seen = []
    for budget_s in range(int(time_of(plan)) + 1, 0, -2):
        try:
            throughput = fit(plan, points, budget_s).throughput
        except UsageError:
            break
        seen.append((throughput.restarts, throughput.repetitions, throughput.duration_s))
    stages = list(dict.fromkeys((restarts, repetitions) for restarts, repetitions, _ in seen))
    assert stages == [(3, 5), (3, 4), (2, 3), (1, 3), (0, 3)]
    for stage in stages:
        lengths = [length for *others, length in seen if tuple(others) == stage]
        assert lengths == sorted(lengths, reverse=True)
    assert min(length for *_, length in seen) >= TRIAL_FLOOR_S


def test_time_over_makes_trials_longer_then_more_of_them(document: dict[str, Any]) -> None:
    plan = plan_from_document(document, "it")
    points = expand(plan)
    longer = fit(plan, points, time_of(plan) * 1.2)
    assert longer.throughput.repetitions == 2 and longer.throughput.duration_s > 1.0
    assert longer.latency.duration_s == pytest.approx(longer.throughput.duration_s / 2, abs=0.002)
    most = fit(plan, points, 1e5)
    assert (most.throughput.duration_s, most.latency.duration_s) == (LONG_S, LONG_S)
    assert most.throughput.repetitions == REPETITIONS_MAX


def test_loads_of_latency_go_before_starts_that_narrow_every_interval() -> None:
    plan = override(SUITES["quick"], switch="sim,sim", scenario="p2p,v2v")
    fitted = [fit(plan, expand(plan), budget_s) for budget_s in range(150, 40, -2)]
    stages = dict.fromkeys((it.throughput.repetitions, it.latency.loads, it.latency.repetitions) for it in fitted)
    assert list(stages)[:4] == [(5, (0.1, 0.5, 0.9), 3), (5, (0.5,), 3), (4, (0.5,), 3), (3, (0.5,), 3)]


def test_there_is_at_most_one_restart_between_two_passes() -> None:
    plan = override(SUITES["quick"], switch="sim,sim", scenario="p2p,v2v", restarts=4)
    found = {fit(plan, expand(plan), budget_s).throughput for budget_s in range(40, 160, 10)}
    assert {it.repetitions for it in found} >= {3, 4, 5}
    assert all(it.restarts is not None and it.restarts < it.repetitions for it in found)


def test_further_passes_get_the_time_that_is_over() -> None:
    plan = override(SUITES["quick"], switch="sim")
    rich = fit(plan, expand(plan), 1e5)
    assert rich.throughput == replace(plan.throughput, repetitions=5) and rich.latency == plan.latency
    assert rich.time_budget_s == 1e5 - RESERVE_S


def test_a_plan_that_is_longer_or_shorter_than_the_limits_stays_so(document: dict[str, Any]) -> None:
    document["throughput"] |= {"duration_s": 0.05, "repetitions": 2}
    document["latency"]["duration_s"] = 30.0
    plan = plan_from_document(document, "it")
    short = fit(plan, expand(plan), 120)
    assert (short.throughput.duration_s, short.throughput.repetitions) == (0.05, 2)
    assert fit(plan, expand(plan), 1e5).latency.duration_s == 30.0


def test_a_latency_trial_keeps_probes_for_its_percentiles(document: dict[str, Any]) -> None:
    document["latency"] = {"loads": [0.5], "duration_s": 5.0, "probe_rate_pps": 200}
    plan = plan_from_document(document, "it")
    with pytest.raises(UsageError, match="does not fit"):
        fit(plan, expand(plan), 1)
    assert all(fit(plan, expand(plan), s).latency.duration_s * 200 >= 100 for s in (90, 100, 150))
    slow = override(plan, loads="none", rates="10")
    assert fit(slow, expand(slow), 90).latency.duration_s * 10 >= 20


def test_searches_shrink_from_their_standard_and_grow_no_further_than_it(document: dict[str, Any]) -> None:
    plan = override(plan_from_document(document, "it"), search="ndr", loads="none")
    points = expand(plan)
    assert fit(plan, points, 1e5).search.duration_s is None
    assert 0.1 <= (fit(plan, points, time_of(plan) / 2).search.duration_s or 0) < 1.0


def test_every_part_is_scaled_alike() -> None:
    plan = override(SUITES["conext19"], switch="sim,testpmd")
    without_vms = [point for point in expand(plan) if point.hosting != "vm"]
    fitted = fit(plan, without_vms, 300)
    assert {part.throughput for part in fitted.parts} == {fitted.throughput}
    assert len({part.latency.duration_s for part in fitted.parts}) == 1
    assert fitted.parts[1].latency.duration_s < plan.parts[1].latency.duration_s


def test_what_it_chose_is_said_in_one_line() -> None:
    plan = override(SUITES["conext19"], switch="sim", search="ndr")
    assert describe(plan) == (
        "5 to 8 saturating trials of 0.5 s after 0.1 s of warm-up, each after a start of the switch; "
        "search trials of 0.1 s; 5 latency trials of 0.5 s per load"
    )
    assert describe(override(SUITES["quick"], loads="none", restarts=0)).endswith("over 1 start of the switch")


def test_times_in_words() -> None:
    assert [duration_words(s) for s in (45.2, 252, 7200)] == ["45 s", "4.2 minutes", "2.0 hours"]
