# SPDX-License-Identifier: BSD-3-Clause
import dataclasses

import pytest
from builders import make_header, make_point, make_run, make_trial
from rich_run import DEVIATION, LINE_RATE, rich, search, with_results

from planebench.model.reasons import Reason, ReasonCode
from planebench.model.records import Verdict, VerdictKind
from planebench.model.results import SearchResult
from planebench.model.run import Run
from planebench.report.figures import make_figures
from planebench.report.searches import burst_table, deviations, search_figure, search_table
from planebench.report.terminal.table import table_text
from planebench.stats import derive_results
from planebench.stats.choose import other_band_reason
from planebench.stats.derived import Derived

POINT = make_point()
LIMITED = Verdict(VerdictKind.TESTER_LIMITED, (Reason(ReasonCode.TEXT, "the highest rate of the tester"),))
GAVE_UP = Verdict(VerdictKind.DISTURBED, (Reason(ReasonCode.TEXT, "no quiet trial"),))


@pytest.mark.parametrize(
    ("found", "figure"),
    [
        (search(POINT, "ndr", 5.1, 5.12), "5.10–5.12"),
        (search(POINT, "ndr", 5.1, None), "≥5.10"),
        (search(POINT, "ndr", None, 5.1), "<5.10"),
        (search(POINT, "ndr", None, None), "–"),
        (search(POINT, "ndr", 5.1, 5.12, verdict=LIMITED), "≥5.10–5.12"),
        (search(POINT, "ndr", 5.1, None, verdict=LIMITED), "≥5.10"),
        (search(POINT, "ndr", 5.1, None, complete=False), "(5.10)"),
        (search(POINT, "ndr", 5.1, 5.12, verdict=GAVE_UP), "(5.10–5.12)"),
        (search(POINT, "b2b", None, None), "–"),
    ],
)
def test_a_search_is_its_bounds_in_brackets_where_it_does_not_count(found: SearchResult, figure: str) -> None:
    assert search_figure(found) == figure


def test_repeated_searches_are_one_cell_beside_what_the_figure_is() -> None:
    found = tuple(search(POINT, "ndr", lower, None, repetition=i) for i, lower in enumerate((5.1, 5.3, 5.2)))
    table = search_table([dataclasses.replace(rich().results[0], searches=found)])
    assert "NDR: highest load of which at least half of the time is without loss." in table.note
    assert any("in other starts 5.30, 5.20" in str(cell) for row in table.rows for cell in row.cells)


def test_the_table_has_a_column_a_method_and_the_reason_of_what_is_incomplete() -> None:
    table = search_table(rich().results)
    assert [column.title for column in table.columns][3:] == [
        "NDR",
        "PDR",
        "RFC 2544",
        "BSwLV",
        "first loss",
        "back-to-back",
        "core group",
    ]
    ovs = next(row.cells for row in table.rows if row.cells[0] == "ovs-dpdk")
    assert ovs[3] == ("9.04–9.09", "forwards 9.04")
    assert ovs[5] == ("(7.91)", "forwards 7.91; interrupted; bounds so far")
    assert ovs[8] == ("1\u202f834", "")


def test_bursts_have_mean_least_most_and_buffer_time() -> None:
    (first, *_) = burst_table(rich().results).rows
    assert first.cells[3:10] == ("17.16", "1\u202f834", "1\u202f702", "1\u202f990", "91", 3, "24.0")


def test_a_deviation_is_told_once_with_its_methods() -> None:
    assert deviations(rich().results) == [
        f"NDR, PDR: {DEVIATION}",
        f"NDR, PDR, RFC 2544, BSwLV, first loss, back-to-back: {LINE_RATE}",
    ]


def test_the_terminal_table_shows_searches_and_why_one_is_incomplete() -> None:
    text = table_text(rich())
    assert "(7.91)¹" in text
    assert "1) disturbed: interrupted; bounds so far" in text
    assert "frames per burst" in text
    assert "Deviations from the standard:" in text


def test_without_searches_there_is_no_table_of_them() -> None:
    results = derive_results(make_run())
    assert search_table(results).rows == burst_table(results).rows == ()
    assert "rates by search" not in table_text(Derived(make_run()))


def test_curves_and_loads_are_drawn_where_there_are_enough() -> None:
    derived = rich()
    kinds = [f.kind for f in make_figures(derived)]
    assert kinds.count("loss") == kinds.count("load") == 1
    two_loads = tuple(dataclasses.replace(r, latency=r.latency[:2], searches=()) for r in derived.results)
    assert {"loss", "load"}.isdisjoint(f.kind for f in make_figures(with_results(derived.run, two_loads)))


def test_the_same_point_twice_keeps_the_searches_apart() -> None:
    run = Run(make_header(), (make_trial(0, make_point("planed")), make_trial(1, make_point("testpmd"))))
    first, second = derive_results(run)
    pair = (dataclasses.replace(first, searches=(search(first.point, "ndr", 1.0, 1.1),)), second)
    assert [row.cells[0] for row in search_table(pair).rows] == ["planed"]


def test_a_search_of_the_other_band_is_in_brackets_and_each_names_its_band() -> None:
    first = rich().results[0]
    elsewhere = Verdict(VerdictKind.VALID, other_band_reason("far", "near"))
    ndr = search(POINT, "ndr", 5.1, 5.12, band="far", verdict=elsewhere)
    result = dataclasses.replace(first, searches=(ndr, search(POINT, "pdr", 6.1, 6.12)))
    cells = search_table((result,)).rows[0].cells
    assert cells[3][0] == "(5.10–5.12)" and "not comparable" in cells[3][1]
    assert cells[4][0] == "6.10–6.12"
    assert cells[5] == "NDR far, PDR near"
    assert search_table((first,)).rows[0].cells[-1] == "near"
    text = table_text(with_results(rich().run, (result,)))
    assert "(5.10–5.12)¹" in text
    assert "1) valid: measured on far cores, the rest of the run on near cores" in text
