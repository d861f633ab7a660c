# SPDX-License-Identifier: BSD-3-Clause
"""Restarts under traffic, counted: every frame is in one place, and counters that begin anew are followed."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import cast

import pytest
from planed_answers import statistics

from planebench.measure.live import LiveTopology
from planebench.measure.outage import OutageDrops, check_victim, longest_silence, outage_of
from planebench.model.errors import StartError, UsageError
from planebench.model.outage import Outage, OutageReport, Silence
from planebench.model.records import SwitchCycles
from planebench.model.scenarios import Flow, build
from planebench.model.topology import Topology
from planebench.planed.statistics import Statistics

WAY = Flow("n0", "n1", 0)


def stats(forwarded: int, silence_ns: int = 1, **generator: int) -> Statistics:
    """Of a tester whose generator sends to one monitor."""
    sent = {
        "intended_packets": 1000,
        "offered_packets": 1000,
        "unsent_late_packets": 0,
        "unsent_ring_full_packets": 0,
        "attempted_packets": 1000,
        "refused_packets": 0,
        "duration_ns": 10**9,
        "probes_sent": 0,
        "probes_stamped": 0,
    } | generator
    seen = {
        "stream": 0,
        "forwarded_packets": forwarded,
        "corrupt_packets": 2,
        "duplicate_packets": 3,
        "longest_silence_ns": silence_ns,
        "longest_silence_begin_ns": 7,
        "longest_silence_end_ns": 7 + silence_ns,
    }
    monitor = {"streams": [seen], "bursts": 1, "full_bursts": 0, "foreign_packets": 0, "stale_packets": 0}
    tasks = [
        {"name": "gen-n0", "kind": "generator", "generator": sent},
        {"name": "mon-n1", "kind": "monitor", "monitor": monitor},
    ]
    return statistics({"tsc_hz": 10**9, "tasks": tasks})


def test_every_frame_is_in_one_place() -> None:
    after = stats(600, 40_000_000, offered_packets=950, unsent_late_packets=10, unsent_ring_full_packets=40)
    found = outage_of(WAY, stats(990, 100_000), after, 12, {"v0:tx_full": 250})
    assert found.silence == Silence(40_000_000, 7, 40_000_007)
    assert (found.calm.duration_ns, found.calm_lost_packets) == (100_000, 10)
    assert (found.lost_packets, found.gone_packets) == (390, 98)
    parts = found.unsent_late_packets + found.unsent_ring_full_packets + found.forwarded_packets + found.corrupt_packets
    assert parts + sum(found.drops.values()) + found.gone_packets == found.intended_packets


def test_of_several_queues_the_longest_silence_counts() -> None:
    one, other = stats(1), stats(1, 5)
    both = replace(one, tasks=(*one.tasks, other.tasks[1]))
    assert longest_silence(both, WAY).duration_ns == 5
    with pytest.raises(StartError, match="no frame came through n1->n0"):
        longest_silence(both, Flow("n1", "n0", 1))


def test_a_silence_of_the_tester_is_no_outage() -> None:
    silent = stats(0, offered_packets=0, attempted_packets=0, unsent_late_packets=1000)
    with pytest.raises(StartError, match="the tester sent no frame in n0->n1: its workers had no CPU time"):
        outage_of(WAY, silent, stats(600), 12, {})


@dataclass
class Counting:
    """As a live topology: a switch and VNFs that count what they drop."""

    topology: Topology = field(default_factory=lambda: build("loopback", 2))
    of_switch: dict[str, int] = field(default_factory=dict)
    of_vnfs: Counter[str] = field(default_factory=Counter)

    @property
    def switch(self) -> Counting:
        return self

    def counters(self) -> SwitchCycles:
        return SwitchCycles(drops=dict(self.of_switch))

    def vnf_drops(self) -> Counter[str]:
        return Counter(self.of_vnfs)


def test_drops_of_a_vnf_that_begins_anew_are_those_before_and_those_after() -> None:
    it = Counting(of_switch={"v0:tx_full": 5}, of_vnfs=Counter({"vnf0:runt": 100, "v3:tx_full": 7}))
    account = OutageDrops(cast(LiveTopology, it), "vnf0")
    it.of_vnfs.update({"vnf0:runt": 1, "v1:tx_full": 2})
    account.before_the_end()
    it.of_vnfs = Counter({"vnf0:runt": 4, "v3:tx_full": 8})
    it.of_switch["v0:tx_full"] = 25
    assert account.drops() == {"switch v0:tx_full": 20, "v1:tx_full": 2, "v3:tx_full": 1, "vnf0:runt": 5}


def test_drops_of_a_switch_that_begins_anew() -> None:
    it = Counting(of_switch={"v0:tx_full": 5}, of_vnfs=Counter({"v3:tx_full": 7}))
    account = OutageDrops(cast(LiveTopology, it), "switch")
    it.of_switch["v0:tx_full"] = 9
    account.before_the_end()
    it.of_switch, it.of_vnfs = {"v0:tx_full": 30}, Counter({"v3:tx_full": 8})
    assert account.drops() == {"switch v0:tx_full": 34, "v3:tx_full": 1}


def test_only_what_can_end_by_itself_is_restarted() -> None:
    check_victim("switch", ("vnf0",), ())
    check_victim("vnf1", ("vnf0", "vnf1"), ("vnf1",))
    with pytest.raises(UsageError, match="vnf0 is a task of the tester"):
        check_victim("vnf0", ("vnf0", "vnf1"), ("vnf1",))
    with pytest.raises(UsageError, match='no "vnf7" to restart'):
        check_victim("vnf7", ("vnf0", "vnf1"), ("vnf1",))


def test_medians() -> None:
    every = [
        Outage(Silence(ns, 0, ns), Silence(1, 0, 1), 0, 1, 100, 0, 0, 100 - lost, 0, 0, 0)
        for ns, lost in ((3, 30), (9, 10), (4, 20))
    ]
    report = OutageReport("planed", "1", "l2fwd", "vnf0", False, 1e4, 64, (), tuple(every))
    assert (report.silence_median_ns, report.lost_median_packets) == (4, 20)
