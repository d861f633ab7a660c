# SPDX-License-Identifier: BSD-3-Clause
"""Chains against their parts: which trials are set against which, and when nothing can be told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from builders import make_header, make_latency_trial, make_point, make_trial

from planebench.analysis.chains import Chains, derive_chains, part_points, told_words
from planebench.analysis.results import derive_results
from planebench.model.header import Run
from planebench.model.records import DirectionCounts, Point, Trial


def chain(text: str, length: int = 0, **changes: Any) -> Point:
    return make_point("planed", "loopback", chain=text, chain_length=length or text.count(",") + 1, **changes)


FIREWALL, L3FWD, BOTH = chain("firewall"), chain("l3fwd"), chain("firewall,l3fwd")


def latency(point: Point, *means_us: float, load: str = "100kpps", pps: float = 1e5, **changes: Any) -> list[Trial]:
    return [
        make_latency_trial(0, point, load, pps, [(round(us * 1000), 100)], start=i, repetition=i, **changes)
        for i, us in enumerate(means_us)
    ]


def derived(*trials: Sequence[Trial]) -> Chains:
    numbered = tuple(replace(t, index=i) for i, t in enumerate(t for some in trials for t in some))
    run = Run(make_header(("planed",)), numbered)
    return derive_chains(run, derive_results(run))


def test_the_parts_of_a_chain_keep_its_cell() -> None:
    point = chain("firewall:rules=/r,l2fwd,firewall:rules=/r", direction="bidirectional", frame_size_bytes=256)
    parts = part_points(point)
    assert [(p.chain, p.chain_length) for p in parts] == [("firewall:rules=/r", 1), ("", 1), ("firewall:rules=/r", 1)]
    assert {(p.direction, p.frame_size_bytes, p.switch) for p in parts} == {("bidirectional", 256, "planed")}
    assert part_points(FIREWALL) == part_points(make_point()) == ()


def test_latency_of_a_chain_against_the_sum_of_its_parts() -> None:
    (found,) = derived(
        latency(BOTH, 34.0, 34.2, 34.4), latency(FIREWALL, 25.0, 25.1, 25.2), latency(L3FWD, 20.9, 21.0, 21.1)
    ).latency
    assert (found.point, found.load, found.trials, found.note) == (BOTH, "100kpps", 3, "")
    assert [part.name for part in found.parts] == ["firewall", "l3fwd"]
    assert found.mean_us == pytest.approx(34.2, rel=1e-3) and found.sum_us == pytest.approx(46.1, rel=1e-3)
    assert found.effect is not None and found.effect.ratio == pytest.approx(34.2 / 46.1, rel=1e-3)
    assert found.effect.low is not None and found.effect.high is not None
    assert found.effect.low <= found.effect.ratio <= found.effect.high < 1
    assert told_words(found.effect) == "less"


def test_a_function_that_is_in_the_chain_twice_counts_twice() -> None:
    twice = make_point("planed", "loopback", chain_length=2)
    (found,) = derived(latency(twice, 9.0, 9.1, 9.2), latency(chain("", 1), 5.0, 5.1, 5.2)).latency
    assert found.sum_us == pytest.approx(10.2, rel=1e-3) and told_words(found.effect) == "less"


@pytest.mark.parametrize(
    ("chain_us", "firewall_us", "told"),
    [
        ((34.0, 34.2, 34.4), (25.0, 25.1, 25.2), "less"),
        ((54.0, 54.2, 54.4), (25.0, 25.1, 25.2), "more"),
        ((46.0, 46.1, 46.2), (25.0, 25.1, 25.2), "the same within 5 %"),
        ((40.0, 45.9, 52.0), (25.0, 25.1, 25.2), "open: more starts would decide it"),  # noise
    ],
)
def test_what_can_be_told(chain_us: Sequence[float], firewall_us: Sequence[float], told: str) -> None:
    (found,) = derived(
        latency(BOTH, *chain_us), latency(FIREWALL, *firewall_us), latency(L3FWD, 20.9, 21.0, 21.1)
    ).latency
    assert told_words(found.effect) == told
    assert found.note == ""


def test_one_start_each_tests_nothing() -> None:
    (found,) = derived(latency(BOTH, 34.0), latency(FIREWALL, 25.0), latency(L3FWD, 20.9)).latency
    assert (told_words(found.effect), found.note) == (
        "not tested",
        "one start per side: how starts differ is not known",
    )


def test_shares_of_r_plus_are_not_the_same_load() -> None:
    trials = [latency(point, 9.0, 9.1, 9.2, load="0.50") for point in (BOTH, FIREWALL, L3FWD)]
    assert derived(*trials).latency == ()


@pytest.mark.parametrize(
    "firewall",
    [
        latency(FIREWALL, 5.0, 5.1, 5.2, load="1Mpps", pps=1e6),
        latency(FIREWALL, 5.0, 5.1, verdict="tester-limited"),
        latency(FIREWALL, 5.0, directions=(DirectionCounts("n0->n1", 100_000, 100_000, 97_000),)),
        latency(FIREWALL),
    ],
    ids=["other-load", "tester-limited", "not-carried", "none"],
)
def test_what_is_missing_is_said(firewall: list[Trial]) -> None:
    note = "no trial of firewall alone at this load counts"
    found = derived(latency(BOTH, 9.0, 9.1, 9.2), firewall, latency(L3FWD, 5.0, 5.1, 5.2)).latency
    assert [(it.mean_us, it.effect, it.sum_us, it.note) for it in found] == [(None, None, None, note)]


def test_cells_and_switches_do_not_mix() -> None:
    other = [replace(p, frame_size_bytes=128) for p in (BOTH, FIREWALL)]
    here = [latency(BOTH, 9.0, 9.1, 9.2), latency(replace(L3FWD, switch="testpmd"), 5.0, 5.1, 5.2)]
    found = derived(*here, *(latency(point, 9.0, 9.1, 9.2) for point in other), latency(FIREWALL, 5.0, 5.1, 5.2))
    assert {(it.point.frame_size_bytes, it.note) for it in found.latency} == {
        (64, "no trial of l3fwd alone at this load counts"),
        (128, "no trial of l3fwd alone at this load counts"),
    }


def rates(point: Point, *mpps: float, **changes: Any) -> list[Trial]:
    return [make_trial(0, point, rate, start=i, repetition=i, **changes) for i, rate in enumerate(mpps)]


def test_throughput_of_a_chain_against_its_slowest_part() -> None:
    found = derived(rates(BOTH, 6.0, 6.02, 6.04), rates(FIREWALL, 9.0, 9.01, 9.02), rates(L3FWD, 12.0, 12.1)).throughput
    assert [(it.point, it.against) for it in found] == [(FIREWALL, ""), (L3FWD, ""), (BOTH, "firewall")]
    effect = found[-1].effect
    assert effect is not None and effect.ratio == pytest.approx(6.02 / 9.01, rel=1e-4) and told_words(effect) == "less"


def test_bounds_of_throughput_are_open() -> None:
    whole = rates(BOTH, 6.0, 6.02, 6.04)
    limited = rates(FIREWALL, 9.0, 9.01, 9.02, verdict="tester-limited")
    (_, found) = derived(whole, limited, rates(L3FWD, 12.0)).throughput[1:]
    assert found.effect is not None and (found.effect.low, told_words(found.effect)) == (None, "less")
    assert found.note == "the function is tester-limited (lower bound)"
    bound = rates(BOTH, 6.0, 6.02, 6.04, verdict="tester-limited")
    found = derived(bound, rates(FIREWALL, 9.0, 9.01, 9.02), rates(L3FWD, 12.0, 12.0, 12.0)).throughput[-1]
    assert found.bound and found.effect is not None
    assert (found.effect.high, told_words(found.effect)) == (None, "open: only a lower bound is known")


def test_a_full_line_is_not_told_as_the_limit_of_the_tester() -> None:
    full = rates(FIREWALL, 9.0, 9.01, 9.02, verdict="line-rate")
    found = derived(rates(BOTH, 6.0, 6.02, 6.04), full, rates(L3FWD, 12.0)).throughput[-1]
    assert found.note == "the function is at line rate (lower bound)"


def test_throughput_without_a_figure() -> None:
    found = derived(rates(BOTH, 6.0), rates(FIREWALL, 9.0, verdict="invalid"), rates(L3FWD, 12.0)).throughput
    assert [(it.point, it.throughput_pps, it.note) for it in found] == [
        (FIREWALL, None, "no trial counts (invalid)"),
        (L3FWD, 12e6, ""),
        (BOTH, 6e6, "firewall alone has no figure"),
    ]


def test_a_run_without_parts_has_no_section() -> None:
    assert derived(rates(BOTH, 6.0), latency(BOTH, 9.0)) == Chains()
    assert derived(rates(make_point(), 6.0)) == Chains()
    assert derived() == Chains()
