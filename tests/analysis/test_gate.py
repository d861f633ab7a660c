# SPDX-License-Identifier: BSD-3-Clause
"""A gate has three answers, and what could not be judged has not passed."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import planebench
from planebench.analysis.compare import METRICS, Comparisons, Derived, NotCompared, switches_compared
from planebench.analysis.gate import GateResult, judge
from planebench.model.results import Comparison
from planebench.store import read_run

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
        note="a and b are tester-limited (lower bounds)" if bound == "ab" else "",
        log_error=error,
        degrees=None if error is None else 20,
    )


@pytest.mark.parametrize(
    ("as_counted", "limit", "kind"),
    [(0.99, 0.95, "passes"), (0.70, 0.95, "inconclusive"), (0.70, 1.10, "fails"), (1.20, 1.10, "inconclusive")],
)
def test_a_switch_that_may_disturb_itself_has_to_pass_both_ways(as_counted: float, limit: float, kind: str) -> None:
    found = replace(_compared("throughput", 1.0), counted_ratio=as_counted, counted_log_error=0.01)
    assert [it.kind for it in judge(Comparisons((found,), ()), limit)] == [kind]


def _judge(*comparisons: Comparison, **options: Any) -> list[tuple[str, str]]:
    return [(j.kind, j.metric) for j in judge(Comparisons(comparisons, ()), LIMIT, **options)]


@pytest.mark.parametrize(
    ("ratio", "error", "bound", "kind"),
    [
        (0.90, 0.01, "", "fails"),
        (0.90, 0.08, "", "inconclusive"),
        (0.97, 0.01, "", "passes"),
        (1.00, 0.05, "", "inconclusive"),  # an open answer does not pass
        (1.07, 0.06, "", "inconclusive"),  # luck, with this noise
        (1.20, 0.06, "", "passes"),
        (0.90, 0.01, "a", "fails"),
        (1.10, 0.01, "b", "passes"),
        (1.10, 0.01, "a", "inconclusive"),
        (0.90, 0.01, "b", "inconclusive"),
        (1.10, None, "", "inconclusive"),
    ],
)
def test_a_rate_is_judged_where_its_bounds_allow(ratio: float, error: float | None, bound: str, kind: str) -> None:
    assert _judge(_compared("throughput", ratio, error, bound=bound)) == [(kind, "throughput")]


@pytest.mark.parametrize(("ratio", "kind"), [(0.9, "fails"), (0.98, "passes"), (0.95, "inconclusive")])
def test_the_capacity_stands_for_a_rate_that_the_tester_limits(ratio: float, kind: str) -> None:
    assert _judge(_compared("throughput", 1.0, bound="ab"), _compared("capacity", ratio)) == [(kind, "capacity")]


@pytest.mark.parametrize("cycles", [0.5, 1.0, 2.0])
def test_cycles_never_stand_for_a_rate(cycles: float) -> None:
    rate = _compared("throughput", 1.0, bound="ab")
    (found,) = judge(Comparisons((rate, _compared("cycles_per_packet", cycles)), ()), LIMIT)
    assert (found.kind, found.metric, found.why) == ("inconclusive", "throughput", rate.note)


def test_the_capacity_is_not_asked_where_the_rate_says_enough() -> None:
    assert _judge(_compared("throughput", 1.1, bound="b"), _compared("capacity", 0.5)) == [("passes", "throughput")]


@pytest.mark.timeout(300)
def test_a_slower_build_behind_a_slow_tester_does_not_pass(tmp_path: Path) -> None:
    """25 % more cycles, hidden by idle polls."""
    planebench.run(
        "regression",
        switch="sim:name=old:capacity=20M:max_rate=10M:cycles=200:poll=300:noise=1%,"
        "sim:name=new:capacity=16M:max_rate=10M:cycles=250:poll=300:noise=1%",
        scenario="p2p",
        rates="none",
        runs_dir=tmp_path,
        calibrate=False,
    )
    derived = Derived(read_run(next(tmp_path.iterdir())))
    found = judge(switches_compared(derived), 0.97, baseline="old")
    assert found and all(it.kind == "inconclusive" and "tester-limited" in it.why for it in found)


def test_failures_are_corrected_for_their_number() -> None:
    one = _compared("throughput", LIMIT * 0.98)
    assert _judge(one) == [("fails", "throughput")]
    rest = [_compared("throughput", LIMIT, cell=f"{CELL}{i}") for i in range(9)]
    assert {kind for kind, _ in _judge(one, *rest)} == {"inconclusive"}
    alike = [_compared("throughput", LIMIT * 0.98, cell=f"{CELL}{i}") for i in range(9)]
    assert {kind for kind, _ in _judge(*alike)} == {"fails"}


def test_runs_that_tell_nothing_of_runs_are_not_judged() -> None:
    outcome = Comparisons((_compared("throughput", 0.5),), (), "1 and 1 runs: how runs vary is in no interval")
    (found,) = judge(outcome, LIMIT)
    assert (found.kind, found.why) == ("inconclusive", "1 and 1 runs: how runs vary is in no interval")


def test_what_only_the_baseline_has_has_not_passed() -> None:
    dead = NotCompared("a", "b", CELL, METRICS, "no trial of b counts", has=("throughput", "ndr"))
    theirs = NotCompared("b", "", CELL, METRICS, "only there", has=("throughput",), baseline=False)
    nothing = NotCompared("a", "b", CELL, METRICS, "no trial of a counts")
    found = judge(Comparisons((), (dead, theirs, nothing)), LIMIT)
    assert found == tuple(
        GateResult("inconclusive", m, "a", "b", CELL, LIMIT, why="no trial of b counts") for m in ("throughput", "ndr")
    )
    assert [j.metric for j in judge(Comparisons((), (dead,)), LIMIT, metric="ndr")] == ["ndr"]
    assert judge(Comparisons((), (dead,)), LIMIT, baseline="other") == ()


@pytest.mark.parametrize("cells", [1, 8])
def test_a_ratio_at_the_detectable_one_fails_with_probability_80_percent(cells: int) -> None:
    others = [_compared("throughput", 1.0, cell=f"{CELL}{i}") for i in range(cells - 1)]
    detectable = judge(Comparisons((_compared("throughput", 1.0), *others), ()), LIMIT)[0].detectable
    assert detectable is not None and 0.9 < detectable < LIMIT
    rng, failed, error, degrees = np.random.default_rng(3), 0, 0.01, 20
    for _ in range(400):
        ratio = detectable * float(np.exp(rng.normal(0, error)))
        measured = error * float(np.sqrt(rng.chisquare(degrees) / degrees))
        failed += judge(Comparisons((_compared("throughput", ratio, measured), *others), ()), LIMIT)[0].kind == "fails"
    assert 0.74 < failed / 400 < 0.86


def test_what_cannot_fail_detects_nothing() -> None:
    (found,) = judge(Comparisons((_compared("throughput", 1.0, bound="b"),), ()), LIMIT)
    assert found.detectable is None
