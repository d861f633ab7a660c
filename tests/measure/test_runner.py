# SPDX-License-Identifier: BSD-3-Clause
"""What trials on a simulated switch come to: exact counts, verdicts as those of real trials, the same luck again."""

from __future__ import annotations

import dataclasses

import pytest
from builders import make_point, sim_spec
from hypothesis import given, settings
from hypothesis import strategies as st

from planebench.analysis.histogram import decode, percentile_ns, summarise
from planebench.analysis.ledger import ledger
from planebench.measure.sim.foreign import FOREIGN
from planebench.measure.sim.runner import SimRunner
from planebench.measure.trial import TrialRequest
from planebench.model.reasons import ReasonCode
from planebench.model.records import Load, Trial, VerdictKind

POINT = make_point("sim")
BOTH_WAYS = make_point("sim", direction="bidirectional")


def runner(text: str = "sim", seed: int = 1, past=()) -> SimRunner:
    return SimRunner(sim_spec(text), seed, past, now=lambda: "")


def run(text: str = "sim", pps: float | None = None, point=POINT, duration_s: float = 1.0, **request) -> Trial:
    return runner(text).run(wanted(pps, point, duration_s, **request))


def wanted(pps: float | None = None, point=POINT, duration_s: float = 1.0, **request) -> TrialRequest:
    load = Load("saturating") if pps is None else Load("paced", pps)
    return TrialRequest(point, "r_plus" if pps is None else "search", load, duration_s, **request)


def dropped(trial: Trial) -> dict[str, int]:
    """Drops of the simulated switch; the rest of its counters are 0."""
    return {cause: count for cause, count in trial.switch.drops.items() if count}


def many(text: str, count: int = 200, pps: float | None = None) -> list[Trial]:
    one = runner(text)
    return [one.run(wanted(pps)) for _ in range(count)]


def test_flat_out_forwards_the_capacity_and_is_valid():
    trial = run("sim:capacity=10M")
    assert trial.verdict.kind is VerdictKind.VALID
    assert trial.forwarded_packets == 10_000_000
    assert trial.directions[0].offered_packets == 15_000_000
    assert trial.switch.drops == {"n0:rx_missed": 5_000_000, "fault": 0, "loss": 0, "stall": 0}
    assert trial.switch.busy_share == 1.0
    assert trial.switch.cycles_per_packet == 200
    assert trial.band == "near"


@pytest.mark.parametrize("duration_s", [0.1, 1.0])
def test_what_the_rings_of_63_functions_give_back_is_not_in_the_rate(duration_s):
    """32256 frames at 1 Mpps: they would be 3 % of a trial of a second."""
    trial = run(f"sim:capacity=1M:ring={63 * 2 * 256}", duration_s=duration_s)
    assert trial.forwarded_packets == 1_000_000 * duration_s + 63 * 2 * 256
    assert trial.forwarded_packets - sum(trial.by_tenth) == 63 * 2 * 256
    assert trial.throughput_pps == pytest.approx(1e6, rel=1e-3)
    assert "drained" in trial.verdict.codes
    assert "unsteady" not in trial.verdict.codes


def test_directions_share_the_capacity():
    trial = run("sim:capacity=10M", point=BOTH_WAYS)
    assert [d.name for d in trial.directions] == ["n0->n1", "n1->n0"]
    assert [d.forwarded_packets for d in trial.directions] == [5_000_000] * 2


@pytest.mark.parametrize(
    ("pps", "lost"), [(9_999_999, 0), (10_000_000, 0), (10_000_001, 1), (10_100_000, 100_000), (20_000_000, 10_000_000)]
)
def test_paced_loses_what_is_above_the_capacity(pps, lost):
    trial = run("sim:capacity=10M", pps)
    assert trial.verdict.kind is VerdictKind.VALID
    assert trial.directions[0].intended_packets == trial.directions[0].offered_packets == pps
    assert trial.directions[0].lost_packets == lost


