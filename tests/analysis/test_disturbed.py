# SPDX-License-Identifier: BSD-3-Clause
"""A switch that is disturbed more often than the others may do that itself: what is said of it holds both ways."""

from __future__ import annotations

import pytest
from analysis.waiting import waiting
from builders import make_header, make_point, make_trial

from planebench.analysis.compare import Derived, switches_compared
from planebench.analysis.disturbance import disturbed_switches
from planebench.analysis.gate import judge
from planebench.model.header import Run
from planebench.model.records import SwitchCycles, Trial
from planebench.model.results import Comparison


def _run(**lost: tuple[float, ...]) -> list[Trial]:
    """Four trials of each switch in each block, in which it lost so much."""
    return [
        make_trial(0, make_point(label), evidence=waiting(share), start=block, repetition=block)
        for label, shares in lost.items()
        for block, share in enumerate(shares)
        for _ in range(4)
    ]


def test_a_disturbance_that_goes_with_one_switch_is_named() -> None:
    (found,) = disturbed_switches(_run(a=(0.01, 0.02, 0.01), b=(0.2, 0.3, 0.25), c=(0.02, 0.01, 0.01)))
    assert (found.switch, found.share, found.share_of_others) == ("b", pytest.approx(0.25), pytest.approx(0.04 / 3))


def test_what_a_block_has_in_common_is_one_observation_however_many_trials_it_has() -> None:
    assert disturbed_switches(_run(a=(0.01, 0.02, 0.01), b=(0.3, 0.01, 0.02))) == ()


def test_a_busy_machine_disturbs_all_alike() -> None:
    same = (0.3, 0.1, 0.2)
    for trials in (_run(a=same, b=same, c=same), _run(a=same), _run(a=(0.0,) * 3, b=(0.004,) * 3), _run()):
        assert disturbed_switches(trials) == ()


MUTE = SwitchCycles()
STARTS = (0.99, 1.0, 1.01, 1.0, 0.99, 1.01)


def _trials(
    label: str, counted_mpps: float, *shares: float, verdict: str = "valid", switch: SwitchCycles = MUTE
) -> list[Trial]:
    """Six starts of a switch that waits for these shares of its time, in turns."""
    return [
        make_trial(
            0,
            make_point(label),
            counted_mpps * factor,
            verdict,
            switch=switch,
            evidence=waiting(shares[i % len(shares)]),
            start=i,
            repetition=i,
        )
        for i, factor in enumerate(STARTS)
    ]


def _derived(*trials: Trial) -> Derived:
    return Derived(Run(make_header(tuple(dict.fromkeys(t.point.switch for t in trials))), trials))


def test_the_interval_of_its_rate_contains_the_rate_as_counted() -> None:
    first, second = _derived(*_trials("a", 10.0, 0.0), *_trials("b", 10.0, 0.2, 0.6)).results
    assert (first.disturbed, first.counted_pps, first.stood_share) == (False, first.throughput_pps, 0)
    assert second.disturbed and second.stood_share == pytest.approx(0.4)
    assert second.throughput_pps == pytest.approx(10e6 / (0.8 * 0.4) ** 0.5, rel=1e-3)
    assert second.counted_pps == pytest.approx(10e6, rel=1e-3)
    assert second.throughput_low_pps is not None and second.throughput_high_pps is not None
    assert second.throughput_low_pps < second.counted_pps
    assert second.throughput_high_pps > second.throughput_pps


def _compared(counted_mpps: float) -> Comparison:
    (found,) = _derived(*_trials("a", 10.0, 0.0), *_trials("b", counted_mpps, 0.3)).comparisons
    return found


@pytest.mark.parametrize("counted_mpps", [7.0, 8.5, 10.0], ids=["the-same", "the-other-way-round", "ahead"])
def test_an_answer_that_depends_on_who_disturbs_is_open_and_says_so(counted_mpps: float) -> None:
    found = _compared(counted_mpps)
    assert (found.answer, found.more_starts) == ("open", None)
    assert found.note == "disturbed more often: b; the answer depends on whether a switch does that itself"
    assert found.ratio == pytest.approx(counted_mpps / 7, rel=1e-3), "per time that the pollers had"
    assert found.low is not None and found.high is not None
    assert found.low < counted_mpps / 10 and found.high > counted_mpps / 7, "both are in the interval"


def test_a_gate_does_not_pass_what_depends_on_it() -> None:
    outcome = switches_compared(_derived(*_trials("a", 10.0, 0.0), *_trials("b", 7.0, 0.3)))
    (found,) = judge(outcome, 0.97)
    assert found.kind == "inconclusive" and found.ratio == pytest.approx(1.0, rel=0.01)


def test_an_answer_that_does_not_depend_on_it_stands() -> None:
    found = _compared(12.0)
    assert (found.answer, found.note) == ("different", "")


def test_so_does_one_against_a_capacity() -> None:
    """The other has 20 Mpps at full batches, which is between 16 and 22.9."""
    idle = SwitchCycles(10**9, 10**9, 32_000, bursts=1000)
    limited = _trials("a", 10.0, 0.0, verdict="tester-limited", switch=idle)
    throughput, capacity = _derived(*limited, *_trials("b", 16.0, 0.3)).comparisons
    assert (throughput.metric, throughput.answer) == ("throughput", "open"), "above a lower bound"
    assert (capacity.metric, capacity.answer) == ("capacity", "open")
    assert capacity.note.endswith("disturbed more often: b; the answer depends on whether a switch does that itself")
