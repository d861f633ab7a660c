# SPDX-License-Identifier: BSD-3-Clause
"""`planebench watch`: frames at the sizes and in the characters of terminals, and what becomes of a run meanwhile."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from builders import STARTED, make_header, make_point, make_run, make_trial, store_run
from rich.console import Console

from planebench.cli import watch as watching
from planebench.cli.watch import Screen, TerminalPage, TrialLines, frame
from planebench.host.procfs import start_ticks
from planebench.model.records import Load, SwitchCycles, Trial
from planebench.model.status import CurrentTrial, Stage, Status
from planebench.report.terminal.grid import Glyphs
from planebench.store import RunWriter
from planebench.store.reader import Seen, write_status

MINUTE = "2026-11-21T12:{:02}:00.000Z"
HOSTILE = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202eevil\r\n\x00"
POINTS = [make_point(s, "p2p", direction=d) for d in ("unidirectional", "bidirectional") for s in ("planed", "testpmd")]
UNICODE, ASCII = Glyphs(True), Glyphs(False)


def trials() -> tuple[Trial, ...]:
    """Of every mark one: valid, a lower bound, a wide interval, no figure."""
    known = SwitchCycles(busy_cycles=98, idle_cycles=2, packets=3180, bursts=100)
    made = []
    for repetition in range(2):
        for point, verdict, mpps in zip(
            POINTS, ("valid", "tester-limited", "valid", "invalid"), (15.32, 14.0, 12.0, 9.0), strict=True
        ):
            rate = mpps * (1 + 0.3 * repetition * (point is POINTS[2]))
            reasons = [] if verdict == "valid" else ["switch thread lost its core 14 times"]
            made.append(
                make_trial(
                    len(made), point, rate, verdict, reasons, repetition=repetition, start=repetition, switch=known
                )
            )
    return tuple(made)


def status(**changes: object) -> Status:
    current = CurrentTrial(POINTS[1], "r_plus", "", Load("saturating"), 2, 0.2, MINUTE.format(40))
    ahead = tuple(Stage("p2p", m, 4, 16, 200.0) for m in ("r_plus", "ndr", "latency", "pdr"))
    made = Status(
        os.getpid(), start_ticks(os.getpid()), (0,), MINUTE.format(40), MINUTE.format(34), "quick", 8, 80, 720.0, "",
        current, ahead, 2, ("vpp p2p: not supported: no such wire",),
    )  # fmt: skip
    return replace(made, **changes)


def seen(**changes: object) -> Seen:
    header = make_header(("planed", "testpmd"))
    return replace(Seen(Path("/runs/20261121-123356-quick"), header, trials(), status(), None, "running"), **changes)


def text(of: Seen, width: int = 80, height: int = 24, glyphs: Glyphs = UNICODE) -> str:
    lines = frame(of, TerminalPage(width, height, glyphs))
    assert len(lines) <= height
    assert all(line.cell_len <= width for line in lines)
    return "\n".join(line.plain.rstrip() for line in lines)


@pytest.fixture(autouse=True)
def utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.fixture
def quietly(monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    """What the watcher does to its own scheduling, which tests have no use for."""
    done: dict[str, object] = {}
    monkeypatch.setattr(os, "setpriority", lambda _, __, nice: done.update(nice=nice))
    monkeypatch.setattr(os, "sched_setaffinity", lambda _, cpus: done.update(cpus=cpus))
    return done


FRAME = """\
quick · 20261121-123356-quick · running
[██                  ] 8 of 80 · 12 min left, until 12:52 · since 12:34:00
now      testpmd · p2p → 64 B · MRR no. 3 · max. load · 0.2 s · since 12:40:00
load     testpmd 98 % busy · batch 32 · tester 80 % busy · cores near (62 ns)
last     trial  of                  load    Mpps  loss
         #7     testpmd p2p ⇄ 64 B  MRR   (9.00)  17 %  invalid switch thread l…
         #6     planed p2p ⇄ 64 B   MRR    15.60  17 %  valid
         #5     testpmd p2p → 64 B  MRR   ≥14.00  17 %  tester-limited switch t…
         #4     planed p2p → 64 B   MRR    15.32  17 %  valid
         #3     testpmd p2p ⇄ 64 B  MRR   (9.00)  17 %  invalid switch thread l…
         #2     planed p2p ⇄ 64 B   MRR    12.00  17 %  valid
         #1     testpmd p2p → 64 B  MRR   ≥14.00  17 %  tester-limited switch t…
         #0     planed p2p → 64 B   MRR    15.32  17 %  valid