def test_ring_takes_what_is_too_much_for_a_while():
    assert run("sim:capacity=10M:ring=100", 20e6, duration_s=10e-6).directions[0].lost_packets == 0
    assert run("sim:capacity=10M:ring=99", 20e6, duration_s=10e-6).directions[0].lost_packets == 1
    shared = run("sim:capacity=10M:ring=98", 10e6, BOTH_WAYS, duration_s=10e-6)
    assert [d.lost_packets for d in shared.directions] == [1, 1]


@pytest.mark.parametrize("ways", [POINT, BOTH_WAYS])
def test_fault_drops_exactly_every_nth_frame(ways):
    trial = run("sim:drop_one_in=1000", 2_000_500, ways)
    assert dropped(trial) == {"fault": 2000 * len(trial.directions)}
    assert all(d.lost_packets == 2000 for d in trial.directions)


def test_loss_and_stall_are_exact():
    assert dropped(run("sim:loss=1%", 1e6)) == {"loss": 10_000}
    stalled = run("sim:stall_share=1:stall_packets=7", 1e6, BOTH_WAYS)
    assert dropped(stalled) == {"stall": 7}
    assert sum(d.lost_packets for d in stalled.directions) == 7


def test_stretch_sends_all_but_takes_longer():
    trial = run("sim:stretch=1.5", 10e6)
    assert trial.directions[0].unsent_packets == 0
    assert trial.offered_duration_ns == 1_500_000_000
    assert trial.intended_duration_ns == 1_000_000_000
    assert trial.verdict.kind is VerdictKind.TESTER_LIMITED
    assert run("sim:stretch=1.5:capacity=10M", 15e6).directions[0].lost_packets == 0


def test_short_generator_leaves_frames_unsent():
    trial = run("sim:max_rate=8M", 9e6)
    assert trial.directions[0].unsent_packets == trial.directions[0].unsent_late_packets == 1_000_000
    assert trial.verdict.kind is VerdictKind.TESTER_LIMITED
    assert run("sim:max_rate=8M", 8e6).verdict.kind is VerdictKind.VALID
    flat_out = run("sim:max_rate=8M")
    assert flat_out.forwarded_packets == 8_000_000
    assert flat_out.verdict.kind is VerdictKind.TESTER_LIMITED


def test_without_cycles_the_switch_does_not_tell():
    trial = run("sim:cycles=0")
    assert trial.switch.busy_share is None
    assert trial.switch.cycles_per_packet is None
    assert trial.verdict.kind is VerdictKind.VALID


def test_busy_share_follows_the_load():
    assert run("sim:capacity=10M", 2.5e6).switch.busy_share == pytest.approx(0.25)


def test_far_band_is_slower_and_costs_more_cycles():
    trial = run("sim:far_share=1:far_ratio=40%:capacity=10M:cycles=50")
    assert trial.band == "far"
    assert trial.forwarded_packets == 4_000_000
    assert trial.switch.cycles_per_packet == pytest.approx(125)
    assert trial.verdict.kind is VerdictKind.VALID


def test_a_shared_core_is_slower_and_tells():
    trial = run("sim:shared_share=1:shared_ratio=40%:capacity=10M")
    assert trial.forwarded_packets == 4_000_000
    assert trial.evidence.distance_after.additions_per_cycle == pytest.approx((1.5, 3.75))
    assert trial.verdict.kind is VerdictKind.VALID, "only where cores alone are asked for it is not"


def test_a_disturbed_trial_shows_who_lost_the_cpu():
    trial = run("sim:disturbed_share=1", 1e6)
    (text,) = (str(reason) for reason in trial.verdict.reasons if reason.code is ReasonCode.CPU_WAIT)
    assert text.startswith("switch thread sim was preempted: 5.0% run-queue wait")


def test_a_switch_that_dies_makes_an_invalid_trial():
    trial = run("sim:dies_share=1:name=frail", point=BOTH_WAYS)
    assert trial.verdict.kind is VerdictKind.INVALID
    assert trial.verdict.texts == ("frail died (simulated)",)
    assert trial.offered_duration_ns == 0
    assert len(trial.directions) == 2


