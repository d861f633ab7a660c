# SPDX-License-Identifier: BSD-3-Clause
"""How long saturating trials are on a host that interrupts them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planebench.plans.length import with_trial_length
from planebench.plans.load import load_plan
from planebench.plans.override import override

QUICK = load_plan("quick")


@pytest.mark.parametrize(
    ("per_s", "length_s"), [(None, 0.3), (0.0, 0.3), (0.3, 0.3), (0.4, 0.25), (0.5, 0.2), (30, 0.2)]
)
def test_trials_are_shorter_where_the_host_interrupts_but_not_below_the_floor(per_s: float, length_s: float) -> None:
    assert with_trial_length(QUICK, per_s).throughput.duration_s == length_s


def test_a_length_that_was_asked_for_and_a_plan_without_a_floor_stay() -> None:
    exact = override(QUICK, duration=1.0)
    assert with_trial_length(exact, 30) == exact
    papers = load_plan("conext19")
    assert with_trial_length(papers, 30) == papers


def test_parts_are_shortened_alike() -> None:
    papers = load_plan("conext19")
    floor = replace(papers.throughput, duration_min_s=0.1)
    plan = replace(papers, throughput=floor, parts=tuple(replace(part, throughput=floor) for part in papers.parts))
    assert {part.throughput.duration_s for part in with_trial_length(plan, 0.5).sections} == {0.2}
