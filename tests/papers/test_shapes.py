# SPDX-License-Identifier: BSD-3-Clause
"""Orders, and the shapes of a single claim each: a full line, a mix, a share of latency, a chain and its parts."""

from __future__ import annotations

from typing import Any

from making import LARGE_HOST, anatomy, delay, judged, of_can17, rate

from planebench.model.records import TrafficSent
from planebench.papers.told import ClaimOutcome

YES, NO, OPEN = ClaimOutcome.CONFIRMED, ClaimOutcome.NOT_CONFIRMED, ClaimOutcome.CANNOT_BE_TESTED
OTHER = ClaimOutcome.OTHER_CONDITIONS


# --- Orders -----------------------------------------------------------------------------------------------------------


def order(**mpps: float) -> Any:
    named = {name.replace("_", "-"): value for name, value in mpps.items()}
    return judged("p2p-order", *(rate(name, "p2p", value) for name, value in named.items()))


def test_switches_are_ranked_with_vnfs_in_one_hosting() -> None:
    """Of two hostings each has its pairs; a VM is not compared with a process."""
    switches = (("bess", 3.0, 0.3), ("snabb", 2.0, 0.2), ("vpp", 1.0, 0.1))
    sides = [
        delay(name, "loopback", "0.50", 1 / rate, hosting=hosting)
        for name, *rates in switches
        for hosting, rate in zip(("process", "vm"), rates, strict=True)
    ]
    assert len(judged("loopback-latency-order", *sides).compared) == 2 * 3


def test_the_papers_order_confirms_whatever_the_rates() -> None:
    found = order(bess=3.0, snabb=2.0, ovs_dpdk=1.5, vale=1.0)
    assert found.outcome is YES
    assert found.evidence.startswith("Kendall's tau 1.00 over 4 switches and 6 pairs. holds in 6 of 6.")


def test_the_reverse_order_does_not() -> None:
    found = order(bess=1.0, snabb=1.5, ovs_dpdk=2.0, vale=3.0)
    assert found.outcome is NO
    assert found.evidence.startswith("Kendall's tau -1.00 over 4 switches and 6 pairs. does not hold in 6 of 6.")


def test_three_pairs_of_four_are_enough_and_half_is_not() -> None:
    assert order(bess=3.0, snabb=1.5, ovs_dpdk=2.0, vale=1.0).outcome is YES  # tau 0.67
    assert order(bess=1.8, snabb=1.5, ovs_dpdk=2.0, vale=1.0).outcome is NO  # tau 0.33


def test_switches_that_the_paper_has_level_are_no_pair() -> None:
    found = order(bess=1.0, vpp=3.0, snabb=0.5)
    assert found.evidence.startswith("Kendall's tau 1.00 over 3 switches and 2 pairs.")


def test_what_cannot_be_told_apart_is_no_order() -> None:
    found = order(bess=2.0, snabb=2.0, ovs_dpdk=2.0)
    assert (found.outcome, found.why) == (OPEN, "insufficient data")
    assert found.evidence.startswith("Kendall's tau -1.00 to 1.00 over 3 switches and 3 pairs, 3 inconclusive.")


def test_a_figure_of_which_the_paper_has_bounds_only_is_ordered_where_they_tell() -> None:
    """The paper has VALE at 10.5 Gb/s, Snabb at 6.42, and all others below 7.4."""
    rates = {"vale": 3.0, "snabb": 1.0, "bess": 2.0, "vpp": 2.5}
    found = judged("v2v-order", *(rate(switch, "v2v", mpps) for switch, mpps in rates.items()))
    assert found.outcome is YES
    assert found.evidence.startswith("Kendall's tau 1.00 over 4 switches and 3 pairs. holds in 3 of 3.")
    assert judged("v2v-order", *(rate(switch, "v2v", 1 / it) for switch, it in rates.items())).outcome is NO


def test_two_switches_are_too_few_for_an_order() -> None:
    found = order(bess=3.0, snabb=2.0, planed=9.0, testpmd=8.0)
    assert (found.outcome, found.why) == (OPEN, "not covered by this run")
    assert found.evidence == "missing: 3 of the paper's switches in these cells, 2 there"


