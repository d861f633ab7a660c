# SPDX-License-Identifier: BSD-3-Clause
"""What a sequential campaign measures next: the open comparisons by the metric that ranks their test point."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import pytest
from builders import make_header, make_point, make_trial

from planebench.analysis.compare import Derived, Open, Price, price, still_open
from planebench.model.header import Run
from planebench.model.records import SwitchCycles, Trial

CELL = make_point("")
CLEAR, NOISY, SLOWER = (10.0, 10.01, 9.99), (10.4, 9.6, 10.9), (5.0, 5.01, 5.02)


def flat(switch: str, mpps: Sequence[float], verdict: str = "valid", cycles: int | None = None) -> list[Trial]:
    counted = SwitchCycles() if cycles is None else SwitchCycles(cycles * 1000, 0, 1000)
    return [
        make_trial(0, make_point(switch), m, verdict, switch=counted, start=i, repetition=i) for i, m in enumerate(mpps)
    ]


def opened(*trials: list[Trial]) -> list[tuple[str, str]]:
    numbered = tuple(dataclasses.replace(t, index=i) for i, t in enumerate(t for some in trials for t in some))
    labels = tuple(dict.fromkeys(t.point.switch for t in numbered))
    found = still_open(Derived(Run(make_header(labels), numbered)))
    assert all(it.point == CELL and it.more_starts >= 1 for it in found)
    return [it.labels for it in found]


def test_only_open_comparisons_are_measured_further() -> None:
    assert opened(flat("a", CLEAR), flat("b", SLOWER)) == []
    assert opened(flat("a", CLEAR), flat("b", NOISY), flat("c", SLOWER)) == [("a", "b")]


def test_one_start_each_is_open() -> None:
    assert opened(flat("a", CLEAR[:1]), flat("b", SLOWER[:1])) == [("a", "b")]


def test_what_the_tester_hides_is_not_measured_again() -> None:
    assert opened(flat("a", CLEAR, "tester-limited"), flat("b", NOISY, "tester-limited")) == []


def test_cycles_of_a_switch_that_waits_for_its_tester_decide_nothing_and_cost_no_starts() -> None:
    alike = [flat(s, CLEAR, "tester-limited", cycles=n) for s, n in (("a", 100), ("b", 101))]
    assert opened(*alike) == []


def test_a_start_costs_what_it_took_in_this_run() -> None:
    """Two starts of two cells each: 3 s to start, 1 s a trial, and a latency trial of 2 s before the next start."""
    cells = [make_point("a", frame_size_bytes=size) for size in (64, 1024)]
    begun = {"r_plus": (0, 1, 7, 8, 14, 15), "latency": (2, 9)}
    trials = [
        make_trial(
            second,
            cells[i % 2],
            10.0,
            start=i // 2,
            repetition=i // 2,
            started_at=f"2026-11-21T12:00:{second:02}Z",
            intended_duration_ns=1_000_000_000 if role == "r_plus" else 2_000_000_000,
        )
        for role, seconds in begun.items()
        for i, second in enumerate(seconds)
    ]
    run = Run(make_header(), tuple(sorted(_with_roles(trials), key=lambda it: it.index)))
    found = price(run)
    assert found is not None
    assert (found.start * 60, found.trial * 60) == (pytest.approx(2.0, abs=0.01), pytest.approx(1.0))
    assert price(Run(make_header())) is None


def _with_roles(trials: Sequence[Trial]) -> list[Trial]:
    latency = 2_000_000_000
    return [dataclasses.replace(t, role="latency") if t.intended_duration_ns == latency else t for t in trials]


def test_comparisons_on_a_topology_share_their_starts() -> None:
    cost = Price(start=3.0, trial=1.0)
    one = Open(CELL, ("a", "b"), 4)
    assert cost.minutes([one]) == 2 * 4 * (3 + 1)
    other_size = dataclasses.replace(one, point=make_point("", frame_size_bytes=1024), more_starts=2)
    assert cost.minutes([one, other_size]) == 2 * 4 * 3 + 2 * (4 + 2) * 1
    assert cost.minutes([one, dataclasses.replace(one, labels=("a", "c"))]) == 3 * 4 * (3 + 1)
    elsewhere = dataclasses.replace(one, point=make_point("", "v2v"))
    assert cost.minutes([one, elsewhere]) == 2 * cost.minutes([one])
