# SPDX-License-Identifier: BSD-3-Clause
"""Three answers: words and interval agree, an open comparison has a price, corrections are those of the textbook."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planebench.model.results import AnswerKind
from planebench.stats.answers import LOOK_ALPHAS, MARGIN, answer, holm, look_alpha
from planebench.stats.noise import Estimate


def estimate(ratio: float, error: float, n: int = 5, degrees: float = 40) -> Estimate:
    return Estimate(math.log(ratio), error, degrees, n)


@pytest.mark.parametrize(
    ("ratio", "error", "kind"),
    [
        (3.0, 0.02, "different"),
        (0.9, 0.02, "different"),
        (1.0, 0.01, "same"),
        (1.02, 0.001, "different"),  # small, but certain
        (1.0, 0.05, "open"),
        (1.1, 0.1, "open"),
    ],
)
def test_each_answer(ratio: float, error: float, kind: AnswerKind) -> None:
    assert answer(estimate(ratio, error)).kind == kind


@given(st.floats(0.2, 5), st.floats(0.001, 0.5), st.integers(2, 30), st.floats(0.001, 0.1))
def test_words_and_interval_agree(ratio: float, error: float, n: int, alpha: float) -> None:
    found = answer(estimate(ratio, error, n), alpha)
    assert found.low is not None and found.high is not None
    assert (found.kind == "different") == (not found.low <= 1 <= found.high)
    if found.kind == "same":
        assert found.low >= 1 / (1 + MARGIN) and found.high <= 1 + MARGIN
    assert found.starts is None or (found.kind == "open" and found.starts >= 1)


def test_the_price_is_what_decides_it_if_nothing_changes() -> None:
    before = estimate(1.1, 0.06, n=5)
    starts = answer(before).starts
    assert starts is not None
    after = estimate(1.1, 0.06 * math.sqrt(5 / (5 + starts)), n=5 + starts)
    assert answer(after).kind == "different"


def test_a_price_that_nobody_pays_is_none() -> None:
    assert answer(estimate(1.025, 0.5)).starts is None


def test_holm() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx((0.03, 0.06, 0.06, 0.02))
    assert holm([0.9, 0.8]) == (1.0, 1.0)
    assert holm([]) == ()


def test_more_looks_ask_for_more_evidence_each() -> None:
    assert [look_alpha(looks) for looks in (1, 2, 3)] == [0.05, 0.0294, 0.0221]
    assert list(LOOK_ALPHAS) == sorted(LOOK_ALPHAS, reverse=True)
    assert look_alpha(100) == LOOK_ALPHAS[-1]
