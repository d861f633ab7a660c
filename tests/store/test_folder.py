# SPDX-License-Identifier: BSD-3-Clause
import json
import os
import shutil
import signal
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from builders import make_header, make_run, make_trial, without_checksums

from planebench.model.conditions import Conditions, PortConditions, ThreadConditions
from planebench.model.errors import StoreError, UsageError
from planebench.model.header import Finished
from planebench.model.plan import Skipped
from planebench.store import RunWriter, default_runs_dir, find_run, folder, list_runs, new_run_id, read_run
from planebench.store.codec import header_from_json, to_json

NOW = datetime(2026, 11, 21, 12, 40, tzinfo=UTC)


CONDITIONS = Conditions(
    "planed",
    "p2p",
    0,
    "virtio",
    0,
    "2026-11-21T12:34:00.000Z",
    (PortConditions("n0", "wire", "vhost-user", "planed", 1, (256, 256), ("version_1", "in_order")),),
    (ThreadConditions("w0", "1", "SCHED_OTHER", -20, 2600),),
)


def _stored(runs_dir: Path, run_id: str, name: str = "quick", started_at: str = "2026-11-21T12:33:56Z") -> Path:
    with RunWriter.create(runs_dir, make_header(run_id=run_id, name=name, started_at=started_at)) as writer:
        writer.append(make_trial())
    return writer.path


def test_what_was_written_is_read_back(tmp_path: Path) -> None:
    run = make_run()
    with RunWriter.create(tmp_path, run.header) as writer:
        for trial in run.trials:
            writer.append(trial)
        writer.skip(Skipped("v2v", "no second VNF"))
        writer.observe(CONDITIONS)
        writer.observe(replace(CONDITIONS, start=1))
        writer.finish("interrupted", "Ctrl-C", now=NOW)
    back = read_run(writer.path)
    assert back.header == replace(run.header, checksums=True)
    assert back.trials == run.trials
    assert back.conditions == (CONDITIONS, replace(CONDITIONS, start=1))
    assert back.skipped == (*run.header.skipped, Skipped("v2v", "no second VNF"))
    assert back.finished is not None
    assert (back.finished.status, back.finished.note) == ("interrupted", "Ctrl-C")
    assert back.finished.finished_at == "2026-11-21T12:40:00Z"


def test_a_run_without_an_end_or_a_trial_is_readable(tmp_path: Path) -> None:
    with RunWriter.create(tmp_path, make_header()) as writer:
        pass
    run = read_run(writer.path)
    assert (run.trials, run.finished, run.warnings) == ((), None, ())
    (writer.path / "trials.jsonl").unlink()
    assert read_run(writer.path).trials == ()


def test_a_clash_of_names_gets_a_number(tmp_path: Path) -> None:
    ids = [RunWriter.create(tmp_path, make_header()).header.run_id for _ in range(3)]
    assert ids == ["20261121-123356-quick", "20261121-123356-quick-2", "20261121-123356-quick-3"]
    assert read_run(tmp_path / ids[2]).header.run_id == ids[2]


def test_a_run_id_that_leaves_the_folder_is_refused(tmp_path: Path) -> None:
    for bad in ("../out", "", ".hidden", "a/b", "/tmp/out", "a\n", "-a", "x" * 129):
        with pytest.raises(StoreError, match="not a folder name"):
            RunWriter.create(tmp_path / "runs", make_header(run_id=bad))
        with pytest.raises(StoreError, match=r"run\.json: run_id: string should match pattern"):
            header_from_json(to_json(make_header(run_id=bad)), "run.json")


def test_a_run_that_vanishes_while_runs_are_listed_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("first", "second"):
        RunWriter.create(tmp_path, make_header(run_id=name)).close()
    read = folder.read_finished

    def removed(path: Path, *, checksums: bool) -> Finished | None:
        found = read(path, checksums=checksums)
        if path.name == "first":
            shutil.rmtree(path)
        return found

    monkeypatch.setattr(folder, "read_finished", removed)
    assert [info.run_id for info in list_runs(tmp_path)] == ["second"]


def test_run_ids_are_made_of_time_and_a_safe_name() -> None:
    assert new_run_id("quick", NOW) == "20261121-124000-quick"
    assert new_run_id("../My plan: 64 B!", NOW) == "20261121-124000-My-plan-64-B"
    assert new_run_id("///", NOW) == "20261121-124000-run"
    assert new_run_id("quick", NOW, "3fa9c1d2") == "20261121-124000-quick-3fa9c1d2"


@pytest.mark.parametrize("keep", [1, 40, -1])
def test_a_torn_last_line_is_left_out_with_a_warning(tmp_path: Path, keep: int) -> None:
    path = _stored(tmp_path, "a")
    trials = path / "trials.jsonl"
    line = trials.read_bytes()
    trials.write_bytes(line + line[:keep])
    run = read_run(path)
    assert len(run.trials) == 1
    assert run.warnings == (
        "trials.jsonl, line 2 is incomplete (planebench was killed while writing it) and is ignored",
    )


