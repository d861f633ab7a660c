# SPDX-License-Identifier: BSD-3-Clause
"""``planebench.run``: a plan run from Python."""

from __future__ import annotations

import errno
import json
import os
import signal
from pathlib import Path

import pytest
from builders import without_checksums

import planebench
from planebench.host.programs import NotFound
from planebench.measure.machine import terminable
from planebench.measure.trial import TrialRequest
from planebench.model.errors import NotInstalledError, StoreError, UsageError
from planebench.model.records import Trial
from planebench.plan.override import override
from planebench.plan.schema import load_plan
from planebench.switches.registry import get_adapter

OPTIONS = {"switch": "sim", "scenario": "p2p", "frame_size": "64", "direction": "unidirectional", "loads": "none"}


class Watcher:
    """Counts trials; stops after some of them as Ctrl-C does."""

    def __init__(self, stop_after: int | None = None) -> None:
        self.trials, self.stop_after = 0, stop_after

    def working_on(self, text: str) -> None: ...

    def trial_begins(self, request: TrialRequest) -> None: ...

    def trial_done(self, trial: Trial) -> None:
        self.trials += 1
        if self.trials == self.stop_after:
            raise KeyboardInterrupt

    def trouble(self, text: str) -> None: ...


def test_a_plan_is_run_and_comes_back_as_tables(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    run = planebench.run("quick", runs_dir=tmp_path, repeat=2, **OPTIONS)
    assert [row["switch"] for row in run.rows("results")] == ["sim"] and len(run.raw.trials) == 2
    assert planebench.list_runs(tmp_path)[-1].run_id == run.header.run_id
    assert capfd.readouterr() == ("", "")


def test_a_run_that_was_interrupted_is_returned_and_resumed(tmp_path: Path) -> None:
    plan = override(load_plan("quick"), repeat=3, **OPTIONS)
    run = planebench.run(plan, runs_dir=tmp_path, listener=Watcher(stop_after=1))
    assert run.raw.finished is not None and run.raw.finished.status == "interrupted"
    watcher = Watcher()
    run = planebench.run(plan, runs_dir=tmp_path, resume=True, listener=watcher)
    assert run.raw.finished is not None and run.raw.finished.status == "complete"
    assert (len(run.raw.trials), watcher.trials) == (3, 2)
    with pytest.raises(UsageError, match="of this plan is complete"):
        planebench.run(plan, runs_dir=tmp_path, resume=True)


def test_a_run_whose_end_does_not_fit_on_the_disk_is_finished_by_a_resume(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = override(load_plan("quick"), repeat=2, **OPTIONS)
    whole = os.fsync

    def full(fd: int) -> None:
        if "finished.json" in str(Path(f"/proc/self/fd/{fd}").readlink()):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        whole(fd)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(StoreError, match=r"cannot write .*finished\.json: No space left"):
            planebench.run(plan, runs_dir=tmp_path)
    (folder,) = tmp_path.iterdir()
    assert sorted(path.name for path in folder.iterdir()) == ["run.json", "trials.jsonl"]
    watcher = Watcher()
    run = planebench.run(plan, runs_dir=tmp_path, resume=True, listener=watcher)
    assert run.raw.finished is not None and run.raw.finished.status == "complete"
    assert (len(run.raw.trials), watcher.trials) == (2, 0)


def test_a_run_is_not_taken_up_with_another_tester(tmp_path: Path) -> None:
    plan = override(load_plan("quick"), repeat=3, **OPTIONS)
    run = planebench.run(plan, runs_dir=tmp_path, listener=Watcher(stop_after=1))
    file = without_checksums(tmp_path / run.header.run_id) / "run.json"
    header = json.loads(file.read_text())
    header["settings"]["tester_version"] = "planed 0.0 (000000000000)"
    file.write_text(json.dumps(header))
    with pytest.raises(UsageError, match=r"cannot resume run .*tester_version: planed 0\.0"):
        planebench.run(plan, runs_dir=tmp_path, resume=True)


@pytest.mark.parametrize("error", [ZeroDivisionError("a fault"), SystemExit(1)], ids=repr)
def test_a_run_that_ends_by_a_fault_is_kept_and_resumed(tmp_path: Path, error: BaseException) -> None:
    """SystemExit: nobody reads the output any more."""

    class Failing(Watcher):
        def trial_done(self, trial: Trial) -> None:
            raise error

    plan = override(load_plan("quick"), repeat=2, **OPTIONS)
    with pytest.raises(type(error)):
        planebench.run(plan, runs_dir=tmp_path, listener=Failing())
    (kept,) = planebench.list_runs(tmp_path)
    assert kept.finished is not None and kept.finished.status == "interrupted"
    assert kept.finished.note in ("a fault", "nobody reads its output any more")
    run = planebench.run(plan, runs_dir=tmp_path, resume=True)
    assert run.header.run_id == kept.run_id and len(run.raw.trials) == 2


def test_nothing_is_made_where_a_switch_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(get_adapter("vpp")), "find", lambda self: NotFound("apt-get install vpp"))
    with pytest.raises(NotInstalledError, match='switch "vpp" is not installed'):
        planebench.run("quick", runs_dir=tmp_path, **{**OPTIONS, "switch": "vpp"})
    assert not list(tmp_path.iterdir())


def test_a_run_that_is_to_outlive_its_terminal_does() -> None:
    """As under nohup; without it a hang-up is an interruption."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        with terminable():
            signal.raise_signal(signal.SIGHUP)
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
        with pytest.raises(KeyboardInterrupt), terminable():
            signal.raise_signal(signal.SIGHUP)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