def test_lower_is_first_in_an_order_of_latencies() -> None:
    sides = [delay(s, "v2v", "1Mpps", us) for s, us in (("vale", 2.0), ("bess", 3.7), ("snabb", 6.0))]
    assert judged("v2v-latency-order", *sides).outcome is YES


# --- Nobody leads everywhere ------------------------------------------------------------------------------------------


def leads(p2p: dict[str, float], p2v: dict[str, float]) -> Any:
    cells = (("p2p", p2p), ("p2v", p2v))
    rest = dict.fromkeys(("fastclick", "ovs-dpdk", "vale", "t4p4s"), 1.0)
    sides = [rate(switch, scenario, mpps) for scenario, rates in cells for switch, mpps in {**rest, **rates}.items()]
    return judged("no-switch-prevails", *(it for it in sides if it[0][1]))


def test_a_switch_that_leads_in_every_scenario_prevails() -> None:
    found = leads({"bess": 9.0, "vpp": 5.0, "snabb": 4.0}, {"bess": 6.0, "vpp": 5.0, "snabb": 4.0})
    assert found.outcome is NO
    assert "bess: ahead of the others in p2p and p2v: not confirmed" in found.evidence
    assert leads({"bess": 9.0, "vpp": 5.0, "snabb": 4.0}, {"bess": 4.0, "vpp": 5.0, "snabb": 3.0}).outcome is YES


def test_a_switch_that_was_not_measured_everywhere_does_not_prevail() -> None:
    found = leads({"bess": 9.0, "vpp": 5.0, "snabb": 4.0}, {"vpp": 5.0, "snabb": 6.0})
    assert (found.outcome, found.why) == (OPEN, "insufficient data")
    assert "bess: compared with the others in p2p: neither ahead everywhere nor behind" in found.evidence


def test_who_is_not_there_may_be_first_everywhere() -> None:
    """Without VALE it is not known that nobody leads, nor that the one in front of all others here does."""
    for of_vpp in (7.0, 5.0):
        rates = {"bess": 6.0, "vpp": 5.0, "snabb": 4.0, "vale": 0.0}
        found = leads(rates, {**rates, "vpp": of_vpp})
        assert (found.outcome, found.why, found.absent) == (OPEN, "not covered by this run", ("vale",))
        assert found.evidence.startswith(
            "missing: all of the paper's switches in two of the scenarios (not: vale). Bes"
        )


def test_a_switch_that_the_paper_does_not_have_stands_beside_its_leaders() -> None:
    rates = {"bess": 6.0, "vpp": 5.0, "snabb": 4.0, "planed": 20.0}
    found = leads(rates, {**rates, "vpp": 7.0})
    assert found.outcome is YES
    assert "Beside it: planed: ahead of the others in p2p and p2v: not confirmed" in found.evidence


# --- Single shapes ----------------------------------------------------------------------------------------------------


def line(mpps: float, highest: float | None, speed: float | None = None, **how: Any) -> Any:
    settings = {"max_rate_pps": highest, "line_bps": speed}
    return judged(
        "p2p-large-frames-fill-the-line", rate("vpp", "p2p", mpps, frame_size_bytes=1024, **how), settings=settings
    )


def test_a_line_is_full_or_not() -> None:
    rate_1024 = 10e9 / (1044 * 8)
    for highest in (rate_1024, None, 14.88e6):
        assert line(rate_1024 / 1e6, highest, verdict="tester-limited").outcome is YES
        assert line(rate_1024 / 1e6, highest).outcome is YES
        assert line(0.9, highest).outcome is NO
        assert line(0.9, highest, verdict="tester-limited").outcome is OPEN


def test_a_run_that_could_not_fill_a_line_says_nothing_of_it() -> None:
    found = line(1.0, 1e6)
    assert (found.outcome, found.why) == (OPEN, "not covered by this run")
    assert "at the rate of a line: --max-rate 1.197M or none" in found.evidence
    assert (line(1.0, None, speed=1e9).outcome, line(1.0, None, speed=1e9).why) == (OTHER, "line")
    assert line(1.0, None, speed=10e9).outcome is NO


