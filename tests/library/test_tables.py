# SPDX-License-Identifier: BSD-3-Clause
"""Columns and types stay, figures are those of the report, and none is without its verdict.

The golden file is rewritten with ``PLANEBENCH_GOLDEN=1 pytest tests/library``. A column that goes, or changes its type,
takes a new TABLES_VERSION; one that comes does not.
"""

from __future__ import annotations

import dataclasses
import json
import os
from pathlib import Path

import pandas as pd
import pytest
from builders import make_header, make_latency_trial, make_point, make_run, make_trial, store_run
from rich_run import rich, rich_run

import planebench
from planebench.analysis.compare import Derived
from planebench.analysis.histogram import merge, summarise
from planebench.analysis.results import derive_results
from planebench.analysis.tables import TABLES, TABLES_VERSION
from planebench.loaded import Loaded
from planebench.model.errors import UsageError
from planebench.model.header import Run
from planebench.model.plan import Skipped
from planebench.model.records import Evidence, ThreadEvidence

GOLDEN = Path(__file__).parents[1] / "golden" / "tables.json"
IDENTITY = ("comparisons", "conditions", "skipped", "runs")
"""Tables without a verdict: they have no figure of a switch, or their own judgement (``distinguishable``)."""


def loaded(run: Run) -> Loaded:
    return Loaded([Derived(run)])


def test_columns_and_types_are_those_of_the_golden_file() -> None:
    run = loaded(make_run(("planed", "testpmd"), sizes=(64,), repetitions=1))
    found = {name: run.frame(name).dtypes.astype(str).to_dict() for name in TABLES}
    document = {"version": TABLES_VERSION, "tables": found}
    if os.environ.get("PLANEBENCH_GOLDEN"):
        GOLDEN.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    assert document == json.loads(GOLDEN.read_text(encoding="utf-8"))


@pytest.mark.parametrize("run", [Run(make_header()), Run(make_header(switches=()))])
def test_a_run_without_trials_has_empty_tables_of_the_same_types(run: Run) -> None:
    golden = json.loads(GOLDEN.read_text(encoding="utf-8"))["tables"]
    for name in TABLES:
        assert loaded(run).frame(name).dtypes.astype(str).to_dict() == golden[name], name


def test_every_figure_has_its_verdict_beside_it() -> None:
    for name, table in TABLES.items():
        assert name in IDENTITY or {"verdict", "verdict_reasons"} <= set(table.types), name


def test_results_are_those_of_the_report() -> None:
    run = rich_run()
    frame = loaded(run).results
    results = derive_results(run)
    assert frame["throughput_pps"].tolist() == [r.throughput_pps for r in results]
    assert dict(zip(frame["switch"], frame["is_lower_bound"], strict=True)) == {
        "planed": True, "ovs-dpdk": False, "testpmd": False,
    }  # fmt: skip
    assert frame["verdict_reasons"].map(list).tolist() == [list(r.verdict.texts) for r in results]


def test_what_does_not_count_is_not_a_figure() -> None:
    dead = make_trial(0, mpps=3.0, verdict="invalid", reasons=("it died",))
    run = loaded(Run(make_header(), (dead, make_latency_trial(1, verdict="tester-limited"))))
    (result,) = run.results.to_dict("records")
    assert pd.isna(result["throughput_pps"]) and (result["verdict"], result["counts"]) == ("invalid", False)
    (latency,) = run.latency.to_dict("records")
    assert (latency["p50_us"] > 0, latency["verdict"], latency["counts"]) == (True, "tester-limited", False)


def test_searches_are_frames() -> None:
    source = Derived(rich_run())
    source.__dict__["results"] = rich().results
    run = Loaded([source])
    frame = run.frame("searches")
    assert len(frame) == sum(len(r.searches) for r in rich().results)
    interrupted = frame[~frame["complete"]]
    assert interrupted[["switch", "method", "counts"]].values.tolist() == [["ovs-dpdk", "rfc2544", False]]
    bursts = frame[frame["method"] == "b2b"]
    assert bursts["burst_max_packets"].tolist() == [1990] * 3 and frame["burst_max_packets"].dtype == pd.Int64Dtype()


