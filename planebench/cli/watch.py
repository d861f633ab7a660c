# SPDX-License-Identifier: BSD-3-Clause
"""``planebench watch``: follow a run from another terminal without disturbing it (docs/watch.md)."""

from __future__ import annotations

import contextlib
import os
import select
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from inotify_simple import INotify, flags
from rich.console import Console

from planebench.cli.watch_show import JsonLines, Lines, Once, Screen, Show
from planebench.model.errors import UsageError
from planebench.running.machine import terminable
from planebench.store import default_runs_dir, find_run, list_runs
from planebench.store.folder import FINISHED_FILE, STATUS_FILE
from planebench.store.follow import Follower, Seen
from planebench.store.status import live_runs

LOOK_S = 1.0
"""How often to look where the kernel does not report changes: no inotify left, a process of another namespace."""
_EVENTS = flags.MOVED_TO | flags.DELETE_SELF | flags.MOVE_SELF
"""status.json and finished.json come by a rename; a line in trials.jsonl wakes nobody."""
ENDED_EARLY = 1
"""Exit code for a run that was killed or interrupted."""
NICE = 19


@dataclass
class _Cost:
    """The CPU time that this process takes for watching."""

    begun_s: float = field(default_factory=time.monotonic)
    begun_cpu_s: float = field(default_factory=time.process_time)
    changes: int = 0

    def words(self) -> str:
        """Return the cost from the second look on, because the first reads the whole run."""
        self.changes += 1
        if self.changes == 1:
            return "Ctrl-C stops watching, not the run"
        cpu_s, took_s = time.process_time() - self.begun_cpu_s, time.monotonic() - self.begun_s
        each_ms = cpu_s / (self.changes - 1) * 1e3
        return f"takes {cpu_s / max(took_s, 1e-9):.1%} of a core, {each_ms:.0f} ms per change · Ctrl-C stops watching"


def watch(run: str | None, runs: Path | None, *, once: bool = False, wait: bool = False, json: bool = False) -> int:
    """Show a run until it ends, or ``once``. Exit code: 0; 1 if it was killed or interrupted.

    ``wait`` for a run to start if none is in progress. Raises UsageError where there is no such run, StoreError for a
    folder that cannot be read.
    """
    with terminable():
        os.setpriority(os.PRIO_PROCESS, 0, NICE)
        folder = _choose(run, runs or default_runs_dir(), wait)
        return _follow(folder, _show(once=once, json=json), once)


def _follow(folder: Path, output: Show, once: bool) -> int:
    follower = Follower(folder)
    with Changes(folder) as changes, output as show:
        seen = _draw(show, follower, cost := _Cost())
        while seen.state == "running" and not once:
            changes.wait(seen.status.pid if seen.status else None)
            seen = _draw(show, follower, cost)
    return 0 if seen.state in ("running", "complete") else ENDED_EARLY


def _draw(show: Show, follower: Follower, cost: _Cost) -> Seen:
    """Draw the run as it is now, on the CPUs of the harness, away from the switch, as far as allowed."""
    seen = follower.look()
    if seen.state == "running" and seen.status is not None:
        with contextlib.suppress(OSError, ValueError):
            os.sched_setaffinity(0, seen.status.cpus)
    show.draw(seen, cost.words())
    return seen


def _choose(run: str | None, runs_dir: Path, wait: bool) -> Path:
    """Return the run that is named; else the newest in progress; else the newest that did not finish."""
    if run is not None:
        return find_run(runs_dir, run)
    live = live_runs(runs_dir)
    if wait and not live:
        return _await_run(runs_dir)
    unfinished = [info.path for info in list_runs(runs_dir) if info.finished is None] if not live else []
    found = [*live, *reversed(unfinished)]
    if not found:
        raise UsageError(
            f"no run in progress in {runs_dir}. Specify a run (`planebench list runs`), give its folder with --runs, "
            "or wait for one with --wait"
        )
    return found[0]


def _await_run(runs_dir: Path) -> Path:
    """Return the next run that begins here, also one that has ended by the time we look."""
    print(f"waiting for a run to start in {runs_dir}", file=sys.stderr, flush=True)
    known = set(_known(runs_dir))
    while not (found := live_runs(runs_dir) or [folder for folder in _known(runs_dir) if folder not in known]):
        time.sleep(LOOK_S)
    return found[0]


def _known(runs_dir: Path) -> list[Path]:
    """Return the folders of runs with a status or an end."""
    return [path.parent for name in (STATUS_FILE, FINISHED_FILE) for path in runs_dir.glob(f"*/{name}")]


def _show(*, once: bool, json: bool) -> Show:
    if json:
        return JsonLines(indent=1 if once else None)
    console = Console(markup=False, highlight=False)
    if once:
        return Once(console)
    drawable = console.is_terminal and not console.is_dumb_terminal and sys.stdout.isatty()
    return Screen(console) if drawable else Lines(console)


class Changes:
    """Waits for a change of a run, using no CPU time: inotify on its folder, a pidfd on its process."""

    def __init__(self, folder: Path) -> None:
        self._stack = contextlib.ExitStack()
        self._inotify: INotify | None = None
        self._pid: int | None = None
        self._poll = select.poll()
        with contextlib.suppress(OSError):
            self._inotify = self._stack.enter_context(INotify(nonblocking=True))
            self._inotify.add_watch(folder, _EVENTS)
            self._poll.register(self._inotify, select.POLLIN)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def wait(self, pid: int | None) -> None:
        """Sleep until something may have changed. ``pid`` is the process of the run, which ``--resume`` may change."""
        sure = self._watch_process(pid) and self._inotify is not None
        self._poll.poll(None if sure else LOOK_S * 1000)
        if self._inotify is not None:
            with contextlib.suppress(OSError):
                self._inotify.read(timeout=0)

    def _watch_process(self, pid: int | None) -> bool:
        """Return whether the end of the process will wake us."""
        if pid is None or pid == self._pid:
            return pid is not None
        try:
            fd = os.pidfd_open(pid)
        except OSError:
            return False
        self._stack.callback(os.close, fd)
        self._poll.register(fd, select.POLLIN)
        self._pid = pid
        return True
