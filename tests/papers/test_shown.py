# SPDX-License-Identifier: BSD-3-Clause
"""Where a reader meets the claims: page, JSON, figures, command."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest
from builders import store_run
from making import delay, rate, run

from planebench.analysis.compare import Derived
from planebench.cli.papers import papers
from planebench.model.header import Run
from planebench.model.plan import Skipped
from planebench.papers.claims import all_claims
from planebench.report.export import to_json
from planebench.report.html import to_html
from planebench.report.papers import papers_found


def small(**header: object) -> Run:
    limited = {"verdict": "tester-limited"}
    return run(
        rate("planed", "p2p", 9.0, **limited),
        rate("ovs-dpdk", "p2p", 3.0),
        rate("ovs-dpdk", "p2v", 2.0),
        rate("vpp", "p2p", 4.0),
        delay("ovs-dpdk", "p2p", "0.50", 4.0),
        delay("ovs-dpdk", "p2p", "0.99", 9.0),
        **header,
    )


def section(made: Run) -> str:
    page = to_html(Derived(made)).decode()
    return page.partition('<section id="papers">')[2].partition("</section>")[0]


def test_the_page_of_a_paper_has_every_claim_its_outcome_and_what_is_left_out() -> None:
    made = small(papers=("conext19",), left_out=(Skipped("Table 4", "<no> second VNF"),))
    text = section(made)
    conext19 = [it for it in all_claims() if it.paper == "conext19"]
    assert [text.count(f">{it.id}</td>") for it in conext19] == [1] * len(conext19)
    assert "<p>2 confirmed here, " in text and f", {len(conext19) - 3} inconclusive</p>" in text
    assert "; left out: Table 4: &lt;no&gt; second VNF</td>" in text
    assert "≥2.25" in text  # planed over vpp: with the mark of a bound


def test_the_page_of_another_run_has_what_it_decides() -> None:
    text = section(small())
    assert [it.id for it in all_claims() if f">{it.id}</td>" in text] == [
        "p2p-small-frames-fill-the-line",
        "virtual-io-costs",
        "near-saturation-p2p",
    ]
    assert "This run is not a full reproduction of any paper" in text


def test_a_run_that_says_nothing_has_no_section() -> None:
    made = run(rate("planed", "p2p", 9.0))
    found = papers_found(Derived(made))
    assert (found.claims, found.tables) == ((), ())
    assert b'<section id="papers">' not in to_html(Derived(made))


def test_json_has_claims_with_their_comparisons() -> None:
    found = json.loads(to_json(Derived(small())))["papers"]
    assert [it["id"] for it in found] == ["p2p-small-frames-fill-the-line", "virtual-io-costs", "near-saturation-p2p"]
    assert [it["outcome"] for it in found] == ["not confirmed here", "confirmed here", "confirmed here"]
    (compared,) = found[2]["compared"]
    assert (round(compared["ratio"], 2), compared["holds"], round(compared["paper_ratio"], 2)) == (2.25, True, 1.85)


def test_the_command_prints_all_claims_of_the_papers_of_a_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store_run(tmp_path, small())
    papers(["latest"], tmp_path, json=False)
    said = capsys.readouterr().out
    ended = f"2 confirmed here, 1 not confirmed here, 0 other conditions, {len(all_claims()) - 3} inconclusive"
    assert said.rstrip().endswith(ended)
    papers(["latest"], tmp_path, json=True)
    assert len(json.loads(capsys.readouterr().out)["papers"]) == len(all_claims())


def test_the_command_without_a_run_lists_the_claims(capsys: pytest.CaptureFixture[str]) -> None:
    papers([], None, json=True)
    listed = json.loads(capsys.readouterr().out)["papers"]
    assert [it["id"] for it in listed] == [it.id for it in all_claims()]
    assert listed[0]["compare"]["above"] == 1
    papers([], None, json=False)
    assert capsys.readouterr().out.count("\n  ") == len(all_claims())


def test_a_run_keeps_its_results_with_or_without_papers() -> None:
    plain, paper = (json.loads(to_json(Derived(made))) for made in (small(), small(papers=("ic16",))))
    assert plain["results"] == paper["results"]
    assert {it["paper"] for it in plain["papers"]} == {"conext19"}
    assert {it["paper"] for it in paper["papers"]} == {"conext19", "ic16"}
    assert [it["id"] for it in paper["papers"] if it["paper"] == "conext19"] == [it["id"] for it in plain["papers"]]
    assert dataclasses.replace(small().header, papers=("ic16",)) == small(papers=("ic16",)).header
