# SPDX-License-Identifier: BSD-3-Clause
import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import pytest
from analysis.waiting import waiting
from builders import make_header, make_latency_trial, make_point, make_run, make_trial, make_verdict

from planebench.analysis.counting import latency_compares, latency_counts
from planebench.analysis.results import derive_results
from planebench.model.header import Run
from planebench.model.reasons import Reason, ReasonCode
from planebench.model.records import DirectionCounts, SwitchCycles, Trial, Verdict, VerdictKind
from planebench.model.results import Ledger, Loss, Result


def _run(trials: Sequence[Trial]) -> Run:
    return Run(make_header(), tuple(dataclasses.replace(t, index=i) for i, t in enumerate(trials)))


def _only(*trials: Trial) -> Result:
    (result,) = derive_results(_run(trials))
    return result


def test_r_plus_is_the_geometric_mean_of_the_valid_trials() -> None:
    result = _only(make_trial(mpps=10.0), make_trial(mpps=10.2), make_trial(mpps=10.4))
    assert result.throughput_pps == pytest.approx((10.0 * 10.2 * 10.4) ** (1 / 3) * 1e6)
    assert result.throughput_stddev_pps == pytest.approx(0.2e6)
    assert result.verdict.kind is VerdictKind.VALID
    assert (result.trials, result.invalid, result.version) == ((0, 1, 2), 0, "0.1.0")
    assert result.throughput_l1_gbps == pytest.approx(10.2e6 * 84 * 8 / 1e9, rel=1e-3)
    assert result.loss_ratio == pytest.approx(1 / 6)


def test_one_trial_has_no_deviation() -> None:
    assert _only(make_trial()).throughput_stddev_pps is None


def test_warmups_count_for_nothing() -> None:
    result = _only(make_trial(mpps=1.0, role="warmup"), make_trial(mpps=10.0))
    assert (result.throughput_pps, result.trials, result.invalid) == (10e6, (1,), 0)


def test_what_the_host_took_is_in_the_figure_and_not_in_its_verdict() -> None:
    wait = Reason(ReasonCode.CPU_WAIT, "switch thread w waited for its CPU 50 % of the time")
    trial = make_trial(mpps=5, evidence=waiting(0.5))
    halved = dataclasses.replace(trial, verdict=Verdict(VerdictKind.VALID, (wait,)))
    result = _only(make_trial(mpps=10), halved, make_trial(mpps=0, verdict="invalid"))
    assert (result.throughput_pps, result.trials, result.invalid) == (pytest.approx(10e6), (0, 1), 1)
    assert (result.counted_pps, result.stood_share) == (pytest.approx(50e6**0.5 * 1e3), 0.25)
    assert result.verdict == Verdict(VerdictKind.VALID)


@pytest.mark.parametrize(("limited", "kind"), [(1, VerdictKind.VALID), (2, VerdictKind.TESTER_LIMITED)])
def test_a_figure_with_many_tester_limited_trials_is_a_lower_bound(limited: int, kind: VerdictKind) -> None:
    trials = [make_trial(mpps=10.5, verdict="tester-limited")] * limited + [make_trial(mpps=10)] * (5 - limited)
    result = _only(*trials)
    assert result.throughput_pps == pytest.approx(10e6 * 1.05 ** (limited / 5)), "none is left out"
    assert result.verdict.kind is kind


def test_only_tester_limited_trials_give_a_lower_bound() -> None:
    limited = [make_trial(mpps=m, verdict="tester-limited", reasons=("idle 30 %",)) for m in (14.0, 14.2)]
    result = _only(*limited, make_trial(mpps=2, verdict="invalid"))
    assert result.throughput_pps == pytest.approx((14.0e6 * 14.2e6) ** 0.5)
    assert result.verdict.kind is VerdictKind.TESTER_LIMITED
    assert result.verdict.texts == ("idle 30 % (x2)",)
    assert (result.trials, result.invalid) == ((0, 1), 1)


def test_where_nothing_counts_there_is_no_throughput_but_every_reason() -> None:
    kinds = ("invalid", "functional")
    result = _only(*[make_trial(verdict=k, reasons=(f"because {k} {i}",)) for i, k in enumerate(kinds)])
    assert result.throughput_pps is None
    assert result.throughput_l1_gbps is None
    assert result.verdict.kind is VerdictKind.FUNCTIONAL
    assert result.verdict.texts == tuple(f"because {k} {i}" for i, k in enumerate(kinds))
    assert (result.trials, result.invalid) == ((), 1)


def test_loss_ratio_weighs_trials_by_packets() -> None:
    small = make_trial(directions=(DirectionCounts("a", 100, 100, 0),))
    large = make_trial(directions=(DirectionCounts("a", 900, 900, 900),))
    assert _only(small, large).loss_ratio == pytest.approx(0.1)


