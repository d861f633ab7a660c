# SPDX-License-Identifier: BSD-3-Clause
"""Chains predicted from a chain of one and v2v: exact where times add up, and not where they do not."""

from __future__ import annotations

from typing import Any

import pytest
from builders import make_header, make_point, make_trial
from hypothesis import given, settings
from hypothesis import strategies as st

from planebench.analysis.compare import Derived
from planebench.analysis.node_capacity import Prediction, predictions
from planebench.model.header import Run
from planebench.model.records import Point, Trial

NEAR = (0.999, 1.0, 1.001)
BETWEEN = 0.15
"""Microseconds of a hop from VNF to VNF."""


def trials(point: Point, us: float, **how: Any) -> list[Trial]:
    return [
        make_trial(0, point, factor / us, repetition=number, start=number, **how) for number, factor in enumerate(NEAR)
    ]


def chain(length: int, **changes: Any) -> Point:
    return make_point("vpp", "loopback", chain_length=length, **changes)


def between(**how: Any) -> list[Trial]:
    return trials(make_point("vpp", "v2v"), BETWEEN, **how)


def predicted(*parts: list[Trial]) -> dict[int, Prediction]:
    numbered = tuple(trial for part in parts for trial in part)
    found = predictions(Derived(Run(make_header(("vpp",)), numbered)))
    return {it.point.chain_length: it for it in found}


def test_a_chain_of_one_and_the_hops_after_it_add_up() -> None:
    found = predicted(between(), trials(chain(1), 0.3), trials(chain(3), 0.3 + 2 * BETWEEN))
    assert found.keys() == {3}
    assert found[3].pps == pytest.approx(1e6 / (0.3 + 2 * BETWEEN), rel=1e-3)
    assert found[3].error == pytest.approx(0, abs=1e-3)


def test_a_chain_that_is_slower_than_its_hops_is_told() -> None:
    it = predicted(between(), trials(chain(1), 0.3), trials(chain(2), 2 * (0.3 + BETWEEN)))[2]
    assert it.error == pytest.approx(1.0, rel=1e-2)
    assert it.estimate is not None
    low, high = it.estimate.interval()
    assert low < it.pps < high and high < 2 * low


def test_a_hop_that_the_tester_limits_makes_a_lower_bound() -> None:
    alone, two = trials(chain(1), 0.3), trials(chain(2), 0.3 + BETWEEN)
    assert predicted(between(verdict="tester-limited"), alone, two)[2].is_bound
    assert not predicted(between(), alone, two)[2].is_bound


def test_without_a_chain_of_one_or_v2v_there_is_no_prediction() -> None:
    alone, two = trials(chain(1), 0.3), trials(chain(2), 0.3 + BETWEEN)
    assert predicted(alone, two) == predicted(between(), two) == {}
    both = trials(chain(2, direction="bidirectional"), 0.3 + BETWEEN)
    assert predicted(between(), alone, both) == {}, "of another direction"


@settings(max_examples=25, deadline=None)
@given(st.floats(0.05, 1.0), st.integers(2, 5))
def test_times_that_add_up_are_found_again(start: float, length: int) -> None:
    whole = start + (length - 1) * BETWEEN
    it = predicted(between(), trials(chain(1), start), trials(chain(length), whole))[length]
    assert it.error == pytest.approx(0, abs=0.01)
