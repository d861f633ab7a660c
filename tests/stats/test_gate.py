# SPDX-License-Identifier: BSD-3-Clause
"""A gate has three answers, and what could not be judged has not passed."""

from typing import Any

import numpy as np
import pytest

from planebench.model.results import Comparison
from planebench.stats.compare import METRICS, NotCompared, Outcome
from planebench.stats.gate import Judgement, judge

CELL = "p2p/unidirectional/64/virtio/process"
LIMIT = 0.95


def _compared(
    metric: str, ratio: float, error: float | None = 0.01, *, cell: str = CELL, bound: str = ""
) -> Comparison:
    """Return a comparison; ``bound``: the side that is a lower bound."""
    return Comparison(
        *("a", "b", cell, metric, ratio),  # type: ignore[arg-type]
        low=None if error is None or "a" in bound else ratio * 0.98,
        high=None if error is None or "b" in bound else ratio * 1.02,
        answer="untested" if error is None else "open",
        trials_a=5,
        trials_b=5,
        log_error=error,
        degrees=None if error is None else 20,
    )


def _judge(*comparisons: Comparison, **options: Any) -> list[tuple[str, str]]:
    return [(j.kind, j.metric) for j in judge(Outcome(comparisons, ()), LIMIT, **options)]


@pytest.mark.parametrize(
    ("ratio", "error", "bound", "kind"),
    [
        (0.90, 0.01, "", "fails"),
        (0.90, 0.08, "", "inconclusive"),
        (0.97, 0.01, "", "passes"),
        (1.00, 0.05, "", "inconclusive"),  # an open answer does not pass
        (0.90, 0.01, "a", "fails"),
        (1.10, 0.01, "b", "passes"),
        (1.10, 0.01, "a", "inconclusive"),
        (0.90, 0.01, "b", "inconclusive"),
        (1.10, None, "", "inconclusive"),
    ],
)
def test_a_rate_is_judged_where_its_bounds_allow(ratio: float, error: float | None, bound: str, kind: str) -> None:
    assert _judge(_compared("throughput", ratio, error, bound=bound)) == [(kind, "throughput")]


@pytest.mark.parametrize(
    ("ratio", "kind"), [(1.10, "fails"), (1.03, "passes"), (1.05, "inconclusive"), (0.5, "passes")]
)
def test_cycles_stand_for_a_rate_that_the_tester_limits(ratio: float, kind: str) -> None:
    rate, cycles = _compared("throughput", 1.0, bound="ab"), _compared("cycles_per_packet", ratio)
    assert _judge(rate, cycles) == [(kind, "cycles_per_packet")]
    (found,) = judge(Outcome((rate, cycles), ()), LIMIT)
    assert found.limit == pytest.approx(1 / LIMIT)


def test_cycles_of_too_few_starts_judge_nothing() -> None:
    rate, cycles = _compared("throughput", 1.0, bound="ab"), _compared("cycles_per_packet", 1.0, None)
    (found,) = judge(Outcome((rate, cycles), ()), LIMIT)
    assert (found.kind, found.why) == ("inconclusive", "too few starts for a test of the cycles per packet")


def test_cycles_are_not_asked_where_the_rate_says_enough() -> None:
    assert _judge(_compared("throughput", 1.0), _compared("cycles_per_packet", 2.0)) == [("passes", "throughput")]


def test_failures_are_corrected_for_their_number() -> None:
    one = _compared("throughput", LIMIT * 0.98)
    assert _judge(one) == [("fails", "throughput")]
    rest = [_compared("throughput", LIMIT, cell=f"{CELL}{i}") for i in range(9)]
    assert {kind for kind, _ in _judge(one, *rest)} == {"inconclusive"}


def test_fewer_than_three_runs_a_side_are_not_judged() -> None:
    outcome = Outcome((_compared("throughput", 0.5),), (), "1 and 1 runs: how runs vary is in no interval")
    (found,) = judge(outcome, LIMIT)
    assert (found.kind, found.why) == ("inconclusive", "1 and 1 runs: how runs vary is in no interval")


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


@pytest.mark.parametrize("cells", [1, 8])
def test_a_ratio_at_the_detectable_one_fails_with_probability_80_percent(cells: int) -> None:
    others = [_compared("throughput", 1.0, cell=f"{CELL}{i}") for i in range(cells - 1)]
    detectable = judge(Outcome((_compared("throughput", 1.0), *others), ()), LIMIT)[0].detectable
    assert detectable is not None and 0.9 < detectable < LIMIT
    rng, failed, error, degrees = np.random.default_rng(3), 0, 0.01, 20
    for _ in range(400):
        ratio = detectable * float(np.exp(rng.normal(0, error)))
        measured = error * float(np.sqrt(rng.chisquare(degrees) / degrees))
        found = judge(Outcome((_compared("throughput", ratio, measured), *others), ()), LIMIT)
        failed += found[0].kind == "fails"
    assert 0.74 < failed / 400 < 0.86


def test_what_cannot_fail_detects_nothing() -> None:
    (found,) = judge(Outcome((_compared("throughput", 1.0, bound="b"),), ()), LIMIT)
    assert found.detectable is None
    (cycles,) = judge(
        Outcome((_compared("throughput", 1.0, bound="ab"), _compared("cycles_per_packet", 1.0)), ()), LIMIT
    )
    assert cycles.detectable is not None and cycles.detectable > 1 / LIMIT
