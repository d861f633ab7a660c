# SPDX-License-Identifier: BSD-3-Clause
"""Three answers: words and interval agree, an open comparison has a price, corrections are those of the textbook."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planebench.analysis.answers import (
    ALPHA,
    EXACT,
    LOOK_ALPHAS,
    MARGIN,
    Bounds,
    OneOfMany,
    answer,
    answers,
    holm,
    look_alpha,
    starts_missing,
)
from planebench.analysis.noise import Estimate
from planebench.model.results import AnswerKind


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


@given(st.floats(0.2, 5), st.floats(0.001, 0.5), st.integers(2, 30))
def test_words_and_interval_agree(ratio: float, error: float, n: int) -> None:
    found = answer(estimate(ratio, error, n))
    assert found.low is not None and found.high is not None
    assert (found.answer == "different") == (not found.low <= 1 <= found.high)
    if found.answer == "same":
        assert found.low >= 1 / (1 + MARGIN) and found.high <= 1 + MARGIN


@pytest.mark.parametrize(("degrees", "n"), [(4, 3), (16, 3), (40, 5)])
def test_the_price_counts_what_more_starts_tell_of_the_noise(degrees: float, n: int) -> None:
    """With four degrees of freedom the quantile alone falls from 2.78 to 2.0."""
    before = estimate(1.1, 0.06, n, degrees)
    starts = starts_missing(before, ALPHA)
    assert starts is not None
    for more, decided in ((starts - 1, False), (starts, True)):
        after = estimate(1.1, 0.06 * math.sqrt(n / (n + more)), n + more, degrees * (n + more) / n)
        assert (answer(after).answer == "different") is decided or more == 0


def test_a_price_that_nobody_pays_is_none() -> None:
    assert starts_missing(estimate(1.025, 0.5), ALPHA) is None


def test_more_starts_never_make_a_lower_bound_the_same() -> None:
    """2 % ahead at least: it is decided when 1 is outside, not when the interval is within 5 %."""
    near = estimate(1.02, 0.03)
    (exact,), (bound,) = (answers([OneOfMany(near, it, "a pair")]) for it in (EXACT, Bounds(b=True)))
    assert exact.starts is not None
    assert bound.starts is None or bound.starts > exact.starts
    assert starts_missing(estimate(1.0, 0.03), ALPHA, may_be_same=False) is None


def kinds(*found: tuple[float, str], alpha: float = 0.05) -> str:
    """Return the first letters of the answers of ratios, each with its unit; an error of 1 %."""
    told = answers([OneOfMany(estimate(ratio, 0.01), EXACT, unit) for ratio, unit in found], alpha)
    return "".join(it.answer[0] for it in told)


def test_what_all_cells_of_two_switches_show_is_one_finding() -> None:
    """A p-value of 0.013: once it is enough, and so it is in all six cells; among three other pairs it is not."""
    assert kinds((1.026, "ab")) == "d" and kinds(*[(1.026, "ab")] * 6) == "dddddd"
    assert kinds((1.026, "ab"), (1.0, "ac"), (1.0, "ad"), (1.0, "bc")) == "osss"


def test_one_cell_of_many_needs_more_and_then_the_others_do_not_differ_with_it() -> None:
    assert kinds((1.026, "ab"), *[(1.0, "ab")] * 5) == "osssss"
    assert kinds((1.05, "ab"), *[(1.0, "ab")] * 5) == "dsssss"
    assert kinds((1.05, "ab"), (0.95, "ab"), (1.022, "ab"), *[(1.0, "ab")] * 3) == "ddosss"


def test_pairs_that_differ_leave_more_to_the_others() -> None:
    assert kinds((1.026, "ab"), (1.1, "ac"), (1.1, "bc"), (1.1, "ad")) == "dddd"


def test_looks_ask_for_more_evidence() -> None:
    assert kinds((1.022, "ab")) == "d" and kinds((1.022, "ab"), alpha=0.0221) == "o"


def test_the_interval_is_that_of_one_and_an_answer_agrees_with_it() -> None:
    apart = estimate(1.026, 0.01)
    told = answers([OneOfMany(apart, EXACT, "ab"), *(OneOfMany(estimate(1.0, 0.01), EXACT, unit) for unit in "cdef")])
    alone = answer(apart)
    assert (told[0].low, told[0].high) == (alone.low, alone.high) and told[0].low is not None and told[0].low > 1
    assert told[0].answer == "open" and told[0].starts is not None and told[0].starts >= 1
    assert answers([]) == []


def test_what_the_tester_hides_is_neither_counted_nor_priced() -> None:
    hidden = OneOfMany(estimate(1.04, 0.01), Bounds(a=True), "ab")
    assert answers([hidden])[0].answer == "open" and answers([hidden])[0].starts is None


@given(st.lists(st.tuples(st.floats(0.9, 1.1), st.sampled_from("abc")), min_size=1, max_size=12))
def test_words_of_many_agree_with_their_intervals(found: list[tuple[float, str]]) -> None:
    tested = [OneOfMany(estimate(ratio, 0.015), EXACT, unit) for ratio, unit in found]
    for it in answers(tested):
        assert it.low is not None and it.high is not None
        assert it.answer != "different" or not it.low <= 1 <= it.high
        assert it.answer != "same" or (it.low >= 1 / (1 + MARGIN) and it.high <= 1 + MARGIN and it.low <= 1 <= it.high)


def test_holm() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx((0.03, 0.06, 0.06, 0.02))
    assert holm([0.9, 0.8]) == (1.0, 1.0)
    assert holm([]) == ()


def test_more_looks_ask_for_more_evidence_each() -> None:
    assert [look_alpha(looks) for looks in (1, 2, 3)] == [0.05, 0.0294, 0.0221]
    assert list(LOOK_ALPHAS) == sorted(LOOK_ALPHAS, reverse=True)
    assert look_alpha(100) == LOOK_ALPHAS[-1]
