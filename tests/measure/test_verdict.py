# SPDX-License-Identifier: BSD-3-Clause
"""Every kind of verdict and every reason for it, at the limit and one step over it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from builders import verdict_of

from planebench.model.records import (
    CoreDistance,
    DirectionCounts,
    Evidence,
    Role,
    SwitchCycles,
    ThreadEvidence,
    Verdict,
    VerdictKind,
)

SECOND_NS = 1_000_000_000
NEAR, FAR = CoreDistance(62.0, "near"), CoreDistance(261.0, "far")
BUSY = SwitchCycles(busy_cycles=95, idle_cycles=5)
UNKNOWN = SwitchCycles()
LIMITED = VerdictKind.TESTER_LIMITED


def counts(**changes: Any) -> DirectionCounts:
    """A thousand frames, all arrived; the port refused a tenth of the attempts, as of a saturated switch."""
    values = {"intended_packets": 1000, "offered_packets": 1000, "forwarded_packets": 1000}
    bursts = {"attempted_packets": 1100, "refused_packets": 100, "monitor_bursts": 100}
    return DirectionCounts("n0->n1", **{**values, **bursts, **changes})


def thread(wait_ns: int, owner: str = "switch") -> ThreadEvidence:
    return ThreadEvidence(owner, "pmd-c01", 1, max(SECOND_NS - wait_ns, 0), wait_ns, 14)  # type: ignore[arg-type]


def verdict(
    *directions: DirectionCounts,
    role: Role | None = None,
    flat_out: bool = True,
    duration_ns: int = SECOND_NS,
    evidence: Evidence | None = None,
    switch: SwitchCycles = BUSY,
    **known: Any,
) -> Verdict:
    role = role or ("r_plus" if flat_out else "search")
    return verdict_of(role, flat_out, duration_ns, directions or (counts(),), evidence or Evidence(), switch, **known)


def test_a_saturated_switch_is_valid() -> None:
    assert verdict() == Verdict(VerdictKind.VALID)
    assert verdict(counts(), counts()) == Verdict(VerdictKind.VALID)


INVALID = {
    "negative-loss": (counts(forwarded_packets=1001), "n0->n1: received 1001 frames but sent only 1000"),
    "sent-too-much": (counts(intended_packets=999), "n0->n1: sent 1000 frames but intended only 999"),
    "unexplained": (
        counts(intended_packets=1010, unsent_late_packets=4, unsent_ring_full_packets=5),
        "n0->n1: 10 frames were not sent, but the generator accounts only for 9",
    ),
    "explained-too-much": (
        counts(unsent_late_packets=1),
        "n0->n1: 0 frames were not sent, but the generator accounts only for 1",
    ),
    "nothing-sent": (
        counts(intended_packets=0, offered_packets=0, forwarded_packets=0, attempted_packets=0),
        "n0->n1: the generator sent no frames",
    ),
    "nothing-taken": (
        counts(
            intended_packets=9, offered_packets=0, forwarded_packets=0, attempted_packets=9, unsent_ring_full_packets=9
        ),
        "n0->n1: none of the 9 frames of the generator was taken",
    ),
    "nothing-came": (counts(forwarded_packets=0), "n0->n1: the switch forwarded no frames"),
}


@pytest.mark.parametrize(("direction", "reason"), INVALID.values(), ids=INVALID)
def test_counts_that_do_not_add_up_are_invalid(direction: DirectionCounts, reason: str) -> None:
    given = verdict(direction)
    assert given.kind is VerdictKind.INVALID
    assert reason in given.texts
    assert verdict(counts(), direction, counts()).texts == given.texts, "whichever direction it is"


def test_unsent_frames_that_are_accounted_for_are_not_invalid() -> None:
    explained = counts(intended_packets=1009, unsent_late_packets=4, unsent_ring_full_packets=5)
    assert verdict(explained, flat_out=False).kind is VerdictKind.VALID


BY_HOST = {
    "switch-thread": (
        {"threads": (thread(0, "tester"), thread(20_000_001))},
        {"threads": (thread(20_000_000),)},
        "switch thread pmd-c01 was preempted: 2.0% run-queue wait, 14 involuntary context switches",
    ),
    "tester-thread": (
        {"threads": (thread(500_000_000, "tester"),)},
        {"threads": (thread(20_000_000, "tester"),)},
        "tester thread pmd-c01 was preempted: 50.0% run-queue wait, 14 involuntary context switches",
    ),
    "poll-gaps": (
        {"poll_gap_sum_ns": 30_000_000, "poll_gap_threshold_ns": 100_000},
        {"poll_gap_sum_ns": 20_000_000, "poll_gap_threshold_ns": 100_000},
        "tester poll gaps over 100 us took 3.0% of the time",
    ),
    "steal": ({"steal_ns": 30_000_000}, {"steal_ns": 20_000_000}, "the hypervisor took 3.0% of the CPU time"),
    "band": (
        {"distance_before": NEAR, "distance_after": FAR},
        {"distance_before": FAR, "distance_after": FAR},
        "the core-to-core latency changed from near (62 ns) to far (261 ns)",
    ),
}


@pytest.mark.parametrize(("over", "at", "reason"), BY_HOST.values(), ids=BY_HOST)
def test_what_the_host_did_is_a_remark(over: dict[str, Any], at: dict[str, Any], reason: str) -> None:
    assert verdict(evidence=Evidence(**over)).kind is VerdictKind.VALID
    assert verdict(evidence=Evidence(**over)).texts == (reason,)
    assert verdict(evidence=Evidence(**at)) == Verdict(VerdictKind.VALID)


def test_a_remark_on_the_host_goes_with_any_verdict() -> None:
    given = verdict(evidence=Evidence(steal_ns=SECOND_NS // 2), switch=SwitchCycles(busy_cycles=1, idle_cycles=99))
    assert (given.kind, given.codes) == (VerdictKind.TESTER_LIMITED, ("not-saturated", "steal"))


def test_a_switch_had_nothing_to_do_while_its_tester_stood() -> None:
    """Busy in 70 % of the time is saturated where the tester had its CPU in 70 %."""
    stood, busy = Evidence(threads=(thread(300_000_000, "tester"),)), SwitchCycles(busy_cycles=70, idle_cycles=30)
    assert verdict(evidence=stood, switch=busy).kind is VerdictKind.VALID
    assert verdict(evidence=Evidence(threads=(thread(200_000_000, "tester"),)), switch=busy).kind is LIMITED
    assert verdict(evidence=Evidence(threads=(thread(300_000_000),)), switch=busy).kind is LIMITED


def test_a_generator_that_the_host_kept_from_its_schedule_offered_less_and_is_no_limit() -> None:
    late = counts(intended_packets=1300, unsent_late_packets=300)
    stood = Evidence(threads=(thread(300_000_000, "tester"),))
    assert verdict(late, flat_out=False, evidence=stood).kind is VerdictKind.VALID
    assert verdict(late, flat_out=False, evidence=Evidence(threads=(thread(200_000_000, "tester"),))).kind is LIMITED


def test_a_distance_that_is_not_known_is_no_remark() -> None:
    assert verdict(evidence=Evidence(distance_before=NEAR)) == Verdict(VerdictKind.VALID)


def test_one_cpu_for_all_is_a_functional_check() -> None:
    given = verdict(evidence=Evidence(shared_cpu=True))
    assert (given.kind, given.texts) == (
        VerdictKind.FUNCTIONAL,
        ("switch and tester share one CPU: rates and latencies are those of its scheduler",),
    )


@pytest.mark.parametrize(
    ("limit_ns", "evidence"),
    [(10_000_000, lambda ns: Evidence(threads=(thread(ns),))), (10_000_000, lambda ns: Evidence(poll_gap_sum_ns=ns))],
    ids=["wait", "poll-gaps"],
)
def test_half_as_much_is_remarked_of_latency_trials(limit_ns: int, evidence: Any) -> None:
    def remarked(ns: int, role: Role) -> bool:
        return bool(verdict(role=role, flat_out=False, evidence=evidence(ns)).reasons)

    assert not remarked(limit_ns, "latency")
    assert remarked(limit_ns + 1, "latency")
    assert not remarked(2 * limit_ns, "r_plus")
    assert remarked(2 * limit_ns + 1, "r_plus")


def test_the_clock_of_steal_is_too_coarse_for_less_than_one_tick() -> None:
    tick = Evidence(steal_ns=10_000_000)
    assert verdict(duration_ns=SECOND_NS // 10, evidence=tick).codes == ()
    assert verdict(duration_ns=SECOND_NS // 10, evidence=Evidence(steal_ns=10_000_001)).codes == ("steal",)


FLAT_OUT_LIMITED = {
    "idle-switch": (
        counts(),
        SwitchCycles(busy_cycles=94, idle_cycles=6),
        "the switch was busy only 94% of the time",
    ),
    "no-loss-no-refusal": (
        counts(refused_packets=11),  # of 1100: 1 %
        UNKNOWN,
        "the switch accepted every frame and lost none: it was not saturated",
    ),
    "loss-too-small": (
        counts(refused_packets=0, forwarded_packets=999),
        UNKNOWN,
        "the switch accepted every frame and lost none: it was not saturated",
    ),
    "monitor-behind": (
        counts(monitor_full_bursts=51, forwarded_packets=980),
        BUSY,
        "n0->n1: the monitor was behind (51.0% of its bursts were full), so frames were lost on the tester's side",
    ),
}


@pytest.mark.parametrize(("direction", "switch", "reason"), FLAT_OUT_LIMITED.values(), ids=FLAT_OUT_LIMITED)
def test_a_switch_that_was_not_saturated_is_tester_limited(
    direction: DirectionCounts, switch: SwitchCycles, reason: str
) -> None:
    assert (verdict(direction, switch=switch).kind, verdict(direction, switch=switch).texts) == (
        VerdictKind.TESTER_LIMITED,
        (reason,),
    )


@pytest.mark.parametrize(
    ("direction", "switch"),
    [
        (counts(refused_packets=12), UNKNOWN),
        (counts(refused_packets=0, forwarded_packets=998), UNKNOWN),
        (counts(), BUSY),
        (counts(monitor_full_bursts=50, forwarded_packets=998), BUSY),
        (counts(monitor_full_bursts=51, forwarded_packets=999), BUSY),
    ],
    ids=["refusals", "loss", "busy", "monitor-keeps-up", "monitor-lost-next-to-nothing"],
)
def test_one_sign_of_saturation_beside_a_busy_core_is_enough(direction: DirectionCounts, switch: SwitchCycles) -> None:
    assert verdict(direction, switch=switch).kind is VerdictKind.VALID


def test_a_core_that_is_busy_is_not_saturated_by_that_alone() -> None:
    """A poller of batches may be busy all the time at half of its capacity."""
    given = verdict(counts(refused_packets=0), switch=BUSY)
    assert (given.kind, given.codes) == (VerdictKind.TESTER_LIMITED, ("not-saturated",))


def test_one_saturated_direction_saturates_a_switch_that_tells_nothing() -> None:
    idle = counts(refused_packets=0)
    assert verdict(idle, idle, switch=UNKNOWN).kind is VerdictKind.TESTER_LIMITED
    assert verdict(idle, counts(), switch=UNKNOWN).kind is VerdictKind.VALID


def test_a_late_generator_is_tester_limited_when_paced() -> None:
    late = counts(intended_packets=1011, unsent_late_packets=11)
    reason = "n0->n1: the generator missed its schedule for 1.1% of frames"
    assert (verdict(late, flat_out=False).kind, verdict(late, flat_out=False).texts) == (
        VerdictKind.TESTER_LIMITED,
        (reason,),
    )
    punctual = counts(offered_packets=990, forwarded_packets=990, unsent_late_packets=10)
    assert verdict(punctual, flat_out=False).kind is VerdictKind.VALID


@pytest.mark.parametrize(
    ("tester", "stalled", "wait", "busy", "kind"),
    [
        (0.4, 0.1, 0.1, 0.55, VerdictKind.VALID),  # the host took both, at different times
        (0.5, 0.4, 0.5, 0.25, VerdictKind.VALID),
        (0.0, 0.3, 0.3, 0.93, VerdictKind.VALID),
        (0.3, 0.0, 0.0, 0.70, VerdictKind.VALID),
        (0.3, 0.0, 0.0, 0.60, LIMITED),
        (0.1, 0.2, 0.2, 0.60, LIMITED),
    ],
)
def test_a_switch_is_saturated_if_it_was_busy_while_all_pollers_had_their_cpus(
    tester: float, stalled: float, wait: float, busy: float, kind: VerdictKind
) -> None:
    evidence = Evidence(
        threads=(thread(int(wait * SECOND_NS)),),
        poll_gap_sum_ns=int(tester * SECOND_NS),
        stall_ns=int(stalled * SECOND_NS),
    )
    switch = SwitchCycles(busy_cycles=round(100 * busy), idle_cycles=100 - round(100 * busy))
    assert verdict(counts(), evidence=evidence, switch=switch).kind is kind


def test_a_paced_trial_needs_no_saturation() -> None:
    idle = SwitchCycles(busy_cycles=1, idle_cycles=99)
    assert verdict(counts(refused_packets=0), flat_out=False, switch=idle).kind is VerdictKind.VALID


def test_ring_full_frames_of_a_paced_trial_are_the_switch_s_loss() -> None:
    full = counts(intended_packets=2000, unsent_ring_full_packets=1000)
    assert verdict(full, flat_out=False).kind is VerdictKind.VALID


def test_the_worst_kind_speaks_alone() -> None:
    broken, limited = counts(forwarded_packets=1001), SwitchCycles(busy_cycles=1, idle_cycles=99)
    disturbed = Evidence(shared_cpu=True, steal_ns=SECOND_NS)
    assert verdict(broken, evidence=disturbed, switch=limited).kind is VerdictKind.INVALID
    both = verdict(evidence=disturbed, switch=limited)
    assert (both.kind, len(both.texts)) == (VerdictKind.FUNCTIONAL, 1)
    assert verdict(switch=limited).kind is VerdictKind.TESTER_LIMITED


@pytest.mark.parametrize(
    ("key", "word"),
    [("duplicate_packets", "duplicated"), ("reordered_packets", "reordered"), ("corrupt_packets", "damaged")],
)
def test_what_a_switch_does_to_frames_is_a_remark(key: str, word: str) -> None:
    assert (verdict(counts(**{key: 1})).kind, verdict(counts(**{key: 1})).texts) == (
        VerdictKind.VALID,
        (f"n0->n1: {word} frames were received",),
    )


def test_frames_that_nobody_offered_are_a_remark() -> None:
    assert verdict(evidence=Evidence(foreign_packets=1)).texts == ()
    given = verdict(evidence=Evidence(foreign_packets=2))
    assert (given.kind, given.texts) == (
        VerdictKind.VALID,
        ("2 frames were received that the tester had not sent",),
    )


def test_a_trial_of_no_length_divides_nothing_by_zero() -> None:
    assert verdict(duration_ns=0, evidence=Evidence(poll_gap_sum_ns=50_001)).codes == ("poll-gaps",)


def test_a_paced_trial_that_was_not_carried_says_so() -> None:
    carried, full = counts(forwarded_packets=980), counts(forwarded_packets=979)
    assert verdict(carried, role="search", flat_out=False).texts == ()
    given = verdict(full, role="search", flat_out=False)
    assert (given.kind, given.texts) == (
        VerdictKind.VALID,
        ("n0->n1: the switch dropped packets at this load (queues full)",),
    )


@pytest.mark.parametrize(
    ("missing", "kind"),
    [
        ({"forwarded_packets": 999}, "valid"),
        ({"forwarded_packets": 998}, "overload"),
        ({"intended_packets": 1002, "unsent_ring_full_packets": 2}, "overload"),
        ({"intended_packets": 1002, "unsent_late_packets": 2}, "valid"),
    ],
)
def test_a_latency_trial_that_lost_over_a_thousandth_is_overload(missing: dict[str, int], kind: str) -> None:
    given = verdict(counts(**missing), role="latency", flat_out=False)
    assert given.kind.value == kind
    assert given.codes == (() if kind == "valid" else ("overload",))
    assert kind == "valid" or given.texts == ("overload: n0->n1: the switch lost 0.20% of the frames",)


def test_saturating_at_a_line_rate_has_to_saturate_too() -> None:
    """R+ with --max-rate is paced, but still says nothing of a switch that had time to spare."""
    idle = SwitchCycles(busy_cycles=1, idle_cycles=99)
    given = verdict(counts(refused_packets=0), role="r_plus", flat_out=False, switch=idle)
    assert (given.kind, given.texts) == (VerdictKind.TESTER_LIMITED, ("the switch was busy only 1% of the time",))


@pytest.mark.parametrize(("ceiling_pps", "kind"), [(1111, "tester-limited"), (1112, "valid"), (None, "valid")])
def test_a_rate_near_the_ceiling_of_the_tester_is_the_tester_s(ceiling_pps: float | None, kind: str) -> None:
    given = verdict(counts(), ceiling_pps=ceiling_pps)
    assert given.kind.value == kind
    assert kind == "valid" or given.codes[0] == "tester-ceiling"
    assert verdict(counts(), role="latency", flat_out=False, ceiling_pps=1.0).kind is VerdictKind.VALID


@pytest.mark.parametrize("flat_out", [True, False])
def test_a_generator_that_stretches_the_trial_is_tester_limited(flat_out: bool) -> None:
    at = verdict(flat_out=flat_out, duration_ns=1_011_000_000, intended_duration_ns=SECOND_NS)
    over = verdict(flat_out=flat_out, duration_ns=1_011_000_001, intended_duration_ns=SECOND_NS)
    assert at.kind is VerdictKind.VALID
    reason = "the generator took 1.011 s for a trial of 1.000 s"
    assert (over.kind, over.texts) == (VerdictKind.TESTER_LIMITED, (reason,))


@pytest.mark.parametrize(("gap_ns", "codes"), [(50_000, ()), (50_001, ("poll-gaps",))])
def test_of_a_burst_of_some_microseconds_gaps_alone_are_known(gap_ns: int, codes: tuple[str, ...]) -> None:
    """What the scheduler counts is of starting and reading the trial as well, which takes longer than the burst."""
    gaps = Evidence(threads=(thread(900_000, "tester"), thread(900_000)), poll_gap_sum_ns=gap_ns)
    assert verdict(flat_out=False, duration_ns=25_000, evidence=gaps).codes == codes


@pytest.mark.parametrize(("duration_ns", "codes"), [(9_989_999, ()), (9_990_000, ("cpu-wait",))])
def test_run_queue_waits_count_from_ten_milliseconds_on(duration_ns: int, codes: tuple[str, ...]) -> None:
    waited = Evidence(threads=(thread(900_000),))
    assert verdict(flat_out=False, duration_ns=duration_ns, evidence=waited).codes == codes


FULL = {"intended_packets": 10_000, "offered_packets": 10_000, "attempted_packets": 20_000, "monitor_full_bursts": 99}
"""Counts of a switch that refuses half of the frames. Its batches are larger than the bursts of the monitor."""


@pytest.mark.parametrize(
    ("changes", "drops", "kind"),
    [
        ({"refused_packets": 10_000, "forwarded_packets": 9_900}, {}, VerdictKind.VALID),
        ({"refused_packets": 10_000, "forwarded_packets": 9_899}, {}, VerdictKind.TESTER_LIMITED),
        ({"refused_packets": 10_000, "forwarded_packets": 9_000}, {"v0:tx_full": 900}, VerdictKind.VALID),
        ({"refused_packets": 10_000, "forwarded_packets": 9_000}, {"n1:tx_full": 900}, VerdictKind.TESTER_LIMITED),
        ({"refused_packets": 0, "forwarded_packets": 9_989}, {}, VerdictKind.TESTER_LIMITED),
    ],
    ids=["one-percent", "more", "lost-elsewhere", "lost-at-the-monitor", "nothing-refused"],
)
def test_a_saturated_switch_with_large_batches_is_limited_by_what_its_monitors_lost(
    changes: dict[str, int], drops: dict[str, int], kind: VerdictKind
) -> None:
    assert verdict(counts(**FULL, **changes), switch=UNKNOWN, tester_drops=drops).kind is kind
    assert verdict(counts(**FULL, **changes), switch=replace(UNKNOWN, drops=drops)).kind is kind


def test_a_monitor_that_was_behind_limits_paced_trials_too() -> None:
    behind = counts(monitor_full_bursts=90, forwarded_packets=990)
    given = verdict(behind, flat_out=False)
    assert given.kind is VerdictKind.TESTER_LIMITED
    assert given.codes[0] == "monitor-behind"


def lossy(lost: int = 500, name: str = "n0->n1", **changes: Any) -> DirectionCounts:
    unrefused = {"attempted_packets": 1000, "refused_packets": 0}
    return replace(counts(forwarded_packets=1000 - lost, **{**unrefused, **changes}), name=name)


def test_what_functions_drop_is_no_sign_of_a_saturated_switch() -> None:
    silent = {"switch": UNKNOWN}
    assert verdict(lossy(), **silent).kind is VerdictKind.VALID
    limited = verdict(lossy(), **silent, policy_packets=500)
    assert (limited.kind, limited.texts) == (
        VerdictKind.TESTER_LIMITED,
        ("the switch accepted every frame and lost none: it was not saturated",),
    )
    assert verdict(lossy(), **silent, policy_packets=400).kind is VerdictKind.VALID  # the rest is the switch's


def test_what_functions_drop_is_no_load_that_was_not_carried() -> None:
    assert verdict(lossy(), flat_out=False).texts == ("n0->n1: the switch dropped packets at this load (queues full)",)
    assert verdict(lossy(), flat_out=False, policy_packets=500) == Verdict(VerdictKind.VALID)


def test_of_two_directions_each_has_its_share_by_what_it_lost() -> None:
    both = lossy(0), lossy(500, "n1->n0")
    assert verdict(*both, flat_out=False, policy_packets=500) == Verdict(VerdictKind.VALID)
    assert len(verdict(*both, flat_out=False, policy_packets=100).texts) == 1


def test_a_chain_that_drops_everything_is_invalid_and_not_for_the_switch() -> None:
    reasons = verdict(lossy(1000), policy_packets=1000).texts
    assert reasons == ("n0->n1: no frame passed the network functions",)
    assert verdict(lossy(1000)).texts == ("n0->n1: the switch forwarded no frames",)


def test_frames_that_came_changed_are_told_where_none_of_the_testers_came() -> None:
    (reason,) = verdict(lossy(1000), evidence=Evidence(foreign_packets=1000)).texts
    assert reason.endswith("; 1000 frames came that are not the tester's: changed, cut, or of another sender")


def test_more_policy_than_loss_hides_nothing_else() -> None:
    assert verdict(lossy(0), flat_out=False, policy_packets=10**9) == Verdict(VerdictKind.VALID)
    assert verdict(counts(forwarded_packets=1001), policy_packets=5).kind is VerdictKind.INVALID


@pytest.mark.parametrize(
    ("offered_bytes", "forwarded_bytes", "words"),
    [
        (64_000, 64_000, ""),
        (64_000, 60_000, ""),  # a switch may take a tag off
        (64_000, 72_000, ""),  # or put two on
        (None, None, ""),
        (None, 64_000, ""),
        (-1, 0, "-1 bytes do not match 1000 frames sent"),
        (63_999, 63_999, "63999 bytes do not match 1000 frames sent"),
        (9_728_001, 64_000, "9728001 bytes do not match 1000 frames sent"),
        (64_000, 59_999, "59999 bytes do not match 1000 frames received"),
        (64_000, -5, "-5 bytes do not match 1000 frames received"),
        (64_000, 72_001, "received 72001 bytes but sent only 64000"),
    ],
)
def test_bytes_that_cannot_be_make_it_invalid(
    offered_bytes: int | None, forwarded_bytes: int | None, words: str
) -> None:
    found = verdict(counts(offered_bytes=offered_bytes, forwarded_bytes=forwarded_bytes))
    assert (found.kind is VerdictKind.INVALID) == bool(words)
    assert not words or words in " ".join(found.texts)


def test_bytes_without_frames_are_impossible() -> None:
    nothing = counts(forwarded_packets=0, forwarded_bytes=64)
    assert "n0->n1: 64 bytes do not match 0 frames received" in verdict(nothing).texts


@pytest.mark.parametrize(
    ("names", "codes"),
    [
        (("napi/n0-switch-1", "napi/n1-switch-2"), ()),
        (("pmd-c01/id:1", "pmd-c01/id:2"), ("cpu-wait", "cpu-wait")),
    ],
)
def test_threads_of_the_kernel_take_turns_on_one_core_and_pollers_may_not(
    names: tuple[str, str], codes: tuple[str, ...]
) -> None:
    half = SECOND_NS // 2
    threads = tuple(ThreadEvidence("switch", name, 1, half, half, 14) for name in names)
    assert verdict(flat_out=False, evidence=Evidence(threads=threads)).codes == codes


LINE_PPS = 1000.0
"""The thousand frames of :func:`counts` in a second."""
MANY = {"intended_packets": 10**6, "offered_packets": 10**6, "forwarded_packets": 10**6}


def test_full_links_without_loss_are_the_line_rate() -> None:
    idle = SwitchCycles(busy_cycles=50, idle_cycles=50)
    found = verdict(counts(), counts(), flat_out=False, role="r_plus", switch=idle, line_rate_pps=LINE_PPS)
    assert found.kind is VerdictKind.LINE_RATE
    assert found.texts == ("line rate: the switch forwarded all that the links carry (100.0% of each direction)",)
    one = verdict(counts(), counts(forwarded_packets=900), role="r_plus", line_rate_pps=LINE_PPS)
    assert one.kind is VerdictKind.VALID, "one direction lost frames"
    half = verdict(role="r_plus", flat_out=False, switch=idle, line_rate_pps=2 * LINE_PPS)
    assert half.kind is VerdictKind.TESTER_LIMITED, "neither the links nor the switch were full"


def test_what_the_host_took_of_a_full_link_leaves_it_full() -> None:
    idle = SwitchCycles(busy_cycles=50, idle_cycles=50)
    gap = Evidence(poll_gaps=9, poll_gap_sum_ns=SECOND_NS // 20, poll_gap_threshold_ns=100_000)
    late = counts(intended_packets=1000, offered_packets=950, unsent_late_packets=50, forwarded_packets=945)
    how = {"role": "r_plus", "flat_out": False, "switch": idle, "line_rate_pps": LINE_PPS}
    assert verdict(late, **how, evidence=gap).kind is VerdictKind.LINE_RATE
    assert verdict(late, **how).kind is not VerdictKind.LINE_RATE, "nobody took the rest"
    lost = counts(intended_packets=1000, offered_packets=950, unsent_late_packets=50, forwarded_packets=880)
    assert verdict(lost, **how, evidence=gap).kind is not VerdictKind.LINE_RATE, "more is lost than the host explains"


def test_a_search_at_the_line_rate_judges_itself() -> None:
    assert verdict(flat_out=False, role="search", line_rate_pps=LINE_PPS).kind is VerdictKind.VALID


def test_a_tester_slower_than_the_links_may_saturate_the_switch() -> None:
    late = counts(intended_packets=2000, unsent_late_packets=1000, forwarded_packets=500)
    assert verdict(late, flat_out=False, role="r_plus", line_rate_pps=2000.0).kind is VerdictKind.VALID
    assert verdict(late, flat_out=False, role="r_plus").kind is VerdictKind.TESTER_LIMITED


def test_more_frames_than_a_link_carries_are_no_measurement() -> None:
    most = 990_000 - 8192
    assert verdict(counts(**MANY), line_rate_pps=10**6).kind is not VerdictKind.INVALID
    found = verdict(counts(**MANY), line_rate_pps=most / 1.01)
    assert found.kind is VerdictKind.INVALID
    assert "give --line" in found.texts[0]


def test_frames_on_several_queues_make_a_long_trial_invalid() -> None:
    """Those of the last frames are counted once; of those before nobody knows, and each may hide a loss."""
    assert verdict(counts(duplicate_packets=3)).kind == VerdictKind.VALID
    found = verdict(counts(duplicate_packets=3), elsewhere_packets=3)
    assert found.kind == VerdictKind.INVALID
    assert [reason.code for reason in found.reasons] == ["on-several-queues"]
    assert "3 frames came on several queues" in found.reasons[0].text
