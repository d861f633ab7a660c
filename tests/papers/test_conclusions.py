# SPDX-License-Identifier: BSD-3-Clause
"""One outcome from several runs, and why claims stay open."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from builders import store_run
from making import Figure, measured, rate, run

from planebench.cli.papers import papers
from planebench.model.header import Run
from planebench.papers.claims import all_claims
from planebench.papers.judge import Conclusion, conclude, open_words
from planebench.papers.told import ClaimOutcome
from planebench.plan.schema import load_plan
from planebench.report.papers import conclusion_record

YES, NO, OPEN = ClaimOutcome.CONFIRMED, ClaimOutcome.NOT_CONFIRMED, ClaimOutcome.CANNOT_BE_TESTED
BASELINE, FIRST, COSTS = "p2p-is-the-baseline", "p2p-bess-first", "virtual-io-costs"
ORDER = "p2p-order"
NOISY = (0.94, 1.0, 1.06)
BOTH = {"direction": "bidirectional"}


def sides(p2p: float, loopback: float, **how: Any) -> list[Figure]:
    return [*rate("ovs-dpdk", "p2p", p2p, **how), *rate("ovs-dpdk", "loopback", loopback, **how)]


def named(number: int, *figures: list[Figure], **header: Any) -> Run:
    made = run(*figures, **header)
    return replace(made, header=replace(made.header, run_id=f"20261121-12335{number}-quick"))


def concluded(*made: Run) -> dict[str, Conclusion]:
    return {it.claim.id: it for it in conclude({it.header.run_id: measured(it) for it in made})}


def test_a_claim_is_decided_by_the_run_that_tells() -> None:
    telling, silent = named(1, sides(9.0, 3.0)), named(2, sides(9.0, 9.0))
    for order in ((telling, silent), (silent, telling)):
        found = concluded(*order)[BASELINE]
        assert found.outcome is YES
        assert found.runs == telling.header.run_id
    assert found.evidence == concluded(telling)[BASELINE].evidence


def test_runs_that_contradict_each_other_decide_nothing() -> None:
    found = concluded(named(1, sides(9.0, 3.0)), named(2, sides(3.0, 9.0)))[BASELINE]
    assert (found.outcome, found.words) == (OPEN, "inconclusive: runs disagree")
    assert [judged.outcome for _, judged in found.judgements] == [YES, NO]
    assert "20261121-123351-quick: " in found.evidence and "20261121-123352-quick: " in found.evidence


def test_a_run_without_the_faster_switch_does_not_save_the_claim() -> None:
    """BESS is behind VPP in the run that has VPP, ahead of OvS-DPDK in both: no pair is in dispute."""
    behind = named(1, *(rate(name, "p2p", mpps, **BOTH) for name, mpps in (("bess", 9), ("vpp", 18), ("ovs-dpdk", 5))))
    ahead = named(2, *(rate(name, "p2p", mpps, **BOTH) for name, mpps in (("bess", 9), ("ovs-dpdk", 5))))
    for order in ((behind, ahead), (ahead, behind)):
        found = concluded(*order)[FIRST]
        assert (found.outcome, found.runs) == (NO, behind.header.run_id)
    rivals = ("fastclick", "ovs-dpdk", "snabb", "vpp", "vale", "t4p4s")
    other = named(3, rate("bess", "p2p", 9, **BOTH), *(rate(name, "p2p", 5, **BOTH) for name in rivals))
    assert concluded(behind, other)[FIRST].why == "runs disagree", "about BESS and VPP"


def ranking(number: int, **mpps: float) -> Run:
    return named(number, *(rate(name.replace("_", "-"), "p2p", value) for name, value in mpps.items()))


def test_an_order_is_that_of_the_pairs_of_all_runs() -> None:
    """Without Snabb three pairs of three are as in the paper, with it four of six."""
    few, all_of_them = ranking(1, bess=9, ovs_dpdk=8, t4p4s=3), ranking(2, snabb=1, t4p4s=3, ovs_dpdk=8, bess=9)
    assert concluded(few)[ORDER].outcome is YES
    for order in ((few, all_of_them), (all_of_them, few)):
        found = concluded(*order)[ORDER]
        assert found.outcome is NO and {name for name, _ in found.judgements} == {it.header.run_id for it in order}
        assert found.evidence.startswith("Kendall's tau 0.33 over 4 switches and 6 pairs.")


def test_runs_that_each_have_a_part_of_an_order_tell_it_together() -> None:
    """Each alone leaves the pair inconclusive that the other one tells."""
    level = {"trials": (0.8, 1.0, 1.25)}
    one = named(1, rate("bess", "p2p", 90), rate("ovs-dpdk", "p2p", 8, **level), rate("t4p4s", "p2p", 7, **level))
    other = named(2, rate("bess", "p2p", 8, **level), rate("ovs-dpdk", "p2p", 7, **level), rate("t4p4s", "p2p", 0.1))
    assert [concluded(it)[ORDER].why for it in (one, other)] == ["insufficient data"] * 2
    found = concluded(one, other)[ORDER]
    assert found.outcome is YES and found.evidence.startswith("Kendall's tau 1.00 over 3 switches and 3 pairs.")
    assert conclusion_record(found)["evidence"] == found.evidence, "not only what each run has"


def test_a_pair_that_two_runs_tell_differently_is_inconclusive() -> None:
    few, all_of_them = ranking(1, bess=9, ovs_dpdk=8, t4p4s=3), ranking(2, snabb=1, t4p4s=3, ovs_dpdk=8, bess=9)
    other = ranking(3, bess=9, ovs_dpdk=3, t4p4s=8)
    found = concluded(few, other)[ORDER]
    assert (found.outcome, found.why) == (OPEN, "runs disagree"), "about OvS-DPDK and T4P4S"
    assert "0.33 to 1.00 over 3 switches and 3 pairs, 1 inconclusive (1 told differently by two runs)" in found.evidence
    assert "two runs tell it differently" in found.evidence
    assert concluded(few, all_of_them, other)[ORDER].outcome is NO, "whichever of the two is right"


def test_the_run_of_the_paper_speaks_first() -> None:
    """Runs that agree give the outcome, and runs that do not cover the claim do not change it."""
    other, own = (named(n, sides(9.0, 3.0), papers=papers) for n, papers in ((1, ("can17",)), (2, ("netsoft19",))))
    for wanted in (BASELINE, "netsoft-bess-first-in-p2v"):
        found = concluded(other, own)[wanted]
        assert found.judgements[0][0] == own.header.run_id
        assert found.evidence == concluded(own)[wanted].evidence or found.outcome is YES
    assert concluded(other, own)[BASELINE].runs == "20261121-123352-quick and 20261121-123351-quick"


def test_runs_share_the_level() -> None:
    """A result that is barely significant in one run is not significant among many runs."""
    barely = [named(number, sides(9.0, 7.6, trials=NOISY)) for number in range(9)]
    assert concluded(barely[0])[BASELINE].outcome is YES
    others = [named(number, sides(9.0, 9.0, trials=NOISY)) for number in range(1, 9)]
    found = concluded(barely[0], *others)[BASELINE]
    assert (found.outcome, found.why) == (OPEN, "insufficient data")
    assert len(found.judgements) == 9
    assert all(f"{run.header.run_id}: " in found.evidence for run in (barely[0], *others)), "each says what it has"
    elsewhere = [named(number, rate("ovs-dpdk", "v2v", 9.0)) for number in range(1, 9)]
    assert concluded(barely[0], *elsewhere)[BASELINE].outcome is YES, "runs that do not test a claim take no share"


def test_a_run_with_many_starts_has_most_of_the_level() -> None:
    """Its plan says how many, so the share is known before anything is measured."""
    quick = load_plan("quick")
    many, few = (replace(quick, throughput=replace(quick.throughput, repetitions=number)) for number in (95, 5))
    others = named(1, sides(9.0, 9.0, trials=NOISY), plan=few)
    outcomes = [
        concluded(named(0, sides(9.0, 7.95, trials=NOISY), plan=plan), others)[BASELINE].outcome for plan in (many, few)
    ]
    assert outcomes == [YES, OPEN]


def test_what_no_run_has_is_missing() -> None:
    with_ovs, with_bess = named(1, rate("ovs-dpdk", "p2p", 9.0, **BOTH)), named(2, rate("bess", "p2p", 9.0, **BOTH))
    assert concluded(with_ovs)[FIRST].absent == ("bess",)
    assert concluded(with_bess)[FIRST].absent == ("fastclick", "ovs-dpdk", "snabb", "vpp", "vale", "t4p4s")
    apart = concluded(with_ovs, with_bess)[FIRST]
    assert (apart.why, apart.absent) == ("not covered by this run", ())
    assert concluded(with_ovs)["p2p-order"].absent == ("bess", "fastclick", "vpp", "snabb", "vale", "t4p4s")
    assert concluded(with_ovs)["chains-cost-latency"].absent == (), "this host cannot, whatever the switch"


def test_a_run_under_the_conditions_of_the_paper_decides() -> None:
    """One under others is told where there is no such run; it takes no share of the level, and contradicts nothing."""
    figures = [rate("vpp", "p2p", 9.0), rate("vpp", "p2v", 5.0)]
    other = named(1, rate("vpp", "p2p", 9.0), rate("vpp", "p2v", 10.0), settings={"wire": "vhost"})
    alone = concluded(other)[COSTS]
    assert (alone.outcome, alone.words) == (ClaimOutcome.OTHER_CONDITIONS, "other conditions: ports")
    for order in ((other, named(2, *figures)), (named(2, *figures), other)):
        found = concluded(*order)[COSTS]
        assert (found.outcome, [name for name, _ in found.judgements]) == (YES, ["20261121-123352-quick"])
        assert " of the level" not in found.evidence
    ranked = [ranking(number, bess=9, ovs_dpdk=8, t4p4s=3) for number in (1, 2)]
    later = [
        replace(it, header=replace(it.header, switches=tuple(replace(s, version="3.1.0") for s in it.header.switches)))
        for it in ranked
    ]
    assert concluded(*ranked)[ORDER].outcome is YES
    assert concluded(*later)[ORDER].words == "other conditions: versions"
    assert [name for name, _ in concluded(later[0], ranked[1])[ORDER].judgements] == [ranked[1].header.run_id]


def test_why_claims_stay_open_is_counted() -> None:
    found = concluded(named(1, sides(9.0, 3.0)))
    wanted = [found[name] for name in (BASELINE, FIRST, "bess-first-with-one-vnf", "v2v-vale-first", COSTS)]
    wanted.append(found["chains-cost-latency"])
    assert open_words(wanted) == (
        "3 for want of a switch (bess 2, vale 1), 1 not covered by this run, 1 not testable on this host"
    )
    assert open_words([found[BASELINE]]) == ""


def test_the_command_takes_several_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = []
    for made in (named(1, sides(9.0, 3.0)), named(2, rate("ovs-dpdk", "p2v", 9.0))):
        names.append(store_run(tmp_path, made).header.run_id)
    papers([*names, names[0]], tmp_path, json=False)
    said = capsys.readouterr().out
    ended = f"1 confirmed here, 0 not confirmed here, 0 other conditions, {len(all_claims()) - 1} inconclusive"
    assert said.rstrip().endswith(ended)
    assert "\ninconclusive: " in said
    papers(names, tmp_path, json=True)
    document = json.loads(capsys.readouterr().out)
    assert (document["runs"], len(document["papers"])) == (names, len(all_claims()))
    (baseline,) = (it for it in document["papers"] if it["id"] == BASELINE)
    assert [(it["run"], it["outcome"]) for it in baseline["runs"]] == [(names[0], "confirmed here")]
