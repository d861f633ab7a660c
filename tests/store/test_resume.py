# SPDX-License-Identifier: BSD-3-Clause
"""A run that was killed or interrupted is taken up where it stopped."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from builders import make_header, make_trial

from planebench.model.errors import StoreError
from planebench.plans.load import load_plan
from planebench.store import RunWriter, find_unfinished, read_plan, read_run, write_plan


def begun(folder: Path, trials: int = 2) -> RunWriter:
    writer = RunWriter.create(folder, make_header())
    write_plan(writer.path, load_plan("quick"))
    for index in range(trials):
        writer.append(make_trial(index))
    return writer


def test_trials_go_on_after_those_that_are_there(tmp_path: Path) -> None:
    begun(tmp_path).finish("interrupted", "Ctrl-C")
    info = find_unfinished(tmp_path, load_plan("quick"))
    assert info is not None
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


def test_a_run_that_is_being_written_is_not_taken_up(tmp_path: Path) -> None:
    writer = begun(tmp_path)
    with pytest.raises(StoreError, match="is in use by another planebench"):
        RunWriter.reopen(writer.path)
    writer.close()
    RunWriter.reopen(writer.path).close()


def test_only_an_unfinished_run_of_the_very_same_plan_is_found(tmp_path: Path) -> None:
    plan = load_plan("quick")
    assert find_unfinished(tmp_path, plan) is None
    writer = begun(tmp_path)
    assert read_plan(writer.path) == plan
    assert find_unfinished(tmp_path, replace(plan, seed=2)) is None
    assert find_unfinished(tmp_path, plan) is not None
    writer.finish()
    assert find_unfinished(tmp_path, plan) is None


def test_a_run_without_a_plan_is_no_candidate(tmp_path: Path) -> None:
    writer = begun(tmp_path)
    writer.close()
    (writer.path / "plan.json").unlink()
    assert read_plan(writer.path) is None
    assert find_unfinished(tmp_path, load_plan("quick")) is None
    (writer.path / "plan.json").write_text('{"name": 1}')
    assert find_unfinished(tmp_path, load_plan("quick")) is None


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"seed": "1"}, "seed: input should be a valid integer, got '1'"),
        ({"jitter": 3}, "unknown key jitter"),
        ({"search": {"max_r": 2, "novel": True}}, "unknown key search.novel"),
        (
            {"latency": {"loads": ["0.5"], "duration_s": 1, "repetitions": 1, "probe_rate_pps": 1, "v2v_pps": 1}},
            "loads",
        ),
    ],
)
def test_a_plan_with_keys_of_a_newer_planebench_is_not_the_present_plan(
    tmp_path: Path, change: dict[str, object], said: str
) -> None:
    """It is closed and strict, so a run that measured something else is never resumed."""
    writer = begun(tmp_path)
    writer.close()
    path = writer.path / "plan.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(StoreError, match=re.escape(said)):
        read_plan(writer.path)
    assert find_unfinished(tmp_path, load_plan("quick")) is None
