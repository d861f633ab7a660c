# SPDX-License-Identifier: BSD-3-Clause
"""Figures as people read them."""

from __future__ import annotations

import pytest

from planebench.model.words import interval, significant


@pytest.mark.parametrize(
    ("value", "digits", "words"),
    [(41.84, 3, "41.8"), (5.0, 2, "5"), (432.7, 2, "430"), (1234.5, 3, "1230"), (0.01234, 2, "0.012")],
)
def test_significant_digits_without_an_exponent(value: float, digits: int, words: str) -> None:
    assert significant(value, digits) == words


def test_an_interval_of_dear_frames_is_in_whole_cycles() -> None:
    assert interval(1234.0, None, lambda it: significant(it, 3)) == "[1230, unbounded]"
