# SPDX-License-Identifier: BSD-3-Clause
"""A gate has four answers, and what could not be judged has not passed."""

from typing import Any

import pytest

from planebench.model.results import Comparison
from planebench.stats.compare import METRICS, NotCompared, Outcome
from planebench.stats.gate import Judgement, judge

CELL = "p2p/unidirectional/64/virtio/process"
LIMIT = 0.95


def _compared(metric: str, ratio: float, low: float | None, high: float | None, told: bool = False) -> Comparison:
    return Comparison("a", "b", CELL, metric, ratio, low, high, "different" if told else "open", 3, 3)  # type: ignore[arg-type]


def _judge(*comparisons: Comparison, **options: Any) -> list[tuple[str, str]]:
    return [(j.kind, j.metric) for j in judge(Outcome(comparisons, ()), LIMIT, **options)]


@pytest.mark.parametrize(
    ("ratio", "low", "high", "told", "kind"),
    [
        (0.90, 0.88, 0.92, True, "fails"),
        (0.90, 0.80, 1.05, False, "no significant difference"),
        (0.96, 0.94, 0.98, True, "passes"),
        (0.90, None, 0.92, True, "fails"),
        (1.10, 1.05, None, True, "passes"),
        (1.10, None, 1.20, False, "inconclusive"),
        (0.90, 0.88, None, False, "inconclusive"),
        (1.10, None, None, False, "inconclusive"),
    ],
)
def test_a_rate_is_judged_where_its_bounds_allow(
    ratio: float, low: float | None, high: float | None, told: bool, kind: str
) -> None:
    assert _judge(_compared("throughput", ratio, low, high, told)) == [(kind, "throughput")]


@pytest.mark.parametrize(
    ("ratio", "low", "high", "told", "kind"),
    [
        (1.10, 1.08, 1.12, True, "fails"),
        (1.04, 1.02, 1.06, True, "passes"),
        (1.10, 0.90, 1.20, False, "no significant difference"),
        (0.50, 0.40, 0.60, True, "passes"),
    ],
)
def test_cycles_stand_for_a_rate_that_the_tester_limits(
    ratio: float, low: float, high: float, told: bool, kind: str
) -> None:
    rate, cycles = _compared("throughput", 1.0, None, None), _compared("cycles_per_packet", ratio, low, high, told)
    assert _judge(rate, cycles) == [(kind, "cycles_per_packet")]
    (found,) = judge(Outcome((rate, _compared("ndr", 1.0, None, 1.1), cycles), ()), LIMIT)
    assert found.limit == pytest.approx(1 / LIMIT)


def test_cycles_of_too_few_trials_judge_nothing() -> None:
    rate, cycles = _compared("throughput", 1.0, None, None), _compared("cycles_per_packet", 1.0, None, None)
    (found,) = judge(Outcome((rate, cycles), ()), LIMIT)
    assert (found.kind, found.why) == ("inconclusive", "insufficient trials for a cycles-per-packet test")


def test_cycles_are_not_asked_where_the_rate_says_enough() -> None:
    slow = _compared("cycles_per_packet", 2.0, 1.9, 2.1, True)
    assert _judge(_compared("throughput", 1.0, 0.99, 1.01), slow) == [("passes", "throughput")]


def test_what_only_the_baseline_has_has_not_passed() -> None:
    dead = NotCompared("a", "b", CELL, METRICS, "all trials of b were rejected", has=("throughput", "ndr"))
    theirs = NotCompared("b", "", CELL, METRICS, "only there", has=("throughput",), baseline=False)
    nothing = NotCompared("a", "b", CELL, METRICS, "all trials of a were rejected")
    found = judge(Outcome((), (dead, theirs, nothing)), LIMIT)
    assert found == tuple(
        Judgement("inconclusive", m, "a", "b", CELL, LIMIT, why="all trials of b were rejected")
        for m in ("throughput", "ndr")
    )
    assert [j.metric for j in judge(Outcome((), (dead,)), LIMIT, metric="ndr")] == ["ndr"]
    assert judge(Outcome((), (dead,)), LIMIT, baseline="other") == ()
