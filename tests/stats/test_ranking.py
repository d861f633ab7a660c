# SPDX-License-Identifier: BSD-3-Clause
from collections.abc import Sequence

import pytest
from builders import make_header, make_point, make_trial

from planebench.model.run import Run
from planebench.stats import derive_results
from planebench.stats.ranking import Ranking, rank


def _rank(**trials: Sequence[tuple[float, str, str]]) -> tuple[Ranking, ...]:
    made = [
        make_trial(i, make_point(switch), mpps, verdict, band=band)
        for switch, members in trials.items()
        for i, (mpps, verdict, band) in enumerate(members)
    ]
    return rank(derive_results(Run(make_header(tuple(trials)), tuple(made))))


def _steady(*mpps: float, verdict: str = "valid", band: str = "near") -> list[tuple[float, str, str]]:
    return [(m, verdict, band) for m in mpps]


def test_the_fastest_leads_by_its_mean() -> None:
    (ranking,) = _rank(slow=_steady(9.9, 10.1), fast=_steady(12.4, 12.6))
    assert ranking.first.point.switch == "fast"
    assert ranking.lead == pytest.approx(0.25)
    assert ranking.level == ()


def test_overlapping_trials_are_level() -> None:
    (ranking,) = _rank(a=_steady(10.0, 10.4), b=_steady(10.1, 10.2))
    assert (ranking.first.point.switch, ranking.level) == ("a", ("b",))


def test_a_lower_bound_behind_the_first_may_be_faster() -> None:
    (ranking,) = _rank(a=_steady(15.0, 15.1), b=_steady(14.0, 14.1, verdict="tester-limited"))
    assert (ranking.first.point.switch, ranking.level, ranking.lead) == ("a", ("b",), None)


def test_other_bands_and_what_does_not_count_are_left_out() -> None:
    (ranking,) = _rank(a=_steady(10, 10.1), b=_steady(7, 7.1, band="far"), c=_steady(30, verdict="disturbed"))
    assert [r.point.switch for r in ranking.results] == ["a"]
    assert ranking.lead is None


def test_nothing_counts_no_ranking() -> None:
    assert _rank(a=_steady(10, verdict="invalid")) == ()
