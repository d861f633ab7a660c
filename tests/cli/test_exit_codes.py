# SPDX-License-Identifier: BSD-3-Clause
"""The exit code of each command in each failure, as docs/command-line.md has them, and the sentence beside it."""

from __future__ import annotations

import dataclasses
import errno
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from builders import make_run, make_verdict, store_run, without_checksums

from planebench.host.cpu_claims import SHARE
from planebench.host.planed_program import PLANED_ENV
from planebench.measure.sim.runner import SimRunner
from planebench.measure.trial import TrialRequest
from planebench.model.errors import (
    FAULT,
    INCONCLUSIVE,
    INTERRUPTED,
    BusyError,
    NotInstalledError,
    PlanebenchError,
    StoreError,
    UsageError,
)
from planebench.model.header import Run
from planebench.model.records import Trial

USAGE, STORE, NO = UsageError.exit_code, StoreError.exit_code, 1
SIM = ("run", "quick", "--switch=sim", "--scenario=p2p", "--frame-size=64", "--direction=unidirectional",
       "--duration=0.02", "--repeat=1", "--no-report")  # fmt: skip
READERS = (
    *("report", "report --all", "export", "export --table trials -f csv", "export -f parquet"),
    "export --format svg",
    *("compare", "compare RUN --fail-below 0.9", "papers RUN", "capacity RUN"),
    "lab add STORE",
)
"""Every command that reads a run."""


def line(command: str, tmp_path: Path, run: object = "latest") -> list[object]:
    """The words of a command; RUN is ``run``, also where a command that takes one names none."""
    words = command.split()
    if "RUN" not in words:
        words.insert(3 if words[:2] == ["lab", "add"] else 1, "RUN")
    return [{"RUN": run, "STORE": tmp_path / "store"}.get(word, word) for word in words]


def assert_one_sentence(err: str, *words: str) -> None:
    assert err.startswith("planebench: ") and err.count("\n") == 1 and "Traceback" not in err, err
    assert all(word in err for word in words), err


@pytest.mark.parametrize("command", READERS)
def test_without_a_run(planebench, tmp_path: Path, command: str) -> None:
    done = planebench(*line(command, tmp_path))
    assert (done.code, done.out) == (USAGE, "")
    assert_one_sentence(done.err, "holds no runs")


BAD_FILES = {
    "no JSON": ("run.json", "{", "not a JSON object"),
    "deep": ("run.json", "[" * 100_000, "not a JSON object"),
    "torn": ("trials.jsonl", "{\n", "EOF while parsing"),
    "time": ("trials.jsonl", ('"started_at":"20..[^"]*"', '"started_at":"x"'), "started_at: no moment such as 2026-"),
    "no zone": ("run.json", ('"started_at": "20..[^"]*"', '"started_at": "2026-11-21"'), "started_at: no moment such"),
    "key": ("trials.jsonl", ('"role"', '"rule"'), "missing key role"),
}


@pytest.mark.parametrize("command", READERS)
def test_a_run_that_cannot_be_read(planebench, own_run_folder: Path, tmp_path: Path, command: str) -> None:
    run = own_run_folder / store_run(own_run_folder, make_run(("planed",), sizes=(64,), loads=())).header.run_id
    without_checksums(run)
    for bad, (name, content, words) in BAD_FILES.items():
        file = run / name
        whole = file.read_text()
        damaged = content if isinstance(content, str) else re.sub(content[0].replace(":", ": ?"), content[1], whole)
        assert damaged != whole, bad
        file.write_text(damaged)
        done = planebench(*line(command, tmp_path, run))
        file.write_text(whole)
        assert (done.code, done.out) == (STORE, ""), bad
        assert_one_sentence(done.err, name, words)


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("report --html /no/such/page.html", USAGE),
        ("report --html FILE/page.html", USAGE),
        ("report --html /dev/full", STORE),
        ("export --out /no/such/results.json", USAGE),
        ("export --out /dev/full", STORE),
        ("export -f parquet --out FILE", USAGE),
        ("export --format svg --out FILE", USAGE),
        ("compare RUN --fail-below 0.9 --junit /no/such/gate.xml", USAGE),
        ("compare RUN --fail-below 0.9 --junit /dev/full", STORE),
        ("lab add FILE", STORE),
    ],
)
def test_what_cannot_be_written(
    planebench, own_run_folder: Path, tmp_path: Path, monkeypatch, command: str, code: int
) -> None:
    store_run(own_run_folder, make_run(("planed",), sizes=(64,), loads=()))
    monkeypatch.setattr("planebench.report.html.make_figures", lambda _: ())  # charts take seconds
    (tmp_path / "file").write_text("")
    done = planebench(*line(command.replace("FILE", str(tmp_path / "file")), tmp_path))
    assert done.code == code, done.err
    assert_one_sentence(done.err)