@pytest.mark.parametrize("bad", [b'{"index": 1', b"", b"[]", b'{"colour": 1}', b"\x00\x00"])
def test_a_bad_line_elsewhere_is_an_error_with_file_and_line(tmp_path: Path, bad: bytes) -> None:
    path = _stored(tmp_path, "a")
    trials = path / "trials.jsonl"
    line = trials.read_bytes()
    trials.write_bytes(line + bad + b"\n" + line)
    with pytest.raises(StoreError, match=r"trials\.jsonl, line 2: "):
        read_run(path)


def test_a_failed_append_leaves_no_torn_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = RunWriter.create(tmp_path, make_header())
    writer.append(make_trial(0))
    real_write = os.write
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", lambda fd, data: real_write(fd, data[:50]))
        with pytest.raises(StoreError, match="cannot append to"):
            writer.append(make_trial(1))
    writer.append(make_trial(2))
    assert [t.index for t in read_run(writer.path).trials] == [0, 2]


WRITE_FOREVER = """
import sys
from pathlib import Path
sys.path[:0] = {paths!r}
from builders import make_header, make_latency_trial
from planebench.store import RunWriter
writer = RunWriter.create(Path({runs!r}), make_header())
index = 0
while True:
    writer.append(make_latency_trial(index))
    index += 1
    print(index, flush=True)
"""


def test_kill_9_while_writing_loses_nothing_that_was_reported(tmp_path: Path) -> None:
    code = WRITE_FOREVER.format(paths=sys.path, runs=str(tmp_path))
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        for line in writer.stdout:
            if int(line) >= 20:
                break
        writer.send_signal(signal.SIGKILL)
        rest = writer.stdout.read().split()
    reported = max([20, *map(int, rest)])
    run = read_run(find_run(tmp_path, "latest"))
    assert [t.index for t in run.trials] == list(range(len(run.trials)))
    assert len(run.trials) in (reported, reported + 1)
    assert run.finished is None


def test_runs_are_found_by_latest_id_start_name_and_path(tmp_path: Path) -> None:
    first = _stored(tmp_path, "20261120-1-quick", started_at="2026-11-20T00:00:00Z")
    second = _stored(tmp_path, "20261121-1-quick", started_at="2026-11-21T00:00:00Z")
    other = _stored(tmp_path, "20261119-9-long", name="long", started_at="2026-11-19T00:00:00Z")
    assert find_run(tmp_path, "latest") == second
    assert find_run(tmp_path, "20261120-1-quick") == first
    assert find_run(tmp_path, "20261119") == other
    assert find_run(tmp_path, "quick") == second
    assert find_run(tmp_path, str(first)) == first
    assert [i.run_id for i in list_runs(tmp_path)] == ["20261119-9-long", "20261120-1-quick", "20261121-1-quick"]


def test_a_run_that_is_not_there_lists_what_is(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"holds no runs\. Make one with `planebench run quick`"):
        find_run(tmp_path / "none", "latest")
    _stored(tmp_path, "20261120-1-quick")
    _stored(tmp_path, "20261120-2-quick")
    with pytest.raises(UsageError, match=r"no run 'slow'.*latest, 20261120-2-quick, 20261120-1-quick"):
        find_run(tmp_path, "slow")
    with pytest.raises(UsageError, match="2 runs start with '20261120'"):
        find_run(tmp_path, "20261120")


def test_foreign_folders_are_left_out_of_the_list(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    old = _stored(tmp_path, "old") / "run.json"
    old.write_text(json.dumps(json.loads(old.read_text()) | {"schema_version": 8}))
    assert list_runs(tmp_path) == ()


def test_the_default_folder_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLANEBENCH_RUNS", "/data/runs")
    assert default_runs_dir() == Path("/data/runs")
    monkeypatch.delenv("PLANEBENCH_RUNS")
    assert default_runs_dir() == Path("runs")


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="PLANEBENCH_RUNS"):
        RunWriter.create(tmp_path / "file" / "runs", make_header())


def test_conditions_of_a_run_that_was_killed_are_kept_but_for_a_torn_line(tmp_path: Path) -> None:
    path = _stored(tmp_path, "20261121-123356-killed")
    assert read_run(path).conditions == (), "a run without the file has none"
    with RunWriter.reopen(path) as writer:
        writer.observe(CONDITIONS)
        writer.observe(CONDITIONS)
    file = path / "conditions.jsonl"
    file.write_bytes(file.read_bytes()[:-9])
    back = read_run(path)
    assert back.conditions == (CONDITIONS,)
    assert any("conditions.jsonl, line 2 is incomplete" in warning for warning in back.warnings)
    with RunWriter.reopen(path) as writer:
        writer.observe(replace(CONDITIONS, start=1))
    assert read_run(path).conditions == (CONDITIONS, replace(CONDITIONS, start=1))
    assert read_run(path).warnings == ()


def test_conditions_that_are_none_are_an_error_with_file_line_and_key(tmp_path: Path) -> None:
    path = without_checksums(_stored(tmp_path, "20261121-123356-bad"))
    (path / "conditions.jsonl").write_text('{"switch": "planed", "speed": 1}\n')
    with pytest.raises(StoreError, match=r"conditions.jsonl, line 1: missing key scenario"):
        read_run(path)