def test_cycles_are_the_geometric_mean_of_starts_that_know_them() -> None:
    cycles = [SwitchCycles(busy_cycles=b, idle_cycles=100, packets=10) for b in (1000, 2000, 4000)]
    trials = [make_trial(switch=c, start=i, repetition=i) for i, c in enumerate((*cycles, SwitchCycles()))]
    result = _only(*trials)
    assert result.switch_cycles_per_packet == 200
    assert _only(make_trial(switch=SwitchCycles())).switch_cycles_per_packet is None


def test_latency_merges_the_histograms_of_all_valid_trials() -> None:
    trials = [
        make_latency_trial(samples_ns=[(1000, 90)], pps=5e6),
        make_latency_trial(samples_ns=[(9000, 10)], pps=5e6),
    ]
    result = _only(make_trial(), *trials)
    (summary,) = result.latency
    assert (summary.load, summary.samples, summary.probes_sent, summary.achieved_fraction) == ("0.50", 100, 100, 1.0)
    assert (summary.p50, summary.p99) == (1.0, pytest.approx(9.0, rel=1e-3))
    assert summary.mean == pytest.approx(1.8, rel=1e-3)
    assert summary.verdict.kind is VerdictKind.VALID
    assert result.trials == (0, 1, 2)


def test_latency_of_both_directions_is_intended_in_sum() -> None:
    point = make_point(direction="bidirectional")
    result = _only(make_latency_trial(point=point, pps=3e6))
    assert result.latency[0].intended_pps == 6e6


def test_latency_loads_come_in_rising_order() -> None:
    trials = [make_latency_trial(load=label, pps=p) for label, p in (("0.99", 9.9e6), ("0.10", 1e6), ("0.50", 5e6))]
    assert [s.load for s in _only(*trials).latency] == ["0.10", "0.50", "0.99"]


@pytest.mark.parametrize(("overloads", "p50", "kind"), [(1, 1.0, "valid"), (2, 9.0, "overload")])
def test_carried_and_overloaded_latency_trials_are_not_merged(overloads: int, p50: float, kind: str) -> None:
    carried = [make_latency_trial(samples_ns=[(1000, 90)]) for _ in range(3 - overloads)]
    full = [make_latency_trial(samples_ns=[(9000, 90)], verdict="overload") for _ in range(overloads)]
    result = _only(make_trial(), *carried, *full)
    (summary,) = result.latency
    assert (summary.verdict.kind.value, summary.p50) == (kind, pytest.approx(p50, rel=1e-3))
    assert summary.samples == 180
    assert latency_counts(summary)
    assert latency_compares(summary) is (kind == "valid")


def test_latency_trials_that_do_not_count_are_left_out() -> None:
    bad = make_latency_trial(samples_ns=[(90_000, 50)], verdict="tester-limited", reasons=("offered 90 %",))
    result = _only(make_trial(), make_latency_trial(samples_ns=[(1000, 50)]), bad)
    assert (result.latency[0].max, result.latency[0].samples, result.trials) == (1.0, 50, (0, 1))


def test_latency_without_a_valid_trial_carries_the_verdict() -> None:
    limited = make_latency_trial(samples_ns=[(1000, 50)], verdict="tester-limited", reasons=("offered 90 %",))
    result = _only(make_trial(), limited)
    (summary,) = result.latency
    assert (summary.verdict.kind, summary.verdict.texts) == (VerdictKind.TESTER_LIMITED, ("offered 90 %",))
    assert (summary.samples, result.trials) == (50, (0,))


def test_no_probe_came_back() -> None:
    for samples in ([], [(1000, 0)]):
        (summary,) = _only(make_trial(), make_latency_trial(samples_ns=samples)).latency
        assert summary.samples == 0
        assert math.isnan(summary.p99)
        assert (summary.verdict.kind, summary.verdict.texts) == (VerdictKind.INVALID, ("no latency probe returned",))


@pytest.mark.parametrize(
    ("trial", "said"),
    [(make_trial(role="warmup"), "only warm-up trials"), (make_latency_trial(), "only latency trials")],
)
def test_points_without_a_saturating_trial_say_so(trial: Trial, said: str) -> None:
    result = _only(trial)
    assert result.throughput_pps is None
    assert said in result.verdict.texts[0]


def test_results_come_in_the_order_of_the_matrix_and_the_header() -> None:
    run = make_run(chains=(2, 1), sizes=(1024, 64))
    points = [r.point for r in derive_results(run)]
    assert [p.switch for p in points[:3]] == ["planed", "ovs-dpdk", "testpmd"]
    assert [p.frame_size_bytes for p in points[:6:3]] == [64, 1024]
    assert list(dict.fromkeys(p.scenario_label for p in points)) == ["p2p", "p2v", "v2v", "loopback-1", "loopback-2"]


def test_nothing_measured_gives_no_results() -> None:
    assert derive_results(Run(make_header())) == ()


def test_the_median_stands_beside_the_geometric_mean() -> None:
    result = _only(make_trial(mpps=10.0), make_trial(mpps=10.1), make_trial(mpps=10.9))
    assert (result.throughput_median_pps, result.throughput_pps) == (
        10.1e6,
        pytest.approx(10.3256e6, rel=1e-4),
    )
    assert _only(make_trial(verdict="invalid")).throughput_median_pps is None