def test_shared_memory_is_no_line_of_ten_gigabits() -> None:
    figures = rate("vpp", "p2p", 9.0, frame_size_bytes=1024)
    for wire in ("virtio", "memif", "vhost"):
        found = judged("p2p-large-frames-fill-the-line", figures, settings={"wire": wire, "line_bps": None})
        assert (found.outcome, found.why) == (OTHER, "line")
        assert found.evidence.startswith("no line of 10 Gb/s (NICs, or --line 10G). With these confirmed: ")
    paced = {"wire": "virtio", "line_bps": 10e9}
    assert judged("p2p-large-frames-fill-the-line", figures, settings=paced).outcome is YES
    closed = judged("p2p-large-frames-fill-the-line", figures, settings={**paced, "open_loop": False})
    assert closed.outcome is OTHER and closed.evidence.startswith("a closed loop (--open-loop)")


def test_a_line_is_not_filled_with_smaller_frames() -> None:
    """Of a claim with both halves one alone is not enough."""

    def router(of_128: float, of_64: float) -> Any:
        sizes = ((128, of_128), (64, of_64))
        return judged(
            "bess-fills-the-line",
            *(
                rate("bess", "loopback", mpps, frame_size_bytes=size, **of_can17(name))
                for size, mpps in sizes
                for name in ("l3fwd", "firewall")
            ),
            host=LARGE_HOST,
        )

    assert router(8.5, 9.6).outcome is YES  # 8.45 and 14.88 Mpps are lines
    assert router(8.5, 15.0).outcome is NO
    assert router(7.0, 9.6).outcome is NO


def facebook(switch: str, mpps: float, mean_bytes: int) -> Any:
    sent = TrafficSent("n0->n1", 1000, 1000 * mean_bytes)
    figures = rate(switch, "loopback", mpps, traffic="facebook", extra={"sent": (sent,)}, **of_can17("l3fwd"))
    return judged("facebook-mix", figures, host=LARGE_HOST)


def test_the_line_of_a_mix_is_that_of_its_mean_size() -> None:
    assert facebook("bess", 9.0, 124).outcome is YES  # 8.68 Mpps fill the line
    assert facebook("bess", 8.0, 124).outcome is NO
    assert facebook("bess", 8.0, 200).outcome is YES
    others = facebook("planed", 8.0, 124)
    assert (others.outcome, [it.holds for it in others.beside]) == (OPEN, [False])


def latency_share(claim: str, *parts: Any, verdict: str = "valid") -> Any:
    of_veb = claim.startswith("hypervisor")
    switch, more = ("planed:nic=veb", {"hosting": "vm"}) if of_veb else ("bess", of_can17("l3fwd"))
    sides = [
        delay(
            switch, "loopback", "0.50", 9.0, frame_size_bytes=64 << n, extra={"anatomy": part}, verdict=verdict, **more
        )
        for n, part in enumerate(parts)
    ]
    return judged(claim, *sides, host=LARGE_HOST)


def hypervisor(*shares: float, verdict: str = "valid") -> Any:
    return latency_share("hypervisor-has-most-of-the-latency", *map(anatomy, shares), verdict=verdict)


def test_a_share_of_the_latency_in_one_place_is_enough() -> None:
    assert hypervisor(0.8).outcome is YES
    assert hypervisor(0.3, 0.8).outcome is YES
    assert hypervisor(0.3, 0.4).outcome is NO
    assert hypervisor(0.5).outcome is OPEN
    in_a_process = delay("planed:nic=veb", "loopback", "0.50", 9.0, extra={"anatomy": anatomy(0.8)})
    assert judged("hypervisor-has-most-of-the-latency", in_a_process).why == "not covered by this run"
    unheard = hypervisor(0.8, verdict="invalid")
    assert (unheard.outcome, unheard.why) == (OPEN, "not covered by this run")


def test_waits_for_polls_decide_nothing_and_both_papers_are_not_right_at_once() -> None:
    """0.8 of the latency are hops; of these, up to 0.6 may be waits for the next poll of the VNF."""
    switch, function = "hypervisor-has-most-of-the-latency", "functions-have-most-of-the-latency"
    wide, tight, mostly_function = anatomy(0.8, 0.6), anatomy(0.8, 0.1), anatomy(0.3, 0.1)
    for claim in (switch, function):
        undecided = latency_share(claim, wide)
        assert (undecided.outcome, undecided.why) == (OPEN, "insufficient data")
        assert "the limit lies between the bounds" in undecided.evidence
    assert (latency_share(switch, tight).outcome, latency_share(function, tight).outcome) == (YES, NO)
    assert latency_share(switch, mostly_function).outcome is NO
    assert latency_share(function, mostly_function).outcome is YES
    assert latency_share(switch, tight, mostly_function).outcome is YES  # in one place
    assert latency_share(function, tight, mostly_function).outcome is NO  # everywhere