@pytest.fixture
def failed(own_run_folder: Path) -> Run:
    """A run of which no trial took place."""
    run = make_run(("planed", "vpp"), sizes=(64,), loads=(0.5,))
    trials = tuple(dataclasses.replace(it, verdict=make_verdict("invalid")) for it in run.trials)
    return store_run(own_run_folder, dataclasses.replace(run, trials=trials))


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("report", 0),
        ("export", 0),
        ("compare", NO),
        ("compare RUN --fail-below 0.9", INCONCLUSIVE),
        ("capacity RUN", INCONCLUSIVE),
        ("export --format svg --only load", INCONCLUSIVE),
    ],
)
@pytest.mark.parametrize("more", [(), ("--json",)])
@pytest.mark.usefixtures("failed")
def test_a_run_of_which_no_trial_took_place_has_nothing_to_say(
    planebench, tmp_path: Path, monkeypatch, command: str, code: int, more: tuple[str, ...]
) -> None:
    monkeypatch.setattr("planebench.cli.output.write_report", lambda derived, path, **how: path)  # charts take seconds
    done = planebench(*line(command, tmp_path), *more)
    assert done.code == code
    assert bool(done.err) == (code != 0)
    if more:
        assert isinstance(json.loads(done.out), dict | list)


@pytest.mark.parametrize("loads", ["none", "carried:0.5"])
@pytest.mark.parametrize(("kind", "code"), [("invalid", PlanebenchError.exit_code), ("valid", 0)])
def test_a_run_says_whether_a_trial_took_place(planebench, monkeypatch, kind: str, code: int, loads: str) -> None:
    """Also where its carried load rests on a trial that did not."""
    usual = SimRunner.run

    def run(self: SimRunner, request: TrialRequest) -> Trial:
        return dataclasses.replace(usual(self, request), verdict=make_verdict(kind))

    monkeypatch.setattr(SimRunner, "run", run)
    done = planebench(*SIM, f"--loads={loads}", "--json")
    assert done.code == code
    assert ("planebench: no trial counts" in done.err) == (code != 0)


MEASURING = ("run quick --switch planed --scenario p2p", "testbed calibrate", "switch check planed --scenario p2p")


