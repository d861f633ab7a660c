# SPDX-License-Identifier: BSD-3-Clause
"""bench/beside.py: what is measured in which order, what is there already, and what the stored runs come to."""

from __future__ import annotations

import itertools
import json
import math
import os
import shutil
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import pytest
from builders import STARTED, make_evidence, make_header, make_point, make_trial

sys.path.append(str(Path(__file__).parents[2] / "bench"))  # after tests, which has a folder nf of its own

import beside
from beside import BY_NAME, GATE, SETTINGS, Reference

from planebench.analysis.starts import Block, Blocks
from planebench.store import RunWriter

A, B = make_point("planed"), make_point("testpmd")
SAID = "9 points in 135 trials, about 59 s of measuring, at most 75 s if comparisons stay open; they are stored in x"


def test_twenty_settings_and_three_of_quick() -> None:
    names = [setting.name for setting in SETTINGS]
    assert len(set(names)) == 23
    assert names[0] == "a-root-0" and "e-user-1" in names
    assert names[20:] == ["quick-a-user-1", "quick-c-user-1", "quick-e-user-1"]
    widths = {name: BY_NAME[name].width_max for name in ("a-user-1", "b-root-1", "b-user-0")}
    assert widths == {"a-user-1": 0.05, "b-root-1": 0.10, "b-user-0": 0.15}


def test_settings_take_turns_with_quiet_runs_between() -> None:
    jobs = beside.schedule(SETTINGS, 3)
    assert len(jobs) == len(set(jobs)) == 23 * 3 + 2
    assert [setting for setting, number in jobs if number == 1] == list(SETTINGS)
    quiet = [at for at, (setting, _) in enumerate(jobs) if setting.load == "a"]
    assert max(after - before for before, after in itertools.pairwise(quiet)) <= 6
    assert sum(setting.plan == "quick" and setting.load == "a" for setting, _ in jobs) == 5


def test_few_settings_have_as_many_quiet_runs() -> None:
    jobs = beside.schedule([BY_NAME["e-root-1"]], 3)
    names = [f"{setting.name}.{number}" for setting, number in jobs]
    assert sorted(names) == [f"a-user-1.{number}" for number in range(1, 6)] + [f"e-root-1.{n}" for n in (1, 2, 3)]
    assert names.index("e-root-1.1") > 0 and names[-1] == "e-root-1.3"
    more = beside.schedule([BY_NAME["a-root-0"], BY_NAME["c-root-0"]], 2)
    assert sorted(number for setting, number in more if setting.load == "a") == [1, 2, 3, 4, 5]


def test_the_gate_takes_turns() -> None:
    assert beside.in_turns(3) == [(GATE[0], 1), (GATE[1], 1), (GATE[0], 2)]


def test_what_is_there_is_not_measured_again(tmp_path: Path) -> None:
    jobs = beside.schedule([BY_NAME["a-root-0"]], 5)
    there = beside.folder_of(jobs[1], tmp_path)
    there.mkdir()
    assert beside.to_measure(jobs, tmp_path) == jobs
    (there / beside.DONE).write_text("{}")
    assert beside.to_measure(jobs, tmp_path) == [jobs[0], *jobs[2:]]


@pytest.mark.parametrize(
    ("words", "seconds"),
    [
        (SAID, (59.0, 75.0)),
        ("9 test points in 30 trials, about 4.5\nminutes of measuring; they are stored in x", (270.0, 270.0)),
        ("planebench: no such switch", None),
    ],
)
def test_what_was_said(words: str, seconds: tuple[float, float] | None) -> None:
    assert beside.said(f"note: x\n{words}\n") == seconds


def blocks(*bands: str | None, near: float, far: float = 0.0) -> Blocks:
    """Return a start at each distance."""
    logs = {"near": near, "far": far, None: 9.0}
    return tuple(Block(number, number, logs[band], band) for number, band in enumerate(bands))


def test_a_reference_has_the_distances_of_the_run() -> None:
    """Rates are e and 1 near and far; the ratio is e near and 1 far. The figures of the run itself do not matter."""
    pool = [{A: blocks("near", "far", near=0.0), B: blocks("near", "far", near=1.0)} for _ in range(3)]
    reference = Reference(pool)
    run = {A: blocks("near", "near", "far", near=5.0), B: blocks("near", "near", "far", near=7.0)}
    ratio, figure = reference.ratio(A, B, run), reference.figure(B, run)
    assert ratio is not None and ratio.mean == pytest.approx(2 / 3) and ratio.error == pytest.approx(0)
    assert figure is not None and figure.mean == pytest.approx(2 / 3)
    changed = reference.figure(B, {B: blocks("near", None, near=5.0)})
    assert changed is not None and changed.mean == pytest.approx((1.0 + 0.5) / 2)


def test_the_error_of_a_reference_is_that_between_quiet_runs() -> None:
    levels = (0.1, 0.3, 0.2, 0.5)
    pool = [{A: blocks("near", near=0.0), B: blocks("near", "near", near=level)} for level in levels]
    found = Reference(pool).ratio(A, B, pool[0])
    assert found is not None and found.mean == pytest.approx(statistics.fmean(levels))
    assert found.error == pytest.approx(statistics.stdev(levels) / math.sqrt(4)) and found.degrees == 3


