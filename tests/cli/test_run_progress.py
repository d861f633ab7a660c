# SPDX-License-Identifier: BSD-3-Clause
"""What a run shows while it goes on: in a terminal two lines, in a pipe one every ten seconds."""

from __future__ import annotations

import io
import re
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest
from builders import make_point, make_trial

from planebench.cli.progress import FAILED_IN_A_ROW, Bar, RunProgress, so_far
from planebench.measure.ahead import Pace, Stage
from planebench.measure.session import Session
from planebench.measure.trial import TrialRequest
from planebench.model.records import Load, Point, Trial
from planebench.plan.schema import load_plan

PLANED, TESTPMD = make_point("planed"), make_point("testpmd")
POINTS = (PLANED, TESTPMD, make_point("planed", "v2v"))


class Run:
    """A session that measures what it is told, a trial a second."""

    def __init__(self, **options: Any) -> None:
        self.now_s = 0.0
        self.trials: list[Trial] = []
        self.pace = Pace((Stage("p2p", "r_plus", 20, 40.0),), lambda: self.now_s)
        plan = load_plan("quick")
        plan = replace(plan, throughput=replace(plan.throughput, repetitions=3))
        session = SimpleNamespace(
            pace=self.pace, trials=self.trials, survey=SimpleNamespace(measured=POINTS, plan=plan)
        )
        self.progress = RunProgress(cast(Session, session), clock=lambda: self.now_s, **options)

    def measure(self, point: Point, mpps: float = 10.0, verdict: str = "valid", reasons: tuple[str, ...] = ()) -> None:
        number = len(self.trials)
        self.pace.trial_begins()
        self.progress.trial_begins(TrialRequest(point, "r_plus", Load("saturating"), 1.0, repetition=number // 2))
        self.now_s += 1
        trial = make_trial(number, point, mpps, verdict, reasons, repetition=number // 2, start=number // 2)
        self.trials.append(trial)
        self.progress.trial_done(trial)
        self.pace.advance()


def test_what_there_is_of_each_switch_at_the_point_that_was_measured_last() -> None:
    switches = ("planed", "testpmd")
    assert so_far((), switches) == ""
    trials = [make_trial(i, PLANED, mpps, start=i, repetition=i) for i, mpps in enumerate((10.0, 11.0, 12.0))]
    trials.append(make_trial(3, TESTPMD, 14.0, "tester-limited"))
    assert so_far(trials, switches) == "testpmd ≥14.00, planed 10.97 Mpps at p2p → 64 B"
    found = so_far([*trials, make_trial(4, POINTS[2])], switches)
    assert "testpmd" not in found and "v2v" in found, "it was not measured there"


def test_a_pipe_gets_the_first_figures_at_once_and_then_a_line_every_ten_seconds(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with (run := Run()).progress:
        for number in range(12):
            run.measure(POINTS[number % 2], 10.0 + number % 2)
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines() == [
        "1/20, 35 s left: planed 10.00 Mpps at p2p → 64 B",
        "11/20, 12 s left: testpmd 11.00, planed 10.00 Mpps at p2p → 64 B",
    ]


def test_quiet_keeps_what_went_wrong(capsys: pytest.CaptureFixture[str]) -> None:
    with (run := Run(quiet=True)).progress:
        run.measure(PLANED)
        run.progress.trouble("vpp p2p: it\ndied")
    assert capsys.readouterr().err == "planebench: vpp p2p: it died\n"


def test_a_trial_that_did_not_take_place_says_why_once_and_many_what_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    with (run := Run(quiet=True)).progress:
        run.measure(TESTPMD, verdict="invalid", reasons=("it died",))
        run.measure(TESTPMD, verdict="valid")
        for _ in range(FAILED_IN_A_ROW):
            run.measure(TESTPMD, verdict="invalid", reasons=("it died",))
    why, what = capsys.readouterr().err.splitlines()
    assert why == "planebench: testpmd p2p → 64 B: no figure: it died"
    assert f"none of the last {FAILED_IN_A_ROW} trials" in what and "`planebench switch check NAME`" in what


def test_a_terminal_has_a_line_with_the_progress_and_one_with_the_rates(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr("sys.stderr", out := io.StringIO())
    with (run := Run()).progress:
        run.measure(PLANED, 31.5)
        run.measure(TESTPMD, 12.5)
        run.measure(PLANED, 30.5)
        out.truncate(out.seek(0))
        run.measure(TESTPMD)
    drawn = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", out.getvalue())
    lines = [line.rstrip() for line in drawn.replace("\r", "\n").splitlines() if line.strip()]
    assert all(len(line) <= 80 for line in lines)
    assert any("] 3 of 20 · " in line and "left" in line and "MRR of testpmd, p2p" in line for line in lines)
    assert "planed 31.00, testpmd 12.50 Mpps at p2p → 64 B" in lines


@pytest.mark.parametrize(("quiet", "said"), [(False, ["[1/2] a step"]), (True, [])])
def test_off_a_terminal_each_step_is_a_line(capsys: pytest.CaptureFixture[str], quiet: bool, said: list[str]) -> None:
    with Bar(2, quiet=quiet) as bar:
        bar.working_on("a step")
        bar.advance()
        bar.line(f"[{bar.done}/{bar.steps}] a step")
    out, err = capsys.readouterr()
    assert (out, err.splitlines()) == ("", said)