def test_without_loss_the_switch_has_counted_all_the_same():
    account = ledger(run("sim", 1e6))
    assert account.counted and account.losses == ()


def test_the_time_of_day_is_told_where_none_is_given():
    for spec in ("sim", "sim:dies_share=1"):
        assert SimRunner(sim_spec(spec)).run(wanted()).started_at.endswith("Z")
        assert run(spec).started_at == ""


def test_a_start_has_its_own_luck():
    """A resumed run starts the switch again, so it does not see what a run that never stopped would have."""
    first, second = run(ROUGH, start=0), run(ROUGH, start=1)
    assert (first.start, second.start) == (0, 1)
    assert first.directions != second.directions


@pytest.mark.parametrize(
    ("key", "counted"),
    [
        ("stall_share", lambda t: "stall" in dropped(t)),
        ("disturbed_share", lambda t: t.verdict.has(ReasonCode.CPU_WAIT)),
        ("shared_share", lambda t: t.evidence.distance_before.additions_per_cycle not in ((), (3.75, 3.75))),
        ("dies_share", lambda t: t.verdict.kind is VerdictKind.INVALID),
    ],
)
def test_shares_are_about_what_they_say(key, counted):
    assert 45 <= sum(counted(t) for t in many(f"sim:{key}=30%", pps=1e6)) <= 75
    assert not any(counted(t) for t in many("sim", 20, pps=1e6))


def test_noise_is_a_standard_deviation():
    rates = [t.throughput_pps / 10e6 for t in many("sim:noise=2%", 400)]
    mean = sum(rates) / len(rates)
    assert mean == pytest.approx(1, abs=0.005)
    assert (sum((r - mean) ** 2 for r in rates) / len(rates)) ** 0.5 == pytest.approx(0.02, rel=0.15)


def test_mode_is_of_the_start():
    one = runner("sim:modes=0.5")
    found = []
    for start in range(40):
        found.append({one.run(wanted(start=start)).forwarded_packets for _ in range(3)})
    assert all(len(start) == 1 for start in found)
    modes = [start.pop() for start in found]
    assert set(modes) == {5_000_000, 10_000_000}
    assert 10 <= modes.count(5_000_000) <= 30
    again = [runner("sim:modes=0.5").run(wanted(start=start)) for start in range(40)]
    assert [t.forwarded_packets for t in again] == modes
    assert [t.start for t in again] == list(range(40))


ROUGH = "sim:noise=5%:stall_share=20%:disturbed_share=20%:far_share=20%:dies_share=5%:modes=0.8:foreign=4ms/10ms"


def test_same_seed_same_trials_other_seed_others():
    loads = [None, 5e6, 11e6] * 10
    one, two, other = (runner(ROUGH, seed) for seed in (1, 1, 2))
    trials = [[r.run(wanted(pps, probe_rate_pps=100)) for pps in loads] for r in (one, two, other)]
    assert trials[0] == trials[1]
    assert trials[0] != trials[2]


def test_points_have_their_own_luck():
    """Trials of another point in between change nothing."""
    alone, mixed = runner(ROUGH), runner(ROUGH)
    expected = [alone.run(wanted()) for _ in range(10)]
    found = []
    for _ in range(10):
        mixed.run(wanted(point=BOTH_WAYS))
        found.append(mixed.run(wanted()))
    assert found == expected


def test_a_resumed_runner_goes_on_where_it_was():
    whole = runner(ROUGH)
    trials = [whole.run(wanted(point=p)) for p in (POINT, BOTH_WAYS, POINT) * 5]
    resumed = runner(ROUGH, past=trials[:7])
    assert [resumed.run(wanted(point=t.point)) for t in trials[7:]] == trials[7:]


def test_a_key_changes_only_what_it_says():
    """Luck is drawn in one order whatever the keys: with stalls, the same trials are disturbed."""
    without, with_stalls = many("sim:disturbed_share=30%", 50), many("sim:disturbed_share=30%:stall_share=50%", 50)
    assert [t.evidence for t in without] == [t.evidence for t in with_stalls]


