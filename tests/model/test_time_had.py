# SPDX-License-Identifier: BSD-3-Clause
"""What the host took from the pollers of a trial, and the figures of the time that they had."""

from __future__ import annotations

from dataclasses import replace

import pytest
from builders import make_point, make_trial

from planebench.model.records import Evidence, Load, SwitchCycles, ThreadEvidence, Trial
from planebench.model.time_had import Stood, cycles_per_packet, is_disturbed, rate_pps, stood

SECOND_NS = 1_000_000_000


def thread(owner: str, cpu: int, wait_ns: int, name: str = "w", run_ns: int = 0) -> ThreadEvidence:
    return ThreadEvidence(owner, name, cpu, run_ns, wait_ns, 0)  # type: ignore[arg-type]


def taken(trial: Trial, *threads: ThreadEvidence) -> Trial:
    return replace(trial, evidence=replace(trial.evidence, threads=threads))


def test_switch_and_tester_stand_independently() -> None:
    found = stood(Evidence(threads=(thread("switch", 1, 300_000_000), thread("tester", 0, 200_000_000))), SECOND_NS)
    assert found == Stood(switch=0.3, tester=0.2)
    assert found.had == pytest.approx(0.7 * 0.8)


@pytest.mark.parametrize(("stall_ns", "had"), [(300_000_000, 0.5), (100_000_000, 0.7), (400_000_000, 0.5), (0, 0.8)])
def test_they_stood_together_as_far_as_frames_came_while_the_tester_polled(stall_ns: int, had: float) -> None:
    """At most for as long as the switch waited: a longer stall is its own."""
    threads = thread("switch", 1, 300_000_000), thread("tester", 0, 200_000_000)
    assert stood(Evidence(threads=threads, stall_ns=stall_ns), SECOND_NS).had == pytest.approx(had)


def test_a_wait_of_the_tester_is_a_poll_gap_too() -> None:
    evidence = Evidence(threads=(thread("tester", 0, 200_000_000),), poll_gap_sum_ns=250_000_000)
    assert stood(evidence, SECOND_NS).tester == 0.25


def test_long_rounds_of_its_own_work_are_no_time_that_the_host_took() -> None:
    """Three thousand rounds of 140 us, of five VNFs with frames of 1024 B: 0.45 Mpps were told as 22."""
    tester = (thread("tester", 0, 10_000_000),)
    rounds = Evidence(threads=tester, poll_gaps=7000, poll_gap_sum_ns=980_000_000, poll_gap_threshold_ns=100_000)
    assert stood(rounds, SECOND_NS).tester == 0.01
    taken_away = replace(rounds, poll_gaps=20, poll_gap_sum_ns=80_000_000)  # by a hypervisor, which no wait shows
    assert stood(taken_away, SECOND_NS).tester == 0.08


def test_the_workers_of_a_switch_stand_side_by_side() -> None:
    workers = thread("switch", 1, 400_000_000), thread("switch", 2, 0)
    assert stood(Evidence(threads=workers), SECOND_NS).switch == 0.2


def test_the_vnfs_of_a_chain_stand_one_after_the_other() -> None:
    switch = thread("switch", 1, 0, run_ns=SECOND_NS)
    chain = thread("vnf", 2, 200_000_000 + 600_000), thread("vnf", 3, 500_000_000 + 600_000)  # less three readings
    assert stood(Evidence(threads=(switch, *chain)), SECOND_NS).vnfs == pytest.approx(1 - 0.8 * 0.5)
    assert stood(Evidence(threads=(switch, *chain)), SECOND_NS, roaming=True).vnfs == 0


def test_sharing_a_core_on_purpose_is_counted_for_no_one() -> None:
    half = SECOND_NS // 2
    sharers = thread("switch", 1, half, run_ns=half), thread("vnf", 1, half, run_ns=half)
    assert stood(Evidence(threads=sharers), SECOND_NS) == Stood()


def test_the_rate_is_per_time_that_all_had() -> None:
    trial = make_trial(0, make_point("ovs-dpdk"), 6.5)
    assert rate_pps(trial) == trial.throughput_pps
    assert rate_pps(taken(trial, thread("switch", 1, 350_000_000))) == pytest.approx(trial.throughput_pps / 0.65)
    assert is_disturbed(taken(trial, thread("switch", 1, 20_000_001)))
    assert not is_disturbed(taken(trial, thread("switch", 1, 20_000_000)))


def test_no_more_is_told_than_a_link_carries() -> None:
    full = taken(make_trial(mpps=9.9, line_rate_pps=10e6), thread("switch", 1, 200_000_000))
    assert rate_pps(full) == 10e6
    assert rate_pps(replace(full, line_rate_pps=20e6)) == pytest.approx(9.9e6 / 0.8)


def test_a_paced_load_is_what_it_is() -> None:
    trial = replace(
        taken(make_trial(0, make_point("a"), 6.5), thread("switch", 1, 350_000_000)), load=Load("0.50", 1e6)
    )
    assert rate_pps(trial) == trial.throughput_pps


def test_cycles_ran_on_while_the_poller_had_no_cpu() -> None:
    trial = replace(make_trial(0, make_point("a"), 6.5), switch=SwitchCycles(900, 100, 3))
    assert cycles_per_packet(trial) == 300
    assert cycles_per_packet(taken(trial, thread("switch", 1, 500_000_000))) == 150
    assert cycles_per_packet(replace(trial, switch=SwitchCycles())) is None
