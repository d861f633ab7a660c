# SPDX-License-Identifier: BSD-3-Clause
"""The golden files are rewritten with ``PLANEBENCH_GOLDEN=1 pytest tests/report/test_export.py``; look at the diff."""

import csv
import dataclasses
import io
import json
import os
from pathlib import Path
from typing import Any

import pytest
from builders import make_evidence, make_header, make_latency_trial, make_point, make_run, make_trial
from rich_run import one_start, rich, rich_run

from planebench.analysis.compare import Derived
from planebench.analysis.metrics.column import ColumnOutput, having, row
from planebench.analysis.metrics.results import LATENCY, RESULT, OfResult
from planebench.analysis.tables import table_csv
from planebench.model.header import Run
from planebench.model.reasons import Reason, ReasonCode
from planebench.model.records import Verdict, VerdictKind
from planebench.model.results import Result
from planebench.report.export import to_json

GOLDEN = Path(__file__).parents[1] / "golden"


def to_csv(derived: Derived) -> bytes:
    return table_csv("results", derived)


def values(result: Result, output: ColumnOutput = "table") -> dict[str, Any]:
    return row(having(RESULT, output), OfResult(rich().run, result))


def _small_run() -> Run:
    chain = make_point("testpmd", "loopback", chain_length=2, direction="bidirectional", frame_size_bytes=1024)
    trials = (
        make_trial(0, mpps=10.0),
        make_trial(1, mpps=10.2),
        make_trial(
            2, mpps=3.0, reasons=("steal 31 ms",), evidence=dataclasses.replace(make_evidence(), steal_ns=31_000_000)
        ),
        make_latency_trial(3, load="0.50"),
        make_latency_trial(4, load="0.99", samples_ns=(), pps=9.9e6),
        make_trial(5, make_point("ovs-dpdk"), 14.0, "tester-limited", ("switch idle 30 %",)),
        make_trial(6, chain, 1.0, "invalid", ('died: "EAL", <script>\nline 2',)),
    )
    return Run(make_header(), trials)


@pytest.mark.parametrize(("name", "export"), [("export.json", to_json), ("export.csv", to_csv)])
def test_export_matches_the_golden_file(name: str, export) -> None:  # type: ignore[no-untyped-def]
    data = export(Derived(_small_run()))
    if os.environ.get("PLANEBENCH_GOLDEN"):
        (GOLDEN / name).write_bytes(data)
    assert data == (GOLDEN / name).read_bytes()


def test_a_record_has_exactly_the_promised_keys() -> None:
    for result in json.loads(to_json(Derived(make_run())))["results"]:
        assert list(result) == [column.name for column in having(RESULT, "json")]
        for summary in result["latency_us"].values():
            assert list(summary) == [column.name for column in having(LATENCY, "json")]


def test_json_has_no_nan_and_null_where_nothing_counts() -> None:
    by_switch = {r["switch"]: r for r in json.loads(to_json(Derived(_small_run())))["results"]}
    dead, planed = by_switch["testpmd"], by_switch["planed"]
    assert (dead["throughput_pps"], dead["throughput_l1_gbps"], dead["verdict"]) == (None, None, "invalid")
    assert (dead["scenario"], dead["chain_length"], dead["direction"]) == ("loopback", 2, "bidirectional")
    assert planed["latency_us"]["0.99"]["p99"] is None
    assert (by_switch["ovs-dpdk"]["verdict"], by_switch["ovs-dpdk"]["throughput_pps"]) == ("tester-limited", 14e6)


def test_csv_is_the_same_flat() -> None:
    records = json.loads(to_json(Derived(_small_run())))["results"]
    rows, latency = (
        list(csv.DictReader(io.StringIO(table_csv(name, Derived(_small_run())).decode(), newline="")))
        for name in ("results", "latency")
    )
    assert len(rows) == len(records)
    assert rows[-1]["verdict_reasons"] == 'died: "EAL", <script>\nline 2'
    assert [it["load"] for it in latency] == ["0.50", "0.99"]
    assert float(latency[0]["p50_us"]) == records[0]["latency_us"]["0.50"]["p50"]
    assert latency[1]["p99_us"] == ""


@pytest.mark.parametrize("export", [to_json, to_csv])
def test_an_empty_run_can_be_exported(export) -> None:  # type: ignore[no-untyped-def]
    assert export(Derived(Run(make_header())))


def test_the_same_run_gives_the_same_bytes() -> None:
    assert to_json(Derived(make_run(seed=5))) == to_json(Derived(make_run(seed=5)))


