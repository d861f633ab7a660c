# SPDX-License-Identifier: BSD-3-Clause
import dataclasses

from builders import make_point, make_trial

from planebench.model.reasons import Reason, ReasonCode
from planebench.model.records import (
    CoreDistance,
    DirectionCounts,
    Evidence,
    ThreadEvidence,
    Trial,
    Verdict,
    VerdictKind,
)
from planebench.report.trials import causes, evidence_text


def test_the_evidence_of_a_trial_is_one_line_with_everything_in_it() -> None:
    sent = DirectionCounts(
        "n0->n1", 1000, 960, 960, unsent_ring_full_packets=40, attempted_packets=2000, refused_packets=500
    )
    evidence = Evidence(
        threads=(
            ThreadEvidence("switch", "pmd-c01", 1, 969_000_000, 31_000_000, 14),
            ThreadEvidence("tester", "w0", 0, 1_000_000_000, 0, 0),
        ),
        poll_gaps=3,
        poll_gap_sum_ns=1_200_000,
        poll_gap_threshold_ns=100_000,
        steal_ns=4_000_000,
        distance_before=CoreDistance(62.0, "near"),
        distance_after=CoreDistance(261.0, "far"),
    )
    trial = make_trial(directions=(sent,), evidence=evidence, start=2)
    assert evidence_text(trial) == (
        "unsent 4.0 %; ring full 25 %; switch pmd-c01 waited 3.1 %, preempted 14 times; "
        "tester w0 waited 0 %, preempted 0 times; 3 poll gaps over 100 µs, 1.2 ms in sum; steal 4 ms; "
        "core-to-core latency 62 ns (near) → 261 ns (far); start 2"
    )


def test_evidence_that_is_not_there_is_not_made_up() -> None:
    trial = make_trial(directions=(), evidence=Evidence(), offered_duration_ns=0, intended_duration_ns=0)
    assert evidence_text(trial) == "core-to-core latency unknown → unknown; start 0"
    worse = dataclasses.replace(trial, evidence=Evidence(foreign_packets=3, stale_packets=1, shared_cpu=True))
    assert (
        "switch and tester on one CPU; 3 frames that the tester had not sent; 1 frames of another trial"
        in evidence_text(worse)
    )


def test_a_remark_is_no_cause() -> None:
    dropped = Reason(ReasonCode.DROPPED_BY_FUNCTIONS, "dropped by network functions: rule (vnf0 firewall)")
    died = Reason(ReasonCode.ERROR, "the switch died")
    trial = dataclasses.replace(make_trial(), verdict=Verdict(VerdictKind.INVALID, (died, dropped)))
    (found,) = causes([trial])
    assert found.text == died.text


def _invalid(number: int, switch: str, *reasons: Reason) -> Trial:
    return dataclasses.replace(make_trial(number, make_point(switch)), verdict=Verdict(VerdictKind.INVALID, reasons))


def test_trials_that_did_not_take_place_are_grouped_by_cause_and_an_error_by_its_words() -> None:
    def more(frames: int) -> Reason:
        return Reason(ReasonCode.RECEIVED_MORE_THAN_SENT, f"{frames} frames came, only 7 were sent")

    trials = (
        _invalid(1, "planed", Reason(ReasonCode.ERROR, "planed (pid 7) died")),
        _invalid(2, "ovs-dpdk", more(8), more(9)),
        _invalid(3, "planed", more(10)),
        _invalid(4, "planed", Reason(ReasonCode.ERROR, "planed (pid 8) died")),
        _invalid(5, "planed", more(9)),
        _invalid(6, "planed", Reason(ReasonCode.ERROR, "port N is gone")),
    )
    assert [(c.kind, c.text, c.trials, c.switches) for c in causes(trials)] == [
        (VerdictKind.INVALID, "e.g. 9 frames came, only 7 were sent", 3, (("planed", 2), ("ovs-dpdk", 1))),
        (VerdictKind.INVALID, "e.g. planed (pid 7) died", 2, (("planed", 2),)),
        (VerdictKind.INVALID, "port N is gone", 1, (("planed", 1),)),
    ]
