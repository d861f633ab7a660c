# SPDX-License-Identifier: BSD-3-Clause
"""Runs, stores and jobs that come from a stranger: what a command writes stays where the user has it."""

from __future__ import annotations

import csv
import io
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from builders import make_run, store_run, without_checksums

from planebench.analysis.compare import Derived
from planebench.analysis.tables import table_csv
from planebench.lab.job import Job, JobPlace, read_job, write_job
from planebench.lab.store import add_run, histories, open_store
from planebench.model.errors import PlanebenchError, StoreError
from planebench.plan.schema import load_plan
from planebench.store import read_run


@pytest.fixture
def run(own_run_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("planebench.report.html.make_figures", lambda _: ())  # charts take seconds
    return own_run_folder / store_run(own_run_folder, make_run(("planed",), sizes=(64,), loads=())).header.run_id


def renamed(run: Path, run_id: str) -> Path:
    header = without_checksums(run) / "run.json"
    header.write_text(header.read_text().replace(f'"run_id": "{run.name}"', f'"run_id": "{run_id}"'))
    return run


@pytest.mark.parametrize("command", ["lab add STORE", "report", "export", "compare"])
def test_the_id_of_a_run_is_no_path(planebench, run: Path, tmp_path: Path, command: str) -> None:
    renamed(run, f"{tmp_path}/victim")
    done = planebench(*command.replace("STORE", str(tmp_path / "lab")).split(), run)
    assert done.code == 5 and "run.json: run_id: string should match pattern" in done.err
    assert not list(tmp_path.glob("victim*")) and not (tmp_path / "lab").exists()


@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("report.html", "report"),
        ("results.csv", "export --format csv --out RUN/results.csv"),
        ("page.html", "report --html RUN/page.html"),
    ],
)
def test_nothing_is_written_through_a_link(planebench, run: Path, tmp_path: Path, name: str, command: str) -> None:
    precious = tmp_path / "precious"
    precious.write_text("precious")
    (run / name).symlink_to(precious)
    word, *more = command.replace("RUN", str(run)).split()
    assert planebench(word, run, *more).code == 0
    assert precious.read_text() == "precious"
    assert (run / name).stat().st_size > 1000 and not (run / name).is_symlink()
    assert not list(run.glob(".*"))


def test_tables_do_not_go_through_a_link(planebench, run: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (run / "tables").symlink_to(tmp_path / "elsewhere")
    done = planebench("export", run, "--format", "parquet")
    assert done.code == 2 and "is a link" in done.err
    assert not list((tmp_path / "elsewhere").iterdir())


@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", ["run.json", "trials.jsonl", "finished.json", "conditions.jsonl", "report.html"])
def test_a_fifo_or_a_link_in_a_run_holds_nobody_up(planebench, run: Path, name: str) -> None:
    (run / name).unlink(missing_ok=True)
    os.mkfifo(run / name)
    done = planebench("report", run)
    assert done.code == (0 if name == "report.html" else 2 if name == "run.json" else 5), done.err
    (run / name).unlink()
    (run / name).symlink_to("/etc/passwd")
    done = planebench("report", run)
    assert done.code == (0 if name == "report.html" else 5)
    assert name == "report.html" or (f"{name}: it is a link" in done.err and "root:" not in done.err)


def test_what_a_spreadsheet_takes_for_a_formula_is_text_in_csv() -> None:
    run = make_run(("=HYPERLINK(1)", "@x", "-1+2", "planed"), sizes=(64,), loads=())
    switches = {row["switch"] for row in csv.DictReader(io.StringIO(table_csv("results", Derived(run)).decode()))}
    assert switches == {"'=HYPERLINK(1)", "'@x", "'-1+2", "planed"}
    (row, *_) = csv.DictReader(io.StringIO(table_csv("trials", Derived(run)).decode()))
    assert not any(value.startswith("'") and value[1:].lstrip("-").isdigit() for value in row.values())


def test_reports_of_one_run_at_the_same_time_leave_one_whole_page(run: Path) -> None:
    def report(_: int) -> int:
        command = [sys.executable, "-m", "planebench", "report", run, "--quiet"]
        return subprocess.run(command, timeout=100, check=False).returncode

    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(report, range(4))) == [0] * 4
    assert (run / "report.html").read_text(encoding="utf-8").rstrip().endswith("</html>")
    assert not list(run.glob(".*"))
    read_run(run)


@pytest.mark.parametrize("ticket", ["x; touch /tmp/x; true", "../x-00112233", "planebench-a-0011223", ""])
def test_the_ticket_of_a_job_is_no_command(tmp_path: Path, ticket: str) -> None:
    place = JobPlace("p", "", None)
    good = "planebench-nightly-sim-capacity=9M-desk-0011aabb"
    job = Job("m", "n", place, load_plan("quick"), None, None, True, {}, 1.0, 60, None, good)
    write_job(tmp_path, job)
    assert read_job(tmp_path) == job
    write_job(tmp_path, replace(job, ticket=ticket))
    with pytest.raises(StoreError, match=r"job\.json: ticket: string should match pattern"):
        read_job(tmp_path)


def test_a_store_that_a_stranger_has_written_is_told_in_a_sentence(planebench, run: Path, tmp_path: Path) -> None:
    store = tmp_path / "lab"
    add_run(store, run)
    results, runs = (next((store / table).rglob("*.parquet")) for table in ("results", "runs"))
    with open_store(store) as database:
        lies = {
            results: ("* REPLACE ('x' AS throughput_pps)", "* REPLACE ('nope' AS scenario)"),
            runs: ("* REPLACE ('[[[' AS settings)", "* REPLACE ('[]' AS host)", f"* REPLACE ('{'[' * 99999}' AS host)"),
        }
        for file, selections in lies.items():
            good = file.read_bytes()
            for selection in selections:
                query = f"SELECT {selection} FROM read_parquet('{file}', hive_partitioning = false)"
                database.execute(f"COPY ({query}) TO '{tmp_path}/lie' (FORMAT parquet)")
                file.write_bytes((tmp_path / "lie").read_bytes())
                with pytest.raises(PlanebenchError, match=r"has not written|unknown scenario"):
                    histories(store)
                file.write_bytes(good)
            for damaged in (b"", b"PAR1" + bytes(40) + b"PAR1", good[:200]):
                file.write_bytes(damaged)
                for command in ("list", "trend"):
                    done = planebench("lab", command, store)
                    assert done.code in (2, 5) and done.err.count("\n") == 1, done.err
                file.write_bytes(good)
    assert histories(store)
