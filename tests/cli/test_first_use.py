# SPDX-License-Identifier: BSD-3-Clause
"""What a new user meets: runs without an answer, names used twice, disks that take nothing, and how to go on."""

from __future__ import annotations

import dataclasses
import errno
from pathlib import Path

import pytest
from builders import make_header, make_point, make_trial, make_verdict

from planebench.analysis.compare import Derived
from planebench.measure.sim.runner import SimRunner
from planebench.measure.trial import TrialRequest
from planebench.model.errors import INTERRUPTED, PlanebenchError, StoreError, UsageError, unwritable
from planebench.model.header import Run
from planebench.model.plan import Skipped
from planebench.model.records import Trial
from planebench.report.trust import nothing_decided, nothing_measured, points_without_figure
from planebench.store import RunWriter, list_runs, make_runs_dir
from planebench.store import writer as files
from planebench.store.folder import HEADER_FILE
from planebench.switches.adapter import Adapter, Situation
from planebench.switches.registry import get_adapter

SIM = ("run", "quick", "--switch=sim", "--scenario=p2p", "--frame-size=64", "--direction=unidirectional")
SHORT = (*SIM, "--duration=0.02", "--repeat=1", "--loads=none")


def a_run(*verdicts: str, skipped: tuple[Skipped, ...] = ()) -> Derived:
    trials = tuple(make_trial(i, make_point(), 10.0, it, (f"why {it}",), start=i) for i, it in enumerate(verdicts))
    return Derived(Run(make_header(("planed",)), trials, skipped=skipped))


def test_a_run_of_which_no_trial_took_place_says_how_many_why_and_what_to_do() -> None:
    words = nothing_measured(a_run("invalid", "invalid"))
    assert words.startswith("no trial counts (2 invalid); most frequent cause: why invalid. `planebench switch check ")
    assert nothing_measured(a_run(skipped=(Skipped("vpp", "did not start"),))) == "no trial was run: vpp: did not start"


@pytest.mark.parametrize("verdict", ["valid", "tester-limited", "functional"])
def test_one_trial_that_took_place_is_an_answer(verdict: str) -> None:
    assert nothing_measured(a_run("invalid", verdict)) == ""


def test_points_without_a_figure_are_named() -> None:
    trials = (make_trial(0, make_point()), make_trial(1, make_point("vpp"), 9.0, "invalid"))
    words = points_without_figure(Derived(Run(make_header(("planed", "vpp")), trials)))
    assert words.startswith("1 of 2 rates are missing, as no trial counts: vpp p2p → 64 B; `planebench report ")
    assert points_without_figure(Derived(Run(make_header(("planed",)), trials[:1]))) == ""
    assert points_without_figure(a_run("functional")) == ""


def two_switches(rates: tuple[float, float], starts: int) -> Derived:
    trials = tuple(
        make_trial(2 * start + i, make_point(switch), rates[i] * (1 + 0.002 * start), start=start)
        for start in range(starts)
        for i, switch in enumerate(("planed", "vpp"))
    )
    return Derived(Run(make_header(("planed", "vpp")), trials))


def test_a_run_that_decides_nothing_says_so_and_what_to_do() -> None:
    assert nothing_decided(two_switches((10.0, 20.0), starts=3)) == ""
    words = nothing_decided(two_switches((10.0, 20.0), starts=1))
    assert words == (
        "0 of 1 test points are decided at 95 %. Run again with three starts or more of each switch: with fewer the "
        "noise is not known."
    )
    assert nothing_decided(a_run("valid")) == "", "one switch is compared with nothing"
    assert nothing_decided(a_run("functional", "invalid")) == (
        "no test point has a rate, only packet counts, because this was a functional check: why functional"
    )


def test_a_run_that_decides_nothing_ends_with_it(planebench, own_run_folder: Path) -> None:
    done = planebench("run", "quick", "--switch=sim,sim:capacity=9M", *SHORT[3:], "--no-report")
    assert done.code == 0
    assert done.err.splitlines()[-1].startswith(
        "planebench: 0 of 1 test points are decided at 95 %. Run again with three"
    )


@pytest.mark.parametrize(("verdict", "code"), [("invalid", PlanebenchError.exit_code), ("valid", 0)])
@pytest.mark.parametrize("more", [(), ("--quiet",), ("--json",)])
def test_the_exit_code_of_a_run_says_whether_it_has_a_figure(
    planebench, own_run_folder: Path, monkeypatch, verdict: str, code: int, more: tuple[str, ...]
) -> None:
    usual = SimRunner.run

    def run(self: SimRunner, request: TrialRequest) -> Trial:
        return dataclasses.replace(usual(self, request), verdict=make_verdict(verdict))

    monkeypatch.setattr(SimRunner, "run", run)
    done = planebench(*SHORT, "--no-report", *more)
    assert done.code == code
    assert ("planebench: no trial counts" in done.err) == (code != 0)