def test_many_places_tell_together_how_shares_vary() -> None:
    """Each has three starts, too few to be told alone among twenty; their noise is alike."""
    figures = [
        delay("bess", "loopback", "0.50", 9.0, frame_size_bytes=size, trials=(1.0,), extra=extra, **of_can17(chain))
        for number, size in enumerate((64, 128, 256, 512))
        for place, chain in enumerate(",".join(["l3fwd"] * length) for length in range(1, 6))
        for start, off in enumerate((0.25, 0.30, 0.35))
        for extra in ({"anatomy": anatomy(off), "start": (start + number + place) % 3},)
    ]
    found = judged("functions-have-most-of-the-latency", *figures, host=LARGE_HOST)
    assert found.outcome is YES and len(found.compared) == 20, found.evidence


def test_vnfs_set_beside_those_of_the_plan_are_not_judged() -> None:
    """A VNF that does not wait, and one in an emulated VM, say nothing of what the papers measured.

    Of a claim about can17's VNF planed's functions stand beside.
    """

    def waits(us: float, **vnf: Any) -> list[Any]:
        sides = (("100pps", us), ("1Mpps", 5.0))
        return [delay("bess", "loopback", load, it, frame_size_bytes=128, **vnf) for load, it in sides]

    theirs, ours, own = (
        waits(60.0, **of_can17("l3fwd")),
        waits(9.0, chain="l3fwd"),
        waits(5.0, chain="l2fwd:send_burst=0"),
    )
    other = waits(9.0, chain="exec:dpdk-testpmd {eal}", hosting="exec")
    found = judged("slow-at-100-pps", *theirs, *ours, *own, *other, host=LARGE_HOST)
    assert (found.outcome, len(found.compared), [it.holds for it in found.beside]) == (YES, 1, [False])
    assert " Beside it: bess loopback l3fwd → 128 B at 100 pps against 1 Mpps: 9.00 against 5.00 µs" in found.evidence
    alone = judged("slow-at-100-pps", *ours, *own, *other, host=LARGE_HOST)
    assert (alone.why, [it.holds for it in alone.beside]) == ("not covered by this run", [False])
    sides = [rate("vpp", "p2p", 9.0), rate("vpp", "loopback", 4.0)]
    emulated = rate("vpp", "loopback", 0.1, hosting="vm", verdict="functional")
    assert len(judged("p2p-is-the-baseline", *sides, emulated).compared) == 1
    in_vm = rate("vpp", "loopback", 3.0, hosting="vm")
    assert len(judged("p2p-is-the-baseline", *sides, in_vm).compared) == 2  # both against the one p2p


def chain(
    whole: float,
    firewall: float,
    l3fwd: float,
    verdict: str = "valid",
    switch: str = "bess",
    load: str = "2Mpps",
) -> Any:
    parts = {"firewall,l3fwd": whole, "firewall": firewall, "l3fwd": l3fwd}
    sides = [
        delay(switch, "loopback", load, us, frame_size_bytes=128, verdict=verdict, **of_can17(name))
        for name, us in parts.items()
    ]
    return judged("chain-quicker-than-its-parts", *sides, host=LARGE_HOST)


def test_a_chain_is_set_against_its_parts() -> None:
    assert chain(34.0, 23.0, 23.0).outcome is YES
    assert chain(60.0, 23.0, 23.0).outcome is NO
    assert chain(46.0, 23.0, 23.0).outcome is OPEN
    assert chain(34.0, 23.0, 23.0, "tester-limited").why == "not covered by this run"
    assert chain(34.0, 23.0, 23.0, load="1Mpps").why == "not covered by this run"
    assert chain(34.0, 23.0, 23.0, switch="planed").why == "not covered by this run"
