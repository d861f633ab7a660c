# SPDX-License-Identifier: BSD-3-Clause
from collections.abc import Sequence

import pytest
from builders import make_evidence, make_header, make_trial

from planebench.model.records import VerdictKind
from planebench.model.results import Result
from planebench.model.run import Run
from planebench.stats import derive_results
from planebench.stats.two_bands import TwoBands, two_bands


def _result(rates: Sequence[float], starts: Sequence[int] = (), **changes: object) -> Result:
    starts = starts or [0] * len(rates)
    trials = [make_trial(i, mpps=m, start=s, **changes) for i, (m, s) in enumerate(zip(rates, starts, strict=True))]
    (result,) = derive_results(Run(make_header(), tuple(trials)))
    return result


def test_the_groups_are_positions_in_the_list() -> None:
    assert two_bands([10.0, 5.0, 10.2, 5.2, 10.1]) == TwoBands((0, 2, 4), (1, 3), 10.1, pytest.approx(5.1))


@pytest.mark.parametrize(
    ("rates", "why"),
    [
        ([], "nothing"),
        ([10.0, 5.0, 5.1], "three values are not two groups"),
        ([10.0, 10.1, 10.2, 5.0], "one value is an outlier"),
        ([10.0, 10.01, 9.5, 9.51], "less than 10 % apart"),
        ([5.0, 7.0, 10.0, 12.0], "as wide as the gap"),
        ([5.0, 5.0, 10.0, 11.8], "the upper one is wider than a third of the gap"),
        ([10.0, 10.0, 10.0, 10.0], "no gap"),
        ([5.0, 6.0, 7.0, 8.0, 9.0, 10.0], "even"),
    ],
)
def test_no_bands(rates: list[float], why: str) -> None:
    assert two_bands(rates) is None, why


def test_a_result_of_two_bands_is_unstable_and_says_both_figures() -> None:
    result = _result((10.0, 10.1, 10.2, 5.15, 5.2))
    assert result.verdict.kind is VerdictKind.UNSTABLE
    assert result.verdict.texts == ("two bands at the same core-to-core latency: 10.1 Mpps in 3 trials, 5.17 in 2",)


@pytest.mark.parametrize(("starts", "explained"), [((0, 1, 0, 1), True), ((0, 2, 1, 2), True), ((0, 0, 1, 1), False)])
def test_the_start_of_the_switch_is_named_where_it_explains_them(starts: tuple[int, ...], explained: bool) -> None:
    (reason,) = _result((10.0, 5.0, 10.1, 5.1), starts).verdict.texts
    assert reason.endswith("; by start of the switch") == explained


@pytest.mark.parametrize(
    ("speeds", "why"),
    [
        (((4, 2), (2, 2), (4, 2), (2, 2)), "; by another hyperthread on the core of the switch"),
        (((2, 4), (2, 3), (2, 4), (2, 2)), "; by another hyperthread on the core of the tester"),
        (((4, 4), (2, 4), (2, 4), (2, 4)), "; by start of the switch"),  # half of the upper group had it shared, too
        ((None, (2, 4), (4, 4), (2, 4)), "; by start of the switch"),
    ],
)
def test_another_hyperthread_is_named_where_it_explains_them(
    speeds: Sequence[tuple[int, int] | None], why: str
) -> None:
    rates = (10.0, 5.0, 10.1, 5.1)
    trials = [
        make_trial(i, mpps=mpps, start=i % 2, evidence=make_evidence(additions_per_cycle=pair or ()))
        for i, (mpps, pair) in enumerate(zip(rates, speeds, strict=True))
    ]
    bands = two_bands([trial.throughput_pps for trial in trials])
    assert bands is not None and bands.words("near", trials).endswith(f"5.05 in 2{why}")


def test_a_lower_bound_in_two_bands_stays_one() -> None:
    result = _result((10.0, 5.0, 10.1, 5.1), verdict="tester-limited")
    assert result.verdict.kind is VerdictKind.TESTER_LIMITED
    assert result.verdict.codes[-1] == "two-bands"


def test_no_core_distance_is_claimed_where_none_is_known() -> None:
    (reason,) = _result((10.0, 5.0, 10.1, 5.1), band=None).verdict.texts
    assert reason.startswith("two bands where the core-to-core latency is unknown: ")
