# SPDX-License-Identifier: BSD-3-Clause
"""A ratio as it is printed: its interval and its answer are one statement."""

import numpy as np
import pytest

from planebench.analysis.answers import Answer, Bounds, answers, effect_of, estimate_alone, one_of_many
from planebench.analysis.noise import Estimate


def test_without_an_estimate_nothing_is_tested() -> None:
    assert effect_of(None, 1.5) == Answer(1.5, None, None, "untested")
    (untested,) = answers([one_of_many([10.0], [20.0, 20.1], "pair")])
    assert untested.answer == "untested"


@pytest.mark.parametrize(
    ("bounds", "ratio", "answer", "low", "high"),
    [
        (Bounds(b=True), 1.5, "different", True, False),
        (Bounds(b=True), 0.8, "open", True, False),
        (Bounds(a=True), 0.8, "different", False, True),
        (Bounds(a=True), 1.5, "open", False, True),
        (Bounds(True, True), 1.5, "open", False, False),
    ],
)
def test_a_lower_bound_leaves_its_end_open(bounds: Bounds, ratio: float, answer: str, low: bool, high: bool) -> None:
    effect = effect_of(Estimate(float(np.log(ratio)), 0.01, 20, 5), ratio, bounds=bounds)
    assert (effect.answer, effect.low is not None, effect.high is not None) == (answer, low, high)


@pytest.mark.parametrize("noise", [0.01, 0.05])
def test_the_interval_covers_and_equal_samples_are_rarely_told_apart(noise: float) -> None:
    rng = np.random.default_rng(7)
    effects = [answers([one_of_many(*np.exp(rng.normal(0, noise, (2, 4))), "pair")])[0] for _ in range(600)]
    covered = [e.low is not None and e.high is not None and e.low <= 1 <= e.high for e in effects]
    assert 0.92 < np.mean(covered) < 0.985
    assert all(e.distinguishable is not inside for e, inside in zip(effects, covered, strict=True))


def test_one_value_has_no_error() -> None:
    assert estimate_alone([5.0]) is None
    found = estimate_alone([5.0, 5.1])
    assert found is not None and found.degrees == 1