def test_the_ledger_is_of_the_saturating_trials_that_count() -> None:
    def trial(ring_full: int, verdict: str = "valid") -> Trial:
        switch = SwitchCycles(packets=100, drops={"n1:tx_full": ring_full})
        counts = (DirectionCounts("n0->n1", 100, 100, 90),)
        return make_trial(verdict=verdict, switch=switch, directions=counts)

    ledger = _only(trial(10), trial(8), trial(1, "functional"), make_latency_trial()).ledger
    assert ledger == Ledger(200, 180, (Loss("wire ring", "full (n1)", 18),))
    assert ledger.unexplained_packets == 2
    assert _only(make_trial(verdict="invalid")).ledger is None


def test_counts_are_exact_where_no_trial_has_a_rate() -> None:
    counts = (DirectionCounts("n0->n1", 100, 100, 90),)
    drops = {"vnf0:rule 1 web": 10}
    functional = make_trial(
        verdict="functional", directions=counts, tester_drops=drops, switch=SwitchCycles(drops={"n1:tx_full": 0})
    )
    ledger = _only(functional, functional, make_trial(verdict="invalid")).ledger
    assert ledger == Ledger(200, 180, (Loss("VNF", "rule 1 web (vnf0)", 20, policy=True),))
    refused = make_verdict("invalid")
    nothing = dataclasses.replace(refused, reasons=(Reason(ReasonCode.NOTHING_FORWARDED, "none"),))
    assert _only(dataclasses.replace(functional, verdict=nothing)).ledger == Ledger(
        100, 90, (Loss("VNF", "rule 1 web (vnf0)", 10, policy=True),)
    )


@pytest.mark.parametrize(
    ("dropped", "missing", "remark"),
    [(100, 100, False), (100, 51, False), (100, 128, False), (100, 131, True), (0, 11, True)],
)
def test_probes_that_a_function_dropped_are_not_the_slow_ones(dropped: int, missing: int, remark: bool) -> None:
    """A firewall drops a tenth of the frames, and so a tenth of 1000 probes, or about that."""
    trial = make_latency_trial(
        samples_ns=[(1000, 1000 - missing)], tester_drops={"vnf0:rule": dropped * 5000} if dropped else {}
    )
    assert trial.latency is not None
    lossy = dataclasses.replace(trial, latency=dataclasses.replace(trial.latency, probes_sent=1000))
    (summary,) = _only(make_trial(), lossy).latency
    assert summary.verdict.kind is VerdictKind.VALID and summary.verdict.has(ReasonCode.PROBES_MISSING) == remark
    assert ("dropped about 100 of them by policy" in str(summary.verdict.texts)) == (remark and dropped > 0)


@pytest.mark.parametrize(("sent", "remark"), [(1000, ()), (1010, ()), (1011, ("11 of 1011 probes",))])
def test_missing_probes_are_remarked_and_the_latency_stays_valid(sent: int, remark: tuple[str, ...]) -> None:
    trial = make_latency_trial(samples_ns=[(1000, 1000)])
    assert trial.latency is not None
    lossy = dataclasses.replace(trial, latency=dataclasses.replace(trial.latency, probes_sent=sent))
    verdict = _only(make_trial(), lossy).latency[0].verdict
    assert verdict.kind is VerdictKind.VALID
    assert verdict.texts == tuple(f"{text} did not return; the missing ones may be the slowest" for text in remark)


def _started(*mpps: float, **changes: Any) -> list[Trial]:
    """One trial in each start."""
    return [make_trial(mpps=m, start=i, repetition=i, **changes) for i, m in enumerate(mpps)]


def test_a_figure_has_the_interval_of_its_starts() -> None:
    result = _only(*_started(10.0, 10.1, 10.2))
    assert result.throughput_low_pps is not None and result.throughput_high_pps is not None
    assert result.throughput_low_pps < 10.0e6 < 10.2e6 < result.throughput_high_pps
    assert result.starts == 3
    one = _only(*[make_trial(mpps=m) for m in (10.0, 10.1, 10.2)])
    assert (one.throughput_low_pps, one.throughput_high_pps, one.starts) == (None, None, 1), "trials are no starts"
    bound = _only(*_started(10.0, 10.1, 10.2, verdict="tester-limited"))
    assert bound.throughput_low_pps is not None and bound.throughput_high_pps is None


def test_latency_percentiles_have_intervals_where_there_are_several_starts() -> None:
    trials = [make_latency_trial(samples_ns=[(1000 + i, 100)], start=i, repetition=i) for i in range(3)]
    (summary,) = _only(*trials).latency
    assert summary.p50_low is not None and summary.p50_high is not None
    assert summary.p50_low < summary.p50 < summary.p50_high
    assert _only(trials[0]).latency[0].p50_low is None
