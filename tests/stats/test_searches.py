# SPDX-License-Identifier: BSD-3-Clause
import dataclasses

import pytest
from stats.searching import searched_run

from planebench.model.run import Run
from planebench.search import SearchSettings
from planebench.stats import derive_results
from planebench.stats.searches import search_methods, search_settings


@pytest.mark.parametrize(
    ("text", "methods"),
    [
        (None, ()),
        ("", ()),
        ("r_plus", ()),
        ("r_plus,ndr,pdr", ("ndr", "pdr")),
        (" b2b , ndr,b2b,", ("b2b", "ndr")),
    ],
)
def test_r_plus_is_no_search_of_its_own(text: str | None, methods: tuple[str, ...]) -> None:
    assert search_methods({"search": text}) == methods
    assert search_methods({}) == ()


def test_what_the_header_does_not_say_is_the_default() -> None:
    assert search_settings({}) == SearchSettings()
    assert search_settings({"search_trial_duration_s": None, "search_max_r": None}) == SearchSettings()


def test_every_setting_is_taken_from_its_key() -> None:
    settings = {
        "search_trial_duration_s": 2,
        "search_duration_sum_s": 4.0,
        "search_relative_width": 0.01,
        "search_pdr_loss_ratio": 0.002,
        "search_max_r": 5,
        "search_burst_repetitions": 50,
        "search_max_load_pps": 9e6,
        "repetitions": 6,
        "restarts": 2,
        "trial_duration_s": 0.5,
    }
    assert search_settings(settings) == SearchSettings(
        trial_duration_s=2.0,
        duration_sum_s=4.0,
        relative_width=0.01,
        pdr_loss_ratio=0.002,
        max_r=5,
        repetitions=6,
        burst_repetitions=50,
        restarts=2,
        r_plus_duration_s=0.5,
        max_load_pps=9e6,
    )


def test_the_highest_rate_of_a_direction_counts_once_for_each_sender() -> None:
    assert search_settings({"max_rate_pps": 7e6}, senders=2).max_load_pps == 14e6


def test_a_search_is_found_again_and_its_trials_count() -> None:
    run = searched_run({"planed": 10.0})
    (result,) = derive_results(run)
    (found,) = result.searches
    assert (found.method, found.complete, found.band) == ("ndr", True, "near")
    assert found.lower_pps is not None and found.upper_pps is not None
    assert found.lower_pps <= 10e6 < found.upper_pps <= found.lower_pps / (1 - 0.005)
    searching = {t.index for t in run.trials if t.role == "search"}
    assert searching and searching <= set(found.trials) <= set(result.trials)
    assert result.rejected == 0


def test_without_a_search_in_the_header_its_trials_count_for_nothing() -> None:
    run = searched_run({"planed": 10.0})
    plain = Run(dataclasses.replace(run.header, settings={}), run.trials)
    (result,) = derive_results(plain)
    assert (result.searches, result.trials) == ((), (0, 1, 2))
    assert result.rejected == len(run.trials) - 3


def test_a_search_that_was_cut_short_says_so() -> None:
    run = searched_run({"planed": 10.0})
    (result,) = derive_results(Run(run.header, run.trials[:5]))
    assert not result.searches[0].complete
