# SPDX-License-Identifier: BSD-3-Clause
import dataclasses

import pytest
from builders import make_header, make_point, make_run, make_trial, table_text
from rich_run import DEVIATION, LINE_RATE, one_start, rich, search, with_results

from planebench.analysis.compare import Derived
from planebench.analysis.results import derive_results
from planebench.model.header import Run
from planebench.model.reasons import Reason, ReasonCode
from planebench.model.records import Verdict, VerdictKind
from planebench.model.results import BurstSummary, Result, SearchFigure, SearchResult
from planebench.report.figures import make_figures
from planebench.report.searches import deviations, search_figure, search_table

POINT = make_point()
LIMITED = Verdict(VerdictKind.TESTER_LIMITED, (Reason(ReasonCode.ERROR, "the highest rate of the tester"),))
GAVE_UP = Verdict(VerdictKind.INVALID, (Reason(ReasonCode.ERROR, "no trial took place"),))


def searched(*searches: SearchResult, figure: SearchFigure | None = None) -> Result:
    figures = one_start(searches) if figure is None else (figure,)
    return dataclasses.replace(rich().results[0], searches=searches, search_figures=figures)


@pytest.mark.parametrize(
    ("found", "figure"),
    [
        (search(POINT, "ndr", 5.1, 5.12), ("5.10", "5.10–5.12")),
        (search(POINT, "ndr", 5.1, None), ("≥5.10", "")),
        (search(POINT, "ndr", None, 5.1), ("<5.10", "")),
        (search(POINT, "ndr", None, None), ("–", "")),
        (search(POINT, "ndr", 5.1, 5.12, verdict=LIMITED), ("≥5.10", "5.10–5.12")),
        (search(POINT, "ndr", 5.1, None, complete=False), ("(5.10)", "")),
        (search(POINT, "ndr", 5.1, 5.12, verdict=GAVE_UP), ("(5.10–5.12)", "")),
        (search(POINT, "b2b", None, None), ("–", "")),
    ],
)
def test_the_bounds_of_one_search_are_told_as_what_they_are(found: SearchResult, figure: tuple[str, str]) -> None:
    assert search_figure(searched(found), found.method) == figure


def test_two_starts_have_the_outermost_bounds_and_three_an_interval() -> None:
    found = [search(POINT, "ndr", low, low + 0.02, repetition=i) for i, low in enumerate((5.1, 5.3, 5.2))]
    two = searched(*found[:2], figure=SearchFigure("ndr", 5.2e6, 2, False))
    assert search_figure(two, "ndr") == ("5.20", "5.10–5.32")
    three = searched(*found, figure=SearchFigure("ndr", 5.2e6, 3, False, 4.9e6, 5.5e6))
    assert search_figure(three, "ndr") == ("5.20", "[4.90, 5.50]")
    cells = [str(row.cells) for row in search_table([two, three]).rows]
    assert "bounds 5.10–5.32, 2 starts; " in cells[0] and "start;" not in cells[1].replace("starts", "start")
    assert "5.20 [4.90, 5.50]" in table_text(with_results(rich().run, (three,)))
    table = search_table([three])
    assert "NDR: highest load of which at least half of the time is without loss." in table.note
    assert any("in other starts 5.30, 5.20" in str(cell) for row in table.rows for cell in row.cells)


def test_the_table_has_a_column_a_method_and_the_reason_of_what_is_incomplete() -> None:
    table = search_table(rich().results)
    assert [column.title for column in table.columns][2:] == [
        "NDR",
        "PDR",
        "RFC 2544",
        "BSwLV",
        "back-to-back",
    ]
    ovs = next(row.cells for row in table.rows if row.cells[0] == "ovs-dpdk")
    assert ovs[2] == ("9.04", "bounds 9.04–9.09, one start; forwards 9.04")
    assert ovs[4] == ("(7.91)", "forwards 7.91; interrupted; bounds so far")
    assert ovs[6] == ("1\u202f834", "")


def test_a_deviation_is_told_once_with_its_methods() -> None:
    assert deviations(rich().results) == [
        f"NDR, PDR: {DEVIATION}",
        f"NDR, PDR, RFC 2544, BSwLV, back-to-back: {LINE_RATE}",
    ]


def test_the_terminal_table_shows_searches_and_why_one_is_incomplete() -> None:
    text = " ".join(table_text(rich(), 140).split())
    assert "(7.91) forwards 7.91; interrupted; bounds so far" in text
    assert "9.04 bounds 9.04–9.09, one start" in text
    assert "Deviation from the standard, NDR" in text


def test_without_searches_there_is_no_table_of_them() -> None:
    results = derive_results(make_run())
    assert search_table(results).rows == ()
    assert "Rates by search" not in table_text(Derived(make_run()))


def test_loads_are_drawn_where_there_are_enough() -> None:
    derived = rich()
    kinds = [f.kind for f in make_figures(derived)]
    assert kinds.count("load") == 1
    two_loads = tuple(dataclasses.replace(r, latency=r.latency[:2], searches=()) for r in derived.results)
    assert "load" not in {f.kind for f in make_figures(with_results(derived.run, two_loads))}


def test_the_same_point_twice_keeps_the_searches_apart() -> None:
    run = Run(make_header(), (make_trial(0, make_point("planed")), make_trial(1, make_point("testpmd"))))
    first, second = derive_results(run)
    found = (search(first.point, "ndr", 1.0, 1.1),)
    pair = (dataclasses.replace(first, searches=found, search_figures=one_start(found)), second)
    assert [row.cells[0] for row in search_table(pair).rows] == ["planed"]


def test_bursts_of_several_starts_are_their_mean() -> None:
    bursts = [BurstSummary(5e6, packets, 900, 2100, 1.0, 3, 24_000.0) for packets in (1000.0, 2000.0)]
    found = [search(POINT, "b2b", None, None, burst=burst, repetition=i) for i, burst in enumerate(bursts)]
    result = dataclasses.replace(rich().results[0], searches=tuple(found), search_figures=())
    assert search_figure(result, "b2b") == ("1\u202f500", "")
    (row,) = search_table([result]).rows
    assert row.cells[-1] == ("1\u202f500", "in other starts 2\u202f000")
