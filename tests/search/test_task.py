# SPDX-License-Identifier: BSD-3-Clause
"""When a tester counts as unable, and the borders to MLRsearch and to the clock of the tester."""

from __future__ import annotations

import pytest
from builders import make_point, make_trial
from hypothesis import given
from hypothesis import strategies as st

from planebench.analysis.search.methods import BSWLV, _duration_s
from planebench.analysis.search.task import (
    GaveUp,
    SearchFinding,
    SearchSettings,
    SearchTask,
    offered_share,
    tester_cap_pps,
)
from planebench.model.records import DirectionCounts, Evidence, Load, Trial, VerdictKind

SHORT = {"verdict": "tester-limited", "reasons": ("late",)}


def paced(load_mpps: float, offered_mpps: float | None = None, lost: int = 0, **changes) -> Trial:
    intended, offered = int(load_mpps * 1e6), int((offered_mpps or load_mpps) * 1e6)
    counts = DirectionCounts("n0->n1", intended, offered, offered - lost, unsent_late_packets=intended - offered)
    values = {"directions": (counts,), **changes}
    return make_trial(0, role="search", load=Load("paced", load_mpps * 1e6), **values)


LIMITED = [paced(10, 8.0, **SHORT), paced(10, 7.5, **SHORT)]


def test_cap_is_a_little_below_the_least_the_tester_reached():
    assert tester_cap_pps(LIMITED) == pytest.approx(0.98 * 7.5e6)
    assert tester_cap_pps([*LIMITED, paced(12, 7.0, **SHORT)]) == pytest.approx(0.98 * 7.5e6)
    assert tester_cap_pps([]) is None


@pytest.mark.parametrize("load", [10, 11])
def test_a_load_that_the_tester_has_kept_is_no_limit(load):
    assert tester_cap_pps([*LIMITED, paced(load)]) is None
    assert tester_cap_pps([*LIMITED, paced(9)]) is not None


@pytest.mark.parametrize(
    "changes",
    [
        {"role": "r_plus"},
        {"role": "latency"},
        {"load": Load("saturating")},
        {"load": Load("saturating", 10e6)},
        {"intended_duration_ns": 1_000_000, "offered_duration_ns": 1_000_000},
        {"verdict": "invalid"},
    ],
)
def test_what_does_not_tell_of_the_tester(changes):
    values = {"role": "search", "load": Load("paced", 10e6), **SHORT, **changes}
    assert tester_cap_pps([make_trial(0, **values)] * 2) is None


def test_a_tester_that_keeps_no_load_ends_the_search():
    short = [paced(load, load * 0.9, **SHORT) for load in range(10, 3, -1) for _ in range(2)]
    assert tester_cap_pps(short) == pytest.approx(0.98 * 3.6e6)
    with pytest.raises(GaveUp, match="did not reach 8 loads, the lowest 3 Mpps") as end:
        tester_cap_pps([*short, *[paced(3, 2.7, **SHORT)] * 2])
    assert end.value.verdict.kind is VerdictKind.TESTER_LIMITED


@pytest.mark.parametrize("trial_s", [0.1, 0.3, 0.7, 1.0])
@pytest.mark.parametrize("n", range(1, 13))
def test_bswlv_fails_a_load_only_when_all_n_trials_have_lost(n, trial_s):
    """At the highest load n - 1 trials lose and the last does not; every lower load loses nothing."""
    asked = []

    def measure(ask):
        asked.append(ask.load_pps)
        loses = ask.load_pps == 10e6 and asked.count(10e6) < n
        return paced(ask.load_pps / 1e6, lost=3 if loses else 0)

    found = SearchFinding()
    BSWLV.search(
        measure, SearchTask(SearchSettings(duration_s=trial_s, max_r=n, max_load_pps=10e6), make_point()), found
    )
    assert found.lower_pps == 10e6
    assert found.upper_pps is None
    assert asked.count(10e6) == n


@given(packets=st.integers(16, 20_000_000), rate=st.integers(10_000, 150_000_000))
def test_a_burst_is_as_long_as_it_was_meant(packets, rate):
    """The tester cuts the duration to whole ns, then rate x duration to whole packets."""
    duration_ns = int(_duration_s(packets, rate) * 1e9)
    assert rate * duration_ns // 1_000_000_000 == packets


@pytest.mark.parametrize(
    ("over_ns", "late", "gap_ns", "share"),
    [
        (0, 0, 0, 1.0),
        (50_000, 0, 0, 1.0),
        (10_050_000, 0, 0, 1 / 1.01),
        (0, 10_000, 0, 0.99),
        (0, 10_000, 10_000_000, 1.0),
        (0, 10_000, 5_000_000, 0.99 / 0.995),
        (0, 0, 10_000_000, 1.0),
    ],
)
def test_a_load_is_what_was_offered_while_the_tester_had_its_cpu(over_ns, late, gap_ns, share):
    """1 s at 1 Mpps: slots that are late while a poller stands are the host's, others the tester's."""
    counts = DirectionCounts("n0->n1", 10**6, 10**6 - late, 10**6 - late, unsent_late_packets=late)
    evidence = Evidence(poll_gap_sum_ns=gap_ns)
    trial = paced(1, directions=(counts,), offered_duration_ns=10**9 + over_ns, evidence=evidence)
    assert offered_share(trial) == pytest.approx(share, rel=1e-9)


def test_late_slots_are_no_loss_and_frames_that_a_full_ring_did_not_take_are():
    late = DirectionCounts("n0->n1", 1000, 900, 900, unsent_late_packets=100)
    full = DirectionCounts("n0->n1", 1000, 900, 890, unsent_ring_full_packets=100)
    both = DirectionCounts("n0->n1", 1000, 800, 800, unsent_late_packets=100, unsent_ring_full_packets=100)
    assert [d.loss_ratio for d in (late, full, both)] == [0.0, 0.11, pytest.approx(1 / 9)]
    assert paced(1, directions=(late, full)).loss_ratio == pytest.approx(110 / 1900)