@pytest.mark.parametrize("command", MEASURING)
def test_two_at_once(planebench, monkeypatch, command: str) -> None:
    monkeypatch.delenv(SHARE)
    program = f"""
import sys, time
from planebench.host.cpu_claims import claimed
from planebench.model.errors import BusyError
while True:  # a test beside this one may measure
    try:
        with claimed({sorted(os.sched_getaffinity(0))}):
            print("held", flush=True)
            sys.stdin.read()
            break
    except BusyError:
        time.sleep(0.1)
"""
    hold = [sys.executable, "-c", program]
    with subprocess.Popen(hold, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None and other.stdout.readline() == b"held\n"
        done = planebench(*command.split())
        other.kill()
    assert (done.code, done.out) == (BusyError.exit_code, "")
    assert_one_sentence(done.err, "another planebench measures on CPU", str(other.pid))


@pytest.mark.parametrize("command", MEASURING)
def test_without_planed(planebench, monkeypatch, tmp_path: Path, command: str) -> None:
    monkeypatch.setenv(PLANED_ENV, str(tmp_path / "nothing"))
    done = planebench(*command.split())
    assert (done.code, done.out) == (NotInstalledError.exit_code, "")
    assert_one_sentence(done.err, "planed")


EVERYWHERE = {
    "doctor": "planebench.cli.doctor.diagnose",
    "list scenarios": "planebench.cli.lists.print_table",
    "plan show quick": "planebench.cli.lists.survey",
    "switch show planed": "planebench.cli.lists.overview",
    "testbed calibrate": "planebench.cli.calibrate.Machine.prepare",
    "switch check planed": "planebench.cli.check.Machine.prepare",
    "outage --restart switch": "planebench.cli.outage.open_outages",
    "report": "planebench.cli.output.find_run",
}
"""A function that each command calls."""


@pytest.mark.parametrize("command", EVERYWHERE)
def test_what_no_part_knows_is_a_sentence_and_a_file(planebench, monkeypatch, tmp_path: Path, command: str) -> None:
    def fails(*_: object, **__: object) -> None:
        raise ZeroDivisionError("a number\nwas 0")

    monkeypatch.setattr(EVERYWHERE[command], fails)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    done = planebench(*command.split())
    assert (done.code, done.out) == (FAULT, "")
    (file,) = (tmp_path / "planebench").iterdir()
    assert done.err == (
        f"planebench: ZeroDivisionError: a number was 0; this is a fault of planebench. Details: {file}\n"
    )
    assert "Traceback (most recent call last)" in file.read_text() and command.split()[0] in file.read_text()


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (OSError(errno.ENOMEM, os.strerror(errno.ENOMEM)), FAULT, "there is too little memory (see ulimit -v)"),
        (OSError(errno.EMFILE, os.strerror(errno.EMFILE)), STORE, "system: Too many open files"),
        (PermissionError(errno.EACCES, "Permission denied", "/x/y"), STORE, "/x/y: Permission denied"),
        (RecursionError("maximum recursion depth exceeded"), FAULT, "this is a fault of planebench"),
    ],
    ids=repr,
)
def test_what_the_system_lacks(planebench, monkeypatch, error: Exception, code: int, words: str) -> None:
    def fails() -> None:
        raise error

    monkeypatch.setattr("planebench.cli.doctor.diagnose", fails)
    done = planebench("doctor")
    assert (done.code, done.out) == (code, "")
    assert_one_sentence(done.err, words)


def test_details_that_cannot_be_kept_are_no_error(planebench, monkeypatch) -> None:
    def fails() -> None:
        raise MemoryError

    monkeypatch.setattr("planebench.cli.doctor.diagnose", fails)
    monkeypatch.setenv("XDG_STATE_HOME", "/dev/null")
    done = planebench("doctor")
    assert (done.code, done.out) == (FAULT, "")
    assert_one_sentence(done.err, "MemoryError; there is too little memory", "cannot be kept: NotADirectoryError")


@pytest.mark.parametrize("command", EVERYWHERE)
def test_ctrl_c(planebench, monkeypatch, command: str) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(EVERYWHERE[command], interrupted)
    done = planebench(*command.split())
    assert (done.code, done.out, done.err) == (INTERRUPTED, "", "")


@pytest.mark.parametrize("name", ["report", "report --all", "compare", "list runs", "lab list"])
def test_text_that_looks_like_markup_is_text(
    planebench, own_run_folder: Path, tmp_path: Path, monkeypatch, name
) -> None:
    monkeypatch.setattr("planebench.cli.output.write_report", lambda derived, path, **how: path)  # charts take seconds
    store_run(own_run_folder, make_run(("[/b]", "[bold]x"), sizes=(64,)))
    if name == "lab list":
        assert planebench("lab", "add", tmp_path / "store").code == 0
        done = planebench("lab", "list", tmp_path / "store")
    else:
        done = planebench(*(name.split() if name.startswith("list") else line(name, tmp_path)))
    assert done.code == 0, done.err
    assert "--" in name or ("[/b]" in done.out and "[bold]x" in done.out)


@pytest.mark.parametrize("command", ["plan show", "run"])
def test_a_plan_that_is_nested_too_deeply(planebench, tmp_path: Path, command: str) -> None:
    plan = tmp_path / "deep.yaml"
    plan.write_text(f"a: {'[' * 5000}{']' * 5000}\n")
    done = planebench(*command.split(), plan)
    assert (done.code, done.out) == (USAGE, "")
    assert_one_sentence(done.err, "nested too deeply")