def test_the_ledger_adds_up() -> None:
    ledger = loaded(rich_run()).frame("ledger")
    for _, rows in ledger.groupby("switch"):
        assert rows["place"].iloc[-1] == "unexplained"
        assert (rows["offered_packets"].iloc[0] - rows["forwarded_packets"].iloc[0]) == rows["packets"].sum()


def test_trials_evidence_and_threads() -> None:
    threads = (ThreadEvidence("switch", "w0", 1, 90, 10, 3), ThreadEvidence("tester", "t0", 0, 100, 0, 0))
    both = make_trial(0, make_point(direction="bidirectional"), evidence=Evidence(threads, steal_ns=7))
    run = loaded(Run(make_header(left_out=(Skipped("Fig. 7", "no NIC"),)), (both, make_trial(1))))
    assert (len(run.trials), len(run.frame("evidence")), len(run.frame("threads"))) == (3, 2, 2)
    assert run.frame("evidence")["steal_ns"].tolist() == [7, 0]
    assert run.frame("skipped").values.tolist() == [["20261121-123356-quick", "left out", "Fig. 7", "no NIC"]]


def test_a_distribution_is_that_of_the_merged_trials() -> None:
    trials = (
        *(make_latency_trial(i, samples_ns=((4000 + i, 90), (9000, 10))) for i in range(3)),
        make_latency_trial(3, verdict="invalid", samples_ns=((1_000_000, 500),)),
    )
    run = loaded(Run(make_header(), trials))
    expected = summarise(merge(t.latency.histogram for t in trials[:3] if t.latency is not None))
    assert expected is not None
    buckets = run.histogram(switch="planed", load=["0.50"])
    assert int(buckets["probes"].sum()) == 300 and buckets["percentile"].iloc[-1] == 100
    found = run.percentiles((50, 99.9), load="0.50")
    assert found["latency_us"].tolist() == [expected.p50, expected.p99_9]
    assert found["counts"].all() and set(found["verdict"]) == {"valid"}


def test_a_distribution_of_nothing_says_what_there_is() -> None:
    run = loaded(
        Run(make_header(), (make_latency_trial(0), make_latency_trial(1, make_point("testpmd"), samples_ns=())))
    )
    for where, said in (
        ({"switch": "vpp"}, r"no latency switch=vpp\. There are: switch=\['planed', 'testpmd'\]"),
        ({"colour": 1}, 'unknown column to choose by "colour"'),
        ({"switch": "testpmd"}, "no latency switch=testpmd has a returned probe"),
    ):
        with pytest.raises(UsageError, match=said):
            run.histogram(**where)
    with pytest.raises(UsageError, match="percentile 0 is not valid"):
        run.percentiles((0,))


def test_an_unknown_table_is_told() -> None:
    with pytest.raises(UsageError, match='unknown table "result", did you mean results'):
        loaded(Run(make_header())).arrow("result")


def test_arrow_and_parquet_hold_the_same(own_run_folder: Path, tmp_path: Path) -> None:
    pq = pytest.importorskip("pyarrow.parquet")
    store_run(own_run_folder, make_run(("planed", "testpmd"), sizes=(64,), repetitions=2, loads=(0.5,)))
    run = planebench.load()
    files = run.parquet(tmp_path / "it's here")
    assert [file.stem for file in files] == list(TABLES)
    for file in files:
        read, arrow = pq.read_table(file), run.arrow(file.stem)
        assert read.schema.names == arrow.schema.names and read.to_pylist() == arrow.to_pylist()
        assert read.schema.metadata[b"planebench_tables"] == arrow.schema.metadata[b"planebench_tables"] == b"2"


def test_a_table_that_was_changed_stays_changed_and_the_rest_does_not() -> None:
    run = loaded(Run(make_header(), (make_trial(0),)))
    run.results["mpps"] = run.results["throughput_pps"] / 1e6
    assert run.results["mpps"].tolist() == [10.0]
    assert "mpps" not in run.arrow("results").schema.names
    assert dataclasses.is_dataclass(run.raw)