def test_ctrl_c_says_how_to_resume(planebench, own_run_folder: Path, monkeypatch) -> None:
    def interrupted(self, request):
        raise KeyboardInterrupt

    monkeypatch.setattr(SimRunner, "run", interrupted)
    done = planebench(*SHORT, "--no-report", "--quiet")
    assert done.code == INTERRUPTED
    (line,) = done.err.splitlines()
    assert line.startswith("planebench: interrupted; 0 trials are stored: planebench report ") and done.out == ""
    assert line.endswith(f"Resume it with: planebench {' '.join((*SHORT, '--no-report', '--quiet'))} --resume")
    monkeypatch.undo()
    other = planebench(*SIM, "--no-report", "--resume", "--runs", own_run_folder)
    assert other.code == UsageError.exit_code
    assert f"is unfinished: planebench {' '.join((*SHORT, '--no-report', '--quiet'))} --resume" in other.err
    assert planebench(*SHORT, "--no-report", "--quiet", "--resume", "--runs", own_run_folder).code == 0


def test_a_name_that_is_used_twice_is_said(planebench, own_run_folder: Path) -> None:
    named = (*SHORT, "--no-report", "--name=first")
    assert "is the name of" not in planebench(*named).err
    assert '"first" is the name of ' in planebench(*named).err
    assert '"quick" is the name of' not in planebench(*SHORT, "--no-report").err + planebench(*SHORT, "--no-report").err
    done = planebench("compare", "first", "quick")
    newest = [info.run_id for info in list_runs() if info.header.name == "first"][-1]
    assert f"first is {newest}, the newest of 2 runs of this name" in done.err
    assert newest not in planebench("compare", newest, "quick", "--quiet").err.partition("newest of")[0]


def test_notes_are_a_line_that_says_where_they_are(planebench, own_run_folder: Path, monkeypatch) -> None:
    done = planebench("run", "quick", "--switch=sim", "--chain=l3fwd", *SHORT[5:], "--no-report")
    assert "1 note: planebench report --all\n" in done.err and "does not model" not in done.out + done.err
    monkeypatch.setattr("planebench.report.html.to_html", lambda _: b"")  # charts take seconds
    assert "does not model" in planebench("report", "--all").out


def test_a_report_that_cannot_be_written_is_a_store_error_after_the_results(
    planebench, own_run_folder: Path, monkeypatch
) -> None:
    def full(derived, path):
        raise unwritable(str(path), OSError(errno.ENOSPC, "No space left on device"))

    monkeypatch.setattr("planebench.cli.run.write_report", full)
    done = planebench(*SHORT)
    assert done.code == StoreError.exit_code
    assert "No space left on device; free space" in done.err and "planebench report 20" in done.err
    assert "Mpps" in done.out


@pytest.mark.parametrize(
    ("number", "kind", "words"),
    [
        (errno.ENOENT, UsageError, "a folder that exists"),
        (errno.ENOTDIR, UsageError, "a folder that exists"),
        (errno.EACCES, StoreError, "a folder that you may write"),
        (errno.EROFS, StoreError, "a folder that you may write"),
        (errno.ENOSPC, StoreError, "free space"),
        (errno.EDQUOT, StoreError, "free space"),
    ],
)
def test_what_cannot_be_written_names_the_way_out(number: int, kind: type[Exception], words: str) -> None:
    error = unwritable("x.html", OSError(number, "why"))
    assert type(error) is kind and str(error).startswith("cannot write x.html: why; ") and words in str(error)


def test_a_disk_that_is_full_at_the_start_leaves_no_run(planebench, own_run_folder: Path, monkeypatch) -> None:
    usual = files.replace_file

    def replace(path: Path, data: bytes, *, durable: bool = False) -> None:
        if path.name == HEADER_FILE:
            raise OSError(errno.ENOSPC, "No space left on device")
        usual(path, data, durable=durable)

    monkeypatch.setattr(files, "replace_file", replace)
    done = planebench(*SHORT)
    assert done.code == StoreError.exit_code and "Free space" in done.err
    assert list(own_run_folder.iterdir()) == []


def test_a_disk_that_fills_before_the_first_trial_leaves_no_run(planebench, own_run_folder: Path, monkeypatch) -> None:
    def full(self, trial):
        raise StoreError("cannot append: No space left on device")

    def no_room(self, *arguments):
        raise StoreError("cannot write finished.json: No space left on device")

    monkeypatch.setattr(RunWriter, "append", full)
    monkeypatch.setattr(RunWriter, "finish", no_room)
    assert planebench(*SHORT).code == StoreError.exit_code
    assert list(own_run_folder.iterdir()) == []


def test_a_folder_that_cannot_be_written_is_named_before_anything_runs(tmp_path: Path, monkeypatch) -> None:
    def refused(dir: Path) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr("planebench.store.writer.tempfile.TemporaryFile", refused)
    with pytest.raises(StoreError, match=r"cannot make a run folder in .*Permission denied\. Give a folder .* --runs"):
        make_runs_dir(tmp_path)


def test_a_switch_of_another_wire_says_which_option_measures_it() -> None:
    assert Adapter.refusal(get_adapter("linux-bridge"), Situation("p2p", "virtio")).endswith("; use --wire veth")
