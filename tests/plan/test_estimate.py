# SPDX-License-Identifier: BSD-3-Clause
from __future__ import annotations

from typing import Any

import pytest

from planebench.model.switch import USUAL_COST, SwitchCost
from planebench.plan.estimate import estimate, expected_trials
from planebench.plan.expand import expand
from planebench.plan.override import override
from planebench.plan.passes import SOCKET_S
from planebench.plan.schema import plan_from_document

START_S, TRIAL_OVERHEAD_S = USUAL_COST.start_s, USUAL_COST.trial_overhead_s
P2P_START_S = START_S - SOCKET_S


@pytest.mark.parametrize(
    ("scenario", "loads", "latency_trials"), [("p2p", "0.1,0.5", 2), ("v2v", "0.1,0.5", 1), ("p2p", "none", 0)]
)
def test_one_point(document: dict[str, Any], scenario: str, loads: str, latency_trials: int) -> None:
    plan = plan_from_document(document, "x")
    plan = override(plan, switch="planed", scenario=scenario, frame_size="64", loads=loads)
    (point,) = expand(plan)
    trials_s = 2 * (1.0 + TRIAL_OVERHEAD_S) + latency_trials * (0.5 + TRIAL_OVERHEAD_S)
    starts_s = 2 * P2P_START_S if scenario == "p2p" else 3 * START_S  # one more to have everything sent back
    assert estimate(plan, [point]) == pytest.approx(starts_s + trials_s)


def test_a_topology_is_started_once_for_each_switch_and_repetition(document: dict[str, Any]) -> None:
    plan = plan_from_document(document, "x")
    points = expand(plan)
    per_point = estimate(plan, points[:1]) - 2 * P2P_START_S
    assert len(points) == 12
    assert estimate(plan, points) == pytest.approx(2 * (2 * P2P_START_S + 4 * START_S - 2 * SOCKET_S) + 12 * per_point)


def test_nothing_takes_no_time(document: dict[str, Any]) -> None:
    assert estimate(plan_from_document(document, "x"), ()) == 0


def test_a_search_takes_time_and_a_restart_another_start(document: dict[str, Any]) -> None:
    plan = override(plan_from_document(document, "x"), switch="planed", scenario="p2p", frame_size="64", loads="none")
    points = expand(plan)
    base = estimate(plan, points)
    assert estimate(override(plan, restarts=0), points) == pytest.approx(base - P2P_START_S)
    searched = override(plan, search="rfc2544,bswlv", search_duration=2.0, max_r=3)
    trials = expected_trials(searched, "rfc2544") + expected_trials(searched, "bswlv")
    assert estimate(searched, points) == pytest.approx(base + trials * (2.0 + TRIAL_OVERHEAD_S))
    assert expected_trials(searched, "bswlv") % 3 == 0


def test_a_switch_that_starts_slowly_makes_the_run_longer(document: dict[str, Any]) -> None:
    plan = override(plan_from_document(document, "x"), switch="planed,other", scenario="p2p", frame_size="64")
    points = expand(plan)
    slow = estimate(plan, points, {"other": SwitchCost(start_s=START_S + 20)})
    assert slow == pytest.approx(estimate(plan, points) + 2 * 20), "two repetitions, two starts"
