# SPDX-License-Identifier: BSD-3-Clause
"""However a run ends - a switch that dies, Ctrl-C, SIGTERM, kill -9 - results so far are kept and nothing is left."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable

import pytest
from e2e_rig import PATIENCE_S, RAN, Bench, Record, Run, assert_exact, one_line, state, texts_of, urgent

from planebench.cli.output import report
from planebench.model.errors import UsageError

pytestmark = [pytest.mark.dataplane, pytest.mark.timeout(180)]


def start(bench: Bench, *more: object, switch: str = "planed,testpmd", duration: float = 0.2, repeat: int = 500) -> Run:
    """A run of many short trials; a calibration would come to its end before it."""
    short = ("--no-calibrate", "--duration", duration, "--repeat", repeat)
    return bench.start("run", bench.plan, "--switch", switch, *short, *more)


def switch_of(trial: Record) -> str:
    return str(trial["point"]["switch"])


def in_a_trial(bench: Bench, *words: str) -> list[int]:
    """The processes with these words, if they are up and not paused."""
    pids = bench.processes(*words)
    return pids if all(state(pid) in ("R", "S") for pid in pids) else []


REPEAT = 3
"""A machine that is busy may sleep through a trial or two before a switch is killed in one."""
TESTPMD = ("dpdk-testpmd", "--file-prefix")


def kill_in_a_trial(bench: Bench, process: Run, *words: str) -> None:
    """Well into a trial, and certainly in one: a machine that is busy may have slept through the first."""
    with urgent():
        while True:
            bench.wait_for(lambda: in_a_trial(bench, *words), f"a trial of {words[0]}", process)
            time.sleep(0.3)
            if pids := in_a_trial(bench, *words):
                break
        for pid in pids:
            os.kill(pid, signal.SIGKILL)


def test_a_switch_that_dies_spoils_its_trial_and_no_other(bench: Bench) -> None:
    """That each switch tells its death: the check ``death`` of test_switch_check.py."""
    victim, partner = "testpmd", "planed"
    process = start(bench, "--json", switch=f"{victim},{partner}", duration=0.6, repeat=REPEAT)
    bench.wait_for(lambda: _paused(bench, TESTPMD), f"{victim} is up and paused", process)
    kill_in_a_trial(bench, process, *TESTPMD)
    out, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode in RAN, err
    dead = [trial for trial in bench.trials() if trial["verdict"]["kind"] == "invalid"]
    assert [switch_of(trial) for trial in dead] == [victim]
    (reason,) = texts_of(dead[0])
    assert "was killed by SIGKILL; its last log lines:\n" in reason
    assert reason.splitlines()[0] in err, "the user is told at once"
    others = [trial for trial in bench.trials() if trial["verdict"]["kind"] != "invalid"]
    for trial in others:
        assert_exact(trial)
    planned = {(name, number) for name in (victim, partner) for number in range(REPEAT)}
    assert {(switch_of(trial), trial["repetition"]) for trial in others} >= planned - {(victim, dead[0]["repetition"])}
    assert {result["switch"] for result in json.loads(out)["results"]} == {victim, partner}
    finished = bench.finished()
    assert finished is not None and finished["status"] == "complete"
    bench.assert_nothing_left()


def _paused(bench: Bench, words: tuple[str, ...]) -> bool:
    pids = bench.processes(*words)
    return bool(pids) and all(state(pid) == "T" for pid in pids)


VETH = "veth" if os.geteuid() == 0 else "virtio"
"""Namespaces and interfaces to remove, where tests may make them."""


@pytest.mark.parametrize(
    ("number", "times", "switch", "wire"),
    [
        (signal.SIGINT, 20, "planed,ovs-dpdk", "virtio"),
        pytest.param(signal.SIGTERM, 1, "planed", VETH, marks=pytest.mark.all),
    ],
)
def test_a_signal_keeps_what_was_measured_and_leaves_nothing(
    bench: Bench, capsys: pytest.CaptureFixture[str], number: signal.Signals, times: int, switch: str, wire: str
) -> None:
    """A second Ctrl-C does not stop the clean-up."""
    bench.page = True
    process = start(bench, "--wire", wire, switch=switch)
    bench.wait_for(lambda: len(bench.trials()) >= 2, "two trials are stored", process)
    measured = len(bench.trials())
    for sending in range(times):
        time.sleep(0.05 * (sending > 0))
        os.killpg(process.pid, number)
    out, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130
    assert "Traceback" not in err
    bench.assert_nothing_left()
    finished = bench.finished()
    assert finished is not None and finished["status"] == "interrupted"
    assert "Resume it with: planebench run " in err and err.rstrip().endswith("--resume")
    assert len(bench.trials()) >= measured
    assert "interrupted; " in err and out == "", "what there is, planebench report shows"
    report("latest", None, bench.runs)
    assert "interrupted: stopped by Ctrl-C or SIGTERM" in one_line(capsys.readouterr().out)


def test_ctrl_c_while_the_report_is_made(bench: Bench) -> None:
    bench.page = True
    process = start(bench, switch="planed", repeat=1)
    bench.wait_for(lambda: list(bench.runs.glob("*/finished.json")), "everything is measured", process)
    os.killpg(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode in (130, *RAN)  # a report of one trial may be made before the signal arrives
    assert "Traceback" not in err
    bench.assert_nothing_left()
    finished = bench.finished()
    assert finished is not None and finished["status"] == "complete"


def test_ctrl_c_before_the_first_trial(bench: Bench) -> None:
    process = start(bench)
    bench.wait_for(lambda: bench.processes("tester.json"), "the first process is started", process)
    os.killpg(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130
    assert "Traceback" not in err
    bench.assert_nothing_left()
    finished = bench.finished()
    assert finished is not None and finished["status"] == "interrupted"
    assert bench.trials() == []


MOMENTS: dict[str, Callable[[Bench], object]] = {
    "nothing but the reaper is up": lambda bench: bench.processes("reaper.py"),
    "a switch comes up": lambda bench: bench.processes(*TESTPMD),
    "a trial is stored": Bench.trials,
}


@pytest.mark.parametrize("moment", MOMENTS)
def test_kill_9(bench: Bench, capsys: pytest.CaptureFixture[str], moment: str) -> None:
    """Killed where the run has started, made or stored one thing more."""
    switch, wire = ("planed", VETH) if MOMENTS[moment] is Bench.trials else ("testpmd,planed", "virtio")
    process = start(bench, "--wire", wire, switch=switch, duration=0.05, repeat=1000)
    bench.wait_for(lambda: MOMENTS[moment](bench), moment, process)
    process.kill()
    process.communicate(timeout=PATIENCE_S)
    bench.assert_nothing_left()
    _report_of_whatever_there_is(bench, capsys)


def _report_of_whatever_there_is(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    if not list(bench.runs.glob("*/run.json")):
        with pytest.raises(UsageError, match="holds no runs"):
            report("latest", None, bench.runs)
        return
    report("latest", None, bench.runs)
    assert "· incomplete" in one_line(capsys.readouterr().out)
    assert (bench.folder / "report.html").is_file()
    for trial in bench.trials():
        assert_exact(trial)


def test_what_a_killed_run_left_is_swept_by_the_next(bench: Bench) -> None:
    """The reaper killed too: the one case in which something stays; the next run removes it."""
    process = start(bench, switch="planed")
    bench.wait_for(bench.trials, "a trial is stored", process)
    for pid in (*bench.processes("reaper.py"), process.pid):
        os.kill(pid, signal.SIGKILL)
    process.communicate(timeout=PATIENCE_S)
    assert list(bench.base.glob("pb-*")), "nobody was there to remove it"
    next_run = start(bench, switch="planed", duration=0.05, repeat=1)
    next_run.communicate(timeout=PATIENCE_S)
    assert next_run.returncode in RAN
    bench.assert_nothing_left()


def test_output_that_nobody_reads_any_more(bench: Bench) -> None:
    """`planebench run ... --json | head -1`"""
    process = start(bench, "--json", switch="planed", duration=0.05, repeat=1)
    assert process.stdout is not None
    process.stdout.close()
    process.stdout = None
    _, err = process.communicate(timeout=PATIENCE_S)
    assert "Traceback" not in err
    bench.assert_nothing_left()
