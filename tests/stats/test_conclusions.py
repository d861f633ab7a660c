# SPDX-License-Identifier: BSD-3-Clause
"""The bars of ``make bench-statistics``, with few seeds: what they are is in docs/methodology.md."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "bench"))

import conclusions
import conclusions_runs


@pytest.mark.parametrize("shape", conclusions.SHAPES)
def test_intervals_cover_and_equal_switches_are_not_told_apart(shape: str) -> None:
    found = conclusions.measure(shape, seeds=8)
    assert found.coverage > 0.90
    assert found.false <= 0.05
    assert found.power_1_2 > 0.98


def test_quick_decides_what_differs_by_a_fifth() -> None:
    decided = conclusions_runs.decided(seed=1)
    assert all(decided[1.2])


def test_the_gate_passes_an_unchanged_switch_and_stops_a_slower_one() -> None:
    assert conclusions_runs.judged(seed=1, new_ratio=1.0) == {"passes"}
    assert "fails" in conclusions_runs.judged(seed=1, new_ratio=0.9)


def test_nine_equal_switches_do_not_differ() -> None:
    assert conclusions_runs.false_differences(seed=1, plan="netsoft19") == 0
