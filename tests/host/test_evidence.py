# SPDX-License-Identifier: BSD-3-Clause
"""The scheduler's account of threads."""

from __future__ import annotations

import os
import threading

import pytest

from planebench.host import evidence
from planebench.host.evidence import HostSample, ThreadCounts, ThreadRef, ThreadSampler, read_counts, steal_ns
from planebench.host.process import high_priority


def burn(milliseconds: int) -> None:
    end = os.times().user + milliseconds / 1000
    while os.times().user < end:
        pass


def test_difference_of_two_samples_is_what_the_thread_did_in_between() -> None:
    me = ThreadRef(os.getpid(), threading.get_native_id(), "main", "tester")
    gone = ThreadRef(2**22 - 1, 2**22 - 1, "gone")
    sampler = ThreadSampler([me, gone])
    before = sampler.sample()
    burn(50)
    (evidence,) = sampler.difference(before, sampler.sample())
    assert (evidence.owner, evidence.thread) == ("tester", "main")
    assert evidence.run_ns >= 40_000_000
    assert evidence.cpu in os.sched_getaffinity(0)
    assert evidence.wait_ns >= 0 and evidence.involuntary_switches >= 0


def test_difference_subtracts_every_counter() -> None:
    thread = ThreadRef(1, 2, "pmd")
    before, after = {thread: ThreadCounts(0, 10, 20, 30)}, {thread: ThreadCounts(1, 110, 220, 33)}
    (evidence,) = ThreadSampler.difference(before, after)
    assert (evidence.cpu, evidence.run_ns, evidence.wait_ns, evidence.involuntary_switches) == (1, 100, 200, 3)


def test_the_samples_of_two_hosts_add_up() -> None:
    thread, count = ThreadRef(1, 2, "pmd"), ThreadCounts(0, 10, 20, 30)
    here = HostSample((), 5, {"LOC": 1, "eth0": 2})
    there = HostSample(((thread, count),), 6, {"LOC": 10})
    assert here + there == HostSample(((thread, count),), 11, {"LOC": 11, "eth0": 2})


def test_a_thread_that_is_not_there_reads_none() -> None:
    assert read_counts(os.getpid(), 2**22 - 1) is None


def test_steal_is_a_sum_over_the_given_cpus() -> None:
    cpus = os.sched_getaffinity(0)
    assert steal_ns(()) == 0
    assert steal_ns(cpus) >= max(steal_ns([cpu]) for cpu in cpus) >= 0


def test_high_priority_is_put_back() -> None:
    before = os.getpriority(os.PRIO_PROCESS, 0)
    with high_priority() as allowed:
        assert os.getpriority(os.PRIO_PROCESS, 0) == (-20 if allowed else before)
    assert os.getpriority(os.PRIO_PROCESS, 0) == before


def test_the_reading_itself_is_outside_the_time_between_two_samples_of_the_tester(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    order: list[int] = []

    def read(_pid: int, tid: int) -> ThreadCounts | None:
        order.append(tid)
        return None if tid == 3 else ThreadCounts(0, len(order), 0, 0)

    monkeypatch.setattr(evidence, "read_counts", read)
    threads = [
        ThreadRef(1, 1, "w0", "tester"),
        ThreadRef(1, 2, "w1", "vnf"),
        ThreadRef(1, 3, "gone", "vnf"),
    ]
    sampler = ThreadSampler(threads)
    first, second = sampler.sample(), sampler.sample()
    assert order == [2, 3, 1, 1, 2, 3]
    assert list(first) == list(second) == threads[:2]
    assert [found.run_ns for found in sampler.difference(first, second)] == [1, 4]
