# SPDX-License-Identifier: BSD-3-Clause
"""The store of a lab: every trial once, whatever is added twice or dies in the middle."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import duckdb
import pytest
from builders import make_run, store_run, without_checksums

from planebench.analysis.results import derive_results
from planebench.lab import store as lab
from planebench.lab.store import METRICS, add_run, histories, open_store
from planebench.model.errors import StoreError, UsageError
from planebench.model.header import Run, Subject
from planebench.model.reasons import Reason, ReasonCode
from planebench.model.records import Verdict, VerdictKind

SUBJECT = Subject("https://example.org/vpp.git", "a" * 40, "2026-11-20T10:00:00Z", switch="vpp")


def stored(folder: Path, run_id: str, **header: object) -> tuple[Path, Run]:
    run = make_run(("planed", "vpp"), sizes=(64,), repetitions=2, run_id=run_id, **header)
    return folder / store_run(folder, run).header.run_id, run


def count(store: Path, table: str) -> int:
    with open_store(store) as database:
        return int(database.sql(f"SELECT count(*) FROM {table}").fetchall()[0][0])


def test_every_trial_is_there_once_however_often_it_is_added(tmp_path: Path) -> None:
    store = tmp_path / "lab"
    runs = [stored(tmp_path, f"2026112{i}-000000-quick", testbed="rack 3/ü") for i in (1, 2)]
    for folder, _ in [*runs, *runs]:
        add_run(store, folder)
    directions = sum(len(trial.directions) for _, run in runs for trial in run.trials)
    assert (count(store, "runs"), count(store, "trials")) == (2, directions)
    with open_store(store) as database:
        figures = database.sql(
            "SELECT switch, testbed, throughput_pps FROM results WHERE run_id LIKE '20261121%'"
        ).fetchall()
    expected = [(r.point.switch, "rack 3/ü", r.throughput_pps) for r in derive_results(runs[0][1])]
    assert sorted(figures, key=str) == sorted(expected, key=str)


def test_partitions_are_read_by_any_reader_of_hive_partitions(tmp_path: Path) -> None:
    add_run(tmp_path / "lab", stored(tmp_path, "a-run", testbed="rack3")[0])
    found = duckdb.sql(
        f"SELECT DISTINCT testbed, switch, date FROM read_parquet('{tmp_path}/lab/results/*/*/*/*.parquet', "
        "hive_partitioning = true) ORDER BY ALL"
    ).fetchall()
    assert [(testbed, switch, str(date)) for testbed, switch, date in found] == [
        ("rack3", "planed", "2026-11-21"), ("rack3", "vpp", "2026-11-21"),
    ]  # fmt: skip


def test_a_run_that_dies_while_it_is_added_is_not_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = tmp_path / "lab"
    first, second = (stored(tmp_path, name)[0] for name in ("first", "second"))
    add_run(store, first)
    whole = lab.write_parquet

    def dies(found, path: Path, **how: bool) -> Path:
        if "runs" in path.parts[len(store.parts)]:
            raise KeyboardInterrupt
        return whole(found, path, **how)

    monkeypatch.setattr(lab, "write_parquet", dies)
    with pytest.raises(KeyboardInterrupt):
        add_run(store, second)
    with open_store(store) as database:
        assert database.sql("SELECT DISTINCT run_id FROM trials").fetchall() == [("first",)]
    monkeypatch.undo()
    add_run(store, second)
    assert count(store, "runs") == 2


def test_what_is_no_whole_run_is_refused(tmp_path: Path) -> None:
    run = make_run(("planed",), sizes=(64,), repetitions=1)
    folder = tmp_path / store_run(tmp_path, run, finish=False).header.run_id
    with pytest.raises(UsageError, match="--resume"):
        add_run(tmp_path / "lab", folder)
    broken, _ = stored(tmp_path, "broken")
    (without_checksums(broken) / "trials.jsonl").write_text('{"index": 1}\n')
    with pytest.raises(StoreError, match="missing key"):
        add_run(tmp_path / "lab", broken)
    with pytest.raises(UsageError, match="planebench lab add"):
        open_store(tmp_path / "lab")


def test_a_store_that_cannot_be_written_is_told_and_left_clean(tmp_path: Path) -> None:
    folder, _ = stored(tmp_path, "a-run")
    (tmp_path / "lab").write_text("not a folder")
    with pytest.raises(StoreError, match="cannot write"):
        add_run(tmp_path / "lab", folder)


def test_a_run_without_labels_is_of_no_known_testbed(tmp_path: Path) -> None:
    add_run(tmp_path / "lab", stored(tmp_path, "a-run")[0])
    with open_store(tmp_path / "lab") as database:
        assert database.sql("SELECT testbed, subject_commit, tags FROM runs").fetchall() == [("unknown", None, "{}")]


def test_series_have_the_commit_of_what_is_built_from_it(tmp_path: Path) -> None:
    add_run(tmp_path / "lab", stored(tmp_path, "a-run", testbed="rack3", subject=SUBJECT)[0])
    found = histories(tmp_path / "lab")
    samples = {(key.switch, key.point): samples for key, samples in found.items()}
    (vpp,) = samples["vpp", "p2p/unidirectional/64/virtio/process"]
    (planed,) = samples["planed", "p2p/unidirectional/64/virtio/process"]
    assert (vpp.commit, vpp.repository, planed.commit) == (SUBJECT.commit, SUBJECT.repository, "")
    assert "version of planed" in planed.facts and "version of vpp" not in vpp.facts
    assert vpp.facts["kernel"] == "6.1.0-18-amd64"
    assert {key.testbed for key in found} == {"rack3"}


def test_every_metric_is_a_query_that_works(tmp_path: Path) -> None:
    add_run(tmp_path / "lab", stored(tmp_path, "a-run")[0])
    lengths = {metric: len(histories(tmp_path / "lab", metric)) for metric in METRICS}
    assert (
        lengths["throughput"] and lengths["cycles_per_packet"] and lengths["latency_p50"] == lengths["latency_p99"] > 0
    )
    with pytest.raises(UsageError, match="metric"):
        histories(tmp_path / "lab", "outage")


def test_what_the_tester_limits_and_what_was_overloaded_is_in_no_series(tmp_path: Path) -> None:
    """Cycles of a poller that is not saturated are its idle time; latency of an overload is that of full rings."""
    run = make_run(("planed", "vpp"), sizes=(64,), repetitions=2, run_id="a-run")
    kinds = {"r_plus": VerdictKind.TESTER_LIMITED, "latency": VerdictKind.OVERLOAD}
    reason = (Reason(ReasonCode.NO_PROBE, "for the test"),)
    trials = tuple(replace(t, verdict=Verdict(kinds.get(t.role, t.verdict.kind), reason)) for t in run.trials)
    add_run(tmp_path / "lab", tmp_path / store_run(tmp_path, replace(run, trials=trials)).header.run_id)
    assert [metric for metric in METRICS if histories(tmp_path / "lab", metric)] == []
