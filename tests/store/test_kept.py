# SPDX-License-Identifier: BSD-3-Clause
"""A run that is kept as Parquet is the same run."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import duckdb
import pytest
from builders import make_run, store_run

from planebench.model.errors import StoreError
from planebench.model.plan import Skipped
from planebench.model.reasons import Reason, ReasonCode
from planebench.model.records import Verdict, VerdictKind
from planebench.store import find_run, read_run

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))

from record_kept import keep


def test_a_kept_run_is_read_as_the_run_itself_without_the_paths_of_its_machine(tmp_path: Path) -> None:
    run = make_run(("planed", "vpp"), sizes=(64, 1024), repetitions=2)
    skipped = (Skipped("vale p2p", "there is no vale-ctl in /opt/someone/netmap"),)
    environment = {"python": "3.11.2", "folder": "/home/someone", "PLANEBENCH_VALE": "/opt/someone/netmap"}
    command = ("planebench", "run", "/home/someone/plans/mine.yaml", "--runs", "runs")
    header = replace(run.header, environment=environment, skipped=skipped, command=command)
    died = replace(
        run.trials[0], verdict=Verdict(VerdictKind.INVALID, (Reason(ReasonCode.ERROR, "no /home/someone/log"),))
    )
    store_run(tmp_path / "runs", replace(run, header=header, trials=(died, *run.trials[1:])))
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "trials.jsonl").write_text("of another run\n")
    out = keep(find_run(tmp_path / "runs", "latest"), tmp_path / "out")
    assert sorted(it.name for it in out.iterdir()) == ["finished.json", "records.parquet", "run.json"]
    found = read_run(find_run(None, str(out)))
    assert found.header.environment == {"python": "3.11.2"}
    assert found.header.command == ("planebench", "run", "mine.yaml", "--runs", "runs")
    assert found.skipped == (Skipped("vale p2p", "there is no vale-ctl in netmap"),)
    assert found.trials[0].verdict.texts == ("no someone/log",)
    assert found.trials[1:] == read_run(find_run(tmp_path / "runs", "latest")).trials[1:]
    assert len(found.trials) == len(run.trials) > 4


def test_a_run_in_progress_is_not_kept(tmp_path: Path) -> None:
    store_run(tmp_path / "runs", make_run(("planed",), sizes=(64,), repetitions=1), finish=False)
    with pytest.raises(StoreError, match="is not finished"):
        keep(find_run(tmp_path / "runs", "latest"), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_records_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    store_run(tmp_path / "runs", make_run(("planed",), sizes=(64,), repetitions=1))
    out = keep(find_run(tmp_path / "runs", "latest"), tmp_path / "out")
    (out / "records.parquet").write_bytes(b"no Parquet")
    with pytest.raises(StoreError, match=r"records\.parquet"):
        read_run(out)


@pytest.mark.parametrize("record", ["repeat('A', 1000000)", "CAST(1 AS INTEGER)", "NULL", "'{}'"])
def test_records_of_a_stranger_are_refused_in_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, record: str
) -> None:
    """A small file may unpack to any size; a column may have any type."""
    monkeypatch.setattr("planebench.store.reader.KEPT_MAX_BYTES", 10_000_000)
    store_run(tmp_path / "runs", make_run(("planed",), sizes=(64,), repetitions=1))
    out = keep(find_run(tmp_path / "runs", "latest"), tmp_path / "out")
    duckdb.sql(
        f"COPY (SELECT 'trials.jsonl' AS file, i AS line, {record} AS record FROM range(11) t(i)) "
        f"TO '{out}/records.parquet' (FORMAT parquet, COMPRESSION zstd)"
    )
    assert (out / "records.parquet").stat().st_size < 1_000_000
    with pytest.raises(StoreError, match=r"records\.parquet|trials\.jsonl"):
        read_run(out)


def test_records_behind_a_link_are_not_read(tmp_path: Path) -> None:
    store_run(tmp_path / "runs", make_run(("planed",), sizes=(64,), repetitions=1))
    out = keep(find_run(tmp_path / "runs", "latest"), tmp_path / "out")
    (out / "records.parquet").rename(tmp_path / "elsewhere")
    (out / "records.parquet").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StoreError, match=r"records\.parquet: it is a link"):
        read_run(out)