rates    p2p ⇄ 64 B   Mpps  spread  starts
         planed      13.68    30 %       2
         testpmd         –       –       0
next     p2p MRR: 16 trials left on 4 points, 3 min
         p2p NDR: about 16 trials on 4 points, 3 min
         p2p latency: 16 trials on 4 points, 3 min · then 3 more
trouble  vpp p2p: not supported: no such wire
Ctrl-C stops watching, not the run"""


def test_a_frame_of_80_by_24() -> None:
    assert text(seen()) == FRAME


def test_a_wide_frame_shows_more() -> None:
    shown = text(seen(), 120, 40)
    assert "#0     planed" in shown and "switch thread lost its core 14 times" in shown


def test_a_terminal_without_unicode() -> None:
    shown = text(seen(), glyphs=ASCII)
    assert shown.isascii()
    for words in ("[##", "p2p uni 64 B", ">=14.00", "13.68"):
        assert words in shown


@pytest.mark.parametrize(("width", "height"), [(40, 12), (20, 5), (80, 24), (200, 60)])
@pytest.mark.parametrize("state", ["running", "killed"])
def test_every_size_is_kept_to(width: int, height: int, state: str) -> None:
    nothing = seen(trials=(), status=status(trial=None, doing="starting vpp for p2p", ahead=(), troubles=()))
    assert "quick" in text(replace(seen(), state=state), width, height)
    assert "quick" in text(replace(nothing, state=state), width, height)
    assert "quick" in text(replace(nothing, state=state, status=None, problem="it has no status.json"), width, height)


def test_the_parts_of_the_plan_that_want_the_trial_are_named() -> None:
    trial = status().trial
    assert trial is not None
    shown = text(seen(status=status(trial=replace(trial, parts=("throughput", f"tab{HOSTILE}")))), 160)
    assert shown.splitlines()[0].startswith("quick · 20261121-123356-quick · running · for throughput, tab?]0;owned?")


def test_between_trials_it_says_what_goes_on() -> None:
    assert "now      starting vpp for p2p\n" in text(seen(status=status(trial=None, doing="starting vpp for p2p")))


def test_hostile_texts_do_not_reach_the_terminal() -> None:
    evil = make_point(HOSTILE, "loopback", chain_length=1, chain=f"l2fwd:{HOSTILE}".replace("\n", ""))
    current = CurrentTrial(evil, "search", HOSTILE, Load(HOSTILE, 1.0), 0, 1.0, STARTED, (HOSTILE,))
    told = status(trial=current, doing=HOSTILE, troubles=(HOSTILE,) * 3)
    told = replace(told, ahead=(Stage(HOSTILE, HOSTILE, 1, 1, 1e300),), left_s=1e300, done=10**30, steps=-1)
    bad = make_trial(0, evil, reasons=[HOSTILE], verdict="invalid", search=HOSTILE, load=Load(HOSTILE, 1.0))
    header = replace(make_header(), name=HOSTILE, command=("planebench", HOSTILE))
    of = Seen(Path(f"/runs/{HOSTILE}"), header, (bad,), told, None, "running", HOSTILE)
    for state in ("running", "killed", "interrupted", "complete"):
        for glyphs in (UNICODE, ASCII):
            lines = frame(replace(of, state=state), TerminalPage(120, 40, glyphs))  # type: ignore[arg-type]
            assert all(line.plain.isprintable() for line in lines), state
    out = io.StringIO()
    lines_only = TrialLines(Console(file=out))
    lines_only.draw(replace(of, trials=()))
    lines_only.draw(of)
    assert all(line.isprintable() for line in out.getvalue().splitlines())


def drawn(colour: str | None, *frames: Seen) -> list[str]:
    out = io.StringIO()
    console = Console(
        file=out,
        force_terminal=True,
        color_system=colour,
        width=80,
        height=24,
        no_color=colour is None,
        highlight=False,
    )
    found = []
    with Screen(console) as draw:
        for one in frames:
            out.truncate(out.seek(0))
            draw(one)
            found.append(out.getvalue())
        out.truncate(out.seek(0))
    return [*found, out.getvalue()]


def test_only_changed_lines_are_drawn_and_the_last_frame_stays() -> None:
    later = seen(status=status(done=9))
    first, second, third, end = drawn("standard", seen(), later, later)
    assert [int(row) for row in re.findall(r"\x1b\[(\d+)H", first)] == list(range(1, 22))
    assert re.findall(r"\x1b\[(\d+)H", second) == ["2"] and "9 of 80" in second
    assert third == ""
    assert end.startswith("\x1b[?25h\x1b[?1049l") and "9 of 80" in end and end.count("\n") == 21


def test_no_colour_where_none_is_wanted() -> None:
    coloured = re.compile(r"\x1b\[[0-9;]*3[0-7]")
    assert coloured.search(drawn("standard", seen())[0])
    assert not coloured.search("".join(drawn(None, seen())))


def test_a_line_a_trial_where_nothing_can_be_drawn() -> None:
    out = io.StringIO()
    lines = TrialLines(Console(file=out, width=80))
    lines.draw(seen())
    (title, progress) = out.getvalue().splitlines()
    assert title.endswith("running") and "8 of 80" in progress
    out.truncate(out.seek(0))
    new = make_trial(8, POINTS[0], 15.5, "valid", ["steal 31 ms"])
    lines.draw(seen(trials=(*trials(), new)))
    assert out.getvalue() == "#8 planed p2p → 64 B MRR 15.50 17 % valid steal 31 ms\n"


@pytest.mark.parametrize(("term", "is_drawn"), [("dumb", False), ("xterm", True)])
def test_a_dumb_terminal_gets_lines(monkeypatch: pytest.MonkeyPatch, term: str, is_drawn: bool) -> None:
    out = io.StringIO()
    monkeypatch.setattr(out, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setenv("TERM", term)
    with watching._output(once=False, json_wanted=False) as draw:
        draw(seen())
    assert ("\x1b[?1049h" in out.getvalue()) == is_drawn and "8 of 80" in out.getvalue()


@pytest.fixture
def going(own_run_folder: Path) -> Iterator[RunWriter]:
    """A run that goes on, and is this process."""
    with RunWriter.create(own_run_folder, make_header()) as writer:
        for trial in trials():
            writer.append(trial)
        write_status(writer.path, status())
        yield writer


def test_once(planebench, going: RunWriter, quietly: dict[str, object]) -> None:
    done = planebench("watch", "--once")
    assert (done.code, done.err) == (0, "")
    assert "8 of 80 · 12 min left" in done.out and "\x1b" not in done.out
    assert quietly == {"nice": 19, "cpus": (0,)}, "off the cores of the switch"
    document = json.loads(planebench("watch", going.header.run_id, "--once", "--json").out)
    assert (document["state"], document["status"]["done"], document["trials"]) == ("running", 8, 8)
    assert document["verdicts"] == {"valid": 4, "tester-limited": 2, "invalid": 2}
    assert [r["throughput_pps"] is None for r in document["results"]] == [False, False, False, True]


def test_a_run_that_ended_is_said_to_have(planebench, own_run_folder: Path, quietly: object) -> None:
    store_run(own_run_folder, make_run())
    done = planebench("watch", "latest")
    assert done.code == 0
    assert "complete" in done.out and "planebench report 20261121-123356-quick" in done.out
    assert planebench("watch").code == 2, "without a name, one that goes on is meant"
    assert "no run in progress in" in planebench("watch").err


def test_a_killed_run_is_said_to_be_and_how_to_go_on(planebench, going: RunWriter, quietly: object) -> None:
    write_status(going.path, status(pid=1 << 22, pid_started_ticks=1))
    for arguments in ((), ("--once",), (going.header.run_id,)):
        done = planebench("watch", *arguments)
        assert done.code == 1
        assert "killed" in done.out and "its process 4194304 is gone; 8 trials are kept\n" in done.out
        assert "resume with: planebench run quick --switch planed,ovs-dpdk,testpmd --resume\n" in done.out
    going.finish("interrupted", "stopped by Ctrl-C or SIGTERM")
    done = planebench("watch", "latest")
    assert done.code == 1 and "interrupted" in done.out and "--resume" in done.out


def test_a_status_that_cannot_be_read_is_told(planebench, going: RunWriter, quietly: object) -> None:
    (going.path / "status.json").write_text('{"pid": ')
    done = planebench("watch", "latest", "--once")
    assert done.code == 1 and "status.json" in done.out and "#7" in done.out


@pytest.mark.parametrize("ended", [False, True])
def test_wait_is_for_a_run_that_begins(planebench, own_run_folder: Path, quietly: object, monkeypatch, ended) -> None:
    """It may have ended by the time that we look again."""
    store_run(own_run_folder, make_run(run_id="killed-long-ago"), finish=False)
    store_run(own_run_folder, make_run(run_id="ended-long-ago"))
    naps = []

    def nap(seconds: float) -> None:
        naps.append(seconds)
        if len(naps) == 2:
            with RunWriter.create(own_run_folder, make_header(run_id="fresh")) as writer:
                write_status(writer.path, status())
                if ended:
                    writer.finish()

    monkeypatch.setattr(watching.time, "sleep", nap)
    document = json.loads(planebench("watch", "--wait", "--once", "--json").out)
    assert (document["run"], naps) == ("fresh", [1.0, 1.0])


SIM = ("run", "quick", "--switch=sim:noise=1%,sim", "--scenario=p2p,v2v", "--frame-size=64", "--duration=0.02",
       "--loads=mrr:0.5", "--quiet", "--direction=bidirectional")  # fmt: skip


@pytest.fixture
def run(planebench, quietly: object, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Start a simulated run beside us."""
    monkeypatch.setattr(watching, "LOOK_S", 0.05)
    started = []

    def start(*more: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "planebench", *SIM, *more]
        started.append(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.communicate()


def test_a_run_is_watched_while_it_runs(planebench, run, own_run_folder: Path) -> None:
    process = run("--repeat=20")
    done = planebench("watch", "--wait", "--json")
    assert (done.code, done.err) == (0, f"waiting for a run to start in {own_run_folder}\n")
    assert (process.communicate()[1], process.returncode) == ("", 0)
    states = [json.loads(line) for line in done.out.splitlines()]
    assert {s["state"] for s in states[:-1]} <= {"running"} and states[-1]["state"] == "complete"
    told = [s["status"] for s in states[:-1]]
    assert {s["steps"] for s in told} <= {20 * 4 + 3 * 4}
    assert [s["done"] for s in told] == sorted(s["done"] for s in told)
    stored = (own_run_folder / states[0]["run"] / "trials.jsonl").read_text().splitlines()
    assert states[-1]["trials"] == len(stored) == 20 * 4 + 3 * 4
    assert not (own_run_folder / states[0]["run"] / "status.json").exists()


def test_a_run_is_killed_while_it_is_watched(planebench, run, own_run_folder: Path) -> None:
    process = run("--repeat=1000")

    def kill() -> None:
        while not list(own_run_folder.glob("*/status.json")):
            time.sleep(0.05)
        process.kill()
        process.wait()

    killer = threading.Thread(target=kill)
    killer.start()
    done = planebench("watch", "--wait", "--json")
    killer.join()
    assert done.code == 1
    assert json.loads(done.out.splitlines()[-1])["state"] == "killed"
