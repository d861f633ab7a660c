# SPDX-License-Identifier: BSD-3-Clause
"""The papers' figures and claims as package data: closed, complete, named as our adapters are."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from pydantic import ValidationError

from planebench.papers.claims import Claim, ClaimCell, ClaimsModel, all_claims, all_papers
from planebench.papers.data import PaperFigure, PapersModel, paper_facts, paper_figures
from planebench.papers.measured import EMULATED_NIC, OFFLOAD
from planebench.switches.registry import ADAPTERS

NO_ADAPTER = "clickos"
"""It needs Xen; an adapter of another package may have this name."""
PACKAGE = Path(__file__).parents[2] / "planebench" / "papers"


def test_every_figure_of_the_tables_is_read() -> None:
    by_metric = [(f.metric, f.scenario) for f in paper_figures()]
    assert {key: by_metric.count(key) for key in dict.fromkeys(by_metric)} == {
        ("throughput", "p2p"): 33,
        ("throughput", "p2v"): 38,
        ("throughput", "v2v"): 9,
        ("latency", "p2p"): 21,
        ("latency", "loopback"): 81,
        ("latency", "v2v"): 7,
    }
    wanted = PaperFigure("conext19", "latency", "loopback", 2, None, 64, "0.99", "ovs-dpdk", 909.0)
    assert wanted in paper_figures()


def test_what_a_paper_does_not_report_is_not_there() -> None:
    assert not [f for f in paper_figures() if (f.switch, f.scenario, f.chain_length) == ("bess", "loopback", 4)]


def test_switches_are_named_as_our_adapters() -> None:
    assert {figure.switch for figure in paper_figures()} < set(ADAPTERS)
    rivals = {name for it in all_claims() if it.compare for name in it.compare.rivals}
    named = rivals | {name for it in all_claims() for name in it.switches}
    assert named - {OFFLOAD, EMULATED_NIC, NO_ADAPTER} < set(ADAPTERS)


def test_single_figures_have_dotted_names() -> None:
    assert paper_facts("can17")["latency_us.at_100pps_worst"] == 529.3
    assert paper_facts("ic16")["overprovisioned_loss_range.1"] == 0.60
    assert paper_facts("netsoft19") == {}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("unidirectional:", "sideways:"),
        ("bess: 16.0", "bess: fast"),
        ("  rtt_latency_us:", "  rtt_latency_ns:"),
        ("[4.0, 4.6, 6.4]", "[4.0, 4.6]"),
        ("ic16:", "ic17:"),
    ],
)
def test_the_schema_of_figures_is_closed(old: str, new: str) -> None:
    text = (PACKAGE / "papers.yaml").read_text(encoding="utf-8")
    assert old in text
    with pytest.raises(ValidationError):
        PapersModel.model_validate(yaml.safe_load(text.replace(old, new, 1)))


def test_claims_are_told_apart_and_of_papers_that_there_are() -> None:
    ids = [it.id for it in all_claims()]
    assert len(set(ids)) == len(ids)
    assert {it.paper for it in all_claims()} == set(all_papers()) == {"conext19", "netsoft19", "can17", "ic16"}


def test_sentences_have_the_figures_of_the_papers_in_them() -> None:
    sentences = {it.id: it.sentence for it in all_claims()}
    assert not [text for text in sentences.values() if "{" in text]
    assert "529.3 µs" in sentences["slow-at-100-pps"]
    assert "8.662 Mpps" in sentences["facebook-mix"]
    assert "up to 80% of it" in sentences["hypervisor-has-most-of-the-latency"]


def test_every_order_has_figures_of_the_paper_behind_it() -> None:
    for it in all_claims():
        if it.order is not None:
            cell: ClaimCell = it.order.cell
            there = [f for f in paper_figures() if (f.metric, f.scenario) == (it.order.metric, cell.scenario)]
            assert len({f.value for f in there}) > 1


SHAPES = [name for name, field in Claim.model_fields.items() if field.default is None]


def test_a_claim_has_one_shape_with_limits_and_is_about_switches_of_its_paper() -> None:
    for it in all_claims():
        assert sum(getattr(it, name) is not None for name in SHAPES) == 1, it.id
        assert it.switches or it.order, it.id
        assert it.compare is None or (it.compare.above, it.compare.below) != (None, None), it.id
        assert it.line_rate is None or it.line_rate.cells or it.line_rate.short, it.id


@pytest.mark.parametrize(
    "claim",
    [
        {"spread": {"search": "ndr", "colour": "red"}},
        {"chain_below_parts": True},
        {"compare": {"metric": "throughput", "a": {"scenario": "p2q"}, "b": {}, "above": 1}},
    ],
)
def test_the_schema_of_claims_is_closed(claim: dict[str, object]) -> None:
    document = {"papers": {}, "claims": [{"id": "x", "paper": "p", "where": "w", "says": "s", **claim}]}
    with pytest.raises(ValidationError):
        ClaimsModel.model_validate(document)
