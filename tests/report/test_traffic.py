# SPDX-License-Identifier: BSD-3-Clause
"""What was sent, and where the time goes, in page, table, figures and export."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from builders import make_header, make_latency_trial, make_point, make_trial, table_text

from planebench.analysis.compare import Derived
from planebench.analysis.histogram import encode
from planebench.analysis.results import derive_results
from planebench.analysis.tables import table_csv
from planebench.model.header import Finished, Run
from planebench.model.records import Anatomy, AnatomyPart, DirectionCounts, TrafficSent, Trial
from planebench.report.anatomy import anatomy_rows, anatomy_table
from planebench.report.export import to_json
from planebench.report.figure import PART_COLORS
from planebench.report.figures import make_figures
from planebench.report.html import to_html
from planebench.report.traffic import traffic_table

IMIX = make_point("planed", "loopback", traffic="imix", frame_size_bytes=362)
PLAIN = make_point("planed", "loopback", frame_size_bytes=362)
MEANS_NS = {"generator": 100, "hop 1": 1500, "vnf0": 200, "hop 2": 1900, "monitor": 300}
KINDS = {"generator": "tester", "vnf0": "vnf", "monitor": "tester"}


def anatomy(name: str = "n0->n1", problem: str = "") -> Anatomy:
    parts = tuple(
        AnatomyPart(part, KINDS.get(part, "switch"), ns, ns, ns, encode([[ns, 50]]), ns, ns)  # type: ignore[arg-type]
        for part, ns in MEANS_NS.items()
    )
    return Anatomy(name, 50, {"did not reach vnf0": 3}, parts, 4000.0, problem)


def run(*more: Trial, anatomies: Sequence[Anatomy] = (anatomy(),)) -> Run:
    way = DirectionCounts("n0->n1", 1200, 1200, 1000, offered_bytes=434_200, forwarded_bytes=361_830)
    sizes = ((64, 700), (594, 400), (1518, 100))
    sent = TrafficSent(
        "n0->n1", 1200, 434_200, sizes, flows_sent=7, dst_macs=(600, 600), entries=2000, entries_touched=500
    )
    trials = (
        make_trial(0, IMIX, directions=(way,), sent=(sent,)),
        make_trial(1, PLAIN),
        make_latency_trial(2, IMIX, "0.50", 1e6, anatomy=tuple(anatomies)),
        *more,
    )
    return Run(make_header(("planed",)), trials, Finished("complete", "2026-11-21T12:38:31Z"))


def test_the_table_says_what_was_sent_and_names_the_traffic() -> None:
    table = traffic_table(derive_results(run()))
    (row,) = table.rows
    assert row.cells[1] == "loopback-1 → imix 362 B"
    assert row.cells[2:] == (
        "n0->n1",
        "1\u202f200",
        "361.83",
        "64 B 58 %, 594 B 33 %, 1518 B 8.3 %",
        "7",
        "2",
        "–",
        "500 of 2\u202f000 (25 %)",
        "–",
    )


def test_the_table_of_parts_has_shares_and_every_part() -> None:
    (row,) = anatomy_table(derive_results(run())).rows
    cells = dict(zip((column.title for column in anatomy_table(derive_results(run())).columns), row.cells, strict=True))
    assert (cells["mean µs"], cells["switch"], cells["VNFs"], cells["tester"]) == (
        "4.00",
        "85 % (85 to 85 %)",
        "5.0 % (5.0 to 5.0 %)",
        "10 % (10 to 10 %)",
    )
    assert cells["parts, mean / p50 / p99 in µs"].startswith("generator 0.10 / 0.10 / 0.10; hop 1 1.50")
    assert cells["not joined"] == "3 did not reach vnf0"
    assert "hosting" not in cells


def test_hops_to_hosted_vnfs_have_a_column_and_a_color_of_their_own() -> None:
    plain = anatomy()
    hosted = [replace(part, kind="hosting" if part.kind == "switch" else part.kind) for part in plain.parts]
    results = derive_results(run(anatomies=(plain, replace(plain, name="n1->n0", parts=tuple(hosted)))))
    names = [column.title for column in anatomy_table(results).columns]
    mixed = [dict(zip(names, row.cells, strict=True)) for row in anatomy_table(results).rows]
    assert [(it["switch"], it["hosting"], it["VNFs"]) for it in mixed] == [
        ("85 % (85 to 85 %)", "–", "5.0 % (5.0 to 5.0 %)"),
        ("–", "85 % (85 to 85 %)", "5.0 % (5.0 to 5.0 %)"),
    ]
    kinds = [row["part"] for row in anatomy_rows(results)]
    assert kinds[5:] == ["tester", "hops with hosting", "VNFs", "hops with hosting", "tester"]
    assert set(kinds) == set(PART_COLORS)


def test_an_anatomy_that_does_not_add_up_is_said_not_drawn() -> None:
    broken = run(anatomies=(anatomy(problem="the parts add up to 5 us, the monitor reports 4 us"),))
    results = derive_results(broken)
    (row,) = anatomy_table(results).rows
    assert row.out and "the parts add up to 5 us, the monitor reports 4 us" in row.cells
    assert anatomy_rows(results) == []
    assert "the parts add up to 5 us" in " ".join(table_text(Derived(broken), 200).split())


def test_bars_are_stacked_in_path_order_a_bar_a_direction() -> None:
    rows = anatomy_rows(derive_results(run(anatomies=(anatomy(), anatomy("n1->n0")))))
    assert [row["bar"] for row in rows] == ["planed n0->n1"] * 5 + ["planed n1->n0"] * 5
    assert [round(row["start"], 6) for row in rows[:5]] == [0, 0.1, 1.6, 1.8, 3.7]
    assert [row["part"] for row in rows[:5]] == ["tester", "switch hops", "VNFs", "switch hops", "tester"]
    assert all(a["end"] == b["start"] for a, b in pairwise(rows[:5]))


def test_page_table_and_figures_have_both() -> None:
    page = to_html(Derived(run())).decode()
    assert "Latency breakdown" in page and "Offered traffic" in page
    assert "share of up to 80 % on its own hosts" in page
    text = " ".join(table_text(Derived(run()), 200).split())
    assert "85 % (85 to 85 %)" in text and "361.83" in text and "64 B 58 %, 594 B 33 %" in text
    figures = {figure.key: figure for figure in make_figures(Derived(run()))}
    assert "anatomy-loopback-1-unidirectional-362-imix" in figures
    assert figures["anatomy-loopback-1-unidirectional-362-imix"].svg().startswith("<svg")
    assert len(figures) == len(make_figures(Derived(run())))


def test_a_run_without_profiles_and_stamps_says_nothing_of_them() -> None:
    plain = Run(make_header(("planed",)), (make_trial(0), make_latency_trial(1)))
    page, text = to_html(Derived(plain)).decode(), table_text(Derived(plain))
    for words in ("Latency breakdown", "Offered traffic", "ic16 (Fig. 8)"):
        assert words not in page and words not in text


def test_export_has_traffic_bytes_and_parts() -> None:
    plain, imix = json.loads(to_json(Derived(run())))["results"]
    assert (plain["traffic"], plain["mean_frame_bytes"], plain["sent"]) == ("", None, [])
    assert (imix["traffic"], imix["frame_size_bytes"], imix["mean_frame_bytes"]) == ("imix", 362, 361.83)
    assert imix["sent"][0]["sizes"] == [[64, 700], [594, 400], [1518, 100]]
    (parts,) = imix["latency_us"]["0.50"]["anatomy"]
    assert parts["mean"] == 4.0 and [part["name"] for part in parts["parts"]] == list(MEANS_NS)
    lines = list(csv.DictReader(io.StringIO(table_csv("results", Derived(run())).decode())))
    assert [line["traffic"] for line in lines] == ["", "imix"]
