# SPDX-License-Identifier: BSD-3-Clause
"""What the numbers rest on: limits, strata, ledger, calibration, jitter, loads, comparisons; in table and page."""

import copy
import dataclasses

import pytest
from builders import make_header, make_point, make_trial, table_text
from rich_run import make_calibration, rich
from test_html import _Page

from planebench.analysis.compare import Derived
from planebench.analysis.counting import cell_id
from planebench.analysis.results import derive_results
from planebench.model.header import Run
from planebench.model.results import Comparison, Ledger, LoadFinding, Loss
from planebench.report.comparison import comparison_tables, result_words
from planebench.report.html import to_html
from planebench.report.latency import jitter_table, latency_table, load_sentences
from planebench.report.setup import calibration_tables
from planebench.report.throughput import throughput_table
from planebench.report.trials import ledger_table, unexplained_sentences


@pytest.fixture(scope="module")
def everything() -> Derived:
    return rich()


@pytest.fixture(scope="module")
def page(everything: Derived) -> str:
    return " ".join(_Page(to_html(everything)).text.split())


def test_where_the_tester_limits_busy_share_and_cycles_stand_beside(everything: Derived, page: str) -> None:
    table = throughput_table(everything.run, everything.results)
    row = dict(zip(_names(table), _cells(table)[0], strict=True))
    assert (row["Mpps"], row["core utilization"], row["cycles / packet"]) == (
        ("≥14.34", "[8.96, unbounded]"),
        "45 %",
        ("84", "[50.5, 140]"),
    )


def test_the_page_has_every_section(page: str) -> None:
    for words in (
        "Rates by search, Mpps",
        "Deviation from the standard, ",
        "Latency against load",
        "Loss accounting",
        "IPDV (RFC 3393)",
        "PDV (delay - minimum)",
        "burst means (ic16)",
        "burst means, signed (ic16)",
        "Every pair of switches",
        "Tester calibration",
        "2026-11-20T09:00:00Z",
        "latency at 10 % of R+ is 1.8 times that at 50 %, as where packets wait for a batch",
    ):
        assert words in page, words


def test_a_section_without_data_is_not_there() -> None:
    text = " ".join(_Page(to_html(Derived(Run(make_header(), (make_trial(),))))).text.split())
    for words in (
        "Rates by search",
        "What the tester can do",
        "What explains wide intervals",
        "Jitter",
        "Switch against",
        "est.",
    ):
        assert words not in text, words


def test_what_explains_an_interval_stands_beside_the_result(everything: Derived) -> None:
    assert "12.80 near (4 trials), 6.02 far (2 trials)" in table_text(everything)


def test_the_ledger_says_where_frames_were_lost_and_what_nobody_counts(everything: Derived) -> None:
    rows = {row[0]: row for row in _cells(ledger_table(everything.run, everything.results))}
    assert (*rows["planed"][2:5], *rows["planed"][-2:]) == (
        "1\u202f000\u202f000",
        "980\u202f000",
        "20\u202f000",
        "19\u202f000 vhost ring: full (v0); 900 switch: fault",
        "⚠ 100",
    )
    assert rows["testpmd"][-1] == "⚠ 10\u202f000 (some switches report no drop counters)"
    assert [s.split(":")[0] for s in unexplained_sentences(everything.results)] == [
        "planed p2p → 64 B",
        "ovs-dpdk p2p → 64 B",
    ]


def test_a_ledger_that_adds_up_is_not_marked() -> None:
    run = Run(make_header(), (make_trial(),))
    (result,) = derive_results(run)
    closed = dataclasses.replace(result, ledger=Ledger(100, 90, (Loss("switch", "fault", 10),)))
    assert _cells(ledger_table(run, [closed]))[0][-1] == "0"
    assert unexplained_sentences([closed]) == []


def test_the_latency_table_has_probes_clock_and_floor(everything: Derived) -> None:
    table = latency_table(everything.run, everything.results)
    row = dict(zip(_names(table), _cells(table)[0], strict=True))
    assert [row[k] for k in ("sent", "stamped", "received", "clock", "baseline")] == [
        "1\u202f003",
        "1\u202f001",
        "1\u202f000",
        "hardware",
        "1.20",
    ]
    assert "baseline" not in _names(latency_table(Run(make_header()), everything.results))


def test_jitter_is_p50_p99_and_max_of_each_definition(everything: Derived) -> None:
    table = jitter_table(everything.run, everything.results)
    assert _names(table)[3:6] == ["IPDV (RFC 3393)", "PDV (delay - minimum)", "burst means (ic16)"]
    assert _cells(table)[0][3:6] == ("0.20 / 0.90 / 4.00", "0.00 / 10.8 / 43.2", "0.20 / 0.90 / 4.00")


def test_calibration_has_ceilings_and_floors() -> None:
    ceilings, floors = (_cells(table) for table in calibration_tables(make_calibration()))
    assert ceilings == [("64 B", "wire", "wire", "21.40", "measured"), ("64 B", "VNF", "wire", "17.90", "composed")]
    assert floors == [("64 B", "1.00", "–", "1.20", "3.10", "hardware", "1\u202f000", "0.2 %")]


def test_inversion_and_knee_are_sentences() -> None:
    (result,) = derive_results(Run(make_header(), (make_trial(),)))

    def said(finding: LoadFinding | None) -> list[str]:
        return load_sentences([dataclasses.replace(result, load_finding=finding)])

    assert said(LoadFinding(("0.10", "1Mpps"), 2.04, "0.70")) == [
        "planed p2p → 64 B: latency at 10 % of R+ is 2.0 times that at 1 Mpps, as where packets wait for a batch",
        "planed p2p → 64 B: latency rises sharply above 70 % of R+ (knee)",
    ]
    assert said(LoadFinding()) == said(None) == []


@pytest.mark.parametrize(
    ("metric", "ratio", "words"),
    [
        ("throughput", 0.8, "planed better"),
        ("throughput", 1.2, "testpmd better"),
        ("latency_p99", 0.8, "testpmd better"),
    ],
)
def test_less_is_better_of_latency(metric: str, ratio: float, words: str) -> None:
    found = dataclasses.replace(_comparison(distinguishable=True), metric=metric, ratio=ratio)  # type: ignore[arg-type]
    assert result_words(found) == words
    assert result_words(dataclasses.replace(found, answer="same")) == "the same within 5 %"


def test_a_comparison_names_point_ratio_and_interval(everything: Derived) -> None:
    open_ = dataclasses.replace(_comparison(distinguishable=True), high=None)
    derived = copy.copy(everything)
    derived.comparisons = (open_, _comparison(distinguishable=False))
    tables = comparison_tables(derived)
    row, closed = (dict(zip(_names(it), cells, strict=True)) for it in tables for cells in _cells(it))
    assert (row["test point"], row["b / a"]) == ("p2p → 64 B", "0.833")
    assert (row["95 % interval"], row["result"]) == ("no upper limit; lower limit 0.800", "planed better")
    assert (closed["95 % interval"], closed["result"]) == ("0.800 to 0.870", "open: more starts may not decide it")


def _comparison(*, distinguishable: bool) -> Comparison:
    answer = "different" if distinguishable else "open"
    return Comparison("planed", "testpmd", cell_id(make_point()), "throughput", 0.833, 0.8, 0.87, answer, 3, 3)


def _names(table) -> list[str]:  # type: ignore[no-untyped-def]
    return [column.title for column in table.columns]


def _cells(table) -> list[tuple]:  # type: ignore[no-untyped-def,type-arg]
    return [row.cells for row in table.rows]
