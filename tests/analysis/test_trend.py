# SPDX-License-Identifier: BSD-3-Clause
"""Steps of a history: found, at the right commits, with their cause. The bars with many seeds: bench/trends.py."""

import math
import random
import sys
from dataclasses import replace
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[2] / "bench"))  # after tests, which has a folder nf of its own

import trends

from planebench.analysis.trend import Series, TrendPoint, find_changes, find_trend

SERIES = Series("bed1", "vpp", "p2p/unidirectional/64/virtio/process", "throughput")


def samples(levels: list[tuple[int, float]], noise: float = 0.005, seed: int = 1, **facts: str) -> list[TrendPoint]:
    """Return runs of so many commits at each level."""
    rng = random.Random(seed)
    figures = [level * math.exp(rng.gauss(0, noise)) for n, level in levels for _ in range(n)]
    return [_sample(i, figure, facts) for i, figure in enumerate(figures)]


def _sample(number: int, figure: float, facts: dict[str, str]) -> TrendPoint:
    moment = f"2026-{1 + number // 28:02d}-{1 + number % 28:02d}T12:00:00Z"
    return TrendPoint(f"run-{number}", moment, figure, f"{number:040x}", moment, "vpp", facts=facts)


@pytest.mark.parametrize("shape", ["independent", "AR(1) .8", "level per boot"])
def test_levels_without_a_step_have_none_however_correlated_their_runs_are(shape: str) -> None:
    assert sum(trends.history(seed, shape, 60, 1.0)[0] for seed in range(20)) <= 1


@pytest.mark.parametrize("shape", ["independent", "AR(1) .8"])
def test_a_step_of_5_percent_is_found_in_its_range(shape: str) -> None:
    found = [trends.history(seed, shape, 60, 0.95) for seed in range(10)]
    assert sum(near and ranged and not false for false, near, ranged, _ in found) >= 9


def test_many_steps_are_found() -> None:
    found, false = trends.many(1, 0.5)
    assert found >= 11 and false <= 1


def test_a_step_is_in_its_range_with_its_size() -> None:
    trend = find_trend(SERIES, samples([(20, 10.0), (20, 9.5)]))
    (step,) = trend.steps
    assert step.cause == "commit"
    assert step.before.run_id == "run-19" and step.after.run_id == "run-20"
    assert step.low < 0.95 < step.high


def test_what_was_slower_for_a_while_has_two_steps() -> None:
    steps = find_trend(SERIES, samples([(20, 10.0), (12, 9.5), (20, 10.0)])).steps
    assert [(it.probable.run_id, it.ratio < 1) for it in steps] == [("run-20", True), ("run-32", False)]


def test_a_single_run_is_no_level() -> None:
    history = samples([(15, 10.0), (1, 8.0), (15, 10.0)])
    assert find_trend(SERIES, history).steps == ()


def test_two_last_runs_are_not_a_level_yet() -> None:
    history = samples([(15, 10.0), (2, 8.0)])
    assert find_trend(SERIES, history).steps == ()
    (step,) = find_trend(SERIES, samples([(15, 10.0), (3, 8.0)])).steps
    assert step.probable.run_id == "run-15"


def _booted(history: list[TrendPoint], boots: str) -> list[TrendPoint]:
    return [replace(it, boot=boot) for it, boot in zip(history, boots, strict=True)]


def test_from_one_boot_to_the_next_nothing_is_known() -> None:
    trend = find_trend(SERIES, _booted(samples([(10, 10.0), (10, 9.0)]), "s" * 10 + "t" * 10))
    assert (trend.steps, trend.problem) == ((), "2 boots; steps from one to the next need 6")


def test_within_a_boot_the_run_is_the_unit() -> None:
    (step,) = find_trend(SERIES, _booted(samples([(14, 10.0), (16, 9.0)]), "s" * 4 + "t" * 22 + "u" * 4)).steps
    assert (step.before.run_id, step.after.run_id) == ("run-13", "run-14")


def test_between_boots_the_boot_is_the_unit() -> None:
    boots = "".join(name * 2 for name in "abcdefghijkl")
    (step,) = find_trend(SERIES, _booted(samples([(12, 10.0), (12, 9.0)], noise=0.002), boots)).steps
    assert step.probable.run_id == "run-12"
    assert (step.before.run_id, step.after.run_id) == ("run-10", "run-13"), "from the first run of a boot to a last"


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


def test_a_run_that_does_not_say_its_commit_is_in_the_order_of_its_time() -> None:
    history = samples([(12, 10.0), (12, 9.5)])
    history[-1] = replace(history[-1], commit="", committed_at="")
    trend = find_trend(SERIES, history)
    assert not trend.left_out and len(trend.steps) == 1


def test_few_runs_are_told() -> None:
    assert find_trend(SERIES, samples([(5, 10.0)])).problem == "5 runs; steps need 6"


def test_equal_figures_are_one_level() -> None:
    assert find_changes([10.0] * 30) == ()
    (change,) = find_changes([10.0] * 10 + [9.0] * 10)
    assert (change.first, change.at, change.last) == (9, 10, 10)


@pytest.mark.parametrize(("factor", "answer"), [(1.0, "passes"), (0.8, "fails")])
def test_the_gate_of_the_bench_runs(factor: float, answer: str) -> None:
    """bench/trends.py is in no other test, and takes minutes."""
    assert trends.gated(1, noise=0.005, runs=5, factor=factor) == answer
