# SPDX-License-Identifier: BSD-3-Clause
import dataclasses

import pytest
from builders import make_header, make_point, make_trial
from hypothesis import given
from hypothesis import strategies as st

from planebench.model.reasons import Reason, ReasonCode
from planebench.model.records import CoreDistance, DirectionCounts, Evidence, ThreadEvidence, Verdict, VerdictKind
from planebench.model.run import Run
from planebench.report.evidence import NOT_NEEDED, cause, causes, evidence_text, shared_text
from planebench.stats.derived import Derived


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
        "unsent 4.0 %; ring full 25 %; switch pmd-c01 waited 3.1 %, 14 involuntary context switches; "
        "tester w0 waited 0 %, 0 involuntary context switches; 3 poll gaps over 100 µs, 1.2 ms in sum; steal 4 ms; "
        "core-to-core latency 62 ns (near) → 261 ns (far); start 2"
    )


def test_evidence_that_is_not_there_is_not_made_up() -> None:
    trial = make_trial(directions=(), evidence=Evidence(), offered_duration_ns=0, intended_duration_ns=0)
    assert evidence_text(trial) == "unsent –; steal 0; core-to-core latency unknown → unknown; start 0"
    worse = dataclasses.replace(trial, evidence=Evidence(foreign_packets=3, stale_packets=1, shared_cpu=True))
    assert (
        "switch and tester on one CPU; 3 frames that the tester had not sent; 1 frames of another trial"
        in evidence_text(worse)
    )


def test_a_remark_is_no_cause() -> None:
    dropped = Reason(ReasonCode.DROPPED_BY_FUNCTIONS, "dropped by network functions: rule (vnf0 firewall)")
    steal = Reason(ReasonCode.STEAL, "the hypervisor took 4 % of the CPU time")
    trial = dataclasses.replace(make_trial(), verdict=Verdict(VerdictKind.DISTURBED, (steal, dropped)))
    (found,) = causes([trial])
    assert found.text == steal.text


@pytest.mark.parametrize(
    ("reason", "pieces"),
    [
        ("waited for its CPU 3.1 % of the time", ("waited for its CPU ", " % of the time")),
        ("waited for its CPU 12% (31 switches)", ("waited for its CPU ", "% (", " switches)")),
        ("n0->v1: the generator was late for 2.1% of its frames", ("the generator was late for ", "% of its frames")),
        ("thread rte-worker-1 of pmd-c01 at n0", ("thread rte-worker-1 of pmd-c01 at n0",)),
        ("from near (62 ns) to far (261 ns)", ("from near (", " ns) to far (", " ns)")),
        ("1\u202f234 frames,\n 1e+06 more", ("", " frames, ", " more")),
    ],
)
def test_a_cause_is_a_reason_without_its_numbers(reason: str, pieces: tuple[str, ...]) -> None:
    assert cause(reason) == pieces


def test_a_letter_that_stands_for_a_number_elsewhere_is_another_cause() -> None:
    tails = ("port N is gone", "port 3 is gone")
    trials = tuple(make_trial(n, verdict="invalid", reasons=(tail,)) for n, tail in enumerate(tails))
    assert sorted(found.text for found in causes(trials)) == ["port 3 is gone", "port N is gone"]


@given(st.lists(st.floats(0, 100), min_size=1, max_size=5), st.text(max_size=20))
def test_reasons_of_one_cause_have_one_text(shares: list[float], tail: str) -> None:
    reasons = [f"waited {share:.1f} % of 5 s {tail}" for share in shares]
    assert len({cause(reason) for reason in reasons}) == 1
    least, most = f"{min(shares):.1f}", f"{max(shares):.1f}"
    waited = least if least == most else f"{least} to {most}"
    assert shared_text(reasons).startswith(f"waited {waited} % of 5 s")


def test_numbers_that_differ_become_a_range_by_value_and_versions_are_no_error() -> None:
    texts = [
        f"ovsdb-server (pid {pid}) 3.5.{pid}: {share}% of 1\u202f{pid:03} frames" for pid, share in ((9, 1), (10, 2.5))
    ]
    assert shared_text(texts) == "ovsdb-server (pid 9 to 10) 3.5.9: 1 to 2.5% of 1\u202f009 to 1\u202f010 frames"


def test_rejected_trials_are_grouped_by_cause() -> None:
    planed, ovs = make_point("planed"), make_point("ovs-dpdk")
    waited = "switch thread pmd waited for its CPU {} % of the time"
    trials = (
        make_trial(0, planed),
        make_trial(1, planed, verdict="disturbed", reasons=(waited.format(3.1), "steal 31 ms")),
        make_trial(2, ovs, verdict="disturbed", reasons=(waited.format("4.0"),)),
        make_trial(3, ovs, verdict="invalid", reasons=("it died",)),
        make_trial(4, planed, band="far", reasons=("2 duplicates",)),
        make_trial(5, planed, role="warmup", verdict="disturbed"),
        make_trial(6, ovs),
    )
    run = Run(make_header(), trials)
    rejected = Derived(run).rejected
    assert [t.index for t in rejected] == [1, 2, 3, 4]
    found = [(c.kind, c.text, c.trials, c.switches) for c in causes(rejected)]
    assert found == [
        (VerdictKind.DISTURBED, waited.format("3.1 to 4.0"), 2, (("planed", 1), ("ovs-dpdk", 1))),
        (VerdictKind.DISTURBED, "steal 31 ms", 1, (("planed", 1),)),
        (VerdictKind.INVALID, "it died", 1, (("ovs-dpdk", 1),)),
        (VerdictKind.VALID, NOT_NEEDED, 1, (("planed", 1),)),
    ]


def test_a_trial_that_gives_a_cause_twice_is_counted_once() -> None:
    late = make_trial(0, verdict="tester-limited", reasons=("n0->n1: late for 2 %", "n1->n0: late for 3 %"))
    assert [c.trials for c in causes([late])] == [1]