def test_rates_of_searches_are_lower_bounds_of_complete_ones() -> None:
    planed = values(rich().results[0])
    assert (round(planed["ndr_pps"]), round(planed["pdr_pps"])) == (11_440_000, 12_870_000)
    assert (planed["unexplained_packets"], round(planed["throughput_median_pps"])) == (100, 14_342_900)
    result = rich().results[0]
    searches = tuple(dataclasses.replace(s, complete=False) for s in result.searches)
    interrupted = dataclasses.replace(result, searches=searches, search_figures=one_start(searches))
    assert values(interrupted)["ndr_pps"] is None


def test_json_has_searches_and_ledger_whole() -> None:
    found = json.loads(json.dumps(values(rich().results[0], "json")))
    assert [s["method"] for s in found["searches"]] == ["ndr", "pdr", "rfc2544", "bswlv", "b2b"]
    assert "point" not in found["searches"][0]
    assert found["searches"][4]["burst"]["max_packets"] == 1990
    assert found["ledger"]["unexplained_packets"] == 100
    assert found["ledger"]["losses"][0] == {
        "place": "vhost ring",
        "cause": "full (v0)",
        "packets": 19_000,
        "policy": False,
    }
    assert found["load_finding"] == {"inversion": ["0.10", "0.50"], "inversion_ratio": 1.8, "knee": "0.70"}


def test_comparisons_are_at_the_top() -> None:
    document = json.loads(to_json(Derived(_small_run())))
    assert list(document) == [
        "results",
        "comparisons",
        "calibration",
        "answers",
        "chains",
        "conditions",
        "drift",
        "papers",
        "export_version",
    ]
    assert {c["metric"] for c in document["comparisons"]} == {"throughput"}


def test_the_csv_has_every_rate_by_search_and_what_ndr_and_pdr_are_worth() -> None:
    planed, ovs, _ = (values(result) for result in rich().results)
    assert (round(planed["rfc2544_pps"]), round(planed["bswlv_pps"]), planed["b2b_packets"]) == (
        11_297_000,
        12_155_000,
        1834.0,
    )
    assert ovs["rfc2544_pps"] is None
    assert (planed["ndr_verdict"], planed["pdr_verdict"]) == ("valid", "valid")
    assert values(dataclasses.replace(rich().results[0], searches=()))["ndr_verdict"] is None


def test_a_bound_does_not_read_as_a_value() -> None:
    result = rich().results[0]
    limited = Verdict(VerdictKind.TESTER_LIMITED, (Reason(ReasonCode.ERROR, "the highest rate of the tester"),))
    ndr = dataclasses.replace(result.searches[0], verdict=limited)
    line = values(dataclasses.replace(result, searches=(ndr,)))
    assert (line["ndr_verdict"], line["ndr_pps"]) == ("tester-limited", ndr.lower_pps)


def test_json_has_the_calibration_and_its_floor_at_each_latency() -> None:
    document = json.loads(to_json(Derived(rich_run())))
    assert document["calibration"]["floors"][0]["p50_ns"] == 1200.0
    latencies = [summary for result in document["results"] for summary in result["latency_us"].values()]
    assert latencies and all((s["floor_p50"], s["floor_p99"]) == (1.2, 3.1) for s in latencies)
    assert json.loads(to_json(Derived(_small_run())))["calibration"] is None


def test_answers_rank_the_switches_and_set_the_best_against_the_next() -> None:
    trials = [
        make_trial(i, make_point(switch), rate, repetition=i // 2, start=i // 2)
        for i, (switch, rate) in enumerate([("planed", 20.0), ("testpmd", 10.0)] * 4)
    ]
    (answer,) = json.loads(to_json(Derived(Run(make_header(("testpmd", "planed")), tuple(trials)))))["answers"]
    assert (answer["scenario"], answer["direction"], answer["frame_size_bytes"]) == ("p2p", "unidirectional", 64)
    assert [(it["switch"], it["throughput_pps"], it["is_bound"]) for it in answer["ranked"]] == [
        ("planed", pytest.approx(20e6), False),
        ("testpmd", pytest.approx(10e6), False),
    ]
    lead = answer["best_to_next"]
    assert (lead["best"], lead["next"], lead["answer"], answer["state"]) == (
        "planed",
        "testpmd",
        "different",
        "different",
    )
    assert lead["low"] <= lead["ratio"] <= lead["high"] and lead["ratio"] == pytest.approx(2.0)


def test_an_answer_names_who_has_no_rate_and_which_rate_is_a_bound() -> None:
    first, last = json.loads(to_json(Derived(_small_run())))["answers"]
    assert [(it["switch"], it["is_bound"]) for it in first["ranked"]] == [("ovs-dpdk", True), ("planed", False)]
    assert (last["ranked"], last["best_to_next"], last["missing"], last["state"]) == ([], None, ["testpmd"], "none")
