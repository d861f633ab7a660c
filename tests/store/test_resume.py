# SPDX-License-Identifier: BSD-3-Clause
"""A run that was killed or interrupted is taken up where it stopped."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from builders import make_header, make_trial

from planebench.model.errors import StoreError
from planebench.plan.schema import load_plan
from planebench.store import RunWriter, read_run
from planebench.store.folder import is_complete, runs_of_plan


def begun(folder: Path, trials: int = 2) -> RunWriter:
    writer = RunWriter.create(folder, make_header(plan=load_plan("quick")))
    for index in range(trials):
        writer.append(make_trial(index))
    return writer


def test_trials_go_on_after_those_that_are_there(tmp_path: Path) -> None:
    begun(tmp_path).finish("interrupted", "Ctrl-C")
    (info,) = runs_of_plan(tmp_path, load_plan("quick"))
    writer = RunWriter.reopen(info.path)
    assert read_run(info.path).finished is None
    writer.append(make_trial(2))
    writer.finish()
    run = read_run(info.path)
    assert [t.index for t in run.trials] == [0, 1, 2]
    assert run.finished is not None and run.finished.status == "complete"


def test_a_torn_line_is_cut_before_anything_is_appended(tmp_path: Path) -> None:
    writer = begun(tmp_path)
    writer.close()
    lines = writer.path / "trials.jsonl"
    lines.write_bytes(lines.read_bytes()[:-7])
    again = RunWriter.reopen(writer.path)
    again.append(make_trial(1))
    assert [t.index for t in read_run(writer.path).trials] == [0, 1]


def test_what_a_writer_left_that_was_killed_in_its_end_is_removed(tmp_path: Path) -> None:
    writer = begun(tmp_path)
    writer.close()
    (writer.path / ".finished.json.0011223344556677.tmp").write_bytes(b"{")
    RunWriter.reopen(writer.path).finish()
    assert not list(writer.path.glob(".*"))


def test_a_run_that_is_being_written_is_not_taken_up(tmp_path: Path) -> None:
    writer = begun(tmp_path)
    with pytest.raises(StoreError, match="is in use by another planebench"):
        RunWriter.reopen(writer.path)
    writer.close()
    RunWriter.reopen(writer.path).close()


def test_a_run_without_its_trials_is_not_begun_anew_under_its_old_header(tmp_path: Path) -> None:
    writer = begun(tmp_path)
    writer.finish("interrupted")
    (writer.path / "trials.jsonl").unlink()
    with pytest.raises(StoreError, match=r"trials\.jsonl is not there.*measure it again"):
        RunWriter.reopen(writer.path)
    assert (writer.path / "finished.json").is_file() and not (writer.path / "trials.jsonl").exists()


def test_only_runs_of_the_very_same_plan_are_found(tmp_path: Path) -> None:
    plan = load_plan("quick")
    assert not list(runs_of_plan(tmp_path, plan))
    writer = begun(tmp_path)
    assert not list(runs_of_plan(tmp_path, replace(plan, seed=2)))
    (info,) = runs_of_plan(tmp_path, replace(plan, time_budget_s=60.0))
    assert not is_complete(info)
    writer.finish()
    (info,) = runs_of_plan(tmp_path, plan)
    assert is_complete(info)
