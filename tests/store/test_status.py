# SPDX-License-Identifier: BSD-3-Clause
"""status.json, and following a run by it: torn, hostile, of a killed process, of another user."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from builders import make_header, make_point, make_trial

from planebench.host.procfs import start_ticks
from planebench.model.errors import StoreError
from planebench.model.records import Load
from planebench.model.status import CurrentTrial, Stage, Status
from planebench.store import RunWriter, list_runs
from planebench.store.reader import Follower, is_alive, live_runs, read_status, write_status

STARTED = "2026-11-21T12:33:56.000Z"
TRIAL = CurrentTrial(make_point(), "r_plus", "", Load("saturating"), 0, 0.2, STARTED)
ALIVE = Status(
    os.getpid(), start_ticks(os.getpid()), (0,), STARTED, STARTED, "quick", 1, 9, 12.5, "", TRIAL,
    (Stage("p2p", "r_plus", 1, 8, 10.0),), 2, ("it failed",),
)  # fmt: skip


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[RunWriter]:
    with RunWriter.create(tmp_path, make_header()) as made:
        yield made


def gone() -> Status:
    process = subprocess.Popen([sys.executable, "-S", "-c", ""])
    process.wait()
    return replace(ALIVE, pid=process.pid, pid_started_ticks=1)


def test_a_status_is_read_as_it_was_written(tmp_path: Path) -> None:
    assert read_status(tmp_path) is None
    write_status(tmp_path, ALIVE)
    assert read_status(tmp_path) == ALIVE
    write_status(tmp_path, replace(ALIVE, trial=None))
    assert read_status(tmp_path) == replace(ALIVE, trial=None)
    assert [path.name for path in tmp_path.iterdir()] == ["status.json"]


def test_a_torn_status_is_an_error_wherever_it_is_torn(tmp_path: Path) -> None:
    write_status(tmp_path, ALIVE)
    whole = (tmp_path / "status.json").read_bytes().rstrip()
    for length in range(0, len(whole), 37):
        (tmp_path / "status.json").write_bytes(whole[:length])
        with pytest.raises(StoreError, match=r"status\.json: "):
            read_status(tmp_path)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"left_s": float("nan")}, "left_s: "),
        ({"version": 2}, "version is 2, this planebench reads 1"),
        ({"done": "3"}, "done: "),
        ({"more": 1}, "unknown key more"),
        ({"trial": {"point": 1}}, "trial.point: "),
    ],
)
def test_a_status_that_is_none_is_an_error_that_names_the_key(tmp_path: Path, change: dict, words: str) -> None:
    write_status(tmp_path, ALIVE)
    path = tmp_path / "status.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(StoreError, match=words):
        read_status(tmp_path)


def test_a_process_is_known_by_its_start_too() -> None:
    assert is_alive(ALIVE)
    assert is_alive(replace(ALIVE, pid_started_ticks=None))
    assert not is_alive(replace(ALIVE, pid_started_ticks=1)), "another process has got its pid"
    assert not is_alive(gone())
    for pid in (0, -1, 1 << 70):
        assert not is_alive(replace(ALIVE, pid=pid))


def test_the_states_of_a_run(writer: RunWriter) -> None:
    follower = Follower(writer.path)
    seen = follower.look()
    assert (seen.state, seen.status) == ("killed", None) and "no status.json" in seen.problem
    write_status(writer.path, ALIVE)
    assert (follower.look().state, follower.look().problem) == ("running", "")
    write_status(writer.path, gone())
    assert follower.look().state == "killed"
    write_status(writer.path, ALIVE)
    writer.finish("interrupted", "Ctrl-C")
    assert follower.look().state == "interrupted"
    assert not (writer.path / "status.json").exists()
    with RunWriter.reopen(writer.path) as again:
        write_status(writer.path, ALIVE)
        assert follower.look().state == "running", "taken up with --resume"
        again.finish()
    assert follower.look().state == "complete"


def test_a_status_that_cannot_be_read_leaves_the_trials(writer: RunWriter) -> None:
    writer.append(make_trial(0))
    (writer.path / "status.json").write_text("{")
    seen = Follower(writer.path).look()
    assert seen.status is None and "status.json" in seen.problem and len(seen.trials) == 1


def test_every_trial_is_read_once_and_a_torn_one_when_it_is_whole(writer: RunWriter) -> None:
    follower = Follower(writer.path)
    assert follower.look().trials == ()
    writer.append(make_trial(0))
    assert [t.index for t in follower.look().trials] == [0]
    writer.append(make_trial(1))
    lines = writer.path / "trials.jsonl"
    whole = lines.read_bytes()
    lines.write_bytes(whole[:-9])
    assert [t.index for t in follower.look().trials] == [0]
    lines.write_bytes(whole)
    assert [t.index for t in follower.look().trials] == [0, 1]
    lines.write_bytes(whole + b"{}\n")
    with pytest.raises(StoreError, match="line 3: missing key"):
        follower.look()


def test_the_newest_run_that_goes_on_comes_first(tmp_path: Path) -> None:
    assert live_runs(tmp_path / "nothing") == ()
    for name, status in (
        ("old", ALIVE),
        ("new", replace(ALIVE, session_at="2026-11-22T00:00:00.000Z")),
        ("killed", replace(gone(), session_at="2026-11-23T00:00:00.000Z")),
    ):
        with RunWriter.create(tmp_path, make_header(run_id=name)) as made:
            write_status(made.path, status)
    assert [folder.name for folder in live_runs(tmp_path)] == ["new", "old"]


def test_a_folder_that_is_removed_while_it_is_written(writer: RunWriter) -> None:
    writer.append(make_trial(0))
    follower = Follower(writer.path)
    shutil.rmtree(writer.path)
    with pytest.raises(StoreError, match="was removed or moved while planebench was writing it"):
        writer.append(make_trial(1))
    with pytest.raises(StoreError, match="was removed or moved"):
        follower.look()


@pytest.mark.root
def test_the_run_of_another_user_that_may_not_be_read(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can be somebody else")
    runs = tmp_path / "runs"
    with RunWriter.create(runs, make_header()) as made:
        write_status(made.path, ALIVE)
    for folder in (runs, *(parent for parent in runs.parents if parent.stat().st_mode & 0o077 == 0)):
        folder.chmod(0o755)
    follower = Follower(made.path)
    made.path.chmod(0o700)
    os.seteuid(65534)
    try:
        assert live_runs(runs) == () and list_runs(runs) == ()
        with pytest.raises(StoreError, match="Permission denied"):
            Follower(made.path)
        with pytest.raises(StoreError, match="Permission denied"):
            follower.look()
    finally:
        os.seteuid(0)
