# SPDX-License-Identifier: BSD-3-Clause
"""export --table and export --format parquet: what goes where."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import duckdb
from builders import make_run, store_run

from planebench.analysis.tables import TABLES
from planebench.model.header import Run


def small(folder: Path) -> Run:
    return store_run(folder, make_run(("planed", "testpmd"), sizes=(64,), repetitions=1, loads=(0.5,)))


def test_a_table_as_json_and_as_csv(planebench, own_run_folder: Path) -> None:
    run = small(own_run_folder)
    directions = sum(len(t.directions) for t in run.trials)
    found = json.loads(planebench("export", "--table", "trials").out)
    assert len(found) == directions and set(found[0]) == set(TABLES["trials"].types)
    lines = list(csv.DictReader(io.StringIO(planebench("export", "-f", "csv", "--table", "trials").out, newline="")))
    assert [line["verdict"] for line in lines] == [row["verdict"] for row in found]
    assert [line["verdict_reasons"] for line in lines] == ["; ".join(row["verdict_reasons"]) for row in found]


def test_every_table_as_parquet_lands_beside_the_trials(planebench, own_run_folder: Path) -> None:
    run = small(own_run_folder)
    done = planebench("export", "--format", "parquet")
    folder = own_run_folder / run.header.run_id / "tables"
    assert done.out.splitlines() == [str(folder / f"{name}.parquet") for name in TABLES]
    count = duckdb.sql(f"select count(*) from '{folder}/trials.parquet'").fetchall()
    assert count == [(sum(len(t.directions) for t in run.trials),)]


def test_parquet_goes_where_it_is_told(planebench, own_run_folder: Path, tmp_path: Path) -> None:
    run = small(own_run_folder)
    assert len(planebench("export", "-f", "parquet", "-o", tmp_path / "all").out.splitlines()) == len(TABLES)
    one = tmp_path / "one.parquet"
    assert planebench("export", "-f", "parquet", "--table", "latency", "-o", one).out == f"{one}\n"
    default = own_run_folder / run.header.run_id / "tables" / "results.parquet"
    assert planebench("export", "-f", "parquet", "--table", "results").out == f"{default}\n"
    (tmp_path / "file").write_text("")
    done = planebench("export", "-f", "parquet", "-o", tmp_path / "file")
    assert done.code == 2 and "cannot write" in done.err and "Traceback" not in done.err


def test_bad_input_of_export(planebench, own_run_folder: Path) -> None:
    small(own_run_folder)
    for arguments, said in (
        (("--table", "result"), 'unknown table "result", did you mean results?'),
        (("--format", "parket"), 'unknown format "parket", did you mean parquet?'),
        (("--format", "parquet", "--table", "x"), 'unknown table "x"'),
    ):
        done = planebench("export", *arguments)
        assert (done.code, done.out) == (2, "") and said in done.err