def test_a_distance_of_one_quiet_run_is_no_reference() -> None:
    pool = [{A: blocks("near", near=0.1)}, {A: blocks("near", "far", near=0.2)}, {A: blocks("near", near=0.3)}]
    assert Reference(pool).figure(A, {A: blocks("far", near=0.0)}) is None
    assert Reference(pool).figure(A, {A: blocks("near", near=0.0)}) is not None
    assert Reference(pool).figure(B, {B: blocks("near", near=0.0)}) is None


RATES = {"planed": 20.0, "testpmd": 15.0, "ovs-dpdk": 14.5}


def store(
    folder: Path,
    name: str,
    rates: Mapping[str, float] = RATES,
    far_starts: tuple[int, ...] = (),
    stood: float = 0.0,
    measuring_s: float = 74.0,
    exit_code: int = 0,
    limited: Collection[str] = (),
) -> None:
    """Store a run of three starts. Cores that are far halve its rates, and pollers stand for a share of each trial.

    ``limited``: switches that the tester limits.
    """
    setting, _, number = name.rpartition(".")
    where = beside.folder_of((BY_NAME[setting], int(number)), folder)
    shutil.rmtree(where, ignore_errors=True)
    rng, finished = Random(name), datetime.fromisoformat(STARTED) + timedelta(seconds=measuring_s)
    cases = itertools.product(range(3), (64, 1024), rates.items())
    with RunWriter.create(where, make_header(tuple(rates), run_id="run")) as writer:
        for index, (start, size, (switch, mpps)) in enumerate(cases):
            far = start in far_starts
            evidence = replace(make_evidence("far" if far else "near"), poll_gap_sum_ns=int(stood * 1e9))
            rate = mpps * (0.5 if far else 1.0) * (1 - stood) * math.exp(rng.gauss(0, 0.003))
            point = make_point(switch, frame_size_bytes=size)
            kind = "tester-limited" if switch in limited else "valid"
            writer.append(make_trial(index, point, rate, kind, start=start, repetition=start, evidence=evidence))
        writer.finish(now=finished)
    (where / beside.LOG).write_text(SAID)
    done = {"exit_code": exit_code, "ended_s": finished.timestamp() + 4}
    (where / beside.DONE).write_text(json.dumps(done))


@pytest.fixture
def quiet(tmp_path: Path) -> Path:
    """Return a folder with five quiet runs, of which three have far cores."""
    for number in range(1, 6):
        store(tmp_path, f"a-root-0.{number}", far_starts=(1,) if number in (2, 4, 5) else ())
    return tmp_path


def report(folder: Path, capsys: pytest.CaptureFixture[str], *options: str) -> tuple[int, Any]:
    """Return the exit code of --report, and what it says."""
    code = beside.main(["--report", "--json", "--folder", str(folder), *options])
    return code, json.loads(capsys.readouterr().out)


