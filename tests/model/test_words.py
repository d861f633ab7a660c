# SPDX-License-Identifier: BSD-3-Clause
"""Figures as people read them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from builders import make_header, make_trial, make_verdict

from planebench.analysis.results import derive_results
from planebench.model.header import Run
from planebench.model.words import interval, significant, throughput


@pytest.mark.parametrize(
    ("value", "digits", "words"),
    [(41.84, 3, "41.8"), (5.0, 2, "5"), (432.7, 2, "430"), (1234.5, 3, "1230"), (0.01234, 2, "0.012")],
)
def test_significant_digits_without_an_exponent(value: float, digits: int, words: str) -> None:
    assert significant(value, digits) == words


def test_an_interval_of_dear_frames_is_in_whole_cycles() -> None:
    assert interval(1234.0, None, lambda it: significant(it, 3)) == "[1230, unbounded]"


def test_a_rate_is_marked_as_a_bound_or_where_an_end_of_its_interval_is_far_away() -> None:
    (result,) = derive_results(Run(make_header(), (make_trial(mpps=10.0),)))
    assert throughput(result) == "10.00"
    near, wide = (replace(result, throughput_low_pps=low, throughput_high_pps=10.1e6) for low in (9.01e6, 8.9e6))
    assert (throughput(near), throughput(wide)) == ("10.00", "~10.00")
    assert throughput(replace(wide, verdict=make_verdict("line-rate"))) == "≥10.00"
    assert throughput(replace(wide, throughput_pps=None)) == "–"