@settings(max_examples=60)
@given(
    pps=st.one_of(st.none(), st.floats(1, 5e7)),
    duration_s=st.floats(1e-5, 2),
    ring=st.integers(0, 10_000),
    nth=st.integers(0, 50),
    shares=st.tuples(*(st.floats(0, 1) for _ in range(4))),
    foreign=st.sampled_from(FOREIGN),
    max_rate=st.sampled_from(["1M", "8M", "1G"]),
    point=st.sampled_from([POINT, BOTH_WAYS]),
)
def test_every_frame_is_accounted_for(pps, duration_s, ring, nth, shares, foreign, max_rate, point):
    loss, stalls, disturbed, far = shares
    text = f"sim:ring={ring}:drop_one_in={nth}:loss={loss}:stall_share={stalls}:max_rate={max_rate}"
    trial = run(f"{text}:disturbed_share={disturbed}:far_share={far}:foreign={foreign}", pps, point, duration_s)
    assert sum(trial.by_tenth) <= trial.forwarded_packets
    for d in trial.directions:
        assert 0 <= d.forwarded_packets <= d.offered_packets <= d.intended_packets
        assert d.unsent_packets == d.unsent_late_packets + d.unsent_ring_full_packets
    assert ledger(trial).unexplained_packets == 0
    assert trial.switch.busy_cycles >= 0
    assert trial.switch.idle_cycles >= 0


def latency(text: str, pps: float, **how):
    trial = run(text, pps, probe_rate_pps=1000, **how)
    assert trial.latency is not None
    return trial.latency


def test_latency_has_all_its_histograms():
    record = latency("sim:latency_us=10", 1e6)
    assert (record.probes_sent, record.probes_received, record.probes_stamped) == (1000, 1000, 1000)
    assert decode(record.histogram).sum() == 1000
    assert decode(record.ipdv).sum() == 999
    assert (record.stamped_packets, record.burst_rises) == (0, "")
    record = latency("sim:latency_us=10", 1e6, stamp_all=True)
    assert decode(record.burst_rises).sum() + decode(record.burst_falls).sum() == 124
    assert run("sim:latency_us=0", 1e6, probe_rate_pps=1000).latency is None
    assert run("sim", 1e6).latency is None


def test_latency_rises_with_load_as_in_a_queue():
    means = [summarise(decode(latency("sim:latency_us=10", share * 10e6).histogram)).mean for share in (0.1, 0.5, 0.9)]
    assert means[0] < means[1] < means[2]
    assert 9 < means[0] < 12
    assert means[2] > 2 * means[0]


def test_batch_makes_low_load_slow():
    """31 more frames at 1 Mpps take 31 us, half of it on average; at 9 Mpps nearly nothing."""

    def p50_us(pps, batch):
        return percentile_ns(decode(latency(f"sim:latency_us=5:batch={batch}", pps).histogram), 0.5) / 1e3

    assert p50_us(1e6, 32) == pytest.approx(5 + 15.5, abs=2)
    assert p50_us(1e6, 1) == pytest.approx(5, abs=1)
    assert p50_us(1e6, 32) > p50_us(5e6, 32)


def test_echo_has_one_direction():
    v2v = make_point("sim", "v2v")
    trial = runner().run(TrialRequest(v2v, "latency", Load("1Mpps", 1e6), 0.5, probe_rate_pps=1000))
    assert [d.name for d in trial.directions] == ["v0->v3"]
    assert trial.role == "latency"
    assert trial.latency.probes_received == 500


def test_a_trial_says_what_it_was_asked():
    request = wanted(5e6, repetition=3, search="ndr")
    trial = runner().run(request)
    assert (trial.load, trial.repetition, trial.search, trial.role) == (request.load, 3, "ndr", "search")
    assert trial.index == 0


def test_stopping_twice_is_safe():
    one = runner()
    one.stop()
    one.stop()
    assert dataclasses.is_dataclass(one.spec)
