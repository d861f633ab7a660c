# SPDX-License-Identifier: BSD-3-Clause
"""Probes that met a gap are the host's; those that met a stall are the host's only if its waits explain the stalls."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from planebench.analysis.histogram import decode, encode
from planebench.measure.latency import charged, histogram_of
from planebench.model.records import Evidence, LatencyRecord, ThreadEvidence
from planebench.planed.statistics import Histogram

MS = 1_000_000
SECOND = 1_000_000_000


def thread(owner: Any, wait_ms: float, cpu: int = 1) -> ThreadEvidence:
    return ThreadEvidence(owner, "it", cpu, SECOND, int(wait_ms * MS), 1)


def values(histogram: str) -> dict[int, int]:
    """Count by value in ns; small values are exact."""
    counts = decode(histogram)
    return {int(at): int(counts[at]) for at in np.flatnonzero(counts)}


def record(*, host: str = "", plain: tuple[int, int] = (10, 95)) -> LatencyRecord:
    """Probes of 10 ns, and three that met 20 ms of stalls."""
    stalled = encode([(1000, 3)])
    return LatencyRecord(100, 98, encode([plain, (1000, 3)]), host=host, stalled=stalled, stalled_ns=20 * MS)


@pytest.mark.parametrize(
    ("evidence", "hosts"),
    [
        (Evidence(), False),  # as of a switch that was stopped: nobody waited
        (Evidence(threads=(thread("switch", 9.9),)), False),
        (Evidence(threads=(thread("switch", 10.2),)), True),
        (Evidence(threads=(thread("switch", 6), thread("vnf", 5, cpu=2))), True),
        (Evidence(threads=(thread("tester", 50, cpu=0), thread("switch", 1))), False),  # its waits are gaps
        (Evidence(threads=(thread("switch", 50), thread("vnf", 50))), False),  # they share a CPU on purpose
        (Evidence(threads=(thread("switch", 19),), poll_gap_sum_ns=500 * MS), False),  # half of it in polled time
        (Evidence(threads=(thread("switch", 21),), poll_gap_sum_ns=500 * MS), True),
        (Evidence(steal_ns=12 * MS), True),
        (Evidence(threads=(thread("switch", 0), thread("tester", 0, cpu=0)), steal_ns=12 * MS), False),  # 6 of each CPU
    ],
)
def test_stalls_are_the_hosts_where_it_kept_the_switch_waiting(evidence: Evidence, hosts: bool) -> None:
    found = charged(record(), evidence, SECOND)
    assert values(found.histogram) == ({10: 95} if hosts else {10: 95, 1000: 3})
    assert (values(found.host) if found.host else {}) == ({1000: 3} if hosts else {})
    assert (found.probes_received, found.stalled_ns) == (98, 20 * MS)


def test_waits_of_a_trial_shorter_than_their_reading_are_unknown() -> None:
    evidence = Evidence(threads=(thread("switch", 10),))
    assert charged(record(), evidence, 9 * MS).host == ""


def test_vnfs_that_the_scheduler_moves_wait_for_each_other() -> None:
    evidence = Evidence(threads=(thread("switch", 1), thread("vnf", 50, cpu=2)))
    assert charged(record(), evidence, SECOND, roaming=True).host == ""
    assert charged(record(), evidence, SECOND).host


def test_gaps_of_the_tester_are_the_hosts_whatever_the_switch_did() -> None:
    gaps = record(host=encode([(500, 2)]))
    assert values(charged(gaps, Evidence(), SECOND).host) == {500: 2}
    both = charged(gaps, Evidence(steal_ns=SECOND), SECOND)
    assert (values(both.histogram), values(both.host)) == ({10: 95}, {500: 2, 1000: 3})


def test_where_the_host_has_every_probe_there_is_nothing_to_tell_apart() -> None:
    every = record(host=encode([(500, 2)]), plain=(10, 0))
    found = charged(every, Evidence(steal_ns=SECOND), SECOND)
    assert (values(found.histogram), found.host) == ({500: 2, 1000: 3}, "")


def test_probes_without_a_stall_stay_where_they_are() -> None:
    plain = LatencyRecord(100, 98, encode([(10, 98)]))
    assert charged(plain, Evidence(steal_ns=SECOND), SECOND) == plain
    assert replace(charged(record(), Evidence(), SECOND), histogram="") == replace(record(), histogram="")


def test_histograms_of_streams_are_added_up_and_those_without_add_nothing() -> None:
    one, other, gap = (Histogram(((value, count),), 0) for value, count in ((10, 2), (10, 1), (20, 1)))
    assert values(histogram_of([one, None, other])) == {10: 3}
    assert values(histogram_of([one, other, gap])) == {10: 3, 20: 1}
    assert values(histogram_of([])) == {}
