# SPDX-License-Identifier: BSD-3-Clause
"""kill -9 of one part of a run at a moment; then the run must be readable, go on, and have left nothing behind.

A run measures a chain through a container, or two kernel interfaces in a network namespace (root). Killed is the
harness (alone, or with its reaper), the switch, the VNF or the tester. After that whatever there is is read, the run is
resumed if it is unfinished, and what is left on the machine is listed.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import os
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from e2e_rig import PATIENCE_S, RAN, Bench, Run, assert_exact, state, urgent

from planebench.cli.output import report
from planebench.model.errors import UsageError
from planebench.store import find_run, read_run

REPEAT = 6
COMMON = ("--switch", "planed", "--repeat", str(REPEAT), "--quiet")
DURATION_S = 0.05
SEEN_S = 0.5
"""A trial, and one that has to be seen while it is measured: a look at all processes takes long on a busy machine."""
WAYS: Mapping[str, Sequence[str]] = {
    "container": ("--scenario", "loopback", "--chain-length", "1", "--hosting", "container"),
    "veth": ("--scenario", "p2p", "--wire", "veth"),
}
WORDS: Mapping[str, Sequence[str]] = {
    "reaper": ("reaper.py",),
    "tester": ("planed", "tester.json", "--rpc"),
    "switch": ("planed", "planed-switch.json", "--rpc"),
    "vnf": ("vnf0",),
}
"""What the command line of each part has."""
VICTIMS = ("harness", "harness and reaper", "switch", "vnf", "tester")
ENOUGH_S = 5.0
"""A random moment is at most that long after the first process is there."""


def _up(part: str) -> Callable[[Bench], object]:
    return lambda bench: bench.processes(*WORDS[part])


def _measuring(bench: Bench) -> bool:
    """A switch that is not measured is paused."""
    pids = bench.processes(*WORDS["switch"])
    return bool(pids) and all(state(pid) in ("R", "S") for pid in pids) and bool(bench.trials())


def _trials(count: int) -> Callable[[Bench], object]:
    return lambda bench: len(bench.trials()) >= count


MEASURED = "a trial is measured"
MOMENTS: Mapping[str, Callable[[Bench], object]] = {
    "the reaper is up": _up("reaper"),
    "the tester comes up": _up("tester"),
    "the switch comes up": _up("switch"),
    "the VNF comes up": _up("vnf"),
    "the first trial is stored": _trials(1),
    MEASURED: _measuring,
    "half of the trials are stored": _trials(REPEAT // 2),
    "the last trial is stored": _trials(REPEAT),
    "the run is finished": lambda bench: list(bench.runs.glob("*/finished.json")),
}
RANDOM = "a random moment"
_FIRST = ("the reaper is up", "the tester comes up")


@dataclass(frozen=True)
class Case:
    """Who is killed, and when."""

    way: str
    victim: str
    moment: str
    after_s: float = 0.0
    """Pick a random moment: after the first process is there."""


@dataclass(frozen=True)
class Verdict:
    """What became of a run. The texts are empty where all is well."""

    case: Case
    killed: bool
    stored: int
    """Trials that the killed run had stored."""
    unreadable: str
    not_resumed: str
    left: tuple[str, ...]

    @property
    def well(self) -> bool:
        return self.killed and not (self.unreadable or self.not_resumed or self.left)


def cases(count: int, seed: int, root: bool) -> Iterator[Case]:
    """Yield cases: named moments in turn for each victim that is there then, every third one a random moment."""
    chosen = random.Random(seed)
    ways = tuple(WAYS) if root else ("container",)
    named = [(victim, moment) for moment in MOMENTS for victim in VICTIMS if _possible(victim, moment)]
    chosen.shuffle(named)
    turns = itertools.cycle(named)
    for number in range(count):
        random_moment = number % 3 == 2
        victim, moment = (chosen.choice(VICTIMS), RANDOM) if random_moment else next(turns)
        way = "container" if victim == "vnf" or "VNF" in moment else chosen.choice(ways)
        yield Case(way, victim, moment, chosen.uniform(0.0, ENOUGH_S) if random_moment else 0.0)


def _possible(victim: str, moment: str) -> bool:
    """Return whether the victim is there at that moment; at the end only the harness is."""
    if victim.startswith("harness"):
        return True
    if moment == "the run is finished" or moment == _FIRST[0] or (moment == _FIRST[1] and victim != "tester"):
        return False
    return not (victim == "vnf" and moment == "the switch comes up")


def crash(case: Case, runs: Path, cache: Path) -> Verdict:
    """Run, kill, read, resume, look. Raises AssertionError only where the run does not get to the moment at all."""
    bench = Bench(runs, env={"XDG_CACHE_HOME": str(cache)})
    duration_s = SEEN_S if case.moment == MEASURED else DURATION_S
    arguments = ("run", bench.plan, *COMMON, "--duration", str(duration_s), *WAYS[case.way])
    try:
        process = bench.start(*arguments)
        killed = _kill(bench, process, case)
        _, err = process.communicate(timeout=PATIENCE_S)
        stored = len(bench.trials())
        unreadable = _unreadable(bench) or ("a traceback:\n" + err if "Traceback" in err else "")
        not_resumed = _not_resumed(bench, arguments)
        return Verdict(case, killed, stored, unreadable, not_resumed, tuple(_left(bench)))
    finally:
        bench.close()
        shutil.rmtree(runs, ignore_errors=True)


def _kill(bench: Bench, process: Run, case: Case) -> bool:
    """Wait for the moment and kill; False where the run ended before, or the victim was not there at that moment.

    A switch runs while it is stopped, too, when its VNF may be gone: the moment counts only if the victim is there.
    """
    pids: list[int] = []

    def there() -> bool:
        pids[:] = _pids(bench, process, case.victim) if MOMENTS[case.moment](bench) else []
        return bool(pids)

    with contextlib.suppress(AssertionError), urgent():
        if case.moment == RANDOM:
            bench.wait_for(lambda: bench.processes(*WORDS["reaper"]), "the first process", process)
            time.sleep(case.after_s)
            pids[:] = _pids(bench, process, case.victim)
        else:
            bench.wait_for(there, case.moment, process)
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return bool(pids)
    return False


def _pids(bench: Bench, process: Run, victim: str) -> list[int]:
    if not victim.startswith("harness"):
        return bench.processes(*WORDS[victim])
    harness = [process.pid] if process.poll() is None else []
    reapers = bench.processes(*WORDS["reaper"]) if "reaper" in victim else []
    return [*reapers, *harness]


def _unreadable(bench: Bench) -> str:
    """Return why what there is cannot be read; each trial that counts must add up."""
    if not list(bench.runs.glob("*/run.json")):
        try:
            report("latest", None, bench.runs, quiet=True)
        except UsageError:
            return ""
        return "a report of no run"
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            report("latest", None, bench.runs)
        assert len(read_run(find_run(bench.runs, "latest")).trials) == len(bench.trials())
        for trial in bench.trials():
            if trial["verdict"]["kind"] != "invalid":
                assert_exact(trial)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""


def _not_resumed(bench: Bench, arguments: Sequence[object]) -> str:
    """Go on where the run ended, or begin if there is none; return why that does not lead to a complete run."""
    runs = list(bench.runs.glob("*/run.json"))
    if runs and list(bench.runs.glob("*/finished.json")) and (bench.finished() or {}).get("status") == "complete":
        return ""
    before = bench.trials()
    try:
        process = bench.start(*arguments, *(("--resume",) if runs else ()))
        _, err = process.communicate(timeout=PATIENCE_S)
    except subprocess.TimeoutExpired:
        return "the resumed run does not end"
    if process.returncode not in RAN or (bench.finished() or {}).get("status") != "complete":
        return f"exit code {process.returncode}: {err}"
    return "" if bench.trials()[: len(before)] == before else "trials of the killed run have changed"


def _left(bench: Bench) -> list[str]:
    """Return what is left 20 s after the next start: processes, sockets, namespaces, files, control groups."""
    try:
        bench.assert_nothing_left()
    except AssertionError as error:
        return [str(error)]
    return []
