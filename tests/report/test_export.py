# SPDX-License-Identifier: BSD-3-Clause
"""The golden files are rewritten with ``PLANEBENCH_GOLDEN=1 pytest tests/report/test_export.py``; look at the diff."""

import csv
import io
import json
import os
from pathlib import Path

import pytest
from builders import make_header, make_latency_trial, make_point, make_run, make_trial

from planebench.model.run import Run
from planebench.report.export import LATENCY_KEYS, RESULT_KEYS, to_csv, to_json

GOLDEN = Path(__file__).parents[1] / "golden"


def _small_run() -> Run:
    chain = make_point("testpmd", "loopback", chain_length=2, direction="bidirectional", frame_size_bytes=1024)
    trials = (
        make_trial(0, mpps=10.0),
        make_trial(1, mpps=10.2),
        make_trial(2, mpps=3.0, verdict="disturbed", reasons=("steal 31 ms",)),
        make_latency_trial(3, load="0.50"),
        make_latency_trial(4, load="0.99", samples_ns=(), pps=9.9e6),
        make_trial(5, make_point("ovs-dpdk"), 14.0, "tester-limited", ("switch idle 30 %",)),
        make_trial(6, chain, 1.0, "invalid", ('died: "EAL", <script>\nline 2',)),
    )
    return Run(make_header(), trials)


@pytest.mark.parametrize(("name", "export"), [("export.json", to_json), ("export.csv", to_csv)])
def test_export_matches_the_golden_file(name: str, export) -> None:  # type: ignore[no-untyped-def]
    data = export(_small_run())
    if os.environ.get("PLANEBENCH_GOLDEN"):
        (GOLDEN / name).write_bytes(data)
    assert data == (GOLDEN / name).read_bytes()


def test_a_record_has_exactly_the_promised_keys() -> None:
    for record in json.loads(to_json(make_run()))["results"]:
        assert tuple(record) == RESULT_KEYS
        for summary in record["latency_us"].values():
            assert tuple(summary) == LATENCY_KEYS


def test_json_has_no_nan_and_null_where_nothing_counts() -> None:
    by_switch = {r["switch"]: r for r in json.loads(to_json(_small_run()))["results"]}
    dead, planed = by_switch["testpmd"], by_switch["planed"]
    assert (dead["throughput_pps"], dead["throughput_l1_gbps"], dead["verdict"]) == (None, None, "invalid")
    assert (dead["scenario"], dead["chain_length"], dead["direction"]) == ("loopback", 2, "bidirectional")
    assert planed["latency_us"]["0.99"]["p99"] is None
    assert (by_switch["ovs-dpdk"]["verdict"], by_switch["ovs-dpdk"]["throughput_pps"]) == ("tester-limited", 14e6)


def test_csv_is_the_same_flat() -> None:
    records = json.loads(to_json(_small_run()))["results"]
    rows = list(csv.DictReader(io.StringIO(to_csv(_small_run()).decode(), newline="")))
    assert len(rows) == len(records)
    assert float(rows[0]["latency_0.50_p50_us"]) == records[0]["latency_us"]["0.50"]["p50"]
    assert rows[0]["latency_0.99_p99_us"] == ""
    assert rows[-1]["verdict_reasons"] == 'died: "EAL", <script>\nline 2'


@pytest.mark.parametrize("export", [to_json, to_csv])
def test_an_empty_run_can_be_exported(export) -> None:  # type: ignore[no-untyped-def]
    assert export(Run(make_header()))


def test_the_same_run_gives_the_same_bytes() -> None:
    assert to_json(make_run(seed=5)) == to_json(make_run(seed=5))
