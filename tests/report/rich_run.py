# SPDX-License-Identifier: BSD-3-Clause
"""A run that has everything a report can show: searches, calibration, ledger, jitter, near and far, many loads."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterable
from typing import Any

from builders import make_header, make_latency_trial, make_point, make_trial, make_verdict

from planebench.analysis.compare import Derived
from planebench.analysis.counting import search_counts
from planebench.analysis.histogram import encode
from planebench.model.header import Calibration, Ceiling, Finished, LatencyFloor, Run, RunHeader
from planebench.model.records import Evidence, LatencyRecord, Point, SwitchCycles, ThreadEvidence, Trial, Verdict
from planebench.model.records import VerdictKind as Kind
from planebench.model.results import (
    BurstSummary,
    Ledger,
    LoadFinding,
    Loss,
    Result,
    SearchFigure,
    SearchResult,
    Stratum,
)

SWITCHES = ("planed", "ovs-dpdk", "testpmd")
MPPS = {"planed": 14.3, "ovs-dpdk": 11.3, "testpmd": 12.8}
CYCLES = {"planed": 84, "ovs-dpdk": 222, "testpmd": 190}
LOADS = (0.10, 0.30, 0.50, 0.70, 0.90, 0.99)
NO_VERDICT = Verdict(Kind.VALID)
DEVIATION = "trials of 0.1 s; CSIT takes 1 s"
LINE_RATE = "the highest load is 1.25 x the rate forwarded at maximum offered load (no line rate)"


def make_calibration() -> Calibration:
    return Calibration(
        measured_at="2026-11-20T09:00:00Z",
        planed_version="0.2.0",
        cpu_model="AMD EPYC 9R14",
        kernel="6.1.0-18-amd64",
        wire="virtio",
        ring_size=256,
        hugepages=False,
        tester_cpus=1,
        duration_s=1.0,
        ceilings=(Ceiling(64, "wire", "wire", 21.4e6, True), Ceiling(64, "vnf", "wire", 17.9e6, False)),
        floors=(LatencyFloor(64, 1e6, 1000, 998, 1200.0, 3100.0, "", "hardware"),),
    )


def rich_header() -> RunHeader:
    return make_header(SWITCHES, calibration=make_calibration())


def rich_run() -> Run:
    """planed is limited by the tester, the host takes from two trials of ovs-dpdk, one of testpmd is far."""
    trials: list[Trial] = []
    for repetition in range(4):
        for switch in SWITCHES:
            trials.append(_saturating(len(trials), make_point(switch), repetition))
    for share in (3.1, 4.0):
        reason = (
            f"switch thread pmd-c01 waited for its CPU {share}% of the time ({share * 10:.0f} involuntary switches)"
        )
        trials.append(make_trial(len(trials), make_point("ovs-dpdk"), 6.0, reasons=(reason,), evidence=_waits()))
    trials.append(make_trial(len(trials), make_point("testpmd"), 5.0, band="far"))
    for switch in SWITCHES:
        for load in LOADS:
            trials.append(_latency(len(trials), make_point(switch), load))
    return Run(rich_header(), tuple(trials), Finished("complete", "2026-11-21T12:38:31Z"))


@functools.cache
def rich() -> Derived:
    """The rich run with searches and ledgers made by hand, as the searches of a real run would find them."""
    derived = Derived(rich_run())
    return with_results(derived.run, map(_with_searches, derived.results))


def with_results(run: Run, results: Iterable[Result]) -> Derived:
    """A run whose results are not derived from its trials, but given."""
    derived = Derived(run)
    derived.results = tuple(results)
    return derived


def search(point: Point, method: str, lower: float | None, upper: float | None, **changes: Any) -> SearchResult:
    conditional = None if lower is None else lower * 1e6
    made = SearchResult(
        point,
        method,
        NO_VERDICT,
        True,
        lower_pps=None if lower is None else lower * 1e6,
        upper_pps=None if upper is None else upper * 1e6,
        conditional_pps=conditional,
        deviations=(LINE_RATE,),
    )
    return dataclasses.replace(made, **changes)


def one_start(searches: Iterable[SearchResult]) -> tuple[SearchFigure, ...]:
    """Return the figures of searches that were done in one start."""
    rates = ((s, s.lower_pps) for s in searches if search_counts(s))
    return tuple(SearchFigure(s.method, pps, 1, s.is_bound) for s, pps in rates if pps is not None)


def _with_searches(result: Result) -> Result:
    point, best = result.point, MPPS[result.point.switch]
    interrupted = {
        "complete": False,
        "verdict": make_verdict("invalid", "interrupted; bounds so far"),
    }
    burst = BurstSummary(best * 1.2e6, 1834.0, 1702, 1990, 91.0, 3, 24_000.0)
    searches = (
        search(point, "ndr", best * 0.8, best * 0.804, deviations=(DEVIATION, LINE_RATE)),
        search(point, "pdr", best * 0.9, best * 0.904, deviations=(DEVIATION, LINE_RATE)),
        search(point, "rfc2544", best * 0.7, None, **interrupted)
        if point.switch == "ovs-dpdk"
        else search(point, "rfc2544", best * 0.79, best * 0.795),
        search(point, "bswlv", best * 0.85, best * 0.853),
        search(point, "b2b", None, None, burst=burst),
    )
    ledger = Ledger(1_000_000, 980_000, (Loss("vhost ring", "full (v0)", 19_000), Loss("switch", "fault", 900)))
    uncounted = Ledger(1_000_000, 990_000, (), counted=False)
    return dataclasses.replace(
        result,
        searches=searches,
        search_figures=one_start(searches),
        ledger=uncounted if point.switch == "testpmd" else ledger,
        strata=(Stratum("near", best * 1e6, 4), Stratum("far", best * 0.47e6, 2)),
        load_finding=LoadFinding(("0.10", "0.50"), 1.8, "0.70") if point.switch == "planed" else result.load_finding,
    )


def _saturating(index: int, point: Point, repetition: int) -> Trial:
    limited = point.switch == "planed"
    rate = MPPS[point.switch] * (1 + 0.002 * repetition)
    packets = int(rate * 1e6)
    busy = packets * CYCLES[point.switch]
    idle = int(busy * (1.2 if limited else 0.01))
    reasons = (f"the switch was busy only {45 + repetition % 2}% of the time",) if limited else ()
    return make_trial(
        index,
        point,
        rate,
        "tester-limited" if limited else "valid",
        reasons,
        repetition=repetition,
        switch=SwitchCycles(busy, idle, packets, {"n1:tx_full": packets // 5}),
        start=repetition // 2,
    )


def _waits() -> Evidence:
    threads = (
        ThreadEvidence("switch", "pmd-c01", 1, 970_000_000, 31_000_000, 31),
        ThreadEvidence("tester", "w0", 0, 999_000_000, 0, 0),
    )
    return Evidence(threads, 3, 1_200_000, 900_000, 100_000, 4_000_000)


def _latency(index: int, point: Point, load: float) -> Trial:
    base = 3000 * (SWITCHES.index(point.switch) + 1)
    middle = int(base * (1.8 if load < 0.2 else 1.0) * (1 + 6 * max(0.0, load - 0.7)))
    trial = make_latency_trial(
        index, point, f"{load:.2f}", MPPS[point.switch] * 1e6 * load, ((middle, 900), (middle * 3, 99), (middle * 9, 1))
    )
    jitter = encode([[200, 900], [900, 90], [4000, 9]])
    assert isinstance(trial.latency, LatencyRecord)
    latency = dataclasses.replace(
        trial.latency,
        probes_sent=1003,
        probes_stamped=1001,
        clock="hardware",
        ipdv=jitter,
        burst_rises=jitter,
        burst_falls=jitter,
    )
    return dataclasses.replace(trial, latency=latency)
