# SPDX-License-Identifier: BSD-3-Clause
"""Three answers: words and interval agree, an open comparison has a price, corrections are those of the textbook."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planebench.model.results import AnswerKind
from planebench.stats.answers import (
    EXACT,
    LOOK_ALPHAS,
    MARGIN,
    Bounds,
    OneOfMany,
    answer,
    holm,
    look_alpha,
    shares_of_alpha,
)
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
    assert answer(estimate(ratio, error)).answer == kind


@given(st.floats(0.2, 5), st.floats(0.001, 0.5), st.integers(2, 30), st.floats(0.001, 0.1))
def test_words_and_interval_agree(ratio: float, error: float, n: int, alpha: float) -> None:
    found = answer(estimate(ratio, error, n), alpha)
    assert found.low is not None and found.high is not None
    assert (found.answer == "different") == (not found.low <= 1 <= found.high)
    if found.answer == "same":
        assert found.low >= 1 / (1 + MARGIN) and found.high <= 1 + MARGIN
    assert found.starts is None or (found.answer == "open" and found.starts >= 1)


@pytest.mark.parametrize(("degrees", "n"), [(4, 3), (16, 3), (40, 5)])
def test_the_price_counts_what_more_starts_tell_of_the_noise(degrees: float, n: int) -> None:
    """With four degrees of freedom the quantile alone falls from 2.78 to 2.0."""
    before = estimate(1.1, 0.06, n, degrees)
    starts = answer(before).starts
    assert starts is not None
    for more, decided in ((starts - 1, False), (starts, True)):
        after = estimate(1.1, 0.06 * math.sqrt(n / (n + more)), n + more, degrees * (n + more) / n)
        assert (answer(after).answer == "different") is decided or more == 0


def test_a_price_that_nobody_pays_is_none() -> None:
    assert answer(estimate(1.025, 0.5)).starts is None


def test_cells_that_share_their_starts_are_corrected_once() -> None:
    equal, apart = estimate(1.0, 0.01), estimate(1.04, 0.01)
    one_unit = shares_of_alpha([OneOfMany(apart, EXACT, "a")] * 6)
    assert one_unit == [1.0] * 6
    assert shares_of_alpha([OneOfMany(equal, EXACT, unit) for unit in "aabbcc"]) == pytest.approx([1 / 6] * 6)
    several = shares_of_alpha([OneOfMany(apart, EXACT, "a"), *(OneOfMany(equal, EXACT, unit) for unit in "abcd")])
    assert several == pytest.approx([1 / 4 / 2, 1 / 4 / 2, 1 / 4, 1 / 4, 1 / 4])
    assert shares_of_alpha([OneOfMany(apart, Bounds(a=True), "a"), OneOfMany(equal, EXACT, "b")]) == [0.5, 0.5]
    assert shares_of_alpha([]) == []


@given(st.lists(st.tuples(st.floats(0.9, 1.1), st.sampled_from("abc")), min_size=1, max_size=12))
def test_what_differs_among_many_is_what_holm_and_hochberg_reject(found: list[tuple[float, str]]) -> None:
    tested = [OneOfMany(estimate(ratio, 0.015), EXACT, unit) for ratio, unit in found]
    units = sorted({unit for _, unit in found})
    ordered = {unit: sorted(it.p_value for it in tested if it.unit == unit) for unit in units}
    simes = holm([min(p * len(own) / rank for rank, p in enumerate(own, 1)) for own in ordered.values()])
    rejected = {unit for unit, p in zip(units, simes, strict=True) if p < 0.05}
    for it, share in zip(tested, shares_of_alpha(tested), strict=True):
        assert it.unit in rejected or answer(it.estimate, 0.05 * share).answer != "different"
    for unit in rejected:
        kinds = [answer(it.estimate, 0.05 * s).answer for it, s in zip(tested, shares_of_alpha(tested), strict=True)]
        assert any(kind == "different" for it, kind in zip(tested, kinds, strict=True) if it.unit == unit)


def test_holm() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx((0.03, 0.06, 0.06, 0.02))
    assert holm([0.9, 0.8]) == (1.0, 1.0)
    assert holm([]) == ()


def test_more_looks_ask_for_more_evidence_each() -> None:
    assert [look_alpha(looks) for looks in (1, 2, 3)] == [0.05, 0.0294, 0.0221]
    assert list(LOOK_ALPHAS) == sorted(LOOK_ALPHAS, reverse=True)
    assert look_alpha(100) == LOOK_ALPHAS[-1]
