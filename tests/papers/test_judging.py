# SPDX-License-Identifier: BSD-3-Clause
"""Ratios and trends: confirmed, not confirmed, not to be tested; what marks do to them; what a run shows."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

from builders import make_verdict
from making import LARGE_HOST, NEAR, claim, delay, judged, measured, of_can17, rate, run

from planebench.analysis.compare import Derived
from planebench.analysis.noise import Estimate
from planebench.model.header import ClockOffset, SwitchHostInfo
from planebench.model.plan import Skipped
from planebench.model.records import TrafficSent, VerdictKind
from planebench.papers import comparing
from planebench.papers.claims import all_claims
from planebench.papers.judge import judge, judge_all, shown
from planebench.papers.measured import RunFigures
from planebench.papers.told import ClaimOutcome, Compared, FigureSample, Told, corrected, told

YES, NO, OPEN = ClaimOutcome.CONFIRMED, ClaimOutcome.NOT_CONFIRMED, ClaimOutcome.CANNOT_BE_TESTED
OTHER = ClaimOutcome.OTHER_CONDITIONS
BOTH = {"direction": "bidirectional", "frame_size_bytes": 1024}
ONE = {"frame_size_bytes": 1024}
NOISY, BACK = (0.97, 1.0, 1.03), 0.08
"""Starts, and a step back that is significant where it is the only one that is looked at."""


def v2v(both: float, one: float, both_has: dict[str, Any] | None = None, **one_has: Any) -> Any:
    sides = rate("vale", "v2v", both, **BOTH, **(both_has or {})), rate("vale", "v2v", one, **ONE, **one_has)
    return judged("v2v-both-ways-in-all", *sides)


# --- Ratios -----------------------------------------------------------------------------------------------------------


def test_a_ratio_on_its_side_of_the_limit_confirms() -> None:
    found = v2v(6.4, 10.0)
    assert (found.outcome, found.why) == (YES, "")
    assert found.evidence.startswith("vale v2v ⇄ 1024 B against v2v → 1024 B: 6.40 against 10.00 Mpps, 0.64 times (0.6")
    assert found.evidence.endswith("confirmed.")


def test_a_ratio_beyond_the_limit_does_not_confirm() -> None:
    found = v2v(11.0, 10.0)
    assert found.outcome is NO
    assert "1.10 times" in found.evidence


def test_what_differs_by_less_than_can_be_told_is_neither() -> None:
    found = v2v(10.0, 10.0)
    assert (found.outcome, found.why) == (OPEN, "insufficient data")
    assert "difference below the measurement noise" in found.evidence


def test_one_start_tells_nothing() -> None:
    found = v2v(6.4, 10.0, {"trials": (1.0,)})
    assert (found.outcome, found.why) == (OPEN, "insufficient data")
    assert "one start each: how starts differ is not known" in found.evidence


def test_a_throughput_that_does_not_count_is_no_evidence() -> None:
    found = v2v(6.4, 10.0, {"verdict": "invalid"})
    assert (found.outcome, found.why) == (OPEN, "insufficient data")
    assert "no trial counts (invalid)" in found.evidence


def test_a_result_that_does_not_count_is_no_evidence_even_with_figures() -> None:
    sent = TrafficSent("n0->n1", 1000, 124_000)
    made = measured(
        run(
            rate("vale", "v2v", 6.4, **BOTH),
            rate("vale", "v2v", 10.0, **ONE),
            rate("bess", "loopback", 9.8, traffic="facebook", extra={"sent": (sent,)}, **of_can17("l3fwd")),
            host=LARGE_HOST,
        )
    )
    again = Derived(made.derived.run)
    again.results = tuple(dataclasses.replace(it, verdict=make_verdict("invalid")) for it in made.derived.results)
    before, after = ({it.claim.id: it.outcome for it in judge_all(found)} for found in (made, RunFigures(again)))
    assert [before[name] for name in ("v2v-both-ways-in-all", "facebook-mix")] == [YES, YES]
    assert set(after.values()) == {OPEN}


def test_a_lower_bound_confirms_only_where_the_direction_is_certain() -> None:
    limited = {"verdict": "tester-limited"}
    below = v2v(6.4, 10.0, limited)
    assert (below.outcome, below.why) == (OPEN, "insufficient data")
    assert "≥6.40 against 10.00" in below.evidence
    assert "tester-limited: the direction is unknown" in below.evidence
    assert v2v(11.0, 10.0, limited).outcome is NO  # at least 1.1 times is beyond the limit for certain
    assert v2v(6.4, 10.0, **limited).outcome is YES  # at most 0.64 times
    assert v2v(11.0, 10.0, **limited).outcome is OPEN
    assert v2v(6.4, 10.0, limited, **limited).outcome is OPEN


def test_a_noisy_figure_decides_only_beyond_its_noise() -> None:
    apart = v2v(6.4, 10.0, {"trials": (0.85, 0.95, 1.0, 1.1)})
    assert apart.outcome is YES
    assert "~6" in apart.evidence
    found = v2v(9.0, 10.0, {"trials": (0.7, 0.9, 1.1, 1.3)})
    assert (found.outcome, found.compared[0].told.why) == (OPEN, "difference below the measurement noise")


def test_claims_are_of_near_cores_where_the_run_has_such() -> None:
    """v2v below p2v, near; far it is not, but which starts were far is chance."""
    near = [rate("bess", "p2v", 10.0), rate("bess", "v2v", 8.0)]
    far = [rate("bess", "p2v", 3.0, band="far"), rate("bess", "v2v", 4.0, band="far")]
    for figures in (near, [*near, *far]):
        found = judged("v2v-below-p2v", *figures, host=LARGE_HOST)
        assert (found.outcome, found.compared[0].figures) == (YES, "8.00 against 10.00 Mpps")
    alone = judged("v2v-below-p2v", *far, host=LARGE_HOST)
    assert alone.outcome is NO


def test_a_latency_is_that_of_the_trials_whose_load_was_the_share_that_it_is_named_by() -> None:
    """Others were a share of an R+ as it was known when they began: that of far cores, or of a slow start."""
    cell, count = ("t4p4s", "p2p"), len(NEAR)
    made = run(
        rate(*cell, 10.0), *(delay(*cell, load, us) for load, us in (("0.10", 30.0), ("0.50", 20.0), ("0.50", 900.0)))
    )
    wrong = tuple(
        dataclasses.replace(t, load=dataclasses.replace(t.load, pps_per_direction=9e6)) for t in made.trials[-count:]
    )
    for trials, outcome, figures in (
        (made.trials[:-count], YES, "30.0 against 20.0 µs"),
        (made.trials[: -2 * count], OPEN, "30.0 against (900) µs"),
    ):
        found = judge(claim("t4p4s-waits-in-p2p"), measured(dataclasses.replace(made, trials=(*trials, *wrong))))
        assert (found.outcome, found.compared[0].figures) == (outcome, figures)
    assert "its load was 0.90, 0.90" in found.evidence and "of R+ with near cores, not 0.50" in found.evidence


def test_no_interval_of_a_claim_excludes_the_limit_where_it_is_not_significant() -> None:
    def one(ratio: float) -> Compared:
        sides = [
            FigureSample((value,), VerdictKind.VALID, "", Estimate(math.log(value), 0.01, 40, 5))
            for value in (ratio, 1.0)
        ]
        answer = told(*sides)
        return Compared("x", "1 against 2 Mpps", answer.above, answer)

    alone, *_ = corrected([one(1.032)])
    assert alone.holds and alone.told.low is not None and alone.told.low > 1
    among = corrected([one(1.032), one(1.0), one(1.001), one(1.2)])
    assert [it.holds for it in among] == [None, None, None, True]
    for it in among:
        assert it.told.low is not None and it.told.high is not None
        assert (it.holds is None) == (it.told.low <= 1 <= it.told.high)
        assert it.words.endswith(f"({it.told.low:.2f} to {it.told.high:.2f})")


def test_the_comparisons_of_a_claim_are_corrected_for_their_number() -> None:
    def one(p_value: float, holds: bool | None = True) -> Compared:
        return Compared("x", "", holds, Told(1.1, above=holds, p_value=p_value))

    assert [it.holds for it in corrected([one(0.03)])] == [True]
    found = corrected([one(0.03), one(0.001, False), one(0.8, None)])
    assert [it.holds for it in found] == [None, False, None]
    assert found[0].told.why == "not significant among 3 comparisons"


def test_between_two_limits_is_told_from_both() -> None:
    def nf(firewall: float, l3fwd: float) -> Any:
        sides = (
            rate("bess", "loopback", mpps, **of_can17(name))
            for name, mpps in (("firewall", firewall), ("l3fwd", l3fwd))
        )
        return judged("firewall-costs-as-l3fwd", *sides, host=LARGE_HOST)

    assert nf(10.3, 10.0).outcome is YES
    assert nf(7.0, 10.0).outcome is NO
    assert nf(14.0, 10.0).outcome is NO
    assert nf(12.5, 10.0).outcome is OPEN


# --- Latency ----------------------------------------------------------------------------------------------------------


def waits(low: float, half: float, switch: str = "ovs-dpdk", low_has: dict[str, Any] | None = None) -> Any:
    sides = delay(switch, "loopback", "0.10", low, **(low_has or {})), delay(switch, "loopback", "0.50", half)
    return judged("low-load-waits-for-a-batch", *sides)


def test_a_latency_is_judged_with_the_papers_ratio_beside_it() -> None:
    found = waits(50.0, 23.0)
    assert found.outcome is YES
    assert "ovs-dpdk loopback-1 → 64 B at 10 % of R+ against 50 % of R+: 50.0 against 23.0 µs" in found.evidence
    assert "the paper's 2.17" in found.evidence
    assert found.missing == tuple(f"ovs-dpdk loopback-{n} unidirectional 64 B at 10 % of R+" for n in (2, 3, 4))
    assert waits(20.0, 23.0).outcome is NO


def test_a_latency_counts_only_when_its_verdict_does() -> None:
    for low in (50.0, 20.0):
        found = waits(low, 23.0, low_has={"verdict": "tester-limited"})
        assert (found.outcome, found.why) == (OPEN, "insufficient data")
        assert f"({low:.1f}) against 23.0 µs" in found.evidence
        assert "no trial counts (tester-limited)" in found.evidence


def test_switches_that_the_paper_does_not_have_stand_beside() -> None:
    found = waits(50.0, 23.0, "planed")
    assert (found.outcome, found.why) == (OPEN, "not covered by this run")
    assert found.evidence.startswith("missing: a switch that the claim is about (bess, fastclick, ")
    assert (
        "Beside it: planed loopback-1 → 64 B at 10 % of R+ against 50 % of R+: 50.0 against 23.0 µs" in found.evidence
    )
    assert [it.holds for it in found.beside] == [True]


def test_one_switch_against_the_claim_outweighs_one_for_it() -> None:
    sides = [
        delay(switch, "loopback", load, us)
        for switch, us10 in (("ovs-dpdk", 50.0), ("vpp", 15.0))
        for load, us in (("0.10", us10), ("0.50", 20.0))
    ]
    found = judged("low-load-waits-for-a-batch", *sides)
    assert found.outcome is NO
    assert found.evidence.startswith("holds in 1, does not hold in 1 of 2. vpp loopback-1")


def test_half_of_the_comparisons_told_are_not_enough() -> None:
    sides = [
        delay(switch, "loopback", load, us)
        for switch, us10 in (("ovs-dpdk", 50.0), ("vpp", 20.0))
        for load, us in (("0.10", us10), ("0.50", 20.0))
    ]
    found = judged("low-load-waits-for-a-batch", *sides)
    assert (found.outcome, found.why) == (OPEN, "insufficient data")
    assert "holds in 1, inconclusive in 1 of 2" in found.evidence


def test_two_named_switches_are_set_against_each_other() -> None:
    def overtakes(vale: float, bess: float) -> Any:
        cell = {"chain_length": 2}
        return judged(
            "vale-overtakes-bess",
            delay("vale", "loopback", "0.99", vale, **cell),
            delay("bess", "loopback", "0.99", bess, **cell),
        )

    assert overtakes(90.0, 136.0).outcome is YES
    assert "the paper's 0.66" in overtakes(90.0, 136.0).evidence
    assert overtakes(136.0, 90.0).outcome is NO
    alone = judged("vale-overtakes-bess", delay("vale", "loopback", "0.99", 90.0, chain_length=2))
    assert (alone.outcome, alone.why) == (OPEN, "not covered by this run")
    assert "a switch to set it against (bess)" in alone.missing


def first(*rivals: str, vpp: float = 5.0, **how: Any) -> Any:
    """BESS at 9 Mpps, VPP, and some others at 5."""
    mpps = {"bess": 9.0, "vpp": vpp, **dict.fromkeys(rivals, 5.0)}
    return judged(
        "p2p-bess-first", *(rate(name, "p2p", it, direction="bidirectional", **how) for name, it in mpps.items())
    )


def test_who_is_first_is_ahead_of_every_rival() -> None:
    """One that is missing or not told apart leaves it open, and one that is ahead is enough against it."""
    rivals = ("fastclick", "ovs-dpdk", "snabb", "vale", "t4p4s")
    assert first(*rivals).outcome is YES
    level = first(*rivals, vpp=9.0)
    assert (level.outcome, level.why) == (OPEN, "insufficient data")
    assert level.evidence.startswith(
        "holds in 5, inconclusive in 1 of 6. bess p2p ⇄ 64 B against vpp: 9.00 against 9.00"
    )
    without = first(*rivals[:-1])
    assert (without.outcome, without.why, without.absent) == (OPEN, "not covered by this run", ("t4p4s",))
    assert without.evidence.startswith("missing: a switch to set it against (t4p4s). Beside it: bess p2p")
    assert first(vpp=18.0).outcome is NO


def test_the_weakest_evidence_is_first() -> None:
    """What contradicts, then what is open, then what is least certain of the rest."""
    lengths = ((1, 60.0), (2, 19.0), (3, 20.0), (4, 22.0))
    sides = [
        delay("vpp", "loopback", load, us, chain_length=length)
        for length, us10 in lengths
        for load, us in (("0.10", us10), ("0.50", 20.0))
    ]
    found = judged("low-load-waits-for-a-batch", *sides)
    assert [it.what.partition(" →")[0] for it in found.compared] == [f"vpp loopback-{n}" for n in (2, 3, 4, 1)]
    assert found.evidence.startswith("holds in 2, does not hold in 1, inconclusive in 1 of 4. vpp loopback-2 →")
    assert found.evidence.endswith("; and 1 more.")


# --- Trends -----------------------------------------------------------------------------------------------------------


def falls(*mpps: float) -> Any:
    lengths = [rate("vpp", "loopback", value, chain_length=n + 1) for n, value in enumerate(mpps)]
    return judged("chains-cost-throughput", *lengths)


def test_a_trend_goes_from_the_first_to_the_last() -> None:
    assert falls(6.0, 4.0, 3.0).outcome is YES
    assert falls(6.0, 6.0, 3.0).outcome is YES  # a level step is no step back
    assert falls(3.0, 4.0, 6.0).outcome is NO
    assert falls(5.0, 5.0, 5.0).outcome is OPEN


def test_a_step_back_refutes_a_trend() -> None:
    found = falls(6.0, 7.0, 3.0)
    assert found.outcome is NO
    assert "loopback-2 → 64 B against loopback-1 → 64 B: 7.00 against 6.00 Mpps" in found.evidence


def test_a_step_back_is_one_of_all_steps_that_were_looked_at() -> None:
    def last_but_one(back: float, *others: str) -> Any:
        lengths = ((name, n + 1, v) for name in ("vpp", *others) for n, v in enumerate((6.0, 5.0, 5.0, 5.0, 2.0)))
        return judged(
            "chains-cost-throughput",
            *(
                rate(name, "loopback", v * (1 + back * (name == "vpp" and n == 3)), chain_length=n, trials=NOISY)
                for name, n, v in lengths
            ),
        ).outcome

    assert last_but_one(BACK) is NO
    assert last_but_one(BACK, "bess", "fastclick", "snabb", "ovs-dpdk", "t4p4s") is YES, "by chance, among so many"
    assert last_but_one(3 * BACK, "bess", "fastclick", "snabb", "ovs-dpdk", "t4p4s") is NO


def test_two_limits_are_as_certain_as_the_less_certain_of_them() -> None:
    a, b = (
        FigureSample((value,), VerdictKind.VALID, "", Estimate(math.log(value), 0.01, 8, 5)) for value in (1.15, 1.0)
    )
    holds, answer = comparing.judged(a, b, (0.5, 1.2))
    assert holds and answer == told(a, b, 1.2)
    assert answer.p_value is not None and answer.p_value > (told(a, b, 0.5).p_value or 0.0)


def test_one_length_is_no_trend() -> None:
    found = falls(6.0)
    assert (found.outcome, found.why) == (OPEN, "not covered by this run")
    assert "vpp loopback unidirectional 64 B with two of 1, 2, 3, 4, 5 as its number of VNFs" in found.evidence


def test_bits_are_compared_as_bits() -> None:
    sizes = [
        rate("vpp", "p2p", mpps, direction="bidirectional", frame_size_bytes=size)
        for size, mpps in ((64, 10.0), (1024, 4.0))
    ]
    found = judged("bits-grow-with-frames", *sizes)
    assert found.outcome is YES
    assert "33.41 against 6.72 Gb/s" in found.evidence


# --- What a run says --------------------------------------------------------------------------------------------------


def test_what_the_machine_cannot_do_is_said_with_its_facts() -> None:
    found = judged("bridging-by-nic", rate("planed", "p2p", 1.0))
    assert (found.outcome, found.why) == (OPEN, "not testable on this host")
    assert found.evidence == "it takes 7 cores (this host: unknown), 2 NUMA nodes (this host: 1)"
    assert judged("bridging-by-nic", rate("planed", "p2p", 1.0), host=LARGE_HOST).why == "not covered by this run"
    kvm = judged("bess-above-clickos", rate("bess", "p2p", 1.0))
    assert kvm.evidence == "it takes the hypervisor Xen (this host: kvm)"
    unknown = judged("no-more-vnfs-than-cores", host={})
    assert unknown.evidence == "it takes 18 cores (this host: unknown), 2 NUMA nodes (this host: unknown)"


def test_a_claim_needs_the_host_of_the_switch() -> None:
    """On two hosts, switch and VNFs are on one, and the tester, whose facts head the run, on the other."""
    far = SwitchHostInfo("dut", "0.1.0", {**LARGE_HOST}, ClockOffset(0, 0))
    assert judged("numa-halves-a-chain", rate("bess", "p2p", 1.0), switch_host=far).why == "not covered by this run"
    crowded = dataclasses.replace(far, host={**LARGE_HOST, "cores_allowed": 64})
    found = judged("over-provisioning-loses", rate("bess", "p2p", 1.0), switch_host=crowded)
    assert found.evidence == "it takes fewer than 63 cores (this host: 64)", "each VNF would have one"
    small = dataclasses.replace(far, host={"numa_nodes": 1})
    found = judged("numa-halves-a-chain", rate("bess", "p2p", 1.0), switch_host=small, host=LARGE_HOST)
    assert found.why == "not testable on this host"


def test_a_wire_with_the_ports_of_vnfs_tests_no_claim_about_those_of_nics() -> None:
    figures = [*rate("vpp", "p2p", 9.0), *rate("vpp", "p2v", 5.0)]
    assert judged("virtual-io-costs", figures, settings={"wire": "memif"}).outcome is YES
    found = judged("virtual-io-costs", figures, settings={"wire": "vhost"})
    assert (found.outcome, found.why) == (OTHER, "ports")
    assert found.evidence.startswith("one kind of port for NICs and VNFs (another wire). With these confirmed: vpp p2v")


def test_a_simulated_switch_confirms_nothing() -> None:
    made = run(rate("vpp", "p2p", 9.0), rate("vpp", "loopback", 3.0))
    plain = {it.claim.id: it.outcome for it in judge_all(measured(made))}
    assert plain["p2p-is-the-baseline"] is YES
    simulated = tuple(dataclasses.replace(switch, adapter="sim:name=vpp:noise=1%") for switch in made.header.switches)
    made = dataclasses.replace(made, header=dataclasses.replace(made.header, switches=simulated))
    assert {it.outcome for it in judge_all(measured(made))} == {OPEN}


def test_an_adapter_counts_by_what_it_is_and_not_by_its_label() -> None:
    made = run(rate("mine", "v2v", 6.4, **BOTH), rate("mine", "v2v", 10.0, **ONE))
    named = tuple(dataclasses.replace(switch, adapter="vale:name=mine") for switch in made.header.switches)
    renamed = dataclasses.replace(made, header=dataclasses.replace(made.header, switches=named))
    outcomes = [{it.claim.id: it.outcome for it in judge_all(measured(r))} for r in (made, renamed)]
    assert [found["v2v-both-ways-in-all"] for found in outcomes] == [OPEN, YES]


def test_a_run_that_reproduces_a_paper_shows_all_its_claims() -> None:
    made = run(rate("ovs-dpdk", "p2p", 9.0), rate("ovs-dpdk", "loopback", 3.0), papers=("ic16", "can17"))
    found = [it.claim for it in shown(made.header, judge_all(measured(made)))]
    assert [it.id for it in found if it.paper in made.header.papers] == [
        it.id for it in all_claims() if it.paper in made.header.papers
    ]
    assert [it.id for it in found if it.paper not in made.header.papers] == ["p2p-is-the-baseline"]


def test_another_run_shows_what_it_decides_and_none_of_the_rest() -> None:
    made = run(rate("ovs-dpdk", "p2p", 9.0), rate("ovs-dpdk", "loopback", 3.0))
    assert [it.claim.id for it in shown(made.header, judge_all(measured(made)))] == ["p2p-is-the-baseline"]


def test_a_table_that_was_left_out_says_why() -> None:
    left_out = (
        Skipped("Table 4", "no second VNF"),
        Skipped("Table 3", "too long"),
        Skipped("Table 4, time stamps of a NIC", "no"),
    )
    found = judged("v2v-vale-quickest", rate("vale", "p2p", 1.0), papers=("conext19",), left_out=left_out)
    assert found.evidence.endswith("; left out: Table 4: no second VNF")
    both = judged(
        "v2v-vale-quickest",
        rate("vale", "p2p", 1.0),
        papers=("conext19", "can17"),
        left_out=(*left_out, Skipped("conext19 Table 4", "x")),
    )
    assert both.evidence.endswith("t4p4s); left out: conext19 Table 4: x")
