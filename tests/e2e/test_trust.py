# SPDX-License-Identifier: BSD-3-Clause
"""What a run says of itself when something is wrong on purpose: a throttled tester, a stolen core, a lossy switch."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from e2e_rig import Bench

from planebench.analysis.ledger import ledger
from planebench.analysis.results import derive_results
from planebench.host import facts
from planebench.model.cpus import Cpus
from planebench.model.reasons import ReasonCode
from planebench.model.records import VerdictKind
from planebench.model.results import Loss
from planebench.model.time_had import is_disturbed
from planebench.store import find_run, read_run
from planebench.testbed.placement import place

pytestmark = [pytest.mark.dataplane, pytest.mark.timeout(180)]

SHORT = ("--scenario", "p2p", "--direction", "unidirectional", "--frame-size", 64, "--loads", "none", "--quiet")


@contextmanager
def busy_loop(cpu: int) -> Iterator[None]:
    """A program that wants one CPU for itself, at the priority of a poller where that is allowed."""
    text = (
        "import os; from planebench.host.process import high_priority\n"
        f"with high_priority():\n os.sched_setaffinity(0, {{{cpu}}})\n while True: pass"
    )
    process = subprocess.Popen([sys.executable, "-c", text], start_new_session=True)
    try:
        yield
    finally:
        process.kill()
        process.wait()


@pytest.mark.all
def test_a_throttled_tester_is_told_from_a_slow_switch(bench: Bench) -> None:
    bench.run("run", bench.plan, *SHORT, "--switch", "planed", "--repeat", 3, "--duration", 0.2, "--max-rate", "50k")
    run = read_run(find_run(bench.runs, "latest"))
    assert all(t.verdict.kind is VerdictKind.TESTER_LIMITED for t in run.trials), [t.verdict for t in run.trials]
    assert all(t.offered_pps < 60_000 for t in run.trials)
    (result,) = derive_results(run)
    assert result.verdict.kind is VerdictKind.TESTER_LIMITED
    assert result.capacity_estimate_pps is None or result.capacity_estimate_pps > 10 * (result.throughput_pps or 0)


def test_a_stolen_core_is_seen_and_taken_off(bench: Bench) -> None:
    host = facts.collect()
    cpus = Cpus(host.cpus_allowed, host.siblings, host.numa_node)
    with busy_loop(place(cpus).switch_cpu):
        bench.run("run", bench.plan, *SHORT, "--switch", "planed", "--repeat", 2, "--duration", 0.5, "--no-calibrate")
    run = read_run(find_run(bench.runs, "latest"))
    measured = [t for t in run.trials if t.offered_duration_ns]
    assert measured
    for trial in measured:
        assert is_disturbed(trial), trial.evidence
        assert any(
            reason.code is ReasonCode.CPU_WAIT and "switch thread" in reason.text for reason in trial.verdict.reasons
        ), trial
    (result,) = derive_results(run)
    assert result.counted_pps is not None and result.throughput_pps is not None
    assert result.counted_pps < result.throughput_pps and result.stood_share > 0.02


def test_a_switch_that_loses_frames_is_found_out_to_the_frame(bench: Bench) -> None:
    losing = {"often": 7, "rarely": 1000}
    switches = ",".join(f"{name}=planed:drop_one_in={one_in}" for name, one_in in losing.items())
    bench.run("run", bench.plan, *SHORT, "--switch", switches, "--repeat", 2, "--duration", 0.2, "--max-rate", "20k")
    trials = read_run(find_run(bench.runs, "latest")).trials
    assert {trial.point.switch for trial in trials} == losing.keys()
    for trial in trials:
        one_in = losing[trial.point.switch]
        account = ledger(trial)
        lost = account.offered_packets - account.forwarded_packets
        (fault,) = [loss for loss in account.losses if loss.cause == "fault"]
        assert account.unexplained_packets == 0
        assert lost == sum(loss.packets for loss in account.losses)
        assert abs(fault.packets - account.offered_packets / one_in) <= 1
        if len(account.losses) == 1:
            assert account.losses == (Loss("switch", "fault", lost),)


@pytest.mark.all
def test_a_search_goes_on_after_an_interruption(bench: Bench) -> None:
    options = (*SHORT, "--switch", "planed", "--search", "pdr", "--search-duration", 0.02, "--duration", 0.05)
    process = bench.start("run", bench.plan, *options)
    bench.wait_for(lambda: sum(t["role"] == "search" for t in bench.trials()) >= 3, "three search trials", process)
    os.killpg(process.pid, 9)
    process.wait()
    before = bench.trials()
    bench.run("run", bench.plan, *options, "--resume")
    after = bench.trials()
    assert after[: len(before)] == before
    assert [t["index"] for t in after] == list(range(len(after)))
    assert bench.finished() == {**(bench.finished() or {}), "status": "complete"}
    out = bench.run("export", "latest", "--format", "json").stdout
    (result,) = json.loads(out)["results"]
    assert [search["method"] for search in result["searches"]] == ["pdr"]


def test_bursts_of_microseconds_are_sent_and_measured(bench: Bench) -> None:
    options = (*SHORT, "--switch", "planed:drop_one_in=1000", "--repeat", 1, "--search", "b2b", "--max-rate", "2M")
    bench.run("run", bench.plan, *options)
    run = read_run(find_run(bench.runs, "latest"))
    bursts = [t for t in run.trials if t.search == "b2b"]
    (result,) = derive_results(run)
    if any(r.code is ReasonCode.GAVE_UP for search in result.searches for r in search.verdict.reasons):
        pytest.skip("no burst could be sent as intended: this machine has no free moment")
    assert bursts
    assert all(t.offered_duration_ns for t in bursts), [t.verdict for t in bursts if not t.offered_duration_ns][:1]
    assert min(t.intended_duration_ns for t in bursts) < 1_000_000
    for trial in bursts:
        assert ledger(trial).unexplained_packets == 0