def test_a_setting_that_meets_every_bar(quiet: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for number, far_starts in ((1, (0, 2)), (2, ()), (3, (0, 1, 2))):
        store(quiet, f"e-user-1.{number}", far_starts=far_starts, stood=0.6)
    code, found = report(quiet, capsys, "--settings", "a-root-0,e-user-1")
    assert code == 0
    assert [pool["runs"] for pool in found["references"]] == [5]
    of_quiet, busy = found["settings"]
    assert of_quiet["missed"] == busy["missed"] == []
    assert busy["runs"] == 3 and busy["exit_codes"] == [0] and busy["report_s"] == 4.0 and busy["time"] == 0.0
    assert busy["counts"]["eligible"] == busy["counts"]["decided"] == 12
    assert busy["counts"]["intervals"] == busy["counts"]["figures"] == busy["counts"]["marked"] == 18
    assert of_quiet["counts"]["marked"] == 0


def test_every_bar_can_be_missed(quiet: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Planed and ovs-dpdk change places, and the run takes twice as long; then a switch is missing."""
    lower = {"planed": 13.0, "testpmd": 13.5, "ovs-dpdk": 18.0}
    store(quiet, "c-root-0.1", lower, measuring_s=150.0, exit_code=6)
    code, found = report(quiet, capsys, "--settings", "c-root-0")
    (row,) = found["settings"]
    assert code == 1
    assert row["missed"] == ["runs", "decided", "wrong", "covered", "figures", "time", "exit code"]
    assert row["counts"]["decided"] == 0 and row["counts"]["wrong"] == 4 and row["time"] == pytest.approx(1.0)
    store(quiet, "c-root-0.1", {"planed": 20.0, "testpmd": 15.0})
    (row,) = report(quiet, capsys, "--settings", "c-root-0", "--times", "1")[1]["settings"]
    assert row["counts"]["eligible"] == 4 and row["counts"]["decided"] == 2 and row["missed"] == ["decided"]


def test_the_table(quiet: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert beside.main(["--report", "--folder", str(quiet), "--settings", "a-root-0,b-root-0"]) == 1
    told = capsys.readouterr().out.splitlines()
    assert told[0].startswith("reference of README: 5 quiet runs; a ratio is known to within ")
    assert told[3].split()[:6] == ["a-root-0", "5", "0", "0", "20/20", "0"] and told[3].endswith("4 s  0     -")
    assert told[4].split()[:2] == ["b-root-0", "0"] and told[4].endswith("runs")


def test_two_switches_that_the_tester_limits_need_no_answer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for number in range(1, 6):
        store(tmp_path, f"a-root-0.{number}", limited=("planed", "testpmd") if number > 2 else ("planed",))
    (row,) = report(tmp_path, capsys, "--settings", "a-root-0")[1]["settings"]
    assert row["counts"]["bounds"] == 2 * 5 and row["counts"]["eligible"] == 2 * 5  # planed and ovs-dpdk


def test_too_few_quiet_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for number in range(1, 5):
        store(tmp_path, f"a-root-0.{number}")
    assert report(tmp_path, capsys, "--settings", "a-root-0")[0] == 1


def test_a_switch_with_itself(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for number in range(1, 11):
        store(tmp_path, f"aa-a-root-1.{number}", {"one": 20.0, "other": 22.0 if number == 3 else 20.0})
    code, found = report(tmp_path, capsys, "--aa", "10")
    assert code == 0
    differ = [it["name"] for it in found["same_twice"] if it["different"]]
    assert differ == ["aa-a-root-1.3"]
    store(tmp_path, "aa-a-root-1.4", {"one": 20.0, "other": 18.0})
    assert report(tmp_path, capsys, "--aa", "10")[0] == 1
    assert report(tmp_path, capsys, "--aa", "11")[0] == 1


def test_the_noise_of_the_gate(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for number, far_starts in ((1, ()), (2, (0, 1, 2)), (3, ()), (4, (0, 1, 2))):
        store(tmp_path, f"gate-a-root-1.{number}", {"planed": 20.0}, far_starts)
        store(tmp_path, f"gate-b-root-1.{number}", {"planed": 20.0}, stood=0.2)
    code, found = report(tmp_path, capsys, "--gate", "8")
    nothing, program = found["gate"]
    assert code == 0
    assert (nothing["beside"], nothing["runs"]) == ("nothing", 4)
    assert nothing["over_points"] > 0.3 and nothing["at_distance"] < 0.01
    assert program["over_points"] < 0.01
    assert report(tmp_path, capsys, "--gate", "9")[0] == 1


def test_what_is_not_valid(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for wrong in (["--settings", "f-root-0"], ["--times", "0"]):
        with pytest.raises(SystemExit) as ended:
            beside.main(["--report", *wrong])
        assert ended.value.code == 2
    assert "no settings f-root-0. Valid: a-root-0, b-root-0" in capsys.readouterr().err
    assert beside.main(["--report", "--folder", str(tmp_path)]) == 2
    assert capsys.readouterr().err == f"{tmp_path} has none of these runs\n"


RIG = """
import signal
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
import beside
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it
beside.AUTOGROUP, beside.PLANEBENCH, beside.SETTLE_S = Path(sys.argv[2]), Path(sys.argv[3]), 0.0
sys.exit(beside.main(["--settings", "d-root-0", "--times", "1", "--folder", sys.argv[4]]))
"""


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: loads run as another user")
@pytest.mark.parametrize("signal_name", ["", "INT", "TERM", "KILL"])
def test_loads_end_and_the_setting_is_restored(signal_name: str, tmp_path: Path) -> None:
    """Planebench is a script that notes its load, and sends the bench a signal."""
    autogroup, command, seen = tmp_path / "autogroup", tmp_path / "planebench", tmp_path / "seen"
    autogroup.write_text("1\n")
    ends = f"kill -{signal_name} $PPID\nexec sleep 60\n" if signal_name else "exit 3\n"
    command.write_text(f"#!/bin/sh\ncat {autogroup} /proc/$PPID/task/$PPID/children > {seen}\n{ends}")
    command.chmod(0o755)
    runs = tmp_path / "runs"
    for number in range(1, 6):
        (runs / f"a-user-1.{number}").mkdir(parents=True)
        (runs / f"a-user-1.{number}" / beside.DONE).touch()
    rig = [sys.executable, "-c", RIG, Path(beside.__file__).parent, autogroup, command, runs]
    ended = subprocess.run(rig, capture_output=True, text=True, check=False)
    value, *children = map(int, seen.read_text().split())
    assert (value, len(children)) == (0, 3), ended.stderr
    assert autogroup.read_text() == ("0\n" if signal_name == "KILL" else "1\n")
    end = time.monotonic() + 10
    while any(Path(f"/proc/{pid}/exe").exists() for pid in children):
        assert time.monotonic() < end
        time.sleep(0.01)
    codes = {"": 1, "INT": 130, "TERM": 128 + signal.SIGTERM, "KILL": -signal.SIGKILL}
    assert ended.returncode == codes[signal_name], ended.stderr
    assert signal_name or "d-root-0: planebench ended with exit code 3 and stored no run" in ended.stderr
    assert not (runs / "d-root-0.1" / beside.DONE).exists()
