# SPDX-License-Identifier: BSD-3-Clause
"""Steps of a history: found, at the right commits, with their cause. The bars with many seeds: bench/trends.py."""

import math
import random
import sys
from dataclasses import replace
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "bench"))

import trends
from trends import SERIES

from planebench.stats.steps import find_changes
from planebench.stats.trend import Sample, find_trend

pytest.importorskip("jumpavg")


def samples(levels: list[tuple[int, float]], noise: float = 0.005, seed: int = 1, **facts: str) -> list[Sample]:
    """Return runs of so many commits at each level."""
    rng = random.Random(seed)
    figures = [level * math.exp(rng.gauss(0, noise)) for n, level in levels for _ in range(n)]
    return [replace(trends._sample(i, figure, 0), facts=dict(facts)) for i, figure in enumerate(figures)]


@pytest.mark.parametrize("seed", range(4))
def test_a_history_of_200_commits(seed: int) -> None:
    found = trends.judged(seed)
    assert found.recalled >= trends.RECALL_MIN
    assert found.false <= trends.FALSE_MAX
    assert found.unnamed == 0


def test_a_step_is_in_its_range_with_its_size_and_price() -> None:
    trend = find_trend(SERIES, samples([(20, 10.0), (20, 9.5)]))
    (step,) = trend.steps
    assert (step.change.kind, step.cause, step.change.opinion) == ("step", "commit", "both")
    assert step.before.run_id == "run-19" and step.after.run_id == "run-20"
    assert step.low < 0.95 < step.high
    assert step.confirm_runs == 3 and step.confirm_minutes == pytest.approx(2 * 3 * 2.0)


def test_a_small_step_costs_more_to_confirm() -> None:
    (step,) = find_trend(SERIES, samples([(40, 10.0), (40, 9.9)])).steps
    assert step.confirm_runs is not None and step.confirm_runs > 3


@pytest.mark.parametrize("seed", range(3))
def test_a_level_with_noise_has_no_step(seed: int) -> None:
    assert find_trend(SERIES, samples([(100, 10.0)], noise=0.02, seed=seed)).steps == ()


def test_a_single_run_is_no_level() -> None:
    history = samples([(15, 10.0), (1, 8.0), (15, 10.0)])
    assert find_trend(SERIES, history).steps == ()


def test_two_last_runs_are_not_a_level_yet() -> None:
    history = samples([(15, 10.0), (2, 8.0)])
    assert find_trend(SERIES, history).steps == ()
    (step,) = find_trend(SERIES, samples([(15, 10.0), (3, 8.0)])).steps
    assert step.change.at == 15


def test_a_changed_kernel_is_named_instead_of_the_commit() -> None:
    history = samples([(20, 10.0), (20, 9.5)], kernel="6.1")
    history = [replace(it, facts={"kernel": "6.5"}) if i >= 20 else it for i, it in enumerate(history)]
    (step,) = find_trend(SERIES, history).steps
    assert step.cause == "environment"
    assert step.changed == ("kernel: 6.1 → 6.5 in run-20",)


def test_a_step_without_a_new_commit_or_fact_is_unknown() -> None:
    history = [replace(it, commit="a" * 40, committed_at="") for it in samples([(20, 10.0), (20, 9.5)])]
    (step,) = find_trend(SERIES, history).steps
    assert step.cause == "unknown"


def test_an_old_commit_measured_again_is_no_history() -> None:
    history = samples([(12, 10.0), (12, 9.5)])
    again = [
        replace(history[3], run_id=f"again-{i}", started_at=f"2026-12-0{i}T00:00:00Z", value=10.0) for i in (1, 2, 3)
    ]
    trend = find_trend(SERIES, [*history, *again])
    assert len(trend.steps) == 1
    assert [it.run_id for it in trend.left_out] == ["again-1", "again-2", "again-3"]


def test_few_runs_are_told() -> None:
    assert find_trend(SERIES, samples([(5, 10.0)])).problem == "5 runs; steps need 6"


def test_equal_figures_are_one_level() -> None:
    assert find_changes([10.0] * 30).found == ()
    (change,) = find_changes([10.0] * 10 + [9.0] * 10).found
    assert (change.kind, change.first, change.at, change.last) == ("step", 9, 10, 10)


def test_a_ramp_is_one_change() -> None:
    slope = [10.0 * (1 - 0.05 * min(max(i - 20, 0) / 20, 1)) for i in range(60)]
    rng = random.Random(3)
    found = find_changes([value * math.exp(rng.gauss(0, 0.002)) for value in slope]).found
    assert [it.kind for it in found] == ["ramp"]
    assert 15 <= found[0].first <= 25 and 35 <= found[0].last <= 45
